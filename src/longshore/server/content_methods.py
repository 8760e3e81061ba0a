"""Methods of resources, prompts, completion and subscriptions. Imported when one of them is first called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.errors import ProtocolError, ResourceNotFound
from longshore.protocol.dialect import Failure
from longshore.protocol.peer import Envelope
from longshore.registry.tool import Entry, hint
from longshore.server.call import Call
from longshore.server.methods import MethodHandler, MethodRequest, after_mounts, continue_as, make_call
from longshore.wire.codec import INTERNAL_ERROR, INVALID_PARAMS
from longshore.wire.messages import Fault

if TYPE_CHECKING:
    from longshore.server.engine import Engine

# -- parameters


class UriParams(Struct):
    uri: str
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
            return continue_as(call, arrived[0], ReadRequest(params.uri, arrived[1]))

        return after_mounts(engine, request, go_on)
    if found is None:
        _refuse_missing(engine, request, params.uri)
    entry, values = found
    call = make_call(engine, request, entry, ReadRequest(params.uri, values), params.meta)
    call.max_age = entry.max_age
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
        return after_mounts(engine, request, subscribe)
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
            return continue_as(call, _find_prompt(engine, params.name), params.arguments)

        return after_mounts(engine, request, go_on)
    entry = _find_prompt(engine, params.name)
    return _run(engine, make_call(engine, request, entry, params.arguments, params.meta), params)


def _find_prompt(engine: Engine, name: str) -> Entry:
    known = engine.catalog.prompts
    if name not in known:
        raise ProtocolError(INVALID_PARAMS, f"no prompt {name[:100]!r}{hint(name, known)}")
    return known[name]


def _complete(engine: Engine, request: MethodRequest) -> bytes | None:
    from longshore.registry.prompt import CompletionRequest, render_completion

    if engine.rates is not None and (wait := engine.rates.take(request.link.principal.name, request.method)):
        from longshore.server.rate_limits import rate_failure

        raise ProtocolError(INTERNAL_ERROR, rate_failure(request.method, wait).text)
    params: CompleteParams = request.params
    wanted = CompletionRequest(params.argument.value, params.context.arguments)
    ref, known = _completed_in(engine, params)
    if ref not in known and engine.expects_more:

        def go_on(call: Call) -> Any:
            found = _find_completion(engine, params)
            return continue_as(call, found, wanted) if isinstance(found, Entry) else render_completion(found)

        return after_mounts(engine, request, go_on)
    found = _find_completion(engine, params)
    if isinstance(found, Entry):
        return engine.run(make_call(engine, request, found, wanted, UNSET))
    return engine.replies.result(request.id, request.sender, render_completion(found))


def _completed_in(engine: Engine, params: CompleteParams) -> tuple[str, dict[str, Entry]]:
    """The name or URI that a completion refers to, and the table to find it in."""
    if isinstance(params.ref, PromptRef):
        return params.ref.name, engine.catalog.prompts
    return params.ref.uri, engine.catalog.resources


def _find_completion(engine: Engine, params: CompleteParams) -> Entry | list[str]:
    """The function that completes an argument, or the choices of the argument's type."""
    from longshore.registry.prompt import choices, matching

    ref, known = _completed_in(engine, params)
    if ref not in known:
        raise ProtocolError(INVALID_PARAMS, f"nothing to complete: no {ref[:100]!r}{hint(ref, known)}")
    name = params.argument.name
    owner = known[ref]
    if name in owner.completions:
        return owner.completions[name]
    parameters = owner.parameters
    if name not in parameters:
        raise ProtocolError(INVALID_PARAMS, f"{ref[:100]!r} has no argument {name[:100]!r}{hint(name, parameters)}")
    return matching(choices(parameters[name]) or [], params.argument.value)


def _run(engine: Engine, call: Call, params: ReadParams | GetParams) -> bytes | None:
    responses, state = params.input_responses, params.request_state
    if (responses is not UNSET or state is not UNSET) and call.peer.revision.modern and call.entry.asked:
        engine.questions.resume(call, responses, state)
    return engine.run(call)


CONTENT_METHODS: Final = {
    "resources/read": MethodHandler(_read_resource, ReadParams, "uri"),
    "resources/subscribe": MethodHandler(_subscribe, UriParams),
    "resources/unsubscribe": MethodHandler(_subscribe, UriParams),
    "subscriptions/listen": MethodHandler(_listen, ListenParams),
    "prompts/get": MethodHandler(_get_prompt, GetParams, "name"),
    "completion/complete": MethodHandler(_complete, CompleteParams),
}
