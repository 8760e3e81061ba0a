"""The options of the terminal tools, and whether they can run here, without the libraries behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from longshore.registry.options import Folder, Size

if TYPE_CHECKING:
    from longshore.sandbox.levels import Sandbox

Policy = Literal["open", "allow-list", "ask"]


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
    """The reason why commands can't be confined as the options ask, and the fix. `self` has them as `options`."""
    from longshore.sandbox.checked_levels import remember, was_checked

    if was_checked(self.options.level):
        return None
    from longshore.errors import SandboxUnavailable

    try:
        make_sandbox(self.options)
    except SandboxUnavailable as problem:
        return str(problem)
    remember(self.options.level)
    return None
