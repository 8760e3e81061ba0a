"""The options of the terminal tools, and whether they can run here, without the libraries behind them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from longshore.registry.options import Folder, Size

if TYPE_CHECKING:
    from longshore.sandbox.levels import Sandbox

Policy = Literal["open", "allow-list", "ask"]
_MOST_BYTES: Final = 16_384
"""Of a description of the machine."""


class TerminalOptions(Struct, frozen=True, kw_only=True):
    """Commands in a sandbox."""

    level: Literal["none", "limits", "read-only", "workspace", "workspace+net"] = "workspace"
    """What commands may do: everything (none), within limits, only read, change the folders, and use the network."""

    policy: Policy = "open"
    """Which commands run: all of them, those of `allow` without a shell, or those that the user allows when asked."""

    allow: list[str] = []
    """Commands of the allow-list, such as "git status" or "pytest": each with any further arguments."""

    read_paths: list[Folder] = []
    """Further paths that commands may read."""

    most_running: Annotated[int, Meta(ge=1, le=64)] = 8
    """Commands that may run at once, for each user."""

    idle_seconds: Annotated[float, Meta(ge=1)] = 3600.0
    """A command that no call has used for so long is ended."""

    processes: Annotated[int, Meta(ge=1)] = 512
    """Processes and threads of one command."""

    memory: Size = 4 << 30
    """Memory of one command."""


def make_sandbox(options: TerminalOptions) -> Sandbox:
    """The sandbox of these options. Raises SandboxUnavailable."""
    from longshore.sandbox.launch import Limits
    from longshore.sandbox.levels import make_sandbox as make

    limits = Limits(processes=options.processes, memory_bytes=options.memory)
    return make(options.level, limits=limits, read_paths=options.read_paths)


def available(self: Any) -> str | None:
    """Why commands can't be confined here as the options ask, and the fix. `self` has them as `options`.

    Trying the mechanisms takes 60 ms, so a start relies on the last success on the same machine since it was booted.
    It decides only what is offered: `make_sandbox` tries them again before the first command.
    """
    from longshore.errors import SandboxUnavailable
    from longshore.files import read_regular, user_directory, write_atomic

    folder = user_directory("cache")
    path, tried = f"{folder}/sandbox-{self.options.level}", _describe_machine()
    try:
        if folder is not None and read_regular(path, _MOST_BYTES)[0] == tried:
            return None
    except OSError:
        pass
    try:
        make_sandbox(self.options)
        if folder is not None:
            write_atomic(path, tried, 0o600)
    except SandboxUnavailable as problem:
        return str(problem)
    except OSError:  # it can't be remembered
        pass
    return None


def _describe_machine() -> bytes:
    """What decides which mechanisms work: the kernel that runs, the user, the cgroup, and bubblewrap."""
    parts = [f"{os.geteuid()} {os.environ.get('PATH')}".encode()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/cgroup"):
        try:
            with open(path, "rb") as file:
                parts.append(file.read(_MOST_BYTES))
        except OSError:
            parts.append(b"")
    for folder in os.get_exec_path():
        try:
            status = os.stat(os.path.join(folder, "bwrap"))
            parts.append(f"{folder} {status.st_mtime_ns} {status.st_mode}".encode())
        except OSError:
            continue
    return b"\n".join(parts)[:_MOST_BYTES]
