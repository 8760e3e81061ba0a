"""How a command is started in a sandbox: the argv, environment and descriptors of the process that confines it."""

from __future__ import annotations

import os
from collections.abc import Callable
from signal import SIGKILL
from typing import Final, Literal, Self

from msgspec import Struct

from longshore.sandbox.descendants import children

Level = Literal["none", "limits", "read-only", "workspace", "workspace+net"]
LEVELS: Final[tuple[Level, ...]] = ("none", "limits", "read-only", "workspace", "workspace+net")


class Limits(Struct, frozen=True):
    """The most that one command and its descendants may use. None is without a limit."""

    processes: int | None = 512
    """Processes and threads together. A build on many cores and a test suite with a browser stay below it."""
    memory_bytes: int | None = 4 << 30
    """Of all processes where cgroups are available, and of each process everywhere."""
    file_bytes: int | None = 2 << 30
    """Of each file that is written."""
    open_files: int | None = 4096
    """Of each process. The usual 1,024 is too few for watchers of JavaScript projects."""
    cpu_seconds: int | None = 3600
    """Of each process. A busy loop in the background ends after it."""


class Launch(Struct, frozen=True):
    """A process to start: it confines itself, then runs the command.

    Start it with exactly this argv, env, cwd and pass_fds, from the main thread and in a session of its own, without a
    controlling terminal. A command that ended by signal n exits with 128 + n. `close` the launch when the command has
    ended: that kills whatever it left behind. To end it early, `kill` it: a launcher that is killed leaves daemons.
    """

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    pass_fds: tuple[int, ...] = ()
    wrappers: int = 0
    """How many processes, beginning with the started one and each the child of the last, are not the command's."""
    ends_whole: bool = True
    """Whether all processes end with the started one. Else the started one ends them all when the launch is closed."""
    release: Callable[[], None] | None = None
    """Kills what is left and frees what the launch holds; may be called again."""

    def signal(self, pid: int, signum: int) -> None:
        """Send a signal to every process of the command; `pid` is the process that was started."""
        found = [pid]
        for _ in range(self.wrappers):
            found = [child for parent in found for child in children(parent)]
        for process in found:  # grows while it is read
            found += children(process)
        for process in found:
            try:
                os.kill(process, signum)
            except OSError:  # it has ended
                pass

    def kill(self, pid: int) -> None:
        """Kill every process, also those in sessions of their own; `pid` is the process that was started."""
        self.close()
        if self.ends_whole:
            try:
                os.kill(pid, SIGKILL)
            except OSError:  # it has ended
                pass

    def close(self) -> None:
        """Kill whatever is left of the command, and free descriptors, cgroups and folders. May be called again."""
        if self.release is not None:
            self.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()
