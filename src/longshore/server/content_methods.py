"""Methods of resources, prompts, completion and subscriptions. Imported when one of them is first called."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NoReturn, final

from msgspec import UNSET, Raw, Struct, UnsetType, field

from longshore.errors import ProtocolError, ResourceNotFound, ToolError
from longshore.limits import Limits
from longshore.protocol.dialect import Failure, render_failure
from longshore.protocol.peer import SUBSCRIPTION_ID, Envelope
from longshore.registry.tool import Entry, hint
from longshore.server.call import Call
from longshore.server.link import Link
from longshore.server.methods import MethodHandler, MethodRequest, handle_after
from longshore.wire.codec import INTERNAL_ERROR, INVALID_PARAMS, encode
from longshore.wire.messages import Fault, Id, Notification, Reply

if TYPE_CHECKING:
    from longshore.registry.toolset import ToolsetHandle
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


class ListenFilter(Struct, rename="camel", omit_defaults=True):
    """The changes that a listen subscribes to."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []


class ListenParams(Struct):
    notifications: ListenFilter
    meta: Envelope | UnsetType = field(name="_meta", default=UNSET)


# -- resources


def _read_resource(engine: Engine, request: MethodRequest) -> bytes | None:
    from longshore.registry.resource import ReadRequest

    params = request.params
    found = engine.catalog.find_resource(params.uri)
    if found is None:
        _refuse_missing(request, params.uri)
    entry, values = found
    call = request.call(engine, entry.wrapped or entry, ReadRequest(params.uri, values), params.meta)
    call.max_age = entry.max_age
    return _run(engine, call, params)


def _lacks_resource(engine: Engine, params: ReadParams | UriParams) -> bool:
    return engine.catalog.find_resource(params.uri) is None


def _refuse_missing(request: MethodRequest, uri: str) -> NoReturn:
    failure = Failure("not_found", str(ResourceNotFound(uri[:1000])), {"uri": uri[:1000]})
    fault = render_failure(failure, request.method, request.sender.revision)
    assert isinstance(fault, Fault)
    raise ProtocolError(fault.code, fault.message, fault.data)


def _subscribe(engine: Engine, request: MethodRequest) -> bytes | None:
    uri: str = request.params.uri
    watched, most = request.link.session.subscriptions, engine.limits.subscriptions
    if _lacks_resource(engine, request.params):
        _refuse_missing(request, uri)
    if len(watched) >= most and uri not in watched:
        raise ProtocolError(INVALID_PARAMS, f"at most {most} watched resources; unsubscribe one")
    if request.unwatchable is None and (asked := _find_checks(engine, [uri])):
        watched.add(uri)  # at once: a session over HTTP is stored before the answer
        return _check_watches(engine, request, asked)
    if request.unwatchable:
        watched.discard(uri)
        _refuse_missing(request, uri)
    watched.add(uri)
    engine.update_watched()
    return request.reply({})


def _find_checks(engine: Engine, uris: Iterable[str]) -> dict[str, ToolsetHandle]:
    """The resources whose toolset is to be asked whether they may be watched."""
    found = {uri: match[0].toolset for uri in uris if (match := engine.catalog.find_resource(uri)) is not None}
    return {uri: owner for uri, owner in found.items() if owner is not None and owner.checks_watches}


def _check_watches(engine: Engine, request: MethodRequest, asked: Mapping[str, ToolsetHandle]) -> bytes | None:
    """Ask the toolsets, and handle the request anew. Any error of theirs refuses: nothing would observe it."""

    async def ask() -> None:
        refused = set[str]()
        for uri, owner in asked.items():
            try:
                await owner.check_watch(uri)
            except ToolError:
                refused.add(uri)
            except Exception as problem:
                refused.add(uri)
                engine.recorder.problem(
                    "error", f"the toolset {owner.name!r} failed at check_watch({uri!r:.200})", problem
                )
        request.unwatchable = frozenset(refused)

    return handle_after(engine, request, ask)


def _unsubscribe(engine: Engine, request: MethodRequest) -> bytes:
    request.link.session.subscriptions.discard(request.params.uri)
    engine.update_watched()
    return request.reply({})


def _listen(engine: Engine, request: MethodRequest) -> bytes | None:
    wanted: ListenFilter = request.params.notifications
    uris = wanted.resource_subscriptions
    engine.subscriptions.require_room(request.link, wanted)
    if request.unwatchable is None and (asked := _find_checks(engine, uris)):
        return _check_watches(engine, request, asked)
    if request.unwatchable:
        wanted.resource_subscriptions = [uri for uri in uris if uri not in request.unwatchable]
    engine.subscriptions.listen(request.link, request.id, wanted, engine.capability_names())
    if wanted.resource_subscriptions:
        engine.update_watched()
    return None


# -- prompts and completion


def _get_prompt(engine: Engine, request: MethodRequest) -> bytes | None:
    params, known = request.params, engine.catalog.offered("prompts")
    if params.name not in known:
        raise ProtocolError(INVALID_PARAMS, f"no prompt {params.name[:100]!r}{hint(params.name, known)}")
    entry = known[params.name]
    return _run(engine, request.call(engine, entry.wrapped or entry, params.arguments, params.meta), params)


def _lacks_prompt(engine: Engine, params: GetParams) -> bool:
    return params.name not in engine.catalog.offered("prompts")


def _complete(engine: Engine, request: MethodRequest) -> bytes | None:
    """Complete an argument by the function declared for it, or by the choices of its type."""
    from longshore.registry.prompt import CompletionRequest, choices, matching, render_completion

    if engine.rates is not None and (wait := engine.rates.take(request.link.principal.name, request.method)):
        from longshore.server.engine import rate_failure

        raise ProtocolError(INTERNAL_ERROR, rate_failure(request.method, wait).text)
    params: CompleteParams = request.params
    ref, known = _completed_in(engine, params)
    if ref not in known:
        raise ProtocolError(INVALID_PARAMS, f"nothing to complete: no {ref[:100]!r}{hint(ref, known)}")
    name, value = params.argument.name, params.argument.value
    owner = known[ref]
    if name in owner.completions:
        completion = CompletionRequest(value, params.context.arguments)
        return engine.run(request.call(engine, owner.completions[name], completion))
    parameters = owner.parameters
    if name not in parameters:
        raise ProtocolError(INVALID_PARAMS, f"{ref[:100]!r} has no argument {name[:100]!r}{hint(name, parameters)}")
    found = matching(choices(parameters[name]) or [], value)
    return engine.replies.result(request.id, request.sender, render_completion(found))


def _completed_in(engine: Engine, params: CompleteParams) -> tuple[str, dict[str, Entry]]:
    """The name or URI that a completion refers to, and the table to find it in."""
    if isinstance(params.ref, PromptRef):
        return params.ref.name, engine.catalog.offered("prompts")
    return params.ref.uri, engine.catalog.offered("resources")


def _lacks_completed(engine: Engine, params: CompleteParams) -> bool:
    ref, known = _completed_in(engine, params)
    return ref not in known


def _run(engine: Engine, call: Call, params: ReadParams | GetParams) -> bytes | None:
    responses, state = params.input_responses, params.request_state
    if (responses is not UNSET or state is not UNSET) and call.peer.revision.modern and call.entry.asked:
        engine.questions.resume(call, responses, state)
    return engine.run(call)


CONTENT_METHODS: Final = {
    "resources/read": MethodHandler(_read_resource, ReadParams, "uri", _lacks_resource),
    "resources/subscribe": MethodHandler(_subscribe, UriParams, may_arrive=_lacks_resource),
    "resources/unsubscribe": MethodHandler(_unsubscribe, UriParams),
    "subscriptions/listen": MethodHandler(_listen, ListenParams),
    "prompts/get": MethodHandler(_get_prompt, GetParams, "name", _lacks_prompt),
    "completion/complete": MethodHandler(_complete, CompleteParams, may_arrive=_lacks_completed),
}


# -- subscriptions

PARTS = ("tools", "prompts", "resources")


class Listen(Struct, eq=False):
    """One open `subscriptions/listen`, which is also its own row in the in-flight table."""

    link: Link
    id: Id
    filter: ListenFilter

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.link.send(encode(Notification(method, {**params, "_meta": {SUBSCRIPTION_ID: self.id}})))


@final
class Subscriptions:
    """Notifies peers of changes: handshake-era peers on their link, modern ones on the listens that they opened."""

    def __init__(self, limits: Limits, links: set[Link]) -> None:
        self._limits = limits
        self.links = links
        self.listens: set[Listen] = set()

    def listen(self, link: Link, id: Id, wanted: ListenFilter, offered: frozenset[str]) -> None:
        """Open a listen and acknowledge the part of it that this server supports."""
        accepted = ListenFilter(
            tools_list_changed=wanted.tools_list_changed and "tools" in offered,
            prompts_list_changed=wanted.prompts_list_changed and "prompts" in offered,
            resources_list_changed=wanted.resources_list_changed and "resources" in offered,
            resource_subscriptions=wanted.resource_subscriptions if "resources" in offered else [],
        )
        listen = Listen(link, id, accepted)
        link.session.begin(id, listen)
        self.listens.add(listen)
        listen.notify("notifications/subscriptions/acknowledged", {"notifications": accepted})

    def require_room(self, link: Link, wanted: ListenFilter) -> None:
        """Refuse a listen that would be one too many, or watch too many resources."""
        mine = [each for each in self.listens if each.link.owner == link.owner]
        uris = sum(len(each.filter.resource_subscriptions) for each in mine) + len(wanted.resource_subscriptions)
        if len(mine) >= self._limits.listens or uris > self._limits.subscriptions:
            text = f"at most {self._limits.listens} listens and {self._limits.subscriptions} watched resources"
            raise ProtocolError(INVALID_PARAMS, f"too many subscriptions: {text}; end one first")

    def close(self, listen: Listen) -> None:
        """Close a listen that the peer has ended."""
        self.listens.discard(listen)

    def end_all(self, link: Link, server_meta: dict[str, Any]) -> None:
        """End a link's listens: each gets its result, and then a cancel for clients that expect one."""
        for listen in [each for each in self.listens if each.link is link]:
            self.listens.discard(listen)
            if link.session.end(listen.id, listen):
                meta = server_meta | {SUBSCRIPTION_ID: listen.id}
                link.answer(encode(Reply(listen.id, {"resultType": "complete", "_meta": meta})))
                link.send(encode(Notification("notifications/cancelled", {"requestId": listen.id})))

    def list_changed(self, part: str) -> None:
        """Notify subscribers that a list has changed."""
        method = f"notifications/{part}/list_changed"
        frame = encode(Notification(method))
        for link in self.links:
            if link.session.initialized and part in link.session.declared:
                link.send(frame)
        for listen in self.listens:
            if getattr(listen.filter, f"{part}_list_changed"):
                listen.notify(method, {})

    def resource_changed(self, uri: str) -> None:
        """Notify subscribers of this resource, and of those that contain it."""
        method = "notifications/resources/updated"
        for link in self.links:
            if any(_covers(watched, uri) for watched in link.session.subscriptions):
                link.send(encode(Notification(method, {"uri": uri})))
        for listen in self.listens:
            if any(_covers(watched, uri) for watched in listen.filter.resource_subscriptions):
                listen.notify(method, {"uri": uri})

    def watched(self) -> set[str]:
        """Every watched resource."""
        by_link = (link.session.subscriptions for link in self.links)
        return set[str]().union(*by_link, *(listen.filter.resource_subscriptions for listen in self.listens))


def _covers(watched: str, uri: str) -> bool:
    return uri == watched or uri.startswith(watched.rstrip("/") + "/")
