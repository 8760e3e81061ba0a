"""A running or finished command: its processes, output, input, and how it ended.

The command ends when its first process does. A background process does not delay that, even if it holds the output
open: the launch kills it. All methods run on the event loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from time import monotonic
from typing import Final, final

from longshore.errors import ToolError
from longshore.sandbox.descendants import children, descendants
from longshore.sandbox.launch import Launch
from longshore.toolsets.terminal.command_input import MOST_WAITING, CommandInput
from longshore.toolsets.terminal.keys import canonical_name, encode_keys
from longshore.toolsets.terminal.output import CommandOutput
from longshore.toolsets.terminal.output_pattern import OutputPattern
from longshore.toolsets.terminal.process_state import cpu_seconds, is_reading_terminal, looks_like_prompt
from longshore.toolsets.terminal.process_watch import ProcessWatch
from longshore.toolsets.terminal.reading_pace import PIPE_PACE, TERMINAL_PACE
from longshore.toolsets.terminal.screen import COLUMNS, ROWS, TerminalScreen
from longshore.toolsets.terminal.spawn import Started, set_size, start_on_terminal, start_with_pipe
from longshore.toolsets.terminal.waiting import Reason, Until, Waiter

TERM_SECONDS: Final = 2.0
"""From SIGTERM to SIGKILL, for a command that is to end."""
KILL_SECONDS: Final = 2.0
"""A killed process ends at once, unless the kernel holds it; that is not waited for."""
QUIET_SECONDS: Final = 1.0
"""Without output for so long, a command with a prompt, or that draws on the whole screen, waits for input."""

_SIGNAL_KEYS: Final = {"ctrl-c": signal.SIGINT, "ctrl-\\": signal.SIGQUIT}
"""The keys that a command without a terminal can be sent."""


def start_command(
    launch: Launch,
    text: str,
    *,
    stdin: bytes | None = None,
    terminal: bool = False,
    rows: int = ROWS,
    columns: int = COLUMNS,
) -> Command:
    """Start a command with a pipe for its output, or on a terminal. `text` is the command for display.

    The command closes the launch at its end. Raises ToolError if it can't be started; then the caller closes it.
    """
    if stdin and len(stdin) > MOST_WAITING:
        raise ToolError(f"stdin has {len(stdin):,} bytes; at most {MOST_WAITING:,} can be given: put them into a file")
    if terminal:
        command = Command(launch, start_on_terminal(launch, rows, columns), text, TerminalScreen(rows, columns))
        if stdin:
            command.write(stdin)
        return command
    command = Command(launch, start_with_pipe(launch, stdin), text, None)
    if stdin:
        command.write(stdin)
        command.end_input()
    return command


@final
class Command:
    """A started command. `close` ends it and frees everything."""

    def __init__(self, launch: Launch, started: Started, text: str, screen: TerminalScreen | None) -> None:
        self.text, self.screen, self.output = text, screen, CommandOutput()
        self.pid = started.process.pid
        self.exit_code: int | None = None
        """None while it runs. After signal n it is 128 + n, as in a shell."""
        self.signal = ""
        """The name of the signal that such an exit code stands for."""
        self.is_running = True
        self.is_over_time = False
        """Whether it was ended because its time was over."""
        self.seen = 0
        """The position up to which its output was shown to its owner."""
        self._launch, self._started = launch, started
        self._pace = PIPE_PACE if screen is None else TERMINAL_PACE
        self._began = self._printed = monotonic()
        self._seconds: float | None = None
        self._loop = asyncio.get_running_loop()
        self._input = None if started.input is None else CommandInput(started.input, owns=started.terminal is None)
        self._waiters = set[Waiter]()
        self._finished = asyncio.Event()
        self._finishing: asyncio.Task[None] | None = None
        self._ending: asyncio.Task[None] | None = None
        self._pause: asyncio.TimerHandle | None = None
        self._limit: asyncio.TimerHandle | None = None
        self._report_end: Callable[[int | None], None] = lambda _: None
        self._loop.add_reader(started.output, self._read)
        self._watch = ProcessWatch(self.pid, self._process_ended)

    # -- state

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return monotonic() - self._began if self._seconds is None else self._seconds

    @property
    def quiet_seconds(self) -> float:
        """Seconds since the last output."""
        return monotonic() - self._printed

    @property
    def cpu_seconds(self) -> float:
        """The processor time of its running processes."""
        return cpu_seconds(self._processes())

    @property
    def waits_for_input(self) -> bool:
        """Whether it seems to wait for input."""
        if not self.is_running:
            return False
        if self.screen is not None and is_reading_terminal(self._processes()):
            return True
        if monotonic() - self._printed < QUIET_SECONDS:
            return False
        if self.screen is not None and self.screen.is_drawn:
            return True
        line = self.screen.before_cursor() if self.screen else self._unfinished_line()
        return looks_like_prompt(line)

    def _processes(self) -> list[int]:
        """Its running processes, with those that confine it."""
        return [self.pid, *descendants(self.pid)] if self.is_running else []

    def _unfinished_line(self) -> str:
        return (
            "" if self.output.read(self.output.size - 1, self.output.size) in (b"", b"\n") else self.output.last_line()
        )

    # -- input

    def write(self, data: bytes) -> None:
        """Write to its input. Raises ToolError if it has ended or has no input."""
        if not self.is_running:
            raise ToolError("the command has ended; run it again to send it something")
        if self._input is None:
            raise ToolError("the command has no input: start it with pty=true to send it text, or give it stdin")
        self._input.write(data)

    def end_input(self) -> None:
        """End its input after all pending writes."""
        if self._input is not None:
            self._input.end()

    def press(self, keys: list[str], text: bytes = b"") -> None:
        """Type a text, then press keys by their names. Without a terminal only ctrl-c and ctrl-\\ can be pressed.

        Raises ToolError.
        """
        if self.screen is not None or text:
            pressed = encode_keys(keys, application_cursor=bool(self.screen and self.screen.application_cursor))
            self.write(text + pressed)
            return
        numbers = [_SIGNAL_KEYS.get(canonical_name(key)) for key in keys]
        if None in numbers:
            raise ToolError("a command without a terminal takes ctrl-c and ctrl-\\ only: start it with pty=true")
        for number in numbers:
            if number is not None and self.is_running:
                self._launch.signal(self.pid, number)

    def resize(self, rows: int, columns: int) -> None:
        """Change the size of its terminal."""
        if self.screen is not None and self.is_running:
            self.screen.resize(rows, columns)
            set_size(self._started.output, rows, columns)

    # -- waiting

    async def wait(
        self,
        seconds: float,
        *,
        until: Until = "exit",
        after: int = 0,
        pattern: OutputPattern | None = None,
        quiet_seconds: float = 0.2,
    ) -> Reason:
        """Wait until it ends, prints, pauses after printing, or matches a pattern; at most for `seconds`.

        Output counts from position `after` on. The end of the command ends every wait.
        """
        waiter = Waiter(until, pattern, quiet_seconds)
        try:
            async with asyncio.timeout(seconds):
                await self._feed_earlier(waiter, after)
                if not self.is_running:
                    waiter.end("exit")
                self._waiters.add(waiter)
                return await waiter.reason
        except TimeoutError:
            return "time"
        finally:
            self._waiters.discard(waiter)
            waiter.cancel()

    async def _feed_earlier(self, waiter: Waiter, after: int) -> None:
        """Give a waiter the output from before it was created.

        Nothing is printed between the last part and the return.
        """
        while waiter.takes_output and (after := self.output.skip_dropped(after)) < self.output.size:
            data = self.output.read(after, after + PIPE_PACE.at_once)
            waiter.take(data)
            after += len(data) or self.output.size
            if after < self.output.size:
                await asyncio.sleep(0)

    # -- output

    def _read(self) -> None:
        """Read the available output. Called by the loop."""
        if self._take_some() and self.output.size > self._pace.much:
            self._loop.remove_reader(self._started.output)
            self._pause = self._loop.call_later(self._pace.pause, self._read_again)

    def _read_again(self) -> None:
        self._loop.add_reader(self._started.output, self._read)

    def _take_some(self) -> int:
        """Read once, and return the number of bytes."""
        try:
            data = os.read(self._started.output, self._pace.at_once)
        except BlockingIOError:
            return 0
        except OSError:  # the terminal is closed
            data = b""
        if not data:
            self._loop.remove_reader(self._started.output)  # the wait is for the end of the process, not of the output
            return 0
        self.output.append(data)
        self._printed = monotonic()
        if self.screen is not None:
            self._answer(self.screen.feed(data))
        for waiter in tuple(self._waiters):
            waiter.take(data)
        return len(data)

    def read_rest(self) -> None:
        """Read the output from before the end, at most what the kernel buffers: others may continue to print."""
        left = self._pace.held
        while left > 0 and (taken := self._take_some()):
            left -= taken

    def _answer(self, replies: bytes) -> None:
        if replies and self._input is not None:
            try:
                self._input.write(replies)
            except ToolError:
                pass  # it only polls, and does not read

    # -- the end

    async def end(self, grace: float = TERM_SECONDS) -> None:
        """End it and all of its processes: by SIGTERM, and after `grace` seconds by SIGKILL.

        Continues if the caller is cancelled.
        """
        self.begin_end(grace)
        if self._ending is not None:
            await asyncio.shield(self._ending)

    def begin_end(self, grace: float = TERM_SECONDS) -> None:
        """The same, without waiting for it."""
        if self._ending is None and self.is_running:
            self._ending = self._loop.create_task(self._end(grace))

    def end_after(self, seconds: float) -> None:
        """End it after so many seconds."""
        self._limit = self._loop.call_later(seconds - self.seconds, self._end_over_time)

    def _end_over_time(self) -> None:
        self.is_over_time = self.is_running
        self.begin_end()

    async def _end(self, grace: float) -> None:
        if not self._has_begun():
            grace = 0
        # A shell on a terminal ignores SIGTERM and ends with its terminal. A stopped process gets no other signal.
        for number in (*([signal.SIGHUP] if self.screen else []), signal.SIGTERM, signal.SIGCONT):
            self._launch.signal(self.pid, number)
        if await self._finishes_within(grace):
            return
        await asyncio.to_thread(self._launch.kill, self.pid)
        await self._finishes_within(KILL_SECONDS)

    def _has_begun(self) -> bool:
        """Whether the command itself runs, and not only the processes that confine it."""
        found = [self.pid]
        for _ in range(self._launch.wrappers):
            found = [child for parent in found for child in children(parent)]
        return bool(found)

    async def _finishes_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await self._finished.wait()
        except TimeoutError:
            return False

    async def close(self) -> None:
        """End it and free everything."""
        await self.end()
        self._release()
        self.output.close()

    def _process_ended(self) -> None:
        self._seconds = monotonic() - self._began
        self._finishing = self._loop.create_task(self._finish())

    async def _finish(self) -> None:
        """Kill the remaining processes, then reap its own. Until then no other process gets its number."""
        self.read_rest()
        await asyncio.to_thread(self._launch.close)
        if self.is_running:
            self.read_rest()
            self._release()

    def _release(self) -> None:
        """Close the descriptors, store the exit code and wake up waiting calls."""
        if not self.is_running:
            return
        self.is_running = False
        for timer in (self._pause, self._limit):
            if timer is not None:
                timer.cancel()
        self._loop.remove_reader(self._started.output)
        if self._input is not None:
            self._input.close()
        self._watch.close()
        for descriptor in (self._started.output, self._started.terminal):
            if descriptor is not None:
                os.close(descriptor)
        self._note_exit(self._started.process.poll())
        for waiter in tuple(self._waiters):
            waiter.end("exit")
        self._finished.set()
        self._report_end(self.exit_code)

    def ended_by(self, report: Callable[[int | None], None]) -> None:
        """Call this with the exit code when it has ended; at once if it already has."""
        self._report_end = report
        if not self.is_running:
            report(self.exit_code)

    def _note_exit(self, code: int | None) -> None:
        if code is not None:
            self.exit_code = code if code >= 0 else 128 - code
            names = {128 + each.value: each.name for each in signal.Signals}
            self.signal = names.get(self.exit_code, "")
