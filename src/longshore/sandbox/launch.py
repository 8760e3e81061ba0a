"""How a command is started inside its sandbox."""

from __future__ import annotations

from msgspec import Struct


class Launch(Struct, frozen=True):
    """The arguments, environment and folder of a process to start, and the descriptors that it inherits."""

    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    pass_fds: tuple[int, ...] = ()
