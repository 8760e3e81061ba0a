"""Methods: the table of them, the handshake, lists, and what every method shares.

The parameters of a method and the envelope in their `_meta` are decoded together, in one pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.errors import ProtocolError
from longshore.protocol.peer import ABSENT, AnyParams, Envelope, Peer, has_envelope, log_level
from longshore.protocol.revisions import CAPABILITIES, IMPLEMENTATION, METHODS, MODERN, lower, negotiate
from longshore.registry.tool import Entry, report_problem
from longshore.server.call import Call, CallParams
from longshore.server.link import Link
from longshore.wire.codec import BROKEN, INVALID_PARAMS, METHOD_NOT_FOUND, encode
from longshore.wire.messages import Id, Message, Reply

if TYPE_CHECKING:
    from longshore.server.engine import Engine


class MethodRequest(Struct):
    """A request as a method gets it. `peer` is None only in `initialize` and `ping`."""

    id: Id
    method: str
    raw: Raw
    frame: bytes
    link: Link
    peer: Peer | None = None
    params: Any = None

    @property
    def sender(self) -> Peer:
        assert self.peer is not None
        return self.peer

    def reply(self, result: Any) -> bytes:
        return encode(Reply(self.id, result))


# -- parameters


class InitializeParams(Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any] = {}
    client_info: dict[str, Any] = {}


class ListParams(Struct):
    cursor: str | UnsetType = UNSET
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)


class LevelParams(Struct):
    level: str
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)


class CancelledParams(Struct, rename="camel"):
    request_id: Id | UnsetType = UNSET


_read_any = msgspec.json.Decoder(AnyParams).decode


# -- dispatch


def handle_request(engine: Engine, request: MethodRequest) -> bytes | None:
    """Answer a request, or start the work that will. Raises ProtocolError for a refusal."""
    method = _find_method(request.method)
    if method is None:
        _identify_sender(engine, request)
        raise AssertionError(f"{request.method} is in the revision table but has no function")
    request.link.session.refuse_duplicate(request.id)
    if method.params is not None:
        _read_params(engine, request, method)
    return method.run(engine, request)


def _read_params(engine: Engine, request: MethodRequest, method: MethodHandler) -> None:
    """Decode the parameters, and find the sender in their envelope."""
    try:
        params = request.params = msgspec.json.decode(request.raw, type=method.params)
    except BROKEN:
        _identify_sender(engine, request)  # a fault of the envelope or the method is reported first
        raise
    name = getattr(params, method.header_name) if method.header_name else None
    request.peer = engine.peer_of(request.method, name, params.meta, request.link)


def _identify_sender(engine: Engine, request: MethodRequest) -> None:
    """Find the sender of a request whose parameters are not decoded."""
    try:
        params = _read_any(request.raw)
    except BROKEN as problem:
        from longshore.server.engine import bad_envelope

        raise bad_envelope(request.method, problem) from None
    request.peer = engine.peer_of(request.method, params.named(request.method), params.meta, request.link)


def take_notification(engine: Engine, message: Message, link: Link) -> None:
    """Take a notification. It is never answered, however malformed it is."""
    if message.method == "notifications/cancelled":
        try:
            id = msgspec.json.decode(message.params, type=CancelledParams).request_id
        except BROKEN:
            return
        if id is not UNSET:
            engine.cancel(link, id)
    elif message.method == "notifications/initialized" and link.session.peer is not None:
        link.session.initialized = True


# -- beginning


def _initialize(engine: Engine, request: MethodRequest) -> bytes:
    link = request.link
    if link.headers is not None and not link.headers.are_modern:
        _identify_sender(engine, request)
    meta = _read_any(request.raw).meta
    version = None if meta is UNSET or meta.version is UNSET else meta.version
    if version is not None or link.headers is not None:
        where = "the modern era" if version is None else version[:100]
        text = f"no method 'initialize' in {where}; send requests at once ({', '.join(MODERN)})"
        raise ProtocolError(METHOD_NOT_FOUND, text)
    params = msgspec.json.decode(request.raw, type=InitializeParams)
    revision = negotiate(params.protocol_version)
    link.session.open(Peer(revision, params.capabilities, params.client_info), engine.capability_names())
    engine.links.add(link.home)
    result: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": lower(_capabilities(engine), CAPABILITIES, revision),
        "serverInfo": lower(engine.server_info, IMPLEMENTATION, revision),
    }
    return request.reply(_with_instructions(engine, result))


def _discover(engine: Engine, request: MethodRequest) -> bytes:
    from longshore.server.lists import CACHE_HINTS

    result: dict[str, Any] = {"supportedVersions": list(MODERN), "capabilities": _capabilities(engine), **CACHE_HINTS}
    return engine.replies.result(request.id, request.sender, _with_instructions(engine, result))


def _with_instructions(engine: Engine, result: dict[str, Any]) -> dict[str, Any]:
    if engine.policy.instructions:
        result["instructions"] = engine.policy.instructions
    return result


def _capabilities(engine: Engine) -> dict[str, Any]:
    shapes: dict[str, dict[str, Any]] = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
    }
    return {name: shapes.get(name, {}) for name in sorted(engine.capability_names())}


def _ping(engine: Engine, request: MethodRequest) -> bytes:
    link = request.link
    if link.headers is not None or link.session.peer is not None or has_envelope(request.raw):
        _identify_sender(engine, request)  # else it is a ping before the handshake, which is allowed
    return request.reply({})


def _set_level(_: Engine, request: MethodRequest) -> bytes:
    rank = log_level(request.params.level)
    request.link.session.peer = msgspec.structs.replace(request.sender, log_level=rank)
    return request.reply({})


# -- lists


def _list(engine: Engine, request: MethodRequest) -> bytes | None:
    def page() -> Raw:
        return _page(engine, request)

    if engine.expects_more:
        return after_mounts(engine, request, lambda _: msgspec.json.decode(page()))
    return request.reply(page())


def _page(engine: Engine, request: MethodRequest) -> Raw:
    from longshore.server.lists import TABLES

    method = request.method
    key, table = TABLES[method]
    found = engine.lists.get(method, key, table, _entries(engine, method), request.sender, request.params.cursor)
    if method != "tools/list":
        return found
    engine.listed = True
    return _with_absent(engine, found)


def _with_absent(engine: Engine, page: Raw) -> Raw:
    """Name the mounted servers that are down: their tools may be missing from the list."""
    arrivals = engine.catalog.pending_mounts
    absent = {} if arrivals is None else arrivals.unavailable()
    if not absent:
        return page
    result = msgspec.json.decode(page)
    return Raw(encode(result | {"_meta": result.get("_meta", {}) | {ABSENT: absent}}))


def _entries(engine: Engine, method: str) -> list[Entry]:
    match method:
        case "tools/list":
            return list(engine.tools.values())
        case "prompts/list":
            return list(engine.catalog.prompts.values())
        case _:
            fixed = method == "resources/list"
            return [entry for entry in engine.catalog.resources.values() if (entry.template is None) is fixed]


# -- waiting for mounted servers


def after_mounts(engine: Engine, request: MethodRequest, go_on: Callable[[Call], Any]) -> bytes | None:
    """Wait a little for mounted servers that are still starting: many clients list only once.

    The call holds no place meanwhile. `go_on` returns the result, or an awaitable of it.
    """
    executor, arrivals = engine.executor, engine.catalog.pending_mounts
    assert arrivals is not None

    async def wait(_: Any, call: Call) -> Any:
        executor.pause(call)
        try:
            await arrivals.wait()
            found = go_on(call)
        finally:
            executor.resume(call)
        return await found if hasattr(found, "__await__") else found

    entry = Entry(
        kind="completion",
        name=request.method,
        where=request.method,
        run="async",
        decode=lambda nothing: nothing,
        invoke=wait,
        render=lambda found, _: found,
        explain=report_problem,
        describe=dict,
    )
    return engine.run(make_call(engine, request, entry, None, UNSET))


def continue_as(call: Call, entry: Entry, arguments: Any) -> Any:
    """Continue a call as one of an entry that has arrived, with that entry's whole time limit."""
    call.entry, call.paused = entry, entry.limit
    call.arguments = entry.decode(arguments)
    return entry.invoke(call.arguments, call)


def make_call(engine: Engine, request: MethodRequest, entry: Entry, arguments: Any, meta: Any) -> Call:
    link, frame = request.link, request.frame
    return Call(
        engine.executor, link, link.session, request.sender, request.id, request.method, entry, arguments, frame, meta
    )


def _call_tool(_: Engine, __: MethodRequest) -> NoReturn:
    """Refuse a `tools/call` that the engine could not decode, where its parameters alone can be."""
    raise ProtocolError(INVALID_PARAMS, "invalid params of tools/call")


class MethodHandler(NamedTuple):
    run: Callable[[Engine, MethodRequest], bytes | None]
    params: Any = None
    header_name: str = ""
    """The parameter that the `Mcp-Name` header repeats."""


_METHODS: Final = {
    "initialize": MethodHandler(_initialize),
    "ping": MethodHandler(_ping),
    "server/discover": MethodHandler(_discover, AnyParams),
    "logging/setLevel": MethodHandler(_set_level, LevelParams),
    "tools/list": MethodHandler(_list, ListParams),
    "prompts/list": MethodHandler(_list, ListParams),
    "resources/list": MethodHandler(_list, ListParams),
    "resources/templates/list": MethodHandler(_list, ListParams),
    "tools/call": MethodHandler(_call_tool, CallParams, "name"),
}


def _find_method(name: str) -> MethodHandler | None:
    """The method of this name. The rest of them is imported when one of it is first called."""
    found = _METHODS.get(name)
    if found is None and name in METHODS:
        from longshore.server.content_methods import CONTENT_METHODS

        found = CONTENT_METHODS.get(name)
    return found
