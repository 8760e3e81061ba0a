"""Methods: the table of them, the handshake, lists, and what every method shares.

The parameters of a method and the envelope in their `_meta` are decoded together, in one pass.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.errors import ProtocolError
from longshore.protocol.peer import (
    AnyParams,
    BadEnvelope,
    Envelope,
    InitializeParams,
    Peer,
    has_envelope,
    log_level,
)
from longshore.protocol.revisions import CAPABILITIES, IMPLEMENTATION, METHODS, MODERN, Revision, lower, negotiate
from longshore.registry.tool import Entry, report_problem
from longshore.server.call import Call, CallParams
from longshore.server.link import Link
from longshore.server.replies import CACHE_HINTS
from longshore.wire.codec import BROKEN, INVALID_PARAMS, METHOD_NOT_FOUND, encode
from longshore.wire.messages import Id, Message, Reply

if TYPE_CHECKING:
    from longshore.server.engine import Engine
    from longshore.telemetry.events import RequestInfo


class MethodRequest(Struct):
    """A request as a method gets it. `peer` is None only in `initialize` and `ping`."""

    id: Id
    method: str
    raw: Raw
    frame: bytes
    link: Link
    received: float
    """When it came, by `monotonic`."""
    peer: Peer | None = None
    params: Any = None
    waited: bool = False
    """Whether it has waited for mounted servers."""
    unwatchable: frozenset[str] | None = None
    """The resources that may not be watched; None: their toolsets were not asked."""
    info: RequestInfo | None = None
    """What telemetry records of it; None: nothing is recorded."""

    @property
    def sender(self) -> Peer:
        assert self.peer is not None
        return self.peer

    def reply(self, result: Any) -> bytes:
        return encode(Reply(self.id, result))

    def call(self, engine: Engine, entry: Entry, arguments: Any, meta: Any = UNSET) -> Call:
        """A call that answers this request."""
        link = self.link
        call = Call(
            engine.executor, link, link.session, self.sender, self.id, self.method, entry, arguments, self.frame, meta
        )
        engine.recording.join(call, self.info, self.received)
        return call


# -- parameters


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
    method = _METHODS.get(request.method)
    if method is None and request.method in METHODS:
        from longshore.server.content_methods import CONTENT_METHODS  # the first use of one of them imports them

        method = CONTENT_METHODS.get(request.method)
    if method is None:
        _identify_sender(engine, request)
        raise AssertionError(f"{request.method} is in the revision table but has no function")
    request.link.session.refuse_duplicate(request.id)
    if method.params is not None:
        try:
            params = request.params = msgspec.json.decode(request.raw, type=method.params)
        except BROKEN:
            _identify_sender(engine, request)  # a fault of the envelope or the method is reported first
            raise
        name = getattr(params, method.header_name) if method.header_name else None
        request.peer = engine.peer_of(request.method, name, params.meta, request.link)
    if engine.expects_more and not request.waited and method.may_arrive(engine, request.params):
        return _wait_for_mounts(engine, request)
    return method.run(engine, request)


def _identify_sender(engine: Engine, request: MethodRequest) -> None:
    """Find the sender of a request whose parameters are not decoded."""
    try:
        params = _read_any(request.raw)
    except BROKEN as problem:
        raise BadEnvelope(invalid_params(request.method, problem)) from None
    request.peer = engine.peer_of(request.method, params.named(request.method), params.meta, request.link)


def invalid_params(method: str, problem: Exception) -> str:
    """The text for parameters that can't be decoded."""
    from longshore.schema.phrase import plain

    return f"invalid params of {method}: {plain(problem)}"


def _wait_for_mounts(engine: Engine, request: MethodRequest) -> bytes | None:
    """Wait a little for mounted servers that are still starting, and handle it then: many clients list once."""
    mounts = engine.catalog.pending_mounts
    assert mounts is not None

    async def wait() -> None:
        await mounts.wait()
        request.waited = True

    return handle_after(engine, request, wait)


def handle_after(engine: Engine, request: MethodRequest, prepare: Callable[[], Awaitable[None]]) -> bytes | None:
    """Handle a request anew when something else is done. It holds no place meanwhile."""
    executor = engine.executor

    async def wait(_: Any, call: Call) -> None:
        executor.pause(call)
        await prepare()
        executor.release(call)
        engine.answer_later(request)

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
    return engine.run(request.call(engine, entry, None))


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
    elif message.method == "notifications/roots/list_changed" and link.session.client_roots is not None:
        link.session.client_roots.changed(link.session)


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
    peer = Peer(revision, params.capabilities, params.client_info)
    link.session.open(peer, engine.capability_names())
    engine.recording.session_opened(link, peer)
    engine.add_link(link.home)
    return request.reply(handshake_result(engine, revision))


def handshake_result(engine: Engine, revision: Revision) -> dict[str, Any]:
    """The result of `initialize`."""
    result: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": lower(_capabilities(engine), CAPABILITIES, revision),
        "serverInfo": lower(engine.server_info, IMPLEMENTATION, revision),
    }
    return _with_instructions(engine, result)


def _discover(engine: Engine, request: MethodRequest) -> bytes:
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


def _list(engine: Engine, request: MethodRequest) -> bytes | None:
    if request.method == "tools/list":
        engine.listed = True
    principal, middleware = request.link.principal, engine.policy.middleware
    if middleware is not None and middleware.runs_around_lists:
        return engine.run(
            request.call(engine, engine.lists.entry(middleware, request.method, request.params.cursor), None)
        )
    return request.reply(engine.lists.page(request.method, request.sender.revision, request.params.cursor, principal))


def _call_tool(_: Engine, __: MethodRequest) -> NoReturn:
    """Refuse a `tools/call` that the engine could not decode, where its parameters alone can be."""
    raise ProtocolError(INVALID_PARAMS, "invalid params of tools/call")


def _never(_: Engine, __: Any) -> bool:
    return False


def _always(_: Engine, __: Any) -> bool:
    return True


class MethodHandler(NamedTuple):
    run: Callable[[Engine, MethodRequest], bytes | None]
    params: Any = None
    header_name: str = ""
    """The parameter that the `Mcp-Name` header repeats."""
    may_arrive: Callable[[Engine, Any], bool] = _never
    """Whether a mounted server that is still starting may have what these parameters name."""


_LIST: Final = MethodHandler(_list, ListParams, may_arrive=_always)
_METHODS: Final = {
    "initialize": MethodHandler(_initialize),
    "ping": MethodHandler(_ping),
    "server/discover": MethodHandler(_discover, AnyParams),
    "logging/setLevel": MethodHandler(_set_level, LevelParams),
    "tools/list": _LIST,
    "prompts/list": _LIST,
    "resources/list": _LIST,
    "resources/templates/list": _LIST,
    "tools/call": MethodHandler(_call_tool, CallParams, "name"),
}
