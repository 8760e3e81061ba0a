"""A server as a child process: starting it, and ending it without fail.

It leads a process group of its own, so that its own children end with it. Ending has three steps, each with a deadline:
end of input, which every good server obeys, then SIGTERM, then SIGKILL, the last two for the whole group.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO, final

from longshore.errors import ConnectError

EOF_SECONDS = 2.0
"""After end of input a server may finish what it does. Ours needs less than one."""
TERM_SECONDS = 1.0
KILL_SECONDS = 2.0
"""A killed process ends at once, unless the kernel holds it; that is not waited for."""
_POLL_SECONDS = 0.01
_DEATH_SECONDS = 0.5


@final
class ChildProcess:
    """A process that was started. `ended` is done when it has ended; only `end` reaps it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self._watched = _open_pidfd(process.pid)
        self._poll: asyncio.TimerHandle | None = None
        if self._watched is None:
            self._look()
        else:
            self._loop.add_reader(self._watched, self._has_ended)

    @property
    def pipes(self) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
        """Its stdin, stdout and stderr."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        return process.stdin, process.stdout, process.stderr

    def _look(self) -> None:
        """Poll for the end where the kernel has no pidfd."""
        if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            self._poll = self._loop.call_later(_POLL_SECONDS, self._look)
        else:
            self._has_ended()

    def _has_ended(self) -> None:
        self._unwatch()
        if not self.ended.done():
            self.ended.set_result(None)

    def _unwatch(self) -> None:
        if self._poll is not None:
            self._poll.cancel()
        watched, self._watched = self._watched, None
        if watched is not None:
            self._loop.remove_reader(watched)
            os.close(watched)

    def how_it_ended(self) -> str:
        """How it ended; empty while it runs."""
        if self._process.returncode is None:
            state = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if state is None:
                return ""
            code = -state.si_status if state.si_code in (os.CLD_KILLED, os.CLD_DUMPED) else state.si_status
        else:
            code = self._process.returncode
        if code >= 0:
            return f"it ended with exit code {code}"
        try:
            return f"it was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"it was ended by signal {-code}"

    async def end(self) -> None:
        """End it and its group, once its input is closed. If this is cancelled, the group is killed at once."""
        try:
            if not await self._ended_within(EOF_SECONDS):
                self._send(signal.SIGTERM)
                if not await self._ended_within(TERM_SECONDS):
                    self._send(signal.SIGKILL)
                    await self._ended_within(KILL_SECONDS)
            await self._end_rest()
        except asyncio.CancelledError:
            self._send(signal.SIGKILL)
            self._await_death()
            raise
        finally:
            self._unwatch()
            self._process.poll()  # which reaps it

    def kill(self) -> None:
        """End it at once, without awaiting anything."""
        if self._process.returncode is None:
            self._send(signal.SIGKILL)
            self._await_death()
            self._unwatch()

    def _await_death(self) -> None:
        """Reap it now, blocking for a moment: the loop ends, so no later turn could."""
        try:
            self._process.wait(_DEATH_SECONDS)
        except subprocess.TimeoutExpired:
            pass

    async def _end_rest(self) -> None:
        """End its remaining processes. Its number stays reserved while the group exists, so no other is hit.

        Its own zombie is in the group too: it is reaped first, or the group would never be empty.
        """
        self._send(signal.SIGTERM)
        self._process.poll()
        for seconds in (TERM_SECONDS, KILL_SECONDS):
            deadline = self._loop.time() + seconds
            while self._is_group_there():
                if self._loop.time() > deadline:
                    self._send(signal.SIGKILL)
                    break
                await asyncio.sleep(_POLL_SECONDS)

    def _is_group_there(self) -> bool:
        try:
            os.killpg(self.pid, 0)
        except (ProcessLookupError, PermissionError):
            return False
        return True

    async def _ended_within(self, seconds: float) -> bool:
        done, _ = await asyncio.wait((self.ended,), timeout=seconds)
        return bool(done)

    def _send(self, number: int) -> None:
        try:
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass  # the group is empty


def spawn(command: Sequence[str], env: Mapping[str, str] | None, cwd: str | None) -> ChildProcess:
    """Start a server. It inherits our environment, and over that gets `env`. Raises ConnectError."""
    shown = command[0]
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if env is None else {**os.environ, **env},
            cwd=cwd,
            start_new_session=True,
            bufsize=0,
        )
    except FileNotFoundError:
        if cwd is not None and not os.path.isdir(cwd):
            raise ConnectError(f"there is no folder {cwd!r} to start it in") from None
        raise ConnectError(f"there is no program {shown!r}; install it, or give its full path") from None
    except (OSError, ValueError) as problem:
        raise ConnectError(f"{shown!r} can't be started: {problem}") from None
    return ChildProcess(process)


def _open_pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None  # not Linux, or too old a kernel
