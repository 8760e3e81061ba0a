"""The engine: a frame comes in on a link, and is answered at once or set going.

`handle` is synchronous. It returns the frame to send back, or None where the answer comes later through the link, or
never. A `tools/call` takes the short way at the top; everything else goes through the table of methods.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, time
from typing import TYPE_CHECKING, Any, final

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from longshore.errors import Forbidden, ProtocolError
from longshore.limits import Limits
from longshore.protocol.dialect import STANDARD, Dialect, Failure
from longshore.protocol.envelope import AnyParams, BadEnvelope, Envelope, modern_peer, require_envelope
from longshore.protocol.peer import Peer
from longshore.protocol.revisions import MODERN, REVISIONS, STRUCTURED
from longshore.protocol.session import check_method
from longshore.registry.catalog import Catalog, Part
from longshore.registry.tool import Entry
from longshore.server.call import Call
from longshore.server.executor import Executor
from longshore.server.lane import JOIN_CALLS, CallParams, Lane, read_call
from longshore.server.link import Link
from longshore.server.questions import Questions
from longshore.server.replies import Replies, TooLarge
from longshore.server.stopping import Stopped
from longshore.telemetry.recorder import Recorder
from longshore.telemetry.records import ArgumentsMended, Outcome, RequestCompleted, RequestReceived
from longshore.wire.codec import (
    BROKEN,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    encode,
    error,
    is_utf8,
    read,
    refuse,
)
from longshore.wire.depth import shallow, too_deep
from longshore.wire.framing import TooLong
from longshore.wire.messages import Batch, Fault, Id, Malformed, Message, Repaired, Reply, UnreadableResponse

if TYPE_CHECKING:
    from longshore.protocol.headers import Headers
    from longshore.schema.client_forms import Form
    from longshore.server.lists import Lists
    from longshore.server.rates import Rates
    from longshore.server.subscriptions import Subscriptions


class _Arguments(Struct):
    arguments: Any = None


class _Call(Struct):
    params: _Arguments


_REPAIRED = "half of a surrogate pair was read as U+FFFD (the replacement character)"

_read_any = msgspec.json.Decoder(AnyParams).decode
_read_arguments = msgspec.json.Decoder(_Call).decode


@final
class Engine:
    """What a server does with messages, whatever they came by."""

    def __init__(
        self,
        catalog: Catalog,
        server_info: dict[str, Any],
        *,
        limits: Limits,
        recorder: Recorder,
        dialect: Dialect = STANDARD,
    ) -> None:
        self.catalog = catalog
        self.server_info = server_info
        self.limits = limits
        self.recorder = recorder
        self.dialect = dialect
        self.instructions: str | None = None
        self.form: Form | None = None
        """The kind of client that tools are listed for; None: as their authors wrote them."""
        self.tools: dict[str, Entry] = {}
        """The tools that are offered now: the catalog's, less what the configuration disabled."""
        self.listed = False
        self.rates: Rates | None = None
        """How often callers may call, where there is more than one of them."""
        self.lists: Lists | None = None
        self.before_request: Callable[[], object] | None = None
        """Called before each request other than a call is handled: checks whether the configuration has changed."""
        self.changed_hook: Callable[[set[Part]], None] = lambda _: None
        self.when_changed: Callable[[str], None] = self.tell_list_changed
        self.when_resource_changed: Callable[[str], None] = self.tell_resource_changed
        """Who serves the same clients with other processes has them all tell their listeners, itself included."""
        self.replies = Replies(dialect, limits, recorder, server_info)
        self.questions = Questions(limits)
        self.questions.replies = self.replies
        self.questions.deprecated = self._warn_deprecated
        self.executor = Executor(limits, self.replies, recorder, self.questions)
        self.executor.resource_changed = self.resource_changed
        self._lane = Lane()
        self._depth, self._batch = limits.depth, limits.batch
        self._most = limits.frame_bytes
        self._short = 2 * limits.depth  # bytes that can't hold more levels than that
        self._subscriptions: Subscriptions | None = None
        self._deprecated: set[str] = set()
        self._capabilities: frozenset[str] | None = None

    # -- frames

    def handle(self, frame: bytes, link: Link) -> bytes | None:
        """Deal with one frame. What it returns is to be sent as it is."""
        request: Any = None
        message: Any = None
        if (frame.isascii() or is_utf8(frame)) and (len(frame) <= self._short or not too_deep(frame, self._depth)):
            try:
                request = self._lane.read(frame)  # almost every frame is a good tools/call; what is not shows at once
            except Exception:  # an author's type may raise anything
                request = self._read_call(frame)
        try:
            if request is not None:
                return self._call_tool(request, frame, link)
            message = read(frame, self._depth, self._batch)
            if message.__class__ is Message:
                return self._handle_other(message, frame, link)
            if message.__class__ is Repaired:
                return self._handle_repaired(message, link)
            return self._handle_odd(message, link)
        except Exception as problem:
            return self._failed(request or message, problem)

    def _read_call(self, frame: bytes | memoryview) -> Any:
        """A tools/call whose tool is not in the lane, or whose arguments it refuses; None for anything else."""
        try:
            return read_call(frame)
        except BROKEN:
            return None

    def handle_long(self, frame: memoryview, link: Link) -> bytes | None:
        """Deal with a frame in memory that will be used again. What outlives this call is copied out of it."""
        whole: Any = frame.obj
        request = None
        # A view can't say whether it is ASCII, but the memory behind it can; stale bytes there only cost another look.
        if (whole.isascii() or is_utf8(frame)) and shallow(whole, len(frame), self._depth):
            try:
                request = self._lane.read(frame)
            except Exception:
                request = self._read_call(frame)
        if request is None:
            return self.handle(bytes(frame), link)
        try:
            return self._call_tool(request, frame, link)
        except Exception as problem:
            return self._failed(request, problem)

    def _handle_repaired(self, message: Repaired, link: Link) -> bytes | None:
        """Deal with a message that was not JSON as it was sent. The result of a tool says what was changed."""
        request = self._read_call(message.frame)
        if request is None:
            return self._handle_other(message, message.frame, link)
        return self._call_tool(request, message.frame, link, (_REPAIRED,) if message.surrogates else ())

    def too_long(self, frame: TooLong, link: Link) -> bytes | None:
        """Deal with a frame over the limit, of which only the ends are there."""
        text = f"a message is at most {self.limits.frame_bytes:,} bytes long; send less at once"
        return self._handle_odd(refuse(text, frame.head, frame.tail, INVALID_REQUEST), link)

    def _failed(self, message: Any, problem: Exception) -> bytes | None:
        """A fault of our own. The peer still gets its one answer, and the next frame is handled as if nothing were."""
        self.recorder.problem("error", f"the server failed at {getattr(message, 'method', 'a frame')!r}", problem)
        # A response is never answered, whatever became of it.
        id = UNSET if getattr(message, "method", None) == "" else getattr(message, "id", None)
        return None if id is UNSET else error(id, INTERNAL_ERROR, "the server failed; its log says how")

    def _handle_odd(self, odd: Any, link: Link) -> bytes | None:
        if isinstance(odd, Malformed):
            return self._refuse_malformed(odd, link)
        if isinstance(odd, UnreadableResponse):
            self._answered(odd, link)
        if isinstance(odd, Batch):
            return self._handle_batch(odd, link)
        return None

    def _refuse_malformed(self, message: Malformed, link: Link) -> bytes:
        """A tool call that can't be read fails as tools fail: a model sees results, but not errors of the protocol."""
        if link.has_status or message.method != "tools/call" or not isinstance(message.id, (int, str)):
            return error(message.id, message.code, message.text)
        revision = REVISIONS[MODERN[-1]] if link.session.peer is None else link.session.peer.revision
        failure = Failure("invalid_arguments", f"the call can't be read: {message.text}")
        shape = self.dialect.failed(failure, message.method, revision)
        if isinstance(shape, Fault):
            return error(message.id, shape.code, shape.message)
        if revision.modern:
            self.replies.sign(shape)
        return encode(Reply(message.id, shape))

    def _handle_batch(self, batch: Batch, link: Link) -> bytes | None:
        from longshore.server.batches import handle_batch

        return handle_batch(self, batch, link)

    # -- tools/call

    def _call_tool(
        self, request: Any, frame: bytes | memoryview, link: Link, remarks: tuple[str, ...] = ()
    ) -> bytes | None:
        session, id, params = link.session, request.id, request.params
        if self.recorder.on:
            self.recorder.record(RequestReceived("tools/call", id, time()))
        meta = params.meta
        try:
            entry = self._lane.entries.get(params.__class__)
            if link.headers is not None:
                peer = _peer_by_headers(link.headers, "tools/call", params.name if entry is None else entry.name, meta)
            elif meta is UNSET or (meta.version is UNSET and meta.capabilities is UNSET):
                peer = session.peer or session.require_peer("tools/call")
            else:
                peer = session.sender(meta)
            if entry is None:
                entry = self._find_tool(params.name, peer)
            if id in session.rows:
                raise ProtocolError(INVALID_REQUEST, "a request with this id is in flight")
            if entry.guarded:
                self.guard(entry, link, frame)
            if self.rates is not None and (wait := self.rates.take(link.principal.name, entry.meter or entry.name)):
                call = Call(self.executor, link, session, peer, id, "tools/call", entry, params.arguments, b"")
                return self._slow_down(call, wait)
            if (
                entry.direct
                and peer.revision.index >= STRUCTURED
                and params.arguments.__class__ is not Raw
                and not self.recorder.on
            ):
                return self._call_directly(entry, params.arguments, id, peer, link)
            call = Call(self.executor, link, session, peer, id, "tools/call", entry, params.arguments, frame, meta)
            call.remarks = remarks
            if entry.aliases or params.request_state is not UNSET or params.input_responses is not UNSET:
                self._resume(call, params)
        except ProtocolError as problem:
            return self._refuse(id, problem)
        if entry.run == "inline" and not entry.asked and (entry.toolset is None or entry.toolset.ready):
            return self.executor.run_inline(call)
        session.begin(id, call)
        self.executor.submit(call)
        return None

    def guard(self, entry: Entry, link: Link, frame: bytes | memoryview) -> None:
        """What few tools ask for: scopes of the caller's, and headers that repeat some of the arguments."""
        if link.principal.lacks(entry.scopes):
            raise Forbidden(entry.name, entry.scopes)
        if entry.headers and link.headers is not None:
            from longshore.server.repeated import with_todays_names

            arguments = _read_arguments(frame).params.arguments
            link.headers.check_params(entry.headers, with_todays_names(entry, arguments))

    def _slow_down(self, call: Call, wait: float) -> bytes:
        from longshore.server.rates import too_often

        if self.recorder.on:
            self.recorder.record(RequestCompleted("tools/call", call.id, 0.0, "refused", time()))
        return self.replies.failure(call, too_often(call.entry.name, wait))

    def _call_directly(self, entry: Entry, arguments: Any, id: Id, peer: Peer, link: Link) -> bytes:
        """The shortest way: an inline tool that sees nothing of its call, whose typed result nobody has to look at."""
        self.executor.calls += 1
        entry.calls += 1
        try:
            result = entry.render(entry.invoke(arguments, None), None)
            if not peer.revision.plain:
                self.replies.sign(result)
            frame = encode(Reply(id, result))
            if len(frame) > self._most:
                raise TooLarge(len(frame), self._most)
        except Stopped:
            raise
        except BaseException as problem:
            call = Call(self.executor, link, link.session, peer, id, "tools/call", entry, arguments, b"")
            return self.replies.exception(call, problem)[0]
        return frame

    def _resume(self, call: Call, params: Any) -> None:
        """What few calls bring along: answers to what was asked, or a name that the tool had."""
        entry = call.entry
        if params.__class__ is CallParams and params.name in entry.aliases:
            call.remarks = (*call.remarks, f"{params.name} is now {entry.name}")
            if self.recorder.on:
                self.recorder.record(ArgumentsMended(entry.name, call.id, call.remarks, time()))
        asks = params.request_state is not UNSET or params.input_responses is not UNSET
        if asks and call.peer.revision.modern and (entry.asked or entry.replay):
            self.questions.resume(call, params.input_responses, params.request_state)

    def _find_tool(self, name: str, peer: Peer) -> Entry:
        entry = self.tools.get(name) or self.find_renamed(name)
        if entry is None and self.catalog.pending_mounts is not None:
            entry = self.catalog.pending_mounts.placeholder(name)
        if entry is None:
            raise self._unknown_tool(name, peer)
        if entry.calls >= JOIN_CALLS and entry.name not in self._lane.tried:
            self._lane.join(entry)
        return entry

    def has_tool(self, name: str) -> bool:
        """Whether there is a tool of this name, or a mounted server that is not ready and may have it."""
        if name in self.tools or self.find_renamed(name) is not None:
            return True
        return self.catalog.pending_mounts is not None and self.catalog.pending_mounts.placeholder(name) is not None

    def find_renamed(self, name: str) -> Entry | None:
        """The tool that had this name before, if one is offered."""
        if not self.catalog.aliased:
            return None
        from longshore.registry.catalog import find_alias

        return find_alias(self.tools, name)

    def _unknown_tool(self, name: str, peer: Peer) -> ProtocolError:
        from longshore.registry.tool import hint

        text = f"no tool {name[:100]!r}{hint(name, self.tools)}"
        fault = self.dialect.failed(Failure("unknown_tool", text), "tools/call", peer.revision)
        assert isinstance(fault, Fault)
        return ProtocolError(fault.code, fault.message)

    def _refuse(self, id: Id, problem: ProtocolError) -> bytes:
        if self.recorder.on:
            self.recorder.record(RequestCompleted("tools/call", id, 0.0, "refused", time()))
        return self.replies.fault(id, problem)

    # -- everything else

    def _handle_other(self, message: Message, frame: bytes, link: Link) -> bytes | None:
        from longshore.server import methods

        if message.id is UNSET:
            methods.notified(self, message, link)
            return None
        if message.method == "":
            self._answered(message, link)
            return None
        if self.before_request is not None:
            self.before_request()
        started = monotonic()
        if self.recorder.on:
            self.recorder.record(RequestReceived(message.method, message.id, time()))
        outcome: Outcome = "ok"
        try:
            reply = methods.request(self, message, frame, link)
        except ProtocolError as problem:
            reply, outcome = self.replies.fault(message.id, problem), "refused"
        except TooLarge as problem:
            reply, outcome = error(message.id, INTERNAL_ERROR, str(problem)), "failed"
        except BROKEN as problem:
            reply, outcome = error(message.id, INVALID_PARAMS, _bad_params(message.method, problem)), "refused"
        if reply is not None and self.recorder.on:
            record = RequestCompleted(message.method, message.id, monotonic() - started, outcome, time())
            self.recorder.record(record)
        return reply

    def peer_of(self, message: Message, link: Link) -> Peer:
        """Who sent a request, by its own envelope or by the handshake; and whether the method is theirs to call."""
        method = message.method
        try:
            params = _read_any(message.params)
        except BROKEN as problem:
            raise BadEnvelope(_bad_params(method, problem)) from None
        meta = params.meta
        if link.headers is not None:
            peer = _peer_by_headers(link.headers, method, params.named(method), meta)
        elif meta is UNSET or (meta.version is UNSET and meta.capabilities is UNSET):
            check_method(method, None, self.capability_names())
            if method in ("server/discover", "subscriptions/listen"):
                raise ProtocolError(INVALID_PARAMS, f"{method} needs the 2026-07-28 envelope in params._meta")
            peer = link.session.require_peer(method)
        else:
            peer = modern_peer(meta)
        check_method(method, peer.revision, self.capability_names())
        return peer

    def _answered(self, message: Message, link: Link) -> None:
        assert message.id is not UNSET
        call = link.session.answered(message.id)
        if isinstance(call, Call):
            self.questions.answered(call, message)

    # -- what is offered

    def capability_names(self) -> frozenset[str]:
        """What this server has. Tools may come at any time and are always declared; the rest when there is some.

        A mounted server may bring any of them, and has mostly not said so yet when a client asks.
        """
        if self._capabilities is None:
            self._capabilities = self._count_capabilities()
        return self._capabilities

    def _count_capabilities(self) -> frozenset[str]:
        names = {"tools", "logging"}
        catalog = self.catalog
        if catalog.pending_mounts is not None:
            return frozenset({*names, "resources", "prompts", "completions"})
        if catalog.resources:
            names.add("resources")
        if catalog.prompts:
            names.add("prompts")
        if catalog.completions or catalog.prompts or any(not each.fixed for each in tuple(catalog.resources.values())):
            names.add("completions")
        return frozenset(names)

    @property
    def expects_more(self) -> bool:
        """Whether what is not there now may be about to come: a mounted server is still starting."""
        arrivals = self.catalog.pending_mounts
        return arrivals is not None and arrivals.pending

    def changed(self, parts: set[Part]) -> None:
        """The catalog is not what it was. May be called from any thread."""
        self.executor.post(lambda: self._changed(parts))

    def forget(self) -> None:
        """The offered tools are about to change: what was made of them is stale."""
        self._lane = Lane()
        self._capabilities = None
        if self.lists is not None:
            self.lists.forget()

    def _changed(self, parts: set[Part]) -> None:
        self.changed_hook(parts)
        for part in sorted(parts):
            self.when_changed(part)

    def tell_list_changed(self, part: str) -> None:
        if self._subscriptions is not None:
            self._subscriptions.list_changed(part)

    def resource_changed(self, uri: str) -> None:
        self.when_resource_changed(uri)

    def tell_resource_changed(self, uri: str) -> None:
        if self._subscriptions is not None:
            self._subscriptions.resource_changed(uri)

    @property
    def subscriptions(self) -> Subscriptions:
        if self._subscriptions is None:
            from longshore.server.subscriptions import Subscriptions

            self._subscriptions = Subscriptions(self.limits)
        return self._subscriptions

    # -- links

    def cancel(self, link: Link, id: int | str) -> None:
        """The peer takes a request back. Unknown and finished ones are no fault."""
        row = link.session.cancel(id)
        if isinstance(row, Call):
            self.executor.cancel(row)
        elif row is not None and self._subscriptions is not None:
            self._subscriptions.close(row)
            self.follow()

    def detach(self, link: Link) -> None:
        """A link is about to close: its listens end, and nobody will answer what it was asked."""
        link.session.deaf = True
        self.questions.client_gone([call for call in self.executor.live if call.link.session is link.session])
        if self._subscriptions is not None:
            self._subscriptions.end_all(link, self.replies.server_meta)
            self._subscriptions.links.discard(link.home)
            self.follow()

    def follow(self) -> None:
        """What is watched has changed: have mounted servers tell of what is watched here, and of nothing else."""
        if self.catalog.pending_mounts is not None and self._subscriptions is not None:
            self.catalog.pending_mounts.watch(self._subscriptions.watched())

    def hang_up(self, link: Link) -> None:
        """The peer of one request is gone, and with it all reason to work on it."""
        for id in list(link.session.rows):
            self.cancel(link, id)

    def cancel_all(self, link: Link) -> None:
        """A link is gone: what still runs for it runs for nobody."""
        for call in [call for call in self.executor.live if call.link.session is link.session]:
            self.cancel(call.link, call.id)

    def _warn_deprecated(self, what: str) -> None:
        if what not in self._deprecated:
            self._deprecated.add(what)
            self.recorder.problem(
                "notice", f"{what} is deprecated by MCP since {REVISIONS['2026-07-28'].name}; it still works"
            )


def _bad_params(method: str, problem: Exception) -> str:
    from longshore.schema.phrase import plain

    return f"invalid params of {method}: {plain(problem)}"


def _peer_by_headers(headers: Headers, method: str, name: str | None, meta: Envelope | UnsetType) -> Peer:
    """Who sent a modern request over HTTP: it must be whole, and its headers must agree, before its version counts."""
    headers.check(method, name, require_envelope(meta))
    assert meta is not UNSET
    return modern_peer(meta)
