"""Every method but `tools/call`: its parameters, one function each, and the table that finds them.

The parameters of a method and the envelope in their `_meta` are decoded together, in one pass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.errors import ProtocolError, ResourceNotFound
from longshore.protocol.dialect import Failure
from longshore.protocol.peer import ABSENT, AnyParams, Envelope, Peer, has_envelope, log_level
from longshore.protocol.revisions import CAPABILITIES, IMPLEMENTATION, METHODS, MODERN, lower, negotiate
from longshore.registry.tool import Entry, hint, report_problem
from longshore.server.call import Call, CallParams
from longshore.server.link import Link
from longshore.wire.codec import BROKEN, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, encode
from longshore.wire.messages import Fault, Id, Message, Reply

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


class UriParams(Struct):
    uri: str
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)


class LevelParams(Struct):
    level: str
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)


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
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)


class Filter(Struct, rename="camel", omit_defaults=True):
    """The changes that a listen subscribes to."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []


class ListenParams(Struct):
    notifications: Filter
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)


class CancelledParams(Struct, rename="camel"):
    request_id: Id | UnsetType = UNSET


_read_any = msgspec.json.Decoder(AnyParams).decode


# -- dispatch


def handle_request(engine: Engine, request: MethodRequest) -> bytes | None:
    """Answer a request, or start the work that will. Raises ProtocolError for a refusal."""
    method = _METHODS.get(request.method)
    if method is None:
        _identify_sender(engine, request)
        raise AssertionError(f"{request.method} is in the revision table but has no function")
    request.link.session.refuse_duplicate(request.id)
    if method.params is not None:
        _read_params(engine, request, method)
    return method.run(engine, request)


def _read_params(engine: Engine, request: MethodRequest, method: _Method) -> None:
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
    engine.subscriptions.links.add(link.home)
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
        return _after_mounts(engine, request, lambda _: msgspec.json.decode(page()))
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
            return [resource.entry for resource in engine.catalog.resources.values() if resource.fixed is fixed]


# -- waiting for mounted servers


def _after_mounts(engine: Engine, request: MethodRequest, go_on: Callable[[Call], Any]) -> bytes | None:
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
    return engine.run(_call(engine, request, entry, None, UNSET))


def _continue_as(call: Call, entry: Entry, arguments: Any) -> Any:
    """Continue a call as one of an entry that has arrived, with that entry's whole time limit."""
    call.entry, call.paused = entry, entry.limit
    call.arguments = entry.decode(arguments)
    return entry.invoke(call.arguments, call)


# -- resources


def _read_resource(engine: Engine, request: MethodRequest) -> bytes | None:
    from longshore.registry.resource import ReadRequest

    params = request.params
    found = engine.catalog.find_resource(params.uri)
    if found is None and engine.expects_more:

        def go_on(call: Call) -> Any:
            arrived = engine.catalog.find_resource(params.uri)
            if arrived is None:
                _refuse_missing(engine, request, params.uri)
            call.max_age = arrived[0].max_age
            return _continue_as(call, arrived[0].entry, ReadRequest(params.uri, arrived[1]))

        return _after_mounts(engine, request, go_on)
    if found is None:
        _refuse_missing(engine, request, params.uri)
    resource, values = found
    call = _call(engine, request, resource.entry, ReadRequest(params.uri, values), params.meta)
    call.max_age = resource.max_age
    return _run(engine, call, params)


def _refuse_missing(engine: Engine, request: MethodRequest, uri: str) -> NoReturn:
    failure = Failure("not_found", str(ResourceNotFound(uri[:1000])), {"uri": uri[:1000]})
    fault = engine.dialect.failed(failure, request.method, request.sender.revision)
    assert isinstance(fault, Fault)
    raise ProtocolError(fault.code, fault.message, fault.data)


def _subscribe(engine: Engine, request: MethodRequest) -> bytes | None:
    uri: str = request.params.uri

    def subscribe(_: Any) -> dict[str, Any]:
        if engine.catalog.find_resource(uri) is None:
            _refuse_missing(engine, request, uri)
        engine.subscriptions.subscribe(request.link, uri)
        engine.watch_mounted()
        return {}

    if request.method == "resources/unsubscribe":
        request.link.session.subscriptions.discard(uri)
        engine.watch_mounted()
    elif engine.catalog.find_resource(uri) is None and engine.expects_more:
        return _after_mounts(engine, request, subscribe)
    else:
        subscribe(None)
    return request.reply({})


def _listen(engine: Engine, request: MethodRequest) -> None:
    wanted: Filter = request.params.notifications
    engine.subscriptions.listen(request.link, request.id, wanted, set(engine.capability_names()))
    if wanted.resource_subscriptions:
        engine.watch_mounted()


# -- prompts and completion


def _get_prompt(engine: Engine, request: MethodRequest) -> bytes | None:
    params = request.params
    if params.name not in engine.catalog.prompts and engine.expects_more:

        def go_on(call: Call) -> Any:
            return _continue_as(call, _find_prompt(engine, params.name), params.arguments)

        return _after_mounts(engine, request, go_on)
    entry = _find_prompt(engine, params.name)
    return _run(engine, _call(engine, request, entry, params.arguments, params.meta), params)


def _find_prompt(engine: Engine, name: str) -> Entry:
    known = engine.catalog.prompts
    if name not in known:
        raise ProtocolError(INVALID_PARAMS, f"no prompt {name[:100]!r}{hint(name, known)}")
    return known[name]


def _complete(engine: Engine, request: MethodRequest) -> bytes | None:
    from longshore.registry.text_arguments import CompletionRequest, render_completion

    if engine.rates is not None and (wait := engine.rates.take(request.link.principal.name, request.method)):
        from longshore.server.rate_limits import rate_failure

        raise ProtocolError(INTERNAL_ERROR, rate_failure(request.method, wait).text)
    params: CompleteParams = request.params
    wanted = CompletionRequest(params.argument.value, params.context.arguments)
    ref, known = _completed_in(engine, params)
    if ref not in known and engine.expects_more:

        def go_on(call: Call) -> Any:
            found = _find_completion(engine, params)
            return _continue_as(call, found, wanted) if isinstance(found, Entry) else render_completion(found)

        return _after_mounts(engine, request, go_on)
    found = _find_completion(engine, params)
    if isinstance(found, Entry):
        return engine.run(_call(engine, request, found, wanted, UNSET))
    return engine.replies.result(request.id, request.sender, render_completion(found))


def _completed_in(engine: Engine, params: CompleteParams) -> tuple[str, dict[str, Any]]:
    """The name or URI that a completion refers to, and the table to find it in."""
    if isinstance(params.ref, PromptRef):
        return params.ref.name, engine.catalog.prompts
    return params.ref.uri, engine.catalog.resources


def _find_completion(engine: Engine, params: CompleteParams) -> Entry | list[str]:
    """The function that completes an argument, or the choices of the argument's type."""
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


def _call_tool(_: Engine, __: MethodRequest) -> NoReturn:
    """Refuse a `tools/call` that the engine could not decode, where its parameters alone can be."""
    raise ProtocolError(INVALID_PARAMS, "invalid params of tools/call")


# -- running


def _call(engine: Engine, request: MethodRequest, entry: Entry, arguments: Any, meta: Any) -> Call:
    link, frame = request.link, request.frame
    return Call(
        engine.executor, link, link.session, request.sender, request.id, request.method, entry, arguments, frame, meta
    )


def _run(engine: Engine, call: Call, params: ReadParams | GetParams) -> bytes | None:
    responses, state = params.input_responses, params.request_state
    if (responses is not UNSET or state is not UNSET) and call.peer.revision.modern and call.entry.asked:
        engine.questions.resume(call, responses, state)
    return engine.run(call)


class _Method(NamedTuple):
    run: Callable[[Engine, MethodRequest], bytes | None]
    params: Any = None
    header_name: str = ""
    """The parameter that the `Mcp-Name` header repeats."""


_METHODS: Final = {
    "initialize": _Method(_initialize),
    "ping": _Method(_ping),
    "server/discover": _Method(_discover, AnyParams),
    "logging/setLevel": _Method(_set_level, LevelParams),
    "tools/list": _Method(_list, ListParams),
    "prompts/list": _Method(_list, ListParams),
    "resources/list": _Method(_list, ListParams),
    "resources/templates/list": _Method(_list, ListParams),
    "resources/read": _Method(_read_resource, ReadParams, "uri"),
    "resources/subscribe": _Method(_subscribe, UriParams),
    "resources/unsubscribe": _Method(_subscribe, UriParams),
    "subscriptions/listen": _Method(_listen, ListenParams),
    "prompts/get": _Method(_get_prompt, GetParams, "name"),
    "completion/complete": _Method(_complete, CompleteParams),
    "tools/call": _Method(_call_tool, CallParams, "name"),
}
assert _METHODS.keys() == METHODS.keys()
