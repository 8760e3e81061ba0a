"""Every method but `tools/call`, one small function each, and the table that finds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
from msgspec import UNSET, Raw, UnsetType

from longshore.errors import ProtocolError, ResourceNotFound
from longshore.protocol.dialect import Failure
from longshore.protocol.envelope import ABSENT, has_envelope, log_level
from longshore.protocol.peer import Peer
from longshore.protocol.revisions import CAPABILITIES, IMPLEMENTATION, METHODS, MODERN, lower, negotiate
from longshore.registry.tool import Entry, hint, report_problem
from longshore.server.call import Call
from longshore.server.link import Link
from longshore.server.params import (
    CancelledParams,
    CompleteParams,
    GetParams,
    InitializeParams,
    LevelParams,
    ListParams,
    PromptRef,
    ReadParams,
    UriParams,
)
from longshore.wire.codec import BROKEN, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, encode
from longshore.wire.messages import Fault, Message, Reply

if TYPE_CHECKING:
    from longshore.server.dispatch import Engine
    from longshore.server.lists import Lists


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


def _list(engine: Engine, message: Message, frame: bytes, link: Link) -> bytes | None:
    from longshore.server.lists import TABLES

    peer = engine.peer_of(message, link)
    cursor = msgspec.json.decode(message.params, type=ListParams).cursor
    key, table = TABLES[message.method]

    def page() -> Raw:
        if message.method == "tools/list":
            engine.listed = True
        lists = _lists(engine)
        lists.form = engine.form
        found = lists.get(message.method, key, table, _entries(engine, message.method), peer, cursor)
        return _with_absent(engine, found) if message.method == "tools/list" else found

    if engine.expects_more:
        return _later(engine, message, frame, link, peer, lambda _: msgspec.json.decode(page()))
    assert message.id is not UNSET
    return encode(Reply(message.id, page()))


def _with_absent(engine: Engine, page: Raw) -> Raw:
    """A list of tools that says which mounted servers are down: their tools may be missing from it."""
    arrivals = engine.catalog.pending_mounts
    absent = {} if arrivals is None else arrivals.absent()
    if not absent:
        return page
    result = msgspec.json.decode(page)
    return Raw(encode(result | {"_meta": result.get("_meta", {}) | {ABSENT: absent}}))


def _later(
    engine: Engine, message: Message, frame: bytes, link: Link, peer: Peer, go_on: Callable[[Call], Any]
) -> bytes | None:
    """Servers that are mounted are still starting: wait for them a little, for many clients list only once.

    Nobody's place is taken meanwhile. `go_on` gives what is to be answered then, or the way to it.
    """
    executor, arrivals = engine.executor, engine.catalog.pending_mounts
    assert arrivals is not None

    async def wait(_: Any, call: Call) -> Any:
        executor.pause(call)
        try:
            await arrivals.settle()
            found = go_on(call)
        finally:
            executor.resume(call)
        return await found if hasattr(found, "__await__") else found

    entry = Entry(
        kind="completion",
        name=message.method,
        where=message.method,
        run="async",
        decode=lambda nothing: nothing,
        invoke=wait,
        render=lambda found, _: found,
        explain=report_problem,
        describe=dict,
    )
    return _run(engine, _call(engine, message, frame, link, peer, entry, None, UNSET), UNSET, UNSET)


def _become(call: Call, entry: Entry, arguments: Any) -> Any:
    """Go on as a call of what has arrived, with all the time that it has."""
    call.entry, call.paused = entry, entry.limit
    call.arguments = entry.decode(arguments)
    return entry.invoke(call.arguments, call)


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
    from longshore.registry.resource import ReadRequest

    peer = engine.peer_of(message, link)
    params = msgspec.json.decode(message.params, type=ReadParams)
    found = engine.catalog.find_resource(params.uri)
    if found is None and engine.expects_more:

        def go_on(call: Call) -> Any:
            arrived = engine.catalog.find_resource(params.uri)
            if arrived is None:
                _missing(engine, message, peer, params.uri)
            call.max_age = arrived[0].max_age
            return _become(call, arrived[0].entry, ReadRequest(params.uri, arrived[1]))

        return _later(engine, message, frame, link, peer, go_on)
    if found is None:
        _missing(engine, message, peer, params.uri)
    resource, values = found
    call = _call(engine, message, frame, link, peer, resource.entry, ReadRequest(params.uri, values), params.meta)
    call.max_age = resource.max_age
    return _run(engine, call, params.input_responses, params.request_state)


def _missing(engine: Engine, message: Message, peer: Peer, uri: str) -> NoReturn:
    problem = ResourceNotFound(uri[:1000])
    fault = engine.dialect.failed(
        Failure("not_found", str(problem), {"uri": uri[:1000]}), message.method, peer.revision
    )
    assert isinstance(fault, Fault)
    raise ProtocolError(fault.code, fault.message, fault.data)


def _subscribe(engine: Engine, message: Message, frame: bytes, link: Link) -> bytes | None:
    peer = engine.peer_of(message, link)
    uri = msgspec.json.decode(message.params, type=UriParams).uri

    def subscribe(_: Any) -> dict[str, Any]:
        if engine.catalog.find_resource(uri) is None:
            _missing(engine, message, peer, uri)
        engine.subscriptions.subscribe(link, uri)
        engine.follow()
        return {}

    if message.method == "resources/unsubscribe":
        link.session.subscriptions.discard(uri)
        engine.follow()
    elif engine.catalog.find_resource(uri) is None and engine.expects_more:
        return _later(engine, message, frame, link, peer, subscribe)
    else:
        subscribe(None)
    assert message.id is not UNSET
    return encode(Reply(message.id, {}))


def _listen(engine: Engine, message: Message, _: bytes, link: Link) -> None:
    from longshore.server.subscriptions import ListenParams

    engine.peer_of(message, link)
    params = msgspec.json.decode(message.params, type=ListenParams)
    assert message.id is not UNSET
    engine.subscriptions.listen(link, message.id, params.notifications, set(engine.capability_names()))
    if params.notifications.resource_subscriptions:
        engine.follow()


# -- prompts and completion


def _get_prompt(engine: Engine, message: Message, frame: bytes, link: Link) -> bytes | None:
    peer = engine.peer_of(message, link)
    params = msgspec.json.decode(message.params, type=GetParams)
    if params.name not in engine.catalog.prompts and engine.expects_more:
        return _later(
            engine,
            message,
            frame,
            link,
            peer,
            lambda call: _become(call, _find_prompt(engine, params.name), params.arguments),
        )
    entry = _find_prompt(engine, params.name)
    call = _call(engine, message, frame, link, peer, entry, params.arguments, params.meta)
    return _run(engine, call, params.input_responses, params.request_state)


def _find_prompt(engine: Engine, name: str) -> Entry:
    known = engine.catalog.prompts
    if name not in known:
        raise ProtocolError(INVALID_PARAMS, f"no prompt {name[:100]!r}{hint(name, known)}")
    return known[name]


def _complete(engine: Engine, message: Message, frame: bytes, link: Link) -> bytes | None:
    from longshore.registry.text_arguments import CompletionRequest, render_completion

    peer = engine.peer_of(message, link)
    if engine.rates is not None and (wait := engine.rates.take(link.principal.name, message.method)):
        from longshore.server.rates import too_often

        raise ProtocolError(INTERNAL_ERROR, too_often(message.method, wait).text)
    params = msgspec.json.decode(message.params, type=CompleteParams)
    wanted = CompletionRequest(params.argument.value, params.context.arguments)
    ref, known = _completed_in(engine, params)
    if ref not in known and engine.expects_more:

        def go_on(call: Call) -> Any:
            found = _find_completion(engine, params)
            return _become(call, found, wanted) if isinstance(found, Entry) else render_completion(found)

        return _later(engine, message, frame, link, peer, go_on)
    found = _find_completion(engine, params)
    if isinstance(found, Entry):
        return _run(engine, _call(engine, message, frame, link, peer, found, wanted, UNSET), UNSET, UNSET)
    assert message.id is not UNSET
    return engine.replies.result(message.id, peer, render_completion(found))


def _completed_in(engine: Engine, params: CompleteParams) -> tuple[str, dict[str, Any]]:
    """What is to be completed, and among what it must be."""
    if isinstance(params.ref, PromptRef):
        return params.ref.name, engine.catalog.prompts
    return params.ref.uri, engine.catalog.resources


def _find_completion(engine: Engine, params: CompleteParams) -> Entry | list[str]:
    """Who completes an argument, or how it is completed where its type says that."""
    from longshore.registry.text_arguments import choices, matching

    ref, known = _completed_in(engine, params)
    if ref not in known:
        raise ProtocolError(INVALID_PARAMS, f"nothing to complete: no {ref[:100]!r}{hint(ref, known)}")
    name = params.argument.name
    entry = engine.catalog.completions.get((ref, name))
    if entry is not None:
        return entry
    owner: Any = known[ref]
    parameters: dict[str, Any] = getattr(owner, "entry", owner).parameters
    if name not in parameters:
        raise ProtocolError(INVALID_PARAMS, f"{ref[:100]!r} has no argument {name[:100]!r}{hint(name, parameters)}")
    return matching(choices(parameters[name]) or [], params.argument.value)


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
