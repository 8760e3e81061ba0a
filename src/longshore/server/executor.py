"""Runs handlers: inline, as tasks or on threads, under one set of limits, each call to exactly one end.

- At most `running` calls run; more are queued, and beyond that refused. Reading never stops for calls: a handler may
  be waiting for an answer that is still to be read. Callers share the places as described in `call_queue`.
- A call ends once, in `end`, on the main thread: by a reply, a cancel or its deadline. A second end is ignored.
- Threads are our own daemon threads: the standard pool joins its threads at exit, and one stuck tool would hold the
  process. A thread can't be stopped, so an ended call abandons it; abandoned threads are counted and bounded.
- A call that waits for the client holds no place, and its deadline is suspended.
- On stdio the first calls of `def` tools run before there is an event loop: importing asyncio takes 30 ms.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable, Coroutine
from math import inf
from sys import modules
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol, final

from msgspec import Raw

from longshore.errors import LifespanFailed, ProtocolError, RegistrationError, ToolError, WouldBlock
from longshore.limits import Limits
from longshore.protocol.dialect import Failure, FailureKind
from longshore.protocol.revisions import MODERN
from longshore.server.call import MEDIUM_BYTES, SMALL_BYTES, Call, Stopped
from longshore.server.call_queue import CallQueue
from longshore.server.recording import Recording
from longshore.server.replies import Replies
from longshore.telemetry.recorder import Recorder

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future, Task, TimerHandle

    from longshore.protocol.session import Session
    from longshore.registry.toolset_index import LazyToolset
    from longshore.server.call_files import CallFiles
    from longshore.server.lifespan import Lifespan
    from longshore.server.policy import Policy
    from longshore.server.questions import Questions
    from longshore.server.threads import Threads
    from longshore.server.watchdog import Watchdog
    from longshore.telemetry.records import Outcome

_NULL = b"null"
_NO_ARGUMENTS = Raw(b"{}")


class LoopHost(Protocol):
    """A transport that begins without an event loop."""

    def open_loop(self) -> AbstractEventLoop:
        """Make the loop. It runs when the transport gets control back."""
        ...

    def call_threadsafe(self, action: Callable[[], None]) -> None:
        """Run an action on the serving thread, as soon as it waits for threads or has a loop."""
        ...


@final
class Executor:
    """The running calls of one server."""

    def __init__(
        self,
        limits: Limits,
        replies: Replies,
        recorder: Recorder,
        policy: Policy,
        resource_changed: Callable[[str], None],
    ) -> None:
        self.limits = limits
        self.replies = replies
        self.recorder = recorder
        self.recording = Recording(recorder, replies)
        self.policy = policy
        self.resource_changed = resource_changed
        self.loop: AbstractEventLoop | None = None
        self.running = 0
        self.importing = 0
        """Running calls that wait for the import of their toolset."""
        self.calls = 0
        self.since = monotonic()
        """When the server began, for its uptime."""
        self.live: set[Call] = set()
        """Calls that have not ended: running, queued, or waiting for their client."""
        self.cancelled_tasks: set[Any] = set()
        """Tasks of ended calls that have not stopped yet."""
        self._questions: Questions | None = None
        self._files: CallFiles | None = None
        self._deprecated: set[str] = set()
        self._host: LoopHost | None = None
        self._end_listeners: list[Callable[[], object]] = []
        self._queue = CallQueue(limits)
        self._most_live = limits.running + limits.parked
        """Calls in all. One that waits for the client holds no place, so places alone would not bound them."""
        self._most_bytes = limits.held_bytes
        """The size of the frames of calls that run or wait, in all."""
        self._held = 0
        self._start_scheduled = False
        self._looping = False
        self._armed = inf
        self._timer: TimerHandle | None = None
        self._threads: Threads | None = None
        self.main_thread = get_ident()
        self._task: Any = None
        self.watched = False
        """Whether a watchdog thread looks for code that blocks the loop."""
        self._watchdog: Watchdog | None = None

    @property
    def questions(self) -> Questions:
        """The questions of all calls, made on first use: few servers ask."""
        if self._questions is None:
            from longshore.server.questions import Questions

            self._questions = Questions(self.limits, self.replies.server_meta, self.warn_deprecated)
        return self._questions

    @property
    def files(self) -> CallFiles:
        """The folders and artifacts of all calls, made on first use."""
        if self._files is None:
            from longshore.server.call_files import CallFiles

            self._files = CallFiles(self.policy, self.recorder)
        return self._files

    def warn_deprecated(self, what: str) -> None:
        """Report the first use of a feature that MCP deprecates."""
        if what not in self._deprecated:
            self._deprecated.add(what)
            self.recorder.problem("notice", f"{what} is deprecated by MCP since {MODERN[-1]}; it still works")

    # -- beginning

    def run_inline(self, call: Call) -> bytes | None:
        """Run a call to its end, now, on this thread. None: it has to wait for something, so it needs a thread."""
        self.calls += 1
        entry = call.entry
        entry.calls += 1
        outcome: Outcome = "ok"
        if call.arguments.__class__ is Raw or entry.kind != "tool":
            refusal = self._decode(call)
            if refusal is not None:
                self.recording.completed(call, "refused", refusal)
                return refusal
        if call.info is not None and not call.started:
            self.recording.invoked(call, monotonic() if call.announced else call.received)
        try:
            frame = self.replies.success(call, invoke(call))
        except Stopped:
            raise
        except BaseException as problem:
            if entry.tries_inline and isinstance(problem, WouldBlock):
                self.calls -= 1  # it is counted when it starts on the thread
                entry.calls -= 1
                return None
            frame, outcome = self.replies.exception(call, problem)
        if call.notifications is not None:
            call.notifications.flush()
        if call.info is not None:
            self.recording.completed(call, outcome, frame)
        return frame

    def submit(self, call: Call) -> None:
        """Run a call when there is a place. Its answer goes to its link."""
        self.live.add(call)
        if not self._looping:
            if self._can_run_without_loop(call):
                self._start(call)
                return
            self._open()
        if call.link.caller is None:
            may_start = self.running < self.limits.running
        else:
            call.caller = self._queue.caller(call.link.caller)
            may_start = call.caller.may_start(self.limits.running - self.running)
        if len(self.live) > self._most_live and not self._make_room(call, asking=True):
            self._refuse(call)
        elif (
            may_start
            and self._looping
            and not self._start_scheduled
            and not call.link.congested
            and (len(call.frame) <= MEDIUM_BYTES or self._held < self._most_bytes)
        ):
            self._start(call)
        elif self._can_wait(call) or self._make_room(call, asking=False):
            call.detach_frame()
            call.queued = True
            if call.info is not None:
                self.recording.announce(call)
            self._queue.add(call)
            self._held += len(call.frame)
        else:
            self._refuse(call)

    def _can_wait(self, call: Call) -> bool:
        fits = not self._held or self._held + len(call.frame) <= self._most_bytes
        # Until the loop runs, calls that will run are queued too.
        room = self.limits.parked + (0 if self._looping else self.limits.running)
        return fits and self._queue.size < room

    def _make_room(self, call: Call, *, asking: bool) -> bool:
        """Refuse calls of callers that have more of them waiting than this one's, until there is enough room.

        `asking`: room among all calls, of which those that wait for their client count too; else room in the queue.
        """
        while not (len(self.live) <= self._most_live if asking else self._can_wait(call)):
            other = self._queue.giving_way(call, asking=asking)
            if other is None:
                return False
            self._refuse(other)
        return True

    def _refuse(self, call: Call) -> None:
        waiting = len(self.live) - 1 - self.running
        why = f"{self.running} calls are running and {waiting} wait; try again when some have ended"
        self.fail(call, "busy", f"the server is busy: {why}", "refused")

    def _can_run_without_loop(self, call: Call) -> bool:
        """Whether a call can run on a thread before there is a loop, which stays once it is opened.

        On stdio, it can until asyncio has been imported; after that only a tool that is tried inline first, because its
        other calls need no loop. The import of a toolset never needs one.
        """
        entry = call.entry
        if self.loop is not None or self._host is None or self.running >= self.limits.running:
            return False
        if entry.toolset is not None and not entry.toolset.ready:
            return entry.toolset.lazy is not None
        on_thread = entry.run == "thread" and not entry.waits and call.elicitation is None
        return on_thread and (entry.tries_inline or "asyncio" not in modules)

    def _open(self) -> None:
        """Open a loop. Until it runs, calls are queued; it starts them first."""
        import asyncio

        if self.loop is None:
            self.loop = asyncio.get_running_loop() if self._host is None else self._host.open_loop()
        self._task = asyncio.Task  # `loop.create_task` is a Python function around it that costs as much again
        self._looping = self.loop.is_running()
        if not self._looping and not self._start_scheduled:
            self._start_scheduled = True
            self.loop.call_soon(self.start_queued)

    def _start(self, call: Call) -> None:
        entry, loop = call.entry, self.loop
        if call.arguments.__class__ is Raw or entry.kind != "tool":
            refusal = self._decode(call)
            if refusal is not None:
                self.end(call, refusal, "refused")
                return
        if len(call.frame) > SMALL_BYTES:
            call.counted_bytes = len(call.frame)  # its arguments live as long as it runs
            self._held += call.counted_bytes
        call.frame = bytes(call.frame) if entry.keeps_frame else b""
        self.calls += 1
        entry.calls += 1
        self.running += 1
        call.running = True
        if call.caller is not None:
            call.caller.started()
        is_invoked = call.started > 0
        # A call that runs as soon as it came began when it came: one look at the clock.
        call.started = now = monotonic() if call.announced or not call.received else call.received
        call.deadline = due = now + entry.limit
        if due < self._armed and loop is not None:
            self._arm(due)
        if call.info is not None and not is_invoked:
            self.recording.invoked(call, now)
        if entry.waits or call.elicitation is not None or (entry.toolset is not None and not entry.toolset.ready):
            if entry.toolset is not None and entry.toolset.lazy is not None:
                self._import_toolset(call, entry.toolset.lazy)
            else:
                call.task = self._task(self._prepare(call), loop=loop)
        elif entry.run == "thread":
            self._run_on_thread(call)
        else:
            call.task = self._task(self._work(call), loop=loop)
        if call.task is not None and not self.watched:
            self._watch()

    def _watch(self) -> None:
        if self._watchdog is None:
            from longshore.server.watchdog import Watchdog

            self._watchdog = Watchdog(self)
        self._watchdog.start()

    def _decode(self, call: Call) -> bytes | None:
        """Decode the arguments. Returns the answer if they are invalid."""
        try:
            call.arguments = call.entry.decode(call.arguments)
        except Stopped:
            raise
        except BaseException as problem:
            try:
                return self._repair(call, problem)
            except Stopped:
                raise
            except BaseException as worse:  # an author's validator or migration may raise anything
                return self.replies.exception(call, worse)[0]
        return None

    def _repair(self, call: Call, problem: BaseException) -> bytes | None:
        """Repair arguments that the typed pass refused, if their meaning is plain; else list their faults."""
        if isinstance(problem, (ProtocolError, RegistrationError)) or not isinstance(problem, Exception):
            return self.replies.exception(call, problem)[0]
        raw = call.arguments
        if raw.__class__ is Raw and bytes(raw) == _NULL:
            raw = _NO_ARGUMENTS  # some clients send null where they mean no arguments
        reading = call.entry.explain(raw, problem)
        call.arguments, call.remarks = reading.arguments, (*call.remarks, *reading.notes)
        if not reading.faults:
            if call.entry.headers and call.link.headers is not None:
                from longshore.server.argument_forms import check_repaired

                check_repaired(call.entry, call.link.headers, call.arguments)
            if reading.notes and self.recorder.on:
                self.recorder.arguments_mended(call.entry.name, call.id, reading.notes)
            return None
        text = f"{call.entry.name}: invalid arguments\n" + "\n".join(reading.faults)
        return self.replies.failure(call, Failure("invalid_arguments", text))

    # -- running

    async def _prepare(self, call: Call) -> None:
        """Open the lifespan and the toolset, and ask the questions that precede the body; then run the body."""
        if call.trace is not None:
            _activate(call)
        try:
            if call.elicitation is not None:
                await self.questions.consume_nonce(call)
            if self.policy.lifespan is not None:
                await self._open_lifespan(self.policy.lifespan)
            if call.entry.toolset is not None:
                await call.entry.toolset.open()
            if call.entry.asked:
                frame = await self.questions.before(call)
                if frame is not None:
                    self.end(call, frame, "asked")
                    return
        except Stopped:
            raise
        except BaseException as problem:
            if not call.ended:
                self.end(call, *self.replies.exception(call, problem))
            return
        if call.entry.run == "thread":
            call.task = None
            self._run_on_thread(call)
        else:
            await self._work(call)

    async def _open_lifespan(self, lifespan: Lifespan) -> None:
        try:
            await lifespan.open()
        except LifespanFailed:  # its text may hold secrets
            raise ToolError("the server could not open what its tools need; its log says why") from None

    def _import_toolset(self, call: Call, lazy: LazyToolset) -> None:
        """Import the toolset of a call on a thread; then decode the arguments and run the call."""

        self.importing += 1

        def proceed(problem: BaseException | None) -> None:
            self.importing -= 1
            if call.ended:
                return
            if problem is not None:
                self.end(call, *self.replies.exception(call, problem))
            elif (refusal := self._translate(call) or self._decode(call)) is not None:
                self.end(call, refusal, "refused")
            else:
                self._run_imported(call)

        lazy.load(self.call_threadsafe, proceed)

    def _translate(self, call: Call) -> bytes | None:
        """Translate the arguments of an alias with parameters of its own. Returns the answer if they are invalid."""
        if call.alias not in call.entry.alias_migrations:
            return None
        from longshore.server.argument_forms import translate

        return translate(self.replies, call, call.alias)

    def _run_imported(self, call: Call) -> None:
        """Run a call whose toolset was imported for it, without a loop if it needs none."""
        entry = call.entry
        if entry.run == "async" or entry.waits or call.elicitation is not None or not entry.toolset.ready:
            self._open()
            call.task = self._task(self._prepare(call), loop=self.loop)
            if not self.watched:
                self._watch()
        elif entry.run == "thread":
            self._run_on_thread(call)
        else:
            outcome: Outcome = "ok"
            try:
                frame = self.replies.success(call, invoke(call))
            except Stopped:
                raise
            except BaseException as problem:
                frame, outcome = self.replies.exception(call, problem)
            self.end(call, frame, outcome)

    async def _work(self, call: Call) -> None:
        outcome: Outcome = "ok"
        if call.trace is not None:
            _activate(call)
        try:
            value = call.entry.invoke(call.arguments, call)
            if call.entry.run == "async" and hasattr(value, "__await__"):
                value = await value
            if call.elicitation is not None and call.elicitation.open:
                frame, outcome = self.questions.suspend(call), "asked"
            elif call.ended:
                return
            elif monotonic() >= call.deadline:  # it blocked the loop, so that the timer could not fire
                late = f"{call.entry.name} did not finish within {call.entry.limit:g} s (its `timeout`)"
                failure = Failure("timeout", f"{late}, and what it returned later was dropped")
                frame, outcome = self.replies.failure(call, failure), "timeout"
            else:
                frame = self.replies.success(call, value)
        except Stopped:
            raise
        except BaseException as problem:
            if call.ended:
                return
            from asyncio import CancelledError

            if call.elicitation is not None and call.elicitation.open and isinstance(problem, CancelledError):
                frame, outcome = self._suspend(call)
            else:
                frame, outcome = self.replies.exception(call, _unwrap(problem))
        call.task = None
        self.end(call, frame, outcome)

    def _suspend(self, call: Call) -> tuple[bytes, Outcome]:
        try:
            return self.questions.suspend(call), "asked"
        except Exception as problem:
            return self.replies.exception(call, problem)

    def _run_on_thread(self, call: Call) -> None:
        if self._threads is None:
            from longshore.server.threads import Threads

            self._threads = Threads(self)
        self._threads.run(call)

    def run_on_thread(self, call: Call, work: Callable[[], Any]) -> Future[Any]:
        """Run part of a running call on a thread, while its task waits."""
        if self._threads is None:
            from longshore.server.threads import Threads

            self._threads = Threads(self)
        return self._threads.run_part(call, work)

    # -- ending

    def end(self, call: Call, frame: bytes | None, outcome: Outcome) -> bool:
        """Close a call and send its answer. False: it had ended before, and nothing is sent."""
        if call.ended or not call.session.end(call.id, call):
            return False
        self._close(call, outcome, frame)
        if call.notifications is not None:
            call.notifications.flush()
        call.link.answer(frame)
        return True

    def fail(self, call: Call, kind: FailureKind, text: str, outcome: Outcome) -> None:
        """End a call with a failure."""
        self.end(call, self.replies.failure(call, Failure(kind, text)), outcome)

    def cancel(self, call: Call) -> None:
        """Close a call that the peer has cancelled. Nothing more is sent for it."""
        self._close(call, "cancelled")
        call.link.answer(None)

    def release(self, call: Call) -> None:
        """Close a call whose request is handled anew. Nothing is sent or recorded for it."""
        call.session.end(call.id, call)
        call.task = None
        self._close(call, None)

    def _close(self, call: Call, outcome: Outcome | None, answer: bytes | None = None) -> None:
        call.ended = True
        self.live.discard(call)
        if call.running:
            call.running = False
            self.running -= 1
            if call.caller is not None:
                call.caller.stopped()
        elif call.queued:
            self._queue.remove(call)
            self._held -= len(call.frame)
        elif call.caller is not None:
            call.caller.end_asking(call)
        if call.counted_bytes:
            self._held -= call.counted_bytes
        if call.task is not None:
            self._stop_task(call.task)
            call.task = None
        if call.thread and self._threads is not None:
            self._threads.abandoned.add(call)
        if call.elicitation is not None:
            self.questions.withdraw(call)
        if call.info is not None and outcome is not None:
            self.recording.completed(call, outcome, answer)
        if self._queue.size and not self._start_scheduled and self.loop is not None:
            self._start_scheduled = True
            self.loop.call_soon(self.start_queued)
        for listener in self._end_listeners:
            listener()

    def add_end_listener(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener` after each end of a call; the result removes it."""
        self._end_listeners.append(listener)
        return lambda: self._end_listeners.remove(listener)

    def _stop_task(self, task: Any) -> None:
        def stopped(task: Any) -> None:
            self.cancelled_tasks.discard(task)
            if not task.cancelled():
                task.exception()

        if not task.done():
            self.cancelled_tasks.add(task)
            task.add_done_callback(stopped)
            task.cancel()

    def start_queued(self) -> None:
        """Start queued calls while there are places. A transport calls it when a peer reads again."""
        self._start_scheduled = False
        self._looping = self._task is not None  # a transport may call this before any call has opened the loop
        while self.running < self.limits.running:
            call = self._queue.next(self.limits.running - self.running)
            if call is None:
                return
            call.queued = False
            self._held -= len(call.frame)
            self._start(call)

    # -- clocks

    def pause(self, call: Call) -> None:
        """Suspend a call that waits for the client: it gives up its place, and its deadline is suspended."""
        if call.running:
            call.running = False
            self.running -= 1
            if call.caller is not None:
                call.caller.stopped()
                call.caller.begin_asking(call)
            call.paused = call.deadline - monotonic()
            call.deadline = inf
            self.start_queued()

    def resume(self, call: Call) -> None:
        """Continue a suspended call, even if that makes one more than may start."""
        if not call.running and not call.ended:
            call.running = True
            self.running += 1
            if call.caller is not None:
                call.caller.end_asking(call)
                call.caller.started()
            call.deadline = due = monotonic() + call.paused
            if due < self._armed:
                self._arm(due)
            if call.task is not None and not self.watched:
                self._watch()

    def _arm(self, due: float) -> None:
        assert self.loop is not None
        if self._timer is not None:
            self._timer.cancel()
        self._armed = due
        self._timer = self.loop.call_at(due, self._sweep)

    def _sweep(self) -> None:
        """End the calls whose deadline has passed. One timer serves all calls."""
        now = monotonic()
        for call in [call for call in self.live if call.deadline <= now]:
            text = f"{call.entry.name} did not finish within {call.entry.limit:g} s and was stopped (its `timeout`)"
            self.fail(call, "timeout", text, "timeout")
        self._armed, self._timer = inf, None
        due = min((call.deadline for call in self.live), default=inf)
        if due < inf:
            self._arm(due)

    def drop_idle_timer(self) -> None:
        """Cancel the timer if no call needs it, so that it does not wake an idle process."""
        if not self.live and self._timer is not None:
            self._timer.cancel()
            self._armed, self._timer = inf, None

    def stop_all(self, why: str, session: Session[Any] | None = None) -> None:
        """End every call, or those of one session, with an answer that says why."""
        calls = [call for call in self.live if session is None or call.session is session]
        for call in calls:
            if call.session.queue is not None:
                call.session.queue.refuse_all(why)  # else the end of this call would begin the next
        for call in calls:
            self.fail(call, "cancelled", f"{call.entry.name} was stopped: {why}", "cancelled")

    def spawn(self, work: Coroutine[Any, Any, None]) -> Task[None]:
        """Run work beside the calls, on the loop, which is opened if there is none."""
        if not self._looping:
            self._open()
        assert self.loop is not None
        return self.loop.create_task(work)

    def post(self, action: Callable[[], None]) -> None:
        """Run an action on the main thread: now if this is it, else soon."""
        if get_ident() == self.main_thread or (self.loop is None and self._host is None):
            action()
        else:
            self.call_threadsafe(action)

    def call_threadsafe(self, action: Callable[[], None]) -> None:
        """Run an action on the main thread, soon. Called by other threads."""
        if self.loop is not None:
            self.loop.call_soon_threadsafe(action)
        elif self._host is not None:
            self._host.call_threadsafe(action)

    def adopt_loop(self, loop: AbstractEventLoop) -> None:
        """Serve on this loop and thread. Timers and threads of an earlier loop, which has closed, are dropped."""
        if loop is not self.loop:
            self.dismiss_threads()
            self.loop, self._timer, self._armed, self._start_scheduled = loop, None, inf, False
        self.main_thread = get_ident()

    def adopt_host(self, host: LoopHost) -> None:
        """Serve on this thread, without a loop until one is needed: then the host opens it."""
        self._host = host
        self.main_thread = get_ident()

    def loop_opened(self, loop: AbstractEventLoop) -> None:
        """Use the loop that the host has opened. Calls that are running get their timer now."""
        self.loop = loop
        due = min((call.deadline for call in self.live), default=inf)
        if due < inf:
            self._arm(due)

    def hold_at_least(self, size: int) -> None:
        """Allow frames of so many bytes in all, if the limit is lower: a transport has accepted them already."""
        self._most_bytes = max(self._most_bytes, size)

    def dismiss_threads(self) -> None:
        """Stop the idle threads. New ones are made when needed."""
        if self._threads is not None:
            self._threads.dismiss()
            self._threads = None

    @property
    def queued(self) -> int:
        return self._queue.size

    @property
    def threads(self) -> int:
        """How many worker threads there are."""
        return 0 if self._threads is None else self._threads.count

    @property
    def abandoned(self) -> int:
        return 0 if self._threads is None else len(self._threads.abandoned)


def invoke(call: Call) -> Any:
    """Run a handler on this thread, with the trace that its requests carry on."""
    if call.trace is None:
        return call.entry.invoke(call.arguments, call)
    from longshore.telemetry.trace import activate, deactivate

    token = activate(call.trace)
    try:
        return call.entry.invoke(call.arguments, call)
    finally:
        deactivate(token)


def _activate(call: Call) -> None:
    """Have the requests that this task makes carry on the call's trace."""
    from longshore.telemetry.trace import activate

    activate(call.trace)


def _unwrap(problem: BaseException) -> BaseException:
    """The exception inside a group of one, as a TaskGroup raises it: an author's ToolError stays one."""
    inner: tuple[BaseException, ...] = getattr(problem, "exceptions", ())
    return _unwrap(inner[0]) if len(inner) == 1 else problem
