"""Definitions of a mounted server as entries of our catalog: how each is described here, and how a use is passed on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
from msgspec import UNSET, Raw

from longshore.errors import ProtocolError, ToolError
from longshore.mounting.names import mounted_name, seen_in
from longshore.protocol.content import CallResult, lower_block
from longshore.protocol.peer import SERVER_INFO
from longshore.protocol.revisions import PROMPT, RESOURCE, TEMPLATE, TOOL
from longshore.registry.resource import Resource, Template, TemplateProblem
from longshore.registry.tool import Effects, Entry, report_problem
from longshore.schema.header_params import HeaderProblem, header_params
from longshore.schema.kinds import is_array, is_object
from longshore.schema.repair import RepairResult
from longshore.wire.codec import BROKEN, INVALID_PARAMS

if TYPE_CHECKING:
    from longshore.client.records import PromptInfo, ResourceInfo, TemplateInfo, ToolInfo
    from longshore.registry.toolset import ToolsetHandle

ENTRIES = 1000
"""Things of one kind that a mounted server may bring. No model chooses well among a tenth of that."""
ENTRY_BYTES = 64 << 10
"""One definition. What is longer is no description but an attempt to fill the model's memory."""
LIST_BYTES = 4 << 20
"""All definitions of one kind. Every client of ours gets them with each list."""

_read_object = msgspec.json.Decoder(dict[str, Any]).decode
_read_texts = msgspec.json.Decoder(dict[str, str]).decode
_size = msgspec.json.Encoder().encode


class Passing(Protocol):
    """Who passes a use on to the server, and gives back the result's record."""

    def call_tool(self, name: str, arguments: Any, call: Any) -> Awaitable[dict[str, Any]]: ...
    def ask(self, method: str, params: dict[str, Any], call: Any) -> Awaitable[dict[str, Any]]: ...


class Unfit(Exception):
    """A definition that can't be used, and why."""


class Parts:
    """Makes entries of one mounted server's definitions. What can't be used is left out; `left_out` says why."""

    def __init__(
        self,
        prefix: str,
        holder: ToolsetHandle,
        passing: Passing,
        timeout: float | Literal[False] | None,
        aliases: Callable[[str], tuple[str, ...]],
    ) -> None:
        self._prefix, self._holder, self._passing, self._timeout = prefix, holder, passing, timeout
        self._aliases = aliases
        self.left_out: list[str] = []
        self.theirs: dict[str, str] = {}
        """What tools and prompts are called there, by what they are called here."""

    def tools(self, found: list[ToolInfo]) -> Iterator[tuple[str, Entry]]:
        yield from self._each("tool", found, self._tool)

    def prompts(self, found: list[PromptInfo]) -> Iterator[tuple[str, Entry]]:
        yield from self._each("prompt", found, self._prompt)

    def resources(self, found: list[ResourceInfo]) -> Iterator[tuple[str, Resource]]:
        yield from self._each("resource", found, self._resource)

    def templates(self, found: list[TemplateInfo]) -> Iterator[tuple[str, Resource]]:
        yield from self._each("template", found, self._template)

    def completions(self, ref: dict[str, str], own: str, arguments: list[str]) -> dict[tuple[str, str], Entry]:
        return {(own, argument): self._completion(ref, own, argument) for argument in arguments}

    def _each(self, kind: str, found: list[Any], make: Callable[[Any], tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
        seen: set[str] = set()
        total = 0
        for info in found:
            try:
                size = _fits(info.record)
                if len(seen) >= ENTRIES or total + size > LIST_BYTES:
                    rest = len(found) - len(seen)
                    self._leave_out(f"{rest} more {kind}s: it may bring {ENTRIES} that take {LIST_BYTES:,} bytes")
                    return
                name, made = make(info)
                if name in seen:
                    raise Unfit("another one has the same name")
            except Unfit as problem:
                self._leave_out(f"the {kind} {info.name[:100]!r}: {problem}")
                continue
            seen.add(name)
            total += size
            yield name, made

    def _leave_out(self, text: str) -> None:
        if text not in self.left_out and len(self.left_out) < ENTRIES:
            self.left_out.append(text)

    # -- one of each kind

    def _tool(self, info: ToolInfo) -> tuple[str, Entry]:
        execution: Any = info.record.get("execution")
        if is_object(execution) and execution.get("taskSupport") == "required":
            raise Unfit("it can only be called as a task, which is not done here")
        if info.input_schema.get("type") != "object":
            raise Unfit("its input schema has no object at its root")
        try:
            headers = header_params(info.input_schema)
        except HeaderProblem as problem:
            raise Unfit(problem.what) from None
        name, theirs, passing = self._name(info.name), info.name, self._passing
        entry = self._entry("tool", name, info.record, TOOL)
        entry.decode = _read_arguments if headers else _take_arguments
        entry.explain = lambda _, __: RepairResult(faults=("arguments must be an object",))
        entry.invoke = lambda arguments, call: passing.call_tool(theirs, arguments, call)
        entry.render = self._result
        entry.headers, entry.raw, entry.replay = headers, True, True
        entry.aliases = tuple(mounted_name(self._prefix, alias) for alias in self._aliases(theirs))
        entry.effects = _effects(info.annotations)
        entry.idempotent = info.annotations.get("idempotentHint") is True
        return name, entry

    def _prompt(self, info: PromptInfo) -> tuple[str, Entry]:
        name, theirs, passing = self._name(info.name), info.name, self._passing
        if not all(isinstance(each.get("name"), str) for each in info.arguments):
            raise Unfit("an argument has no name")
        entry = self._entry("prompt", name, info.record, PROMPT)
        entry.decode = _take_texts
        entry.invoke = lambda texts, call: passing.ask("prompts/get", {"name": theirs, "arguments": texts}, call)
        entry.render = self._messages
        entry.parameters = {each["name"]: str for each in info.arguments}
        return name, entry

    def _resource(self, info: ResourceInfo) -> tuple[str, Resource]:
        return self._readable(info.uri, info.name, info.record, RESOURCE, fixed=True)

    def _template(self, info: TemplateInfo) -> tuple[str, Resource]:
        return self._readable(info.uri_template, info.name, info.record, TEMPLATE, fixed=False)

    def _readable(
        self, uri: str, name: str, record: dict[str, Any], fields: Any, *, fixed: bool
    ) -> tuple[str, Resource]:
        try:
            template = Template(uri)
        except TemplateProblem as problem:
            raise Unfit(problem.what) from None
        if fixed is bool(template.names):
            raise Unfit(f"{uri[:100]!r} is {'a template' if fixed else 'no template'}")
        passing = self._passing
        entry = self._entry("resource", name, record, fields)
        entry.invoke = lambda reading, call: passing.ask("resources/read", {"uri": reading.uri}, call)
        entry.render = self._contents
        entry.parameters = dict.fromkeys(template.names, str)
        return uri, Resource(template=template, entry=entry, max_age=0.0)

    def _completion(self, ref: dict[str, str], own: str, argument: str) -> Entry:
        passing = self._passing

        def complete(wanted: Any, call: Any) -> Awaitable[dict[str, Any]]:
            params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": wanted.value}}
            if wanted.given:
                params["context"] = {"arguments": wanted.given}
            return passing.ask("completion/complete", params, call)

        entry = self._entry("completion", f"{own} {argument}", {}, {})
        entry.category = ref["type"]
        entry.invoke = complete
        entry.render = self._completed
        return entry

    def _name(self, name: str) -> str:
        if not name:
            raise Unfit("it has no name")
        own = mounted_name(self._prefix, name)
        self.theirs.setdefault(own, name)
        return own

    def _entry(self, kind: Any, name: str, record: dict[str, Any], fields: Any) -> Entry:
        described = seen_in({key: value for key, value in record.items() if key in fields})
        if kind in ("tool", "prompt"):
            described["name"] = name
        return Entry(
            kind=kind,
            name=name,
            where=f"mounted {self._prefix}",
            run="async",
            decode=lambda given: given,
            invoke=_unset,
            render=_unset,
            explain=report_problem,
            describe=lambda: described,
            toolset=self._holder,
            timeout=self._timeout,
            effects="read",
        )

    # -- results, as they came

    def _result(self, record: dict[str, Any], _: Any) -> CallResult:
        content: Any = record.get("content", [])
        if not is_array(content) or not all(is_object(block) for block in content):
            raise ToolError(f"{self._prefix} answered with something that is no result of a tool")
        meta: Any = record.get("_meta")
        kept = {key: value for key, value in meta.items() if key != SERVER_INFO} if is_object(meta) else {}
        failed = record.get("isError")
        return CallResult(
            content,
            record.get("structuredContent", UNSET),
            failed if isinstance(failed, bool) else UNSET,
            kept or UNSET,
        )

    def _contents(self, record: dict[str, Any], _: Any) -> dict[str, Any]:
        contents: Any = record.get("contents")
        if not is_array(contents) or not all(is_object(each) for each in contents):
            raise ToolError(f"{self._prefix} answered with something that is no resource")
        return {"contents": contents}

    def _messages(self, record: dict[str, Any], call: Any) -> dict[str, Any]:
        messages: Any = record.get("messages")
        if not is_array(messages) or not all(is_object(each) and is_object(each.get("content")) for each in messages):
            raise ToolError(f"{self._prefix} answered with something that is no prompt")
        revision = call.peer.revision
        lowered = [{**each, "content": lower_block(each["content"], revision)} for each in messages]
        text = record.get("description")
        return {"description": text, "messages": lowered} if isinstance(text, str) else {"messages": lowered}

    def _completed(self, record: dict[str, Any], _: Any) -> dict[str, Any]:
        completion: Any = record.get("completion")
        if not is_object(completion) or not is_array(completion.get("values")):
            raise ToolError(f"{self._prefix} answered with something that is no completion")
        return {"completion": completion}


def _fits(record: dict[str, Any]) -> int:
    size = len(_size(record))
    if size > ENTRY_BYTES:
        raise Unfit(f"its definition takes {size:,} bytes, and may take {ENTRY_BYTES:,}")
    return size


def _effects(hints: dict[str, Any]) -> Effects | None:
    """What the server says of a tool. Nobody has checked it."""
    if hints.get("readOnlyHint") is True:
        return "read"
    if hints.get("destructiveHint") is True:
        return "destroy"
    return "write" if hints.get("readOnlyHint") is False else None


def _take_arguments(raw: Any) -> Any:
    """The arguments as they were written, to be sent on as they are: the server that knows them checks them."""
    text = bytes(raw).strip()
    if text == b"null":
        return Raw(b"{}")
    if text[:1] != b"{":
        raise msgspec.ValidationError("arguments must be an object")
    return Raw(text)


def _read_arguments(raw: Any) -> Any:
    """The arguments of a tool some of which travel in headers too, which have to be found in them."""
    return _read_object(bytes(_take_arguments(raw)))


def _take_texts(raw: Any) -> dict[str, str]:
    try:
        return {} if bytes(raw) == b"null" else _read_texts(raw)
    except BROKEN:
        raise ProtocolError(INVALID_PARAMS, "prompt arguments are an object of strings") from None


def _unset(*_: Any) -> Any:
    raise AssertionError("an entry of a mounted server without a way to it")
