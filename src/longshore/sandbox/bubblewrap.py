"""Bubblewrap: commands in namespaces of their own, where only the listed paths exist."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from longshore.sandbox.environment import STARTER, SYSTEM_PATH
from longshore.sandbox.rlimits import Rlimits, ulimit_commands
from longshore.sandbox.roots import is_in
from longshore.sandbox.visible import Visible

TEMPORARY_BYTES: Final = 1 << 30
"""Of each private folder: /tmp, the home folder, /dev/shm. They lie in memory."""
WRAPPERS: Final = 2
"""Processes before the command's own: the monitor outside, and the first of the namespace."""
_SIZE_SINCE: Final = (0, 7)
_NO_NAMESPACES_WITHIN: Final = ("--unshare-user", "--disable-userns")
"""In a namespace of users a command would have capabilities, with which most holes of kernels are reached."""
_NO_NAMESPACES_SINCE: Final = (0, 8)
PROBE_SECONDS: Final = 10.0
"""For trying out a mechanism. It takes some milliseconds."""
_NAMESPACES: Final = ("--unshare-all", "--die-with-parent", "--cap-drop", "ALL")


class Bubblewrap(Struct, frozen=True):
    """A bubblewrap that works here."""

    program: str
    version: tuple[int, ...]

    @property
    def namespaces(self) -> tuple[str, ...]:
        """New namespaces of every kind, without capabilities, that end with the server."""
        return (*_NAMESPACES, *(_NO_NAMESPACES_WITHIN if self.version >= _NO_NAMESPACES_SINCE else ()))

    def arguments(
        self, visible: Visible, roots: Sequence[str], home: str, *, writable: bool, network: bool
    ) -> list[str]:
        """Everything but the environment, the working folder and the command."""
        private = ["/tmp", "/dev/shm", *([home] if os.path.isabs(home) and home != "/" else [])]  # noqa: S108
        bind = "--bind" if writable else "--ro-bind"
        mounts = [("/proc", ["--proc", "/proc"]), ("/dev", ["--dev", "/dev"])]
        mounts += [(path, [*self._private(), "--tmpfs", path]) for path in private if not is_in(path, roots)]
        mounts += [(path, ["--ro-bind-try", path, path]) for path in visible.paths]
        mounts += [(link, ["--symlink", path, link]) for link, path in visible.links]
        mounts += [(root, [bind, root, root]) for root in roots]
        # Parents first: a later mount hides the files below it.
        mounts.sort(key=lambda mount: mount[0].rstrip("/").count("/"))
        found = [*self.namespaces, *(["--share-net"] if network else [])]
        found += [argument for _, arguments in mounts for argument in arguments]
        # Without capabilities root still may write to /proc/sys, where core_pattern names a program of the machine.
        read_only = ["/proc", "/dev", *(["/"] if "/" not in roots else [])]
        return [*found, "--dir", "/run", *(argument for path in read_only for argument in ("--remount-ro", path))]

    def argv(
        self, arguments: int, command: Sequence[str], *, members: Sequence[str], rlimits: Rlimits, terminal: bool
    ) -> tuple[str, ...]:
        """The command line to start: a shell joins the cgroups, sets the limits and becomes bubblewrap.

        So the limits apply before any part of the command runs, and no code of ours runs between fork and exec. The
        arguments come from a descriptor: the environment among them is in no list of processes.
        """
        script = " && ".join([*(f"echo 0 >{shlex.quote(path)}" for path in members), ulimit_commands(rlimits)])
        own_terminal = ("setsid", "-c") if terminal else ()
        wrapped = (self.program, "--args", str(arguments), "--", *own_terminal, *command)
        return ("/bin/sh", "-c", f'{script} && exec "$@"', "sh", *wrapped)

    def _private(self) -> list[str]:
        """Permissions and size of the next folder in memory."""
        size = ["--size", str(TEMPORARY_BYTES)] if self.version >= _SIZE_SINCE else []
        return ["--perms", "1777", *size]


def find_bubblewrap() -> Bubblewrap | str:
    """The bubblewrap of this machine; else a sentence with the reason why there is none, or why it does not work."""
    program = shutil.which("bwrap", path=SYSTEM_PATH)
    if program is None:
        return "bwrap is not installed"
    number = re.search(r"(\d+)\.(\d+)", _run([program, "--version"])[1])
    if number is None:
        return f"{program} does not tell its version"
    found = Bubblewrap(program, (int(number[1]), int(number[2])))
    # Binding / itself tests on every system whether the namespaces, /proc and /dev can be made. With --as-pid-1 no
    # process of bubblewrap's own is left for us to reap.
    shown = ("--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev")
    code, output = _run([program, *found.namespaces, "--as-pid-1", *shown, "true"])
    return found if code == 0 else f"{program} does not work here: {output.strip()[:200] or f'exit code {code}'}"


def _run(argv: list[str]) -> tuple[int, str]:
    try:
        done = subprocess.run(
            argv, env=STARTER, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PROBE_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        return 1, str(problem)
    return done.returncode, done.stdout + done.stderr
