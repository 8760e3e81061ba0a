"""The engine: takes one frame from a link, and answers it at once or starts the work that will.

`handle` is synchronous. It returns the frame to send back, or None if the answer comes later through the link, or not
at all. A valid `tools/call` is decoded in one typed pass and handled here; every other request by `methods`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Literal, final

from msgspec import UNSET, Raw, UnsetType

from longshore.errors import ProtocolError, UnknownTool
from longshore.limits import Limits
from longshore.protocol.dialect import Dialect, Failure, render_failure
from longshore.protocol.peer import Envelope, Peer, modern_peer, require_envelope
from longshore.protocol.revisions import MODERN, R2607, REVISIONS, STRUCTURED, Revision
from longshore.protocol.session import Session, check_method
from longshore.registry.catalog import PART_OF, Catalog, Part
from longshore.registry.tool import Entry
from longshore.server.call import Call, CallRequest, Stopped, read_call, read_long_call
from longshore.server.executor import Executor
from longshore.server.frame_tap import FrameTap
from longshore.server.link import Link
from longshore.server.policy import CALL_TOOL, Policy
from longshore.server.recording import shorten
from longshore.server.replies import Replies, TooLarge, why_refused
from longshore.telemetry.recorder import Recorder
from longshore.wire.codec import (
    BROKEN,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    encode,
    error,
    is_shallow,
    is_utf8,
    read,
    refuse,
    too_deep,
)
from longshore.wire.framing import TooLong
from longshore.wire.messages import Batch, Fault, Id, Malformed, Message, Repaired, Reply, UnreadableResponse

if TYPE_CHECKING:
    from longshore.config import Config
    from longshore.protocol.http_headers import Headers
    from longshore.protocol.peer import Principal
    from longshore.registry.watch_hooks import WatchedResources
    from longshore.server.adapter import DialectAdapter
    from longshore.server.content_methods import Subscriptions
    from longshore.server.lists import Lists
    from longshore.server.methods import MethodRequest
    from longshore.server.questions import Questions
    from longshore.telemetry.records import Outcome


Change = Literal["list", "resource"]
_REPAIRED = "half of a surrogate pair was read as U+FFFD (the replacement character)"

MOST_BUCKETS: Final = 10_000
"""Buckets before the full ones are dropped. A caller can't fill memory with names: only existing tools count."""
_ROUNDING: Final = 0.01
"""A hundredth of a call: the tolerance for sums of fractions, so that the last call of a burst is let through."""


@final
class Rates:
    """At most `burst` calls at once, and `rate` a second on average, for each caller and tool.

    A bucket is one number, the time at which it is full again (the generic cell rate algorithm), so a call costs one
    lookup. Full buckets are dropped when there are many. Time is counted in calls, at that rate.
    """

    __slots__ = ("_clock", "_depth", "_full_at", "_rate")

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self._rate = rate
        self._depth = max(burst - 1, 0)
        self._clock = clock
        self._full_at: dict[tuple[str, str], float] = {}

    def take(self, caller: str, tool: str) -> float:
        """Count a call. 0.0: it may run; else the seconds to wait, and the call was not counted."""
        now = self._clock() * self._rate
        key = (caller, tool)
        full_at = max(self._full_at.get(key, now), now)
        excess = full_at - now - self._depth
        if excess > _ROUNDING:
            return excess / self._rate
        if len(self._full_at) >= MOST_BUCKETS and key not in self._full_at:
            self._full_at = {key: when for key, when in self._full_at.items() if when > now}
        self._full_at[key] = full_at + 1
        return 0.0


def rate_failure(what: str, wait: float) -> Failure:
    """The failure of a call that came too soon."""
    text = f"{what} was not run: it was called too often (the limit is http.rate)"
    return Failure("rate", f"{text}; try again in {max(wait, 0.1):.1f} s", wait)


@final
class Engine:
    """Handles the messages of one server, for all its links."""

    def __init__(
        self,
        catalog: Catalog,
        server_info: dict[str, Any],
        policy: Policy,
        *,
        limits: Limits,
        recorder: Recorder,
        dialect: Dialect | None = None,
        before_request: Callable[[], None] | None = None,
    ) -> None:
        """`dialect` is spoken with the peers that it is for, beside MCP.

        `before_request` is called before each request other than `tools/call`: it may reload the configuration.
        """
        self.catalog = catalog
        self.server_info = server_info
        self.policy = policy
        self.limits = limits
        self.recorder = recorder
        self.tools: dict[str, Entry] = policy.offer(check_indexed=False)
        """The tools on offer: those of the catalog that the configuration did not disable."""
        self.listed = False
        """Whether a client has listed the tools."""
        self.replies = Replies(limits, recorder, server_info, policy)
        self.executor = Executor(limits, self.replies, recorder, policy, self.resource_changed)
        self.recording = self.executor.recording
        self.tap = FrameTap()
        self.links: set[Link] = set()
        """The links of handshake-era peers, which get notifications of changes."""
        self.rates: Rates | None = None
        self._before_request = before_request
        self._relay: Callable[[Change, str], None] | None = None
        self._depth, self._batch = limits.depth, limits.batch
        self._most_bytes = limits.frame_bytes
        self._short = 2 * limits.depth  # bytes that can't hold more levels than that
        self._lists: Lists | None = None
        self._subscriptions: Subscriptions | None = None
        self._watched: WatchedResources | None = None
        self._capabilities: frozenset[str] | None = None
        self.frames: Engine | DialectAdapter = self
        """What transports pass frames to: the engine, or what speaks a dialect in front of it."""
        self.dialect_revisions: Mapping[str, Revision] = {}
        """The revisions that only a dialect knows, by the version of their handshake."""
        self.answers_early: Literal["serves", "refuses"] | None = None
        """Whether a dialect serves peers that have made no handshake, or refuses them in its own way."""
        if dialect is not None:
            early = dialect.before_handshake
            self.answers_early = "serves" if isinstance(early, Revision) else "refuses" if early == "refuse" else None
            from longshore.server.adapter import DialectAdapter

            self.frames, self.dialect_revisions = DialectAdapter(self, dialect), dialect.revisions

    # -- frames

    def handle(self, frame: bytes, link: Link) -> bytes | None:
        """Handle one frame. The bytes returned are sent as they are."""
        request: CallRequest | None = None
        if (frame.isascii() or is_utf8(frame)) and (len(frame) <= self._short or not too_deep(frame, self._depth)):
            try:
                request = read_call(frame)  # for another method this ends at the method's name
            except BROKEN:
                pass
        message: Any = request
        try:
            if request is not None:
                return self._call_tool(request, frame, link)
            message = read(frame, self._depth, self._batch)
            if message.__class__ is Message:
                return self._handle_message(message, frame, link)
            return self._handle_invalid(message, link)
        except Exception as problem:
            return self.internal_error(message, problem)

    def handle_long(self, frame: memoryview, link: Link) -> bytes | None:
        """Handle a frame in a buffer that will be reused. Parts that outlive this method are copied."""
        whole: Any = frame.obj
        # A view has no isascii, but its buffer has; stale bytes in the buffer only cost the full check.
        if (whole.isascii() or is_utf8(frame)) and is_shallow(whole, len(frame), self._depth):
            try:
                request = read_long_call(frame, self.tools)
            except BROKEN:
                return self.handle(bytes(frame), link)
            try:
                return self._call_tool(request, frame, link)
            except Exception as problem:
                return self.internal_error(request, problem)
        return self.handle(bytes(frame), link)

    def too_long(self, frame: TooLong, link: Link) -> bytes | None:
        """Refuse a frame over the limit, of which only the ends were read."""
        return self._handle_invalid(self.refuse_long(frame), link, "too_large")

    def refuse_long(self, frame: TooLong) -> Malformed | UnreadableResponse:
        """The malformed message that stands for a frame over the limit."""
        text = f"a message is at most {self.limits.frame_bytes:,} bytes long; send less at once"
        return refuse(text, frame.head, frame.tail, INVALID_REQUEST)

    def internal_error(self, message: Any, problem: Exception) -> bytes | None:
        """Answer a request at which the server itself failed. Later frames are not affected."""
        self.recorder.problem("error", f"the server failed at {getattr(message, 'method', 'a frame')!r}", problem)
        # A response is never answered.
        id = UNSET if getattr(message, "method", None) == "" else getattr(message, "id", None)
        return None if id is UNSET else error(id, INTERNAL_ERROR, "the server failed; its log says how")

    def _handle_invalid(self, message: Any, link: Link, why: str = "malformed") -> bytes | None:
        """Handle what is no message as it was sent. A tool's result reports a repair that changed its text."""
        match message:
            case Repaired(frame=frame):
                try:
                    request = read_call(frame)
                except BROKEN:
                    return self._handle_message(message, frame, link)
                return self._call_tool(request, frame, link, (_REPAIRED,) if message.surrogates else ())
            case Malformed():
                self.recording.malformed(message, link, why)
                return self._refuse_malformed(message, link)
            case UnreadableResponse():
                self._take_answer(message, link)
            case Batch():
                from longshore.server.batch import handle_batch

                peer = link.session.peer
                if peer is None or not peer.revision.batches:
                    text = "send one message a line: only a 2025-03-26 session takes arrays"
                    return error(None, INVALID_REQUEST, text)
                return handle_batch(self, message, link, self.handle)
            case _:
                pass
        return None

    def _refuse_malformed(self, message: Malformed, link: Link) -> bytes:
        """An unreadable tool call fails as tools fail: models see results, but not errors of the protocol."""
        if link.has_status or message.method != "tools/call" or not isinstance(message.id, (int, str)):
            return error(message.id, message.code, message.text)
        revision = REVISIONS[MODERN[-1]] if link.session.peer is None else link.session.peer.revision
        failure = Failure("invalid_arguments", f"the call can't be read: {message.text}")
        shape = render_failure(failure, message.method, revision)
        if isinstance(shape, Fault):
            return error(message.id, shape.code, shape.message)
        if revision.modern:
            self.replies.sign(shape)
        return encode(Reply(message.id, shape))

    # -- tools/call

    def _call_tool(  # noqa: C901 - a function for a part of it would cost each call a twentieth of its time
        self, request: CallRequest, frame: bytes | memoryview, link: Link, remarks: tuple[str, ...] = ()
    ) -> bytes | None:
        session, id, params = link.session, request.id, request.params
        recorder, meta = self.recorder, params.meta
        received = monotonic() if recorder.on else 0.0
        call: Call | None = None
        try:
            if link.headers is not None:
                peer = _peer_by_headers(link.headers, "tools/call", params.name, meta)
            elif meta is UNSET or (meta.version is UNSET and meta.capabilities is UNSET):
                peer = session.peer or session.require_peer("tools/call")
            else:
                peer = session.sender(meta)
            entry = self.tools.get(params.name)
            if entry is None:
                if params.name == CALL_TOOL and self.policy.call_tool is not None:
                    return self._call_named(self.policy.call_tool, request, peer, frame, link, remarks, received)
                entry = self._require_tool(params.name, link)
            if id in session.rows:
                session.refuse_duplicate(id)
            if entry.guarded:
                self.guard(entry, link, frame)
            if self.rates is not None and (wait := self.rates.take(link.principal.name, entry.meter or entry.name)):
                call = Call(self.executor, link, session, peer, id, "tools/call", entry, params.arguments, b"")
                self.recording.begin(call, received, frame)
                return self.recording.refused(call, self.replies.failure(call, rate_failure(entry.name, wait)))
            if (
                entry.direct
                and peer.revision.index >= STRUCTURED
                and not (remarks or entry.aliases or recorder.is_detailed)
                and (meta is UNSET or meta.trace_parent is UNSET)
            ):
                return self._call_directly(entry, params.arguments, id, peer, link, frame, received)
            call = Call(self.executor, link, session, peer, id, "tools/call", entry, params.arguments, frame, meta)
            call.remarks = remarks
            if received or (meta is not UNSET and meta.trace_parent is not UNSET):
                self.recording.begin(call, received, frame)
            if entry.aliases or params.request_state is not UNSET or params.input_responses is not UNSET:
                return self._resume(call, params.name, params.input_responses, params.request_state)
        except ProtocolError as problem:
            if received:
                return self.recording.refused_call(request, frame, link, call, problem)
            return self.replies.fault(id, problem)
        return self.run(call)

    def _call_named(
        self,
        entry: Entry,
        request: CallRequest,
        peer: Peer,
        frame: bytes | memoryview,
        link: Link,
        remarks: tuple[str, ...],
        received: float,
    ) -> bytes | None:
        """Call the tool that a call of `call_tool` names."""
        from longshore.server.called_tool import CalledToolLink, InvalidArguments, find_called, write_request

        id, params = request.id, request.params
        link.session.refuse_duplicate(id)
        link.principal.require(entry.name, entry.needed)
        call = Call(self.executor, link, link.session, peer, id, "tools/call", entry, params.arguments, b"")
        call.remarks = remarks
        try:
            found, notes = find_called(self, call)
        except Stopped:
            raise
        except InvalidArguments as problem:
            answer = self.replies.failure(call, Failure("invalid_arguments", str(problem)))
        except BaseException as problem:
            answer = self.replies.exception(call, problem)[0]
        else:
            written = write_request(id, params, frame, found)
            return self._call_tool(read_call(written), written, CalledToolLink(link), (*remarks, *notes))
        self.recording.begin(call, received, frame)
        return self.recording.refused(call, answer)

    def _call_directly(
        self, entry: Entry, raw: Raw, id: Id, peer: Peer, link: Link, request: bytes | memoryview, received: float
    ) -> bytes | None:
        """Call an inline tool that sees nothing of its call, and whose typed result needs no check.

        Without a `Call` and the steps of `Executor.run_inline`, a call takes 1.9 µs instead of 2.3.
        """
        try:
            arguments = entry.decode(raw)
        except Stopped:
            raise
        except BaseException:  # the executor decodes, repairs or explains them; those of a long call are decoded
            call = Call(self.executor, link, link.session, peer, id, "tools/call", entry, raw, b"")
            if received:
                self.recording.begin(call, received, request)
            return self.executor.run_inline(call)
        self.executor.calls += 1
        entry.calls += 1
        try:
            result = entry.render(entry.invoke(arguments, None), None)
            if peer.revision.index >= R2607:
                self.replies.sign(result)
            frame = encode(Reply(id, result))
            size = len(frame)
            if size > self._most_bytes:
                raise TooLarge(size, self._most_bytes)
        except Stopped:
            raise
        except BaseException as problem:
            call = Call(self.executor, link, link.session, peer, id, "tools/call", entry, arguments, b"")
            if received:
                return self.recording.failed_call(call, received, request, problem)
            return self.replies.exception(call, problem)[0]
        if received:
            # One event for the whole call, made here: a call of another function for it costs a twentieth of the call.
            recorder = self.recorder
            recorder.put(
                (
                    next(recorder.numbers),
                    0,
                    received,
                    monotonic(),
                    link.source or link.describe(),
                    peer.revision,
                    id if id.__class__ is int else shorten(id),
                    entry.name,
                    len(request),
                    size if frame.isascii() else (size, len(frame.decode())),
                    result.is_error,
                )
            )
        return frame

    def run(self, call: Call) -> bytes | None:
        """Run a call: now if it is inline and waits for nothing, else by the executor, which answers it later."""
        entry = call.entry
        is_ready = not entry.waits and (entry.toolset is None or entry.toolset.ready)
        if is_ready and (entry.run == "inline" or entry.tries_inline):
            frame = self.executor.run_inline(call)
            if frame is not None:
                return frame
        call.session.begin(call.id, call)
        self.executor.submit(call)
        return None

    def guard(self, entry: Entry, link: Link, frame: bytes | memoryview) -> None:
        """Check the caller's scopes, and the headers that repeat arguments."""
        if self.policy.hides(entry, link.principal):
            raise self._unknown(entry.name, link)
        link.principal.require(entry.name, entry.needed)
        if entry.headers and link.headers is not None:
            from longshore.server.argument_forms import check_sent

            check_sent(entry, link.headers, frame)

    def _resume(self, call: Call, name: str, responses: Any, state: Any) -> bytes | None:
        """Run a call by a former name of the tool, which the result notes, or one that brings answers to questions."""
        entry = call.entry
        if name in entry.aliases:
            call.remarks = (*call.remarks, f"{name} is now {entry.name}")
            if self.recorder.on:
                self.recorder.arguments_mended(entry.name, call.id, call.remarks)
        if name in entry.alias_migrations:
            from longshore.server.argument_forms import translate

            refusal = translate(self.replies, call, name)
            if refusal is not None:
                return self.recording.refused(call, refusal)
        elif entry.toolset is not None and entry.toolset.lazy is not None:
            call.alias = name  # whether it has parameters of its own is known after the import
        asks = responses is not UNSET or state is not UNSET
        if asks and call.peer.revision.modern and (entry.asked or entry.replay):
            self.questions.resume(call, responses, state)
        return self.run(call)

    def find_tool(self, name: str, principal: Principal | None = None) -> Entry | None:
        """The tool of this name or former name, or one that stands for a mounted server that is starting.

        With `principal`, None for a tool that is hidden from this caller.
        """
        entry = self.tools.get(name) or self.find_renamed(name)
        if entry is not None and principal is not None and self.policy.hides(entry, principal):
            return None
        if entry is None and self.catalog.pending_mounts is not None:
            entry = self.catalog.pending_mounts.placeholder(name)
        return entry

    def find_renamed(self, name: str) -> Entry | None:
        """The tool on offer that formerly had this name."""
        if not self.catalog.aliased:
            return None
        from longshore.registry.catalog import find_alias

        return find_alias(self.tools, name)

    def _require_tool(self, name: str, link: Link) -> Entry:
        entry = self.find_tool(name)
        if entry is None:
            raise self._unknown(name, link)
        return entry

    def _unknown(self, name: str, link: Link) -> UnknownTool:
        from longshore.server.unknown_tool import explain

        text = explain(self, name, principal=link.principal)
        link.failed(Failure("unknown_tool", text))
        return UnknownTool(INVALID_PARAMS, text)

    # -- every other message

    def _handle_message(self, message: Message, frame: bytes, link: Link) -> bytes | None:
        from longshore.server import methods

        if message.id is UNSET:
            methods.take_notification(self, message, link)
            return None
        if message.method == "":
            self._take_answer(message, link)
            return None
        if self._before_request is not None:
            self._before_request()
        request = methods.MethodRequest(message.id, message.method, message.params, frame, link, monotonic())
        if self.recorder.on:
            request.info = self.recording.begin_method(message, frame, link, request.received)
        return self._answer(request)

    def _answer(self, request: MethodRequest) -> bytes | None:
        from longshore.server.methods import handle_request, invalid_params

        outcome: Outcome = "ok"
        try:
            reply = handle_request(self, request)
        except ProtocolError as problem:
            reply, outcome = self.replies.fault(request.id, problem), "refused"
            self.recording.note_refusal(request.info, why_refused(problem))
        except TooLarge as problem:
            reply, outcome = error(request.id, INTERNAL_ERROR, str(problem)), "failed"
            self.recording.note_refusal(request.info, "too_large")
        except BROKEN as problem:
            reply, outcome = error(request.id, INVALID_PARAMS, invalid_params(request.method, problem)), "refused"
            self.recording.note_refusal(request.info, "invalid_arguments")
        if reply is not None and request.info is not None:
            self.recording.end_method(request.info, request.received, outcome, reply)
        return reply

    def answer_later(self, request: MethodRequest) -> None:
        """Handle a request that has waited. Its answer goes to its link."""
        try:
            reply = self._answer(request)
        except Exception as problem:
            reply = self.internal_error(request, problem)
        if reply is not None:
            request.link.answer(reply)

    def peer_of(self, method: str, name: str | None, meta: Envelope | UnsetType, link: Link) -> Peer:
        """The sender of a request, by its own envelope or by the handshake. Refuses a method that it may not call."""
        if link.headers is not None:
            peer = _peer_by_headers(link.headers, method, name, meta)
        elif meta is UNSET or (meta.version is UNSET and meta.capabilities is UNSET):
            check_method(method, None, self.capability_names())
            if method in ("server/discover", "subscriptions/listen"):
                raise ProtocolError(INVALID_PARAMS, f"{method} needs the 2026-07-28 envelope in params._meta")
            peer = link.session.require_peer(method)
        else:
            peer = modern_peer(meta)
        check_method(method, peer.revision, self.capability_names())
        return peer

    def _take_answer(self, message: Message, link: Link) -> None:
        """Pass the client's response to the call that asked, or to its roots."""
        assert message.id is not UNSET
        asker = link.session.answered(message.id)
        if isinstance(asker, Call):
            self.questions.answered(asker, message)
        elif asker is not None:
            asker.answered(message)

    def limit_rates(self, rates: Rates | None) -> None:
        """Limit how often each principal may call each tool. For transports with several callers."""
        self.rates = rates

    # -- the offer

    def capability_names(self) -> frozenset[str]:
        """The capabilities of this server. Tools may be added at any time and are always declared.

        With a mounted server all are declared: it may not have connected yet when a client asks.
        """
        if self._capabilities is None:
            mounted = self.catalog.pending_mounts is not None
            resources, prompts = self.catalog.offered("resources"), self.catalog.offered("prompts")
            templates = any(entry.template is not None for entry in resources.values())
            declared = {
                "tools": True,
                "logging": True,
                "resources": mounted or resources,
                "prompts": mounted or prompts,
                "completions": mounted or prompts or templates,
            }
            self._capabilities = frozenset(name for name, value in declared.items() if value)
        return self._capabilities

    @property
    def expects_more(self) -> bool:
        """Whether a mounted server is still starting and may bring more."""
        arrivals = self.catalog.pending_mounts
        return arrivals is not None and arrivals.pending

    async def wait_for_mounts(self) -> None:
        """Wait a little for mounted servers that are still starting, before their tools are looked up."""
        arrivals = self.catalog.pending_mounts
        if arrivals is not None and arrivals.pending:
            await arrivals.wait()

    def changed(self, parts: set[Part]) -> None:
        """Take over a change of the catalog, and notify clients. May be called from any thread."""

        def take() -> None:
            self.refresh()
            for part in sorted(parts):
                self._announce("list", part)

        self.executor.post(take)

    def listed_tools(self, principal: Principal | None = None) -> list[Entry]:
        """The tools on offer, in whatever form they are listed; those that find and call them only if shown.

        With `principal`, without those that are hidden from this caller.
        """
        if self.policy.has_unchecked:
            self.refresh()
        tools = self.catalog.offered("tools").values()
        listed = [entry for entry in tools if entry.shown or (entry.listed and not entry.catalog_forms)]
        return [entry for entry in listed if principal is None or not self.policy.hides(entry, principal)]

    def shown_tools(self) -> list[Entry]:
        """The tools that `tools/list` shows."""
        return [entry for entry in self.listed_tools() if entry.shown]

    def refresh(self) -> None:
        """Apply the policy again, and drop everything made from the former offer."""
        self._capabilities = None
        if self._lists is not None:
            self._lists.clear()
        self.tools = self.policy.offer()
        self.policy.report_unavailable(self.recorder)
        self.update_watched(look_up=True)

    def revision(self, version: str) -> Revision | None:
        """The revision that a handshake agreed on, also one of the dialect's. None: this server does not speak it."""
        return self.dialect_revisions.get(version) or REVISIONS.get(version)

    def is_bare(self, session: Session[Any]) -> bool:
        """Whether a dialect serves the peer of a session without a handshake."""
        return session.peer is not None and self.revision(session.peer.revision.name) is None

    def reconfigure(self, config: Config) -> None:
        """Apply a changed configuration, and notify clients of the lists that it changes."""
        before, form, shown = self._offered_keys(), self.policy.form, self._shown_keys()
        self.policy.reconfigure(config)
        self.refresh()
        after = self._offered_keys()
        changed: set[Part] = {part for part in PART_OF.values() if after[part] != before[part]}
        if self.policy.form != form or self._shown_keys() != shown:
            changed.add("tools")
        if changed:
            self.changed(changed)

    def _shown_keys(self) -> set[str]:
        return {name for name, entry in self.catalog.offered("tools").items() if entry.shown}

    def _offered_keys(self) -> dict[Part, set[str]]:
        return {part: set(self.catalog.offered(part)) for part in PART_OF.values()}

    @property
    def lists(self) -> Lists:
        """The rendered lists, made on first use."""
        if self._lists is None:
            from longshore.server.lists import Lists

            self._lists = Lists(self)
        return self._lists

    # -- change notifications

    def relay_changes(self, relay: Callable[[Change, str], None] | None) -> None:
        """Pass changes to `relay(kind, name)` instead of this process's subscribers; None: no longer.

        A relay tells every process that serves the same clients, this one included, to call `notify_…`.
        """
        self._relay = relay

    def resource_changed(self, uri: str) -> None:
        """Notify clients that a resource should be read again."""
        self._announce("resource", uri)

    def _announce(self, kind: Change, name: str) -> None:
        if self._relay is not None:
            self._relay(kind, name)
        elif kind == "list":
            self.notify_list_changed(name)
        else:
            self.notify_resource_changed(name)

    def notify_list_changed(self, part: str) -> None:
        """Notify the subscribers in this process that a list has changed."""
        if self.links or self._subscriptions is not None:
            self.subscriptions.list_changed(part)

    def notify_resource_changed(self, uri: str) -> None:
        """Notify the subscribers in this process that a resource has changed."""
        if self.links or self._subscriptions is not None:
            self.subscriptions.resource_changed(uri)

    @property
    def subscriptions(self) -> Subscriptions:
        """The subscriptions of all links, made on first use."""
        if self._subscriptions is None:
            from longshore.server.content_methods import Subscriptions

            self._subscriptions = Subscriptions(self.limits, self.links)
        return self._subscriptions

    @property
    def questions(self) -> Questions:
        return self.executor.questions

    def update_watched(self, look_up: bool = False) -> None:
        """Tell toolsets and mounted servers which of their resources clients of this process watch.

        With `look_up`, resources may have other owners than before.
        """
        if self._watched is None:
            if not self.links and self._subscriptions is None:
                return
            if not any(handle.is_told_of_watches for handle in tuple(self.catalog.toolsets.values())):
                return
            from longshore.registry.watch_hooks import WatchedResources

            self._watched = WatchedResources(self.catalog, self.executor.spawn, self.recorder.problem)
        self._watched.update(self.subscriptions.watched(), look_up)

    # -- links

    def add_link(self, link: Link) -> None:
        """Send change notifications on a link from now on."""
        self.links.add(link)
        if link.session.subscriptions or self._watched is not None:
            self.update_watched()

    def drop_link(self, link: Link) -> None:
        """Send no more change notifications on a link."""
        self.links.discard(link)
        if self._watched is not None:
            self.update_watched()

    def cancel(self, link: Link, id: Id) -> None:
        """Cancel a request for its peer. Unknown and finished ones are not an error."""
        row = link.session.cancel(id)
        if isinstance(row, Call):
            self.executor.cancel(row)
        elif row is not None and self._subscriptions is not None:
            self._subscriptions.close(row)
            self.update_watched()
        elif row is None and link.session.queue is not None:
            link.session.queue.cancel(id)

    def detach(self, link: Link) -> None:
        """End the listens of a link whose input has ended; the questions asked through it get no answer."""
        link.session.input_ended = True
        asking = [call for call in self.executor.live if call.elicitation and call.link.session is link.session]
        if asking:
            self.questions.end_input(asking)
        if link.session.client_roots is not None:
            link.session.client_roots.end()
        if self._subscriptions is not None:
            self._subscriptions.end_all(link, self.replies.server_meta)
        self.drop_link(link.home)

    def hang_up(self, link: Link) -> None:
        """Cancel every request of a link whose peer is gone."""
        link.session.drop_queue()
        for id in list(link.session.rows):
            self.cancel(link, id)

    def cancel_all(self, link: Link) -> None:
        """Cancel every call of a closed link's session, whichever link it came by."""
        link.session.drop_queue()
        for call in [call for call in self.executor.live if call.link.session is link.session]:
            self.cancel(call.link, call.id)


def _peer_by_headers(headers: Headers, method: str, name: str | None, meta: Envelope | UnsetType) -> Peer:
    """The sender of a modern HTTP request: its headers must agree with its envelope before its version counts."""
    headers.check(method, name, require_envelope(meta))
    assert meta is not UNSET
    return modern_peer(meta)
