"""Every method but `tools/call`, one small function each, and the table that finds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.errors import ProtocolError, ResourceNotFound
from longshore.protocol.dialect import Failure
from longshore.protocol.envelope import Envelope, has_envelope, log_level
from longshore.protocol.peer import Peer
from longshore.protocol.revisions import CAPABILITIES, IMPLEMENTATION, METHODS, MODERN, lower, negotiate
from longshore.registry.names import hint
from longshore.registry.tool import Entry
from longshore.server.call import Call
from longshore.server.link import Link
from longshore.wire.codec import BROKEN, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, encode
from longshore.wire.messages import Fault, Id, Message, Reply

if TYPE_CHECKING:
    from longshore.server.dispatch import Engine
    from longshore.server.lists import Lists


class InitializeParams(Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any] = {}
    client_info: dict[str, Any] = {}


class ListParams(Struct):
    cursor: str | UnsetType = UNSET


class UriParams(Struct):
    uri: str


class LevelParams(Struct):
    level: str


class ReadParams(Struct):
    uri: str
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)
    input_responses: Raw | UnsetType = field(name="inputResponses", default=UNSET)
    request_state: str | UnsetType = field(name="requestState", default=UNSET)


class GetParams(Struct):
    name: str
    arguments: Raw = Raw(b"{}")
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)
    input_responses: Raw | UnsetType = field(name="inputResponses", default=UNSET)
    request_state: str | UnsetType = field(name="requestState", default=UNSET)


class PromptRef(Struct, tag_field="type", tag="ref/prompt"):
    name: str


class ResourceRef(Struct, tag_field="type", tag="ref/resource"):
    uri: str


class CompletionArgument(Struct):
    name: str
    value: str


class CompletionContext(Struct, frozen=True):
    arguments: dict[str, str] = {}


class CompleteParams(Struct):
    ref: PromptRef | ResourceRef
    argument: CompletionArgument
    context: CompletionContext = CompletionContext()


class CancelledParams(Struct, rename="camel"):
    request_id: Id | UnsetType = UNSET


Handler = Callable[["Engine", Message, bytes, Link], bytes | None]


def request(engine: Engine, message: Message, frame: bytes, link: Link) -> bytes | None:
    """Answer a request, or set it going. Raises ProtocolError for a refusal."""
    handler = _HANDLERS.get(message.method)
    if handler is None:
        engine.peer_of(message, link)
        raise AssertionError(f"{message.method} is in the revision table but has no handler")
    assert message.id is not UNSET
    if message.id in link.session.rows:
        raise ProtocolError(INVALID_REQUEST, "a request with this id is in flight")
    return handler(engine, message, frame, link)


def notified(engine: Engine, message: Message, link: Link) -> None:
    """Take note of a notification. Whatever is wrong with it, it is never answered."""
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


def _initialize(engine: Engine, message: Message, _: bytes, link: Link) -> bytes:
    from longshore.protocol.envelope import AnyParams

    if link.headers is not None and not link.headers.are_modern:
        engine.peer_of(message, link)
    meta = msgspec.json.decode(message.params, type=AnyParams).meta
    version = None if meta is UNSET or meta.version is UNSET else meta.version
    if version is not None or link.headers is not None:
        where = "the modern era" if version is None else version[:100]
        raise ProtocolError(-32601, f"no method 'initialize' in {where}; send requests at once ({', '.join(MODERN)})")
    params = msgspec.json.decode(message.params, type=InitializeParams)
    revision = negotiate(params.protocol_version)
    link.session.open(Peer(revision, params.capabilities, params.client_info), engine.capability_names())
    engine.subscriptions.links.add(link.home)
    result: dict[str, Any] = {
        "protocolVersion": revision.name,
        "capabilities": lower(_capabilities(engine), CAPABILITIES, revision),
        "serverInfo": lower(engine.server_info, IMPLEMENTATION, revision),
    }
    if engine.instructions:
        result["instructions"] = engine.instructions
    assert message.id is not UNSET
    return encode(Reply(message.id, result))


def _discover(engine: Engine, message: Message, _: bytes, link: Link) -> bytes:
    peer = engine.peer_of(message, link)
    from longshore.server.lists import CACHE_HINTS

    result: dict[str, Any] = {"supportedVersions": list(MODERN), "capabilities": _capabilities(engine), **CACHE_HINTS}
    if engine.instructions:
        result["instructions"] = engine.instructions
    assert message.id is not UNSET
    return engine.replies.result(message.id, peer, result)


def _capabilities(engine: Engine) -> dict[str, Any]:
    shapes: dict[str, dict[str, Any]] = {
        "tools": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "prompts": {"listChanged": True},
    }
    return {name: shapes.get(name, {}) for name in sorted(engine.capability_names())}


def _ping(engine: Engine, message: Message, _: bytes, link: Link) -> bytes:
    if link.headers is not None or link.session.peer is not None or has_envelope(message.params):
        engine.peer_of(message, link)  # else it is a ping before the handshake, which is allowed
    assert message.id is not UNSET
    return encode(Reply(message.id, {}))


def _set_level(engine: Engine, message: Message, _: bytes, link: Link) -> bytes:
    peer = engine.peer_of(message, link)
    rank = log_level(msgspec.json.decode(message.params, type=LevelParams).level)
    link.session.peer = msgspec.structs.replace(peer, log_level=rank)
    assert message.id is not UNSET
    return encode(Reply(message.id, {}))


# -- lists


def _list(engine: Engine, message: Message, _: bytes, link: Link) -> bytes:
    from longshore.server.lists import TABLES

    peer = engine.peer_of(message, link)
    cursor = msgspec.json.decode(message.params, type=ListParams).cursor
    key, table = TABLES[message.method]
    page = _lists(engine).get(message.method, key, table, _entries(engine, message.method), peer, cursor)
    if message.method == "tools/list":
        engine.listed = True
    assert message.id is not UNSET
    return encode(Reply(message.id, page))


def _lists(engine: Engine) -> Lists:
    if engine.lists is None:
        from longshore.server.lists import Lists

        engine.lists = Lists(engine.limits.page, engine.replies.server_meta, engine.recorder)
    return engine.lists


def _entries(engine: Engine, method: str) -> list[Entry]:
    match method:
        case "tools/list":
            return list(engine.tools.values())
        case "prompts/list":
            return list(engine.catalog.prompts.values())
        case _:
            fixed = method == "resources/list"
            return [resource.entry for resource in engine.catalog.resources.values() if resource.fixed is fixed]


# -- resources


def _read_resource(engine: Engine, message: Message, frame: bytes, link: Link) -> bytes | None:
    from longshore.registry.resource import Reading

    peer = engine.peer_of(message, link)
    params = msgspec.json.decode(message.params, type=ReadParams)
    found = engine.catalog.find_resource(params.uri)
    if found is None:
        return _missing(engine, message, peer, params.uri)
    resource, values = found
    call = _call(engine, message, frame, link, peer, resource.entry, Reading(params.uri, values), params.meta)
    call.max_age = resource.max_age
    return _run(engine, call, params.input_responses, params.request_state)


def _missing(engine: Engine, message: Message, peer: Peer, uri: str) -> bytes:
    problem = ResourceNotFound(uri[:1000])
    fault = engine.dialect.failed(
        Failure("not_found", str(problem), {"uri": uri[:1000]}), message.method, peer.revision
    )
    assert isinstance(fault, Fault)
    raise ProtocolError(fault.code, fault.message, fault.data)


def _subscribe(engine: Engine, message: Message, _: bytes, link: Link) -> bytes:
    peer = engine.peer_of(message, link)
    uri = msgspec.json.decode(message.params, type=UriParams).uri
    if message.method == "resources/unsubscribe":
        link.session.subscriptions.discard(uri)
    elif engine.catalog.find_resource(uri) is None:
        return _missing(engine, message, peer, uri)
    else:
        engine.subscriptions.subscribe(link, uri)
    assert message.id is not UNSET
    return encode(Reply(message.id, {}))


def _listen(engine: Engine, message: Message, _: bytes, link: Link) -> None:
    from longshore.server.subscriptions import ListenParams

    engine.peer_of(message, link)
    params = msgspec.json.decode(message.params, type=ListenParams)
    assert message.id is not UNSET
    engine.subscriptions.listen(link, message.id, params.notifications, set(engine.capability_names()))


# -- prompts and completion


def _get_prompt(engine: Engine, message: Message, frame: bytes, link: Link) -> bytes | None:
    peer = engine.peer_of(message, link)
    params = msgspec.json.decode(message.params, type=GetParams)
    entry = engine.catalog.prompts.get(params.name)
    if entry is None:
        known = engine.catalog.prompts
        raise ProtocolError(INVALID_PARAMS, f"no prompt {params.name[:100]!r}{hint(params.name, known)}")
    call = _call(engine, message, frame, link, peer, entry, params.arguments, params.meta)
    return _run(engine, call, params.input_responses, params.request_state)


def _complete(engine: Engine, message: Message, frame: bytes, link: Link) -> bytes | None:
    from longshore.registry.completion import Completing, choices, matching, render

    peer = engine.peer_of(message, link)
    if engine.rates is not None and (wait := engine.rates.take(link.principal.name, message.method)):
        from longshore.server.rates import too_often

        raise ProtocolError(INTERNAL_ERROR, too_often(message.method, wait).text)
    params = msgspec.json.decode(message.params, type=CompleteParams)
    catalog = engine.catalog
    ref = params.ref.name if isinstance(params.ref, PromptRef) else params.ref.uri
    known = catalog.prompts if isinstance(params.ref, PromptRef) else catalog.resources
    if ref not in known:
        raise ProtocolError(INVALID_PARAMS, f"nothing to complete: no {ref[:100]!r}{hint(ref, known)}")
    name, text = params.argument.name, params.argument.value
    entry = catalog.completions.get((ref, name))
    if entry is not None:
        wanted = Completing(text, params.context.arguments)
        return _run(engine, _call(engine, message, frame, link, peer, entry, wanted, UNSET), UNSET, UNSET)
    owner: Any = known[ref]
    parameters: dict[str, Any] = getattr(owner, "entry", owner).parameters
    if name not in parameters:
        raise ProtocolError(INVALID_PARAMS, f"{ref[:100]!r} has no argument {name[:100]!r}{hint(name, parameters)}")
    values = matching(choices(parameters[name]) or [], text)
    assert message.id is not UNSET
    return engine.replies.result(message.id, peer, render(values))


def _call_badly(engine: Engine, message: Message, _: bytes, link: Link) -> None:
    """A tools/call that could not be read as one. The engine takes the good ones before they come here."""
    from longshore.server.lane import CallParams

    engine.peer_of(message, link)
    msgspec.json.decode(message.params, type=CallParams)
    raise ProtocolError(INVALID_PARAMS, "invalid params of tools/call")


# -- running


def _call(
    engine: Engine, message: Message, frame: bytes, link: Link, peer: Peer, entry: Entry, arguments: Any, meta: Any
) -> Call:
    assert message.id is not UNSET
    return Call(engine.executor, link, link.session, peer, message.id, message.method, entry, arguments, frame, meta)


def _run(engine: Engine, call: Call, responses: Raw | UnsetType, state: str | UnsetType) -> bytes | None:
    if (responses is not UNSET or state is not UNSET) and call.peer.revision.modern and call.entry.asked:
        engine.questions.resume(call, responses, state)
    entry = call.entry
    if entry.run == "inline" and not entry.asked and (entry.toolset is None or entry.toolset.ready):
        return engine.executor.run_inline(call)
    call.session.begin(call.id, call)
    engine.executor.submit(call)
    return None


_HANDLERS: Final[dict[str, Handler]] = {
    "initialize": _initialize,
    "ping": _ping,
    "server/discover": _discover,
    "logging/setLevel": _set_level,
    "tools/list": _list,
    "prompts/list": _list,
    "resources/list": _list,
    "resources/templates/list": _list,
    "resources/read": _read_resource,
    "resources/subscribe": _subscribe,
    "resources/unsubscribe": _subscribe,
    "subscriptions/listen": _listen,
    "prompts/get": _get_prompt,
    "completion/complete": _complete,
    "tools/call": _call_badly,
}
assert _HANDLERS.keys() == METHODS.keys()
