"""Middleware: an author's code around tool calls, reads, prompts and lists.

An entry that some middleware runs around is replaced by another one, whose handler runs the middleware and then the
entry's own. It is made where the offer is made; so a server without middleware has nothing to test at a call, and
neither has a kind of request that no middleware overrides. The replacing entry always runs on the loop. It runs a
blocking handler on a thread, as the executor would.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, final

import msgspec
from msgspec import Raw, Struct

from longshore.errors import RegistrationError, ToolError
from longshore.protocol.content import CallResult, Contents, Message, lower_block
from longshore.registry.results import copy_result, to_block
from longshore.registry.source_location import refuse
from longshore.registry.tool import Effects, Entry
from longshore.schema.kinds import is_object
from longshore.schema.output import OutputMismatch, encode
from longshore.server.call import Call, read_call

if TYPE_CHECKING:
    from longshore.server.context import Context

Result = TypeVar("Result")
Listed = Literal["tools", "prompts", "resources", "templates"]


class ToolRequest(Struct, frozen=True):
    """A call of a tool, after its arguments were checked and its caller's scopes, rate and questions."""

    name: str
    arguments: dict[str, Any]
    """As JSON, with the defaults. What is changed in it, before `call_next`, is checked again."""
    context: Context[Any]
    effects: Effects | None = None
    """What the tool declares: "read", "write" or "destroy"."""
    tags: tuple[str, ...] = ()

    def replace(self, arguments: dict[str, Any]) -> ToolRequest:
        """The same call with other arguments."""
        return msgspec.structs.replace(self, arguments=arguments)


class ResourceRequest(Struct, frozen=True):
    """A read of a resource."""

    uri: str
    context: Context[Any]


class PromptRequest(Struct, frozen=True):
    """A prompt that is asked for."""

    name: str
    arguments: dict[str, Any]
    context: Context[Any]


class ListRequest(Struct, frozen=True):
    """A list that is asked for, whichever page of it."""

    what: Listed
    context: Context[Any]


CallTool = Callable[[ToolRequest], Awaitable[CallResult]]
ReadResource = Callable[[ResourceRequest], Awaitable[list[Contents]]]
GetPrompt = Callable[[PromptRequest], Awaitable[list[Message]]]
ListEntries = Callable[[ListRequest], Awaitable[list[dict[str, Any]]]]


class Middleware:
    """Runs around requests. A subclass overrides the methods that it needs; the others cost nothing.

    Each gets the request and `call_next`, which runs the middleware that was added after it, and at last the handler.
    It may change the request or the result, answer without `call_next`, call it twice, or raise ToolError.
    """

    async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
        """Run around a call of a tool. A tool that fails raises, or returns a result with `is_error`."""
        return await call_next(request)

    async def read_resource(self, request: ResourceRequest, call_next: ReadResource) -> list[Contents]:
        """Run around a read of a resource."""
        return await call_next(request)

    async def get_prompt(self, request: PromptRequest, call_next: GetPrompt) -> list[Message]:
        """Run around a prompt."""
        return await call_next(request)

    async def list_entries(self, request: ListRequest, call_next: ListEntries) -> list[dict[str, Any]]:
        """Run around a list: the entries as the newest revision lists them, in copies that may be changed."""
        return await call_next(request)


_HOOKS: Final = {"tool": "call_tool", "resource": "read_resource", "prompt": "get_prompt", "list": "list_entries"}
_OWN: Final = ("calls", "failures", "wrapped")
"""Fields that a replacing entry has of its own."""
_COPIED: Final = tuple(name for name in Entry.__struct_fields__ if name not in _OWN)
_read = msgspec.json.Decoder(dict[str, Any]).decode


@final
class MiddlewareStack:
    """The middleware of one server, the outermost first."""

    def __init__(self) -> None:
        self._hooks: dict[str, list[Callable[..., Awaitable[Any]]]] = {kind: [] for kind in _HOOKS}

    def add(self, middleware: Middleware) -> None:
        """Add one inside of those that are there."""
        given: Any = middleware
        if not isinstance(given, Middleware):
            name = str(getattr(given, "__name__", type(given).__name__))
            raise RegistrationError(repr(given)[:100], f"{name} is no Middleware object", "add_middleware(MyCache())")
        for kind, name in _HOOKS.items():
            if getattr(type(middleware), name) is not getattr(Middleware, name):
                hook = getattr(middleware, name)
                if not getattr(hook, "__code__", hook.__func__.__code__).co_flags & 0x80:
                    refuse(hook, f"{name} of a middleware is async", f"async def {name}(self, request, call_next)")
                self._hooks[kind].append(hook)

    @property
    def runs_around_lists(self) -> bool:
        return bool(self._hooks["list"])

    def wrap(self, entry: Entry) -> None:
        """Set `wrapped`, the entry that runs middleware around this one. It stays the same object as this changes."""
        if not self._hooks.get(entry.kind):
            entry.wrapped = None
            return
        if entry.wrapped is None:
            entry.wrapped = msgspec.structs.replace(entry)
        made = entry.wrapped
        for name in _COPIED:
            setattr(made, name, getattr(entry, name))
        made.run, made.tries_inline, made.direct, made.plain, made.keeps_frame = "async", False, False, False, True
        made.decode = lambda raw: entry.decode(raw)  # the entry of an index gets its functions with the import
        made.explain = lambda raw, problem: entry.explain(raw, problem)
        made.invoke = partial(_INVOKE[entry.kind], self._hooks[entry.kind], entry)
        made.render = lambda value, _: value

    async def list(self, what: Listed, records: Sequence[dict[str, Any]], call: Call) -> list[dict[str, Any]]:
        """A list, as the middleware makes it of these records."""

        async def finish(_: ListRequest) -> list[dict[str, Any]]:
            return [_read(encode(record)) for record in records]

        listed = await _run(self._hooks["list"], finish, ListRequest(what, call.context))
        return _check_entries(listed)


def _check_entries(listed: Any) -> list[dict[str, Any]]:
    """The entries of a list that middleware has made. Raises TypeError: a client drops a list with a malformed one."""
    entries: list[Any] = [*listed]
    for entry in entries:
        if not is_object(entry) or not isinstance(entry.get("name"), str):
            raise TypeError(f"list_entries of a middleware returned {entry!r:.80}, which is no entry with a name")
    return entries


async def _run(
    hooks: Sequence[Callable[..., Awaitable[Result]]], finish: Callable[..., Awaitable[Result]], request: Any
) -> Result:
    run = finish
    for hook in reversed(hooks):
        run = partial(_call_hook, hook, run)
    return await run(request)


async def _call_hook(hook: Callable[..., Awaitable[Result]], call_next: Callable[..., Any], request: Any) -> Result:
    return await hook(request, call_next)


async def _call_tool(hooks: Sequence[Callable[..., Awaitable[Any]]], entry: Entry, typed: Any, call: Call) -> Any:
    arguments = _read(_raw(typed, call))
    before = encode(arguments)
    rendered: list[CallResult] = []

    async def finish(request: ToolRequest) -> CallResult:
        after = encode(request.arguments)
        given = typed if after == before else _decode(entry, after)
        result = entry.render(await _handle(entry, given, call), call)
        rendered.append(result)
        return result  # type: ignore[no-any-return]

    request = ToolRequest(entry.name, arguments, call.context, entry.effects, entry.tags)
    result = await _run(hooks, finish, request)
    # A result that the handler made was checked. What middleware makes is checked as if the handler had returned it.
    is_checked = entry.raw or any(result is each for each in rendered)
    return copy_result(result) if is_checked and result.__class__ is CallResult else entry.render(result, call)


async def _read_resource(hooks: Sequence[Callable[..., Awaitable[Any]]], entry: Entry, read: Any, call: Call) -> Any:
    whole: dict[str, Any] = {}

    async def finish(_: ResourceRequest) -> list[Contents]:
        whole.update(entry.render(await _handle(entry, read, call), call))
        return [each if isinstance(each, Contents) else msgspec.convert(each, Contents) for each in whole["contents"]]

    found = await _run(hooks, finish, ResourceRequest(read.uri, call.context))
    return {**whole, "contents": msgspec.convert(found, list[Contents])}


async def _get_prompt(hooks: Sequence[Callable[..., Awaitable[Any]]], entry: Entry, typed: Any, call: Call) -> Any:
    whole: dict[str, Any] = {}

    async def finish(_: PromptRequest) -> list[Message]:
        whole.update(entry.render(await _handle(entry, typed, call), call))
        return [each if isinstance(each, Message) else msgspec.convert(each, Message) for each in whole["messages"]]

    found = await _run(hooks, finish, PromptRequest(entry.name, _read(_raw(typed, call)), call.context))
    revision = call.peer.revision
    return {**whole, "messages": [Message(each.role, lower_block(to_block(each.content), revision)) for each in found]}


_INVOKE: Final = {"tool": _call_tool, "resource": _read_resource, "prompt": _get_prompt}


def _raw(typed: Any, call: Call) -> bytes:
    """Decoded arguments as JSON; as they were sent where an author's type has no JSON form.

    Those of a mounted server's tool were not decoded.
    """
    if isinstance(typed, Raw):
        return bytes(typed)
    try:
        return encode(typed)
    except OutputMismatch:
        return bytes(read_call(call.frame).params.arguments)


def _decode(entry: Entry, arguments: bytes) -> Any:
    """Arguments that middleware has changed, checked like those of a client."""
    raw = Raw(arguments)
    try:
        return entry.decode(raw)
    except Exception as problem:
        reading = entry.explain(raw, problem)
        if reading.faults:
            faults = "\n".join(reading.faults)
            raise ToolError(f"{entry.name}: middleware has made its arguments invalid\n{faults}") from None
        return reading.arguments


async def _handle(entry: Entry, arguments: Any, call: Call) -> Any:
    """Run the handler itself, where it runs without middleware too."""
    if entry.run == "thread":
        return await call.executor.run_on_thread(call, lambda: entry.invoke(arguments, call))
    if entry.run == "inline":
        wrapped, call.entry = call.entry, entry  # what it can't wait for says so, as without middleware
        try:
            return entry.invoke(arguments, call)
        finally:
            call.entry = wrapped
    value = entry.invoke(arguments, call)
    return await value if entry.run == "async" and hasattr(value, "__await__") else value
