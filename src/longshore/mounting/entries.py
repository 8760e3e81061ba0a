"""The tools, resources and prompts of a mounted server as entries of our catalog."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct

from longshore.errors import BadAnswer, ClientError, ProtocolError, ServerError, ToolError
from longshore.invisible import CONTROLS, MARKS, TAGS
from longshore.protocol.content import CallResult, lower_block
from longshore.protocol.peer import SERVER_INFO
from longshore.protocol.revisions import PROMPT, RESOURCE, TEMPLATE, TOOL
from longshore.registry.catalog import Part
from longshore.registry.resource import Template, TemplateProblem
from longshore.registry.tool import ILLEGAL, Effects, Entry, report_problem
from longshore.schema.header_params import HeaderProblem, header_params
from longshore.schema.kinds import NAME_CHARACTERS, as_object, is_array, is_object
from longshore.schema.repair import RepairResult
from longshore.wire.codec import BROKEN, INVALID_PARAMS

if TYPE_CHECKING:
    from longshore.client.client import Client
    from longshore.client.models import PromptInfo, ResourceInfo, TemplateInfo, ToolInfo
    from longshore.mounting.mount import Mount

ENTRIES = 1000
"""Entries of one kind that a mounted server may have. No model chooses well among a tenth of that."""
ENTRY_BYTES = 64 << 10
"""One definition. A longer one is an attempt to fill the model's context."""
LIST_BYTES = 4 << 20
"""All definitions of one kind. Every client of ours gets them with each list."""
_DIGEST_CHARACTERS = 8
_INVISIBLE = re.compile(f"[{CONTROLS}{MARKS}{TAGS}]")
REFUSED = (ServerError, BadAnswer)
"""How a list fails at a server that is there. Any other error is a lost connection."""

_read_object = msgspec.json.Decoder(dict[str, Any]).decode
_read_texts = msgspec.json.Decoder(dict[str, str]).decode
_encode = msgspec.json.Encoder().encode
T = TypeVar("T")
Record = dict[str, Any]


class Unusable(Exception):
    """A definition that can't be used: the reason."""


class RemoteList(Struct):
    """One list of a server."""

    part: Part
    entries: dict[str, Entry]
    definitions: dict[str, Any]
    """The definitions as the server wrote them, to see whether they change."""
    left_out: list[str]
    taken: list[str] = []
    """The names that other entries have."""


async def read_list(client: Client, part: str, mount: Mount) -> RemoteList:
    """Read one of a server's lists. Raises ClientError."""
    made = RemoteEntries(mount, completes=client.server.can("completions"))
    if part == "tools":
        tools = await client.list_tools(fresh=True)
        entries = made.each("tool", tools, made.tool)
        return RemoteList("tools", entries, {each.name: each.record for each in tools}, made.left_out)
    if part == "prompts":
        prompts = await client.list_prompts(fresh=True)
        entries = made.each("prompt", prompts, made.prompt)
        return RemoteList("prompts", entries, {each.name: each.record for each in prompts}, made.left_out)
    # Resources and templates are two lists there and one here. Many servers have only one of them.
    fixed, no_fixed = await _try(client.list_resources(fresh=True))
    templates, no_templates = await _try(client.list_templates(fresh=True))
    if no_fixed is not None and no_templates is not None:
        raise no_fixed
    entries = made.each("resource", fixed, made.resource) | made.each("template", templates, made.template)
    definitions = {each.uri: each.record for each in fixed} | {each.uri_template: each.record for each in templates}
    for kind, problem in (("resources", no_fixed), ("templates", no_templates)):
        if problem is not None:
            made.left_out.append(unlisted(kind, problem))
    return RemoteList("resources", entries, definitions, made.left_out)


def unlisted(kind: str, problem: ClientError) -> str:
    return f"all {kind}: {problem.what[:200]}"


async def _try(listing: Awaitable[list[T]]) -> tuple[list[T], ClientError | None]:
    """A list, or an empty one and the reason: the server may have no such list, or a malformed one."""
    try:
        return await listing, None
    except REFUSED as problem:
        return [], problem


class RemoteEntries:
    """Creates entries from one server's definitions. Unusable ones are left out; `left_out` has the reasons."""

    def __init__(self, mount: Mount, *, completes: bool) -> None:
        self._mount, self._prefix, self._completes = mount, mount.prefix, completes
        self.left_out: list[str] = []

    def each(self, kind: str, found: list[Any], make: Callable[[Any], Entry]) -> dict[str, Entry]:
        """The entries of one kind, within the limits."""
        entries: dict[str, Entry] = {}
        total = 0
        for info in found:
            size = len(_encode(info.record))
            try:
                if size > ENTRY_BYTES:
                    raise Unusable(f"its definition takes {size:,} bytes, and may take {ENTRY_BYTES:,}")
                if len(entries) >= ENTRIES or total + size > LIST_BYTES:
                    rest = len(found) - len(entries)
                    self._leave_out(f"{rest} more {kind}s: it may bring {ENTRIES} that take {LIST_BYTES:,} bytes")
                    break
                entry = make(info)
                if entry.key in entries:
                    raise Unusable("another one has the same name")
            except Unusable as problem:
                self._leave_out(f"the {kind} {info.name[:100]!r}: {problem}")
                continue
            entries[entry.key] = entry
            total += size
        return entries

    def _leave_out(self, text: str) -> None:
        if text not in self.left_out and len(self.left_out) < ENTRIES:
            self.left_out.append(text)

    # -- each kind of entry

    def tool(self, info: ToolInfo) -> Entry:
        execution: Any = info.record.get("execution")
        if is_object(execution) and execution.get("taskSupport") == "required":
            raise Unusable("it can only be called as a task, which is not done here")
        if info.input_schema.get("type") != "object":
            raise Unusable("its input schema has no object at its root")
        try:
            headers = header_params(info.input_schema)
        except HeaderProblem as problem:
            raise Unusable(problem.what) from None
        name, mount = info.name, self._mount
        entry = self._entry(
            "tool",
            self._name(name),
            _described(info.record, TOOL),
            _read_arguments if headers else _take_arguments,
            lambda arguments, call: mount.calls().call_tool(name, arguments, call),
            self._result,
        )
        entry.explain = lambda _, __: RepairResult(faults=("arguments must be an object",))
        entry.headers, entry.raw, entry.replay = headers, True, True
        aliases = {mounted_name(self._prefix, alias): each for alias, each in mount.aliases_of(name).items()}
        entry.aliases = tuple(aliases)
        entry.alias_migrations = {alias: each for alias, each in aliases.items() if each is not None}
        entry.effects = _effects(info.annotations)
        entry.idempotent = info.annotations.get("idempotentHint") is True
        return entry

    def prompt(self, info: PromptInfo) -> Entry:
        name = info.name
        if not all(isinstance(each.get("name"), str) for each in info.arguments):
            raise Unusable("an argument has no name")
        entry = self._entry(
            "prompt",
            self._name(name),
            _described(info.record, PROMPT),
            _take_texts,
            self._asking("prompts/get", lambda texts: {"name": name, "arguments": texts}),
            self._messages,
        )
        return self._with_arguments(
            entry, [each["name"] for each in info.arguments], {"type": "ref/prompt", "name": name}
        )

    def resource(self, info: ResourceInfo) -> Entry:
        return self._readable(info.uri, info.name, _described(info.record, RESOURCE), fixed=True)

    def template(self, info: TemplateInfo) -> Entry:
        return self._readable(info.uri_template, info.name, _described(info.record, TEMPLATE), fixed=False)

    def _readable(self, uri: str, name: str, described: Record, *, fixed: bool) -> Entry:
        try:
            template = Template(uri)
        except TemplateProblem as problem:
            raise Unusable(problem.what) from None
        if fixed is bool(template.names):
            raise Unusable(f"{uri[:100]!r} is {'a template' if fixed else 'no template'}")
        invoke = self._asking("resources/read", lambda reading: {"uri": reading.uri})
        entry = self._entry("resource", name, described, _as_given, invoke, self._contents)
        entry.uri, entry.template = uri, None if fixed else template
        return self._with_arguments(entry, template.names, {"type": "ref/resource", "uri": uri})

    def _with_arguments(self, entry: Entry, names: list[str], ref: dict[str, str]) -> Entry:
        """The entry with its arguments, which the server completes if it can."""
        entry.parameters = dict.fromkeys(names, str)
        for argument in names if self._completes else ():

            def params(wanted: Any, argument: str = argument) -> Record:
                context = {"context": {"arguments": wanted.given}} if wanted.given else {}
                return {"ref": ref, "argument": {"name": argument, "value": wanted.value}, **context}

            invoke = self._asking("completion/complete", params)
            completion = self._entry("completion", f"{entry.key} {argument}", {}, _as_given, invoke, self._completed)
            entry.completions[argument] = completion
        return entry

    def _asking(self, method: str, params: Callable[[Any], Record]) -> Callable[[Any, Any], Any]:
        mount = self._mount
        return lambda given, call: mount.calls().ask(method, params(given), call)

    def _name(self, name: str) -> str:
        if not name:
            raise Unusable("it has no name")
        return mounted_name(self._prefix, name)

    def _entry(
        self,
        kind: Any,
        name: str,
        described: Record,
        decode: Callable[[Any], Any],
        invoke: Callable[[Any, Any], Any],
        render: Callable[[Any, Any], Any],
    ) -> Entry:
        if kind in ("tool", "prompt"):
            described["name"] = name
        return Entry(
            kind=kind,
            name=name,
            where=f"mounted {self._prefix}",
            run="async",
            decode=decode,
            invoke=invoke,
            render=render,
            explain=report_problem,
            describe=lambda: described,
            toolset=self._mount.holder,
            timeout=self._mount.timeout,
            effects="read",
        )

    # -- results

    def _result(self, record: Record, _: Any) -> CallResult:
        content = self._objects(record, "content", "result of a tool", [])
        kept = {key: value for key, value in as_object(record.get("_meta")).items() if key != SERVER_INFO}
        failed = record.get("isError")
        structured = record.get("structuredContent", UNSET)
        return CallResult(content, structured, failed if isinstance(failed, bool) else UNSET, kept or UNSET)

    def _contents(self, record: Record, _: Any) -> Record:
        return {"contents": self._objects(record, "contents", "resource")}

    def _messages(self, record: Record, call: Any) -> Record:
        messages = self._objects(record, "messages", "prompt")
        if not all(is_object(each.get("content")) for each in messages):
            raise self._malformed("prompt")
        revision = call.peer.revision
        lowered = [{**each, "content": lower_block(each["content"], revision)} for each in messages]
        text = record.get("description")
        return {"description": text, "messages": lowered} if isinstance(text, str) else {"messages": lowered}

    def _completed(self, record: Record, _: Any) -> Record:
        completion: Any = record.get("completion")
        if not is_object(completion) or not is_array(completion.get("values")):
            raise self._malformed("completion")
        return {"completion": completion}

    def _objects(self, record: Record, key: str, what: str, default: Any = None) -> list[Record]:
        found: Any = record.get(key, default)
        if not is_array(found) or not all(is_object(each) for each in found):
            raise self._malformed(what)
        return found

    def _malformed(self, what: str) -> ToolError:
        return ToolError(f"{self._prefix} answered with something that is no {what}")


def _effects(hints: Record) -> Effects | None:
    """The effects that the server declares for a tool. They are unchecked."""
    if hints.get("readOnlyHint") is True:
        return "read"
    if hints.get("destructiveHint") is True:
        return "destroy"
    return "write" if hints.get("readOnlyHint") is False else None


def _as_given(given: Any) -> Any:
    return given


def _take_arguments(raw: Any) -> Any:
    """The arguments as they were written: the server that declares them validates them."""
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


# -- names and texts


def mounted_name(prefix: str, name: str) -> str:
    """The name in our catalog, `files_read` for `read`.

    One too long or with illegal characters is cut and gets a digest.
    """
    whole = f"{prefix}_{name}"
    fit = ILLEGAL.sub("_", whole)
    if fit == whole and len(whole) <= NAME_CHARACTERS:
        return whole
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
    return f"{fit[: NAME_CHARACTERS - 1 - _DIGEST_CHARACTERS]}_{digest}"


def visible(text: str) -> str:
    """The text without invisible characters, which a model reads and a person does not see."""
    return _INVISIBLE.sub("", text)


def visible_in(part: Any, key: Any = None) -> Any:
    """A definition without invisible characters in its titles and descriptions."""
    if isinstance(part, list):
        return [visible_in(each) for each in part]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(part, dict):
        return {name: visible_in(value, name) for name, value in part.items()}  # pyright: ignore[reportUnknownVariableType]
    return visible(part) if key in ("title", "description") and isinstance(part, str) else part


def _described(record: Record, fields: Any) -> Record:
    found: Record = visible_in({key: value for key, value in record.items() if key in fields})
    return found
