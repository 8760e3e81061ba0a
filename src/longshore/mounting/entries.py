"""The tools, resources and prompts of a mounted server as entries of our catalog."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from longshore.errors import BadAnswer, ClientError, ProtocolError, RegistrationError, ServerError, ToolError
from longshore.invisible import CONTROLS, MARKS, TAGS
from longshore.protocol.content import CallResult, lower_block
from longshore.protocol.peer import SERVER_INFO
from longshore.protocol.revisions import PROMPT, RESOURCE, TEMPLATE, TOOL
from longshore.registry.catalog import Part
from longshore.registry.resource import Template, TemplateProblem
from longshore.registry.source_location import caller
from longshore.registry.tool import ILLEGAL, Effects, Entry, report_problem
from longshore.schema.header_params import HeaderProblem, header_params
from longshore.schema.kinds import NAME_CHARACTERS, is_array, is_object
from longshore.schema.repair import RepairResult
from longshore.wire.codec import BROKEN, INVALID_PARAMS

if TYPE_CHECKING:
    from longshore.client.client import Client
    from longshore.client.models import PromptInfo, ResourceInfo, TemplateInfo, ToolInfo
    from longshore.registry.toolset import ToolsetHandle

ENTRIES = 1000
"""Entries of one kind that a mounted server may have. No model chooses well among a tenth of that."""
ENTRY_BYTES = 64 << 10
"""One definition. A longer one is an attempt to fill the model's context."""
LIST_BYTES = 4 << 20
"""All definitions of one kind. Every client of ours gets them with each list."""
MAX_PREFIX_CHARACTERS = 24
"""Leaves 39 for the name behind it, which is more than nine of ten names have."""
_DIGEST_CHARACTERS = 8
_INVISIBLE = re.compile(f"[{CONTROLS}{MARKS}{TAGS}]")
REFUSED = (ServerError, BadAnswer)
"""How a list fails at a server that is there. Any other error is a lost connection."""

_read_object = msgspec.json.Decoder(dict[str, Any]).decode
_read_texts = msgspec.json.Decoder(dict[str, str]).decode
_encode = msgspec.json.Encoder().encode
T = TypeVar("T")
Timeout = float | Literal[False] | None


class Forwarder(Protocol):
    """Forwards a request to the server, and gives the result's record."""

    def call_tool(self, name: str, arguments: Any, call: Any) -> Awaitable[dict[str, Any]]: ...
    def ask(self, method: str, params: dict[str, Any], call: Any) -> Awaitable[dict[str, Any]]: ...


class Unusable(Exception):
    """A definition that can't be used, and why."""


class RemoteList(Struct):
    """One list of a server. `definitions` are the used ones as the server wrote them, to see whether they change."""

    part: Part
    entries: dict[str, Entry]
    definitions: dict[str, Any]
    left_out: list[str]


async def read_list(client: Client, part: str, entries: RemoteEntries) -> RemoteList:
    """Read one of a server's lists. Raises ClientError."""
    match part:
        case "tools":
            tools = await client.list_tools(fresh=True)
            made = dict(entries.tools(tools))
            return RemoteList("tools", made, {each.name: each.record for each in tools}, entries.left_out)
        case "prompts":
            return await _read_prompts(client, entries)
        case _:
            return await _read_resources(client, entries)


async def _read_prompts(client: Client, entries: RemoteEntries) -> RemoteList:
    found = await client.list_prompts(fresh=True)
    made = dict(entries.prompts(found))
    if client.server.can("completions"):
        for own, entry in made.items():
            entries.complete({"type": "ref/prompt", "name": entries.remote_names[own]}, entry)
    return RemoteList("prompts", made, {each.name: each.record for each in found}, entries.left_out)


async def _read_resources(client: Client, entries: RemoteEntries) -> RemoteList:
    """Resources and templates are two lists there and one here. Many servers have only one of them."""
    fixed, no_fixed = await _try(client.list_resources(fresh=True))
    templates, no_templates = await _try(client.list_templates(fresh=True))
    if no_fixed is not None and no_templates is not None:
        raise no_fixed
    made = {**dict(entries.resources(fixed)), **dict(entries.templates(templates))}
    if client.server.can("completions"):
        for own, entry in made.items():
            entries.complete({"type": "ref/resource", "uri": own}, entry)
    definitions = {each.uri: each.record for each in fixed} | {each.uri_template: each.record for each in templates}
    for kind, problem in (("resources", no_fixed), ("templates", no_templates)):
        if problem is not None:
            entries.left_out.append(unlisted(kind, problem))
    return RemoteList("resources", made, definitions, entries.left_out)


def unlisted(kind: str, problem: ClientError) -> str:
    return f"all {kind}: {problem.what[:200]}"


async def _try(listing: Awaitable[list[T]]) -> tuple[list[T], ClientError | None]:
    """A list, or nothing and why: the server may have no such list, or a malformed one."""
    try:
        return await listing, None
    except REFUSED as problem:
        return [], problem


class RemoteEntries:
    """Makes entries of one server's definitions. Unusable ones are left out; `left_out` says why."""

    def __init__(
        self,
        prefix: str,
        holder: ToolsetHandle,
        forwarder: Forwarder,
        timeout: Timeout,
        aliases: Callable[[str], tuple[str, ...]],
    ) -> None:
        self._prefix, self._holder, self._forwarder, self._timeout = prefix, holder, forwarder, timeout
        self._aliases = aliases
        self.left_out: list[str] = []
        self.remote_names: dict[str, str] = {}
        """The name of a tool or prompt here -> at the server."""

    def tools(self, found: list[ToolInfo]) -> Iterator[tuple[str, Entry]]:
        yield from self._each("tool", found, self._tool)

    def prompts(self, found: list[PromptInfo]) -> Iterator[tuple[str, Entry]]:
        yield from self._each("prompt", found, self._prompt)

    def resources(self, found: list[ResourceInfo]) -> Iterator[tuple[str, Entry]]:
        yield from self._each("resource", found, self._resource)

    def templates(self, found: list[TemplateInfo]) -> Iterator[tuple[str, Entry]]:
        yield from self._each("template", found, self._template)

    def complete(self, ref: dict[str, str], entry: Entry) -> None:
        """Have the server complete the arguments of a prompt or template."""
        entry.completions = {name: self._completion(ref, entry.key, name) for name in entry.parameters}

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
                    raise Unusable("another one has the same name")
            except Unusable as problem:
                self._leave_out(f"the {kind} {info.name[:100]!r}: {problem}")
                continue
            seen.add(name)
            total += size
            yield name, made

    def _leave_out(self, text: str) -> None:
        if text not in self.left_out and len(self.left_out) < ENTRIES:
            self.left_out.append(text)

    # -- each kind of entry

    def _tool(self, info: ToolInfo) -> tuple[str, Entry]:
        execution: Any = info.record.get("execution")
        if is_object(execution) and execution.get("taskSupport") == "required":
            raise Unusable("it can only be called as a task, which is not done here")
        if info.input_schema.get("type") != "object":
            raise Unusable("its input schema has no object at its root")
        try:
            headers = header_params(info.input_schema)
        except HeaderProblem as problem:
            raise Unusable(problem.what) from None
        name, theirs, forwarder = self._name(info.name), info.name, self._forwarder
        entry = self._entry("tool", name, info.record, TOOL)
        entry.decode = _read_arguments if headers else _take_arguments
        entry.explain = lambda _, __: RepairResult(faults=("arguments must be an object",))
        entry.invoke = lambda arguments, call: forwarder.call_tool(theirs, arguments, call)
        entry.render = self._result
        entry.headers, entry.raw, entry.replay = headers, True, True
        entry.aliases = tuple(mounted_name(self._prefix, alias) for alias in self._aliases(theirs))
        entry.effects = _effects(info.annotations)
        entry.idempotent = info.annotations.get("idempotentHint") is True
        return name, entry

    def _prompt(self, info: PromptInfo) -> tuple[str, Entry]:
        name, theirs, forwarder = self._name(info.name), info.name, self._forwarder
        if not all(isinstance(each.get("name"), str) for each in info.arguments):
            raise Unusable("an argument has no name")
        entry = self._entry("prompt", name, info.record, PROMPT)
        entry.decode = _take_texts
        entry.invoke = lambda texts, call: forwarder.ask("prompts/get", {"name": theirs, "arguments": texts}, call)
        entry.render = self._messages
        entry.parameters = {each["name"]: str for each in info.arguments}
        return name, entry

    def _resource(self, info: ResourceInfo) -> tuple[str, Entry]:
        return self._readable(info.uri, info.name, info.record, RESOURCE, fixed=True)

    def _template(self, info: TemplateInfo) -> tuple[str, Entry]:
        return self._readable(info.uri_template, info.name, info.record, TEMPLATE, fixed=False)

    def _readable(self, uri: str, name: str, record: dict[str, Any], fields: Any, *, fixed: bool) -> tuple[str, Entry]:
        try:
            template = Template(uri)
        except TemplateProblem as problem:
            raise Unusable(problem.what) from None
        if fixed is bool(template.names):
            raise Unusable(f"{uri[:100]!r} is {'a template' if fixed else 'no template'}")
        forwarder = self._forwarder
        entry = self._entry("resource", name, record, fields)
        entry.invoke = lambda reading, call: forwarder.ask("resources/read", {"uri": reading.uri}, call)
        entry.render = self._contents
        entry.parameters = dict.fromkeys(template.names, str)
        entry.uri, entry.template = uri, template if template.names else None
        return uri, entry

    def _completion(self, ref: dict[str, str], own: str, argument: str) -> Entry:
        forwarder = self._forwarder

        def complete(wanted: Any, call: Any) -> Awaitable[dict[str, Any]]:
            params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": wanted.value}}
            if wanted.given:
                params["context"] = {"arguments": wanted.given}
            return forwarder.ask("completion/complete", params, call)

        entry = self._entry("completion", f"{own} {argument}", {}, {})
        entry.invoke = complete
        entry.render = self._completed
        return entry

    def _name(self, name: str) -> str:
        if not name:
            raise Unusable("it has no name")
        own = mounted_name(self._prefix, name)
        self.remote_names.setdefault(own, name)
        return own

    def _entry(self, kind: Any, name: str, record: dict[str, Any], fields: Any) -> Entry:
        described = visible_in({key: value for key, value in record.items() if key in fields})
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

    # -- results

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
    size = len(_encode(record))
    if size > ENTRY_BYTES:
        raise Unusable(f"its definition takes {size:,} bytes, and may take {ENTRY_BYTES:,}")
    return size


def _effects(hints: dict[str, Any]) -> Effects | None:
    """The effects that the server declares for a tool. They are unchecked."""
    if hints.get("readOnlyHint") is True:
        return "read"
    if hints.get("destructiveHint") is True:
        return "destroy"
    return "write" if hints.get("readOnlyHint") is False else None


def _take_arguments(raw: Any) -> Any:
    """The arguments as they were written: the server that declares them checks them."""
    text = bytes(raw).strip()
    if text == b"null":
        return Raw(b"{}")
    if text[:1] != b"{":
        raise msgspec.ValidationError("arguments must be an object")
    return Raw(text)


def _read_arguments(raw: Any) -> Any:
    """The decoded arguments of a tool that has some of them repeated in headers."""
    return _read_object(bytes(_take_arguments(raw)))


def _take_texts(raw: Any) -> dict[str, str]:
    try:
        return {} if bytes(raw) == b"null" else _read_texts(raw)
    except BROKEN:
        raise ProtocolError(INVALID_PARAMS, "prompt arguments are an object of strings") from None


def _unset(*_: Any) -> Any:
    raise AssertionError("an entry of a mounted server without its functions")


# -- names


def check_prefix(prefix: Any, mounted: Iterable[str]) -> None:
    """Refuse a prefix that no name may have, or by which two mounts could make the same name."""
    if not isinstance(prefix, str) or not re.fullmatch(rf"[A-Za-z0-9_-]{{1,{MAX_PREFIX_CHARACTERS}}}", prefix):
        what = f"{prefix!r} can't be a prefix: 1 to {MAX_PREFIX_CHARACTERS} of A-Z a-z 0-9 _ -"
        raise RegistrationError(caller(), what, 'app.mount(…, prefix="files")')
    for other in mounted:
        first, second = sorted((prefix, other), key=len)
        if second.startswith(first + "_"):
            what = f"the prefixes {first!r} and {second!r} could give two tools one name"
            raise RegistrationError(caller(), what, "take a prefix that is not the beginning of another")


def mounted_name(prefix: str, name: str) -> str:
    """The name here, `files_read` of `read`. One too long or with illegal characters is cut and gets a digest."""
    whole = f"{prefix}_{name}"
    fit = ILLEGAL.sub("_", whole)
    if fit == whole and len(whole) <= NAME_CHARACTERS:
        return whole
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{fit[: NAME_CHARACTERS - 1 - _DIGEST_CHARACTERS]}_{digest}"


def visible(text: str) -> str:
    """The text without the characters that only a model sees."""
    return _INVISIBLE.sub("", text)


def visible_in(part: Any) -> Any:
    """A definition with all its titles and descriptions as a person sees them."""
    if isinstance(part, list):
        return [visible_in(each) for each in part]  # pyright: ignore[reportUnknownVariableType]
    if not isinstance(part, dict):
        return part
    return {key: _visible_value(key, value) for key, value in part.items()}  # pyright: ignore[reportUnknownVariableType]


def _visible_value(key: Any, value: Any) -> Any:
    return visible(value) if key in ("title", "description") and isinstance(value, str) else visible_in(value)
