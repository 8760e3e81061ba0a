"""The options of code mode, and whether it can run here, without the libraries behind it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from longshore.registry.options import Folder, Size

if TYPE_CHECKING:
    from longshore.sandbox.levels import Sandbox


class CodeOptions(Struct, frozen=True, kw_only=True):
    """Python code of the model's, in the sandbox of the terminal's level `workspace`."""

    run_seconds: Annotated[float, Meta(ge=0.1, le=600)] = 60.0
    """Seconds that code may run, unless the call says otherwise."""

    read_paths: list[Folder] = []
    """Further paths that code may read."""

    most_running: Annotated[int, Meta(ge=1, le=16)] = 4
    """Pieces of code that may run at once, for each user."""

    most_sessions: Annotated[int, Meta(ge=1, le=64)] = 8
    """Sessions that may be open at once, for each user."""

    idle_seconds: Annotated[float, Meta(ge=1)] = 1800.0
    """A session that no call has used for so long is closed."""

    processes: Annotated[int, Meta(ge=1)] = 64
    """Processes and threads of one piece of code."""

    memory: Size = 1 << 30
    """Memory of one piece of code."""


def make_sandbox(options: CodeOptions) -> Sandbox:
    """The sandbox of these options. Raises SandboxUnavailable."""
    from longshore.sandbox.launch import Limits
    from longshore.sandbox.levels import make_sandbox as make

    limits = Limits(processes=options.processes, memory_bytes=options.memory)
    return make("workspace", limits=limits, read_paths=[sys.base_prefix, *options.read_paths])


def available(self: Any) -> str | None:
    """Why code can't be confined here, and the fix. `self` has the options as `options`."""
    from longshore.sandbox.checked_levels import remember, was_checked

    if was_checked("workspace"):
        return None
    from longshore.errors import SandboxUnavailable

    try:
        make_sandbox(self.options)
    except SandboxUnavailable as problem:
        return str(problem)
    remember("workspace")
    return None
