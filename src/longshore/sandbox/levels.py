"""The levels of confinement for commands, and how a command is started at each of them.

none: it only ends with the server. limits: bounded processes, memory, CPU time and files. read-only: also sees nothing
but the roots and the system's programs, changes nothing but a private /tmp, and has no network. workspace: also changes
the roots. workspace+net: also has the network. A level that can't be enforced here is refused, never weakened.
"""

from __future__ import annotations

import marshal
import os
import re
import resource
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from threading import Lock
from typing import Final, final

from msgspec import Struct, structs

import longshore
from longshore.errors import SandboxUnavailable, ToolError
from longshore.sandbox import landlock, launcher
from longshore.sandbox.artifacts import safe_name
from longshore.sandbox.bubblewrap import WRAPPERS, Bubblewrap
from longshore.sandbox.cgroups import Cgroup
from longshore.sandbox.descendants import reap
from longshore.sandbox.environment import STARTER, command_environment
from longshore.sandbox.git_identity import write_git_settings
from longshore.sandbox.launch import Launch, Level, Limits
from longshore.sandbox.mechanisms import CGROUPS, NEEDS_LINUX, NEWER_KERNEL, HostMechanisms, bubblewrap_fix, detect_host
from longshore.sandbox.rlimits import Rlimits, process_limits, user_processes
from longshore.sandbox.roots import merge
from longshore.sandbox.seccomp import key_filter
from longshore.sandbox.visible import VisiblePaths

DEFAULT_LEVEL: Final[Level] = "workspace"
DEFAULT_LIMITS: Final = Limits()
MEMORY_SHARE: Final = 0.75
"""Of the machine's memory: no limit is higher, so that the server and the system have the rest."""
DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
_TEMPORARY: Final = (
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "XDG_DATA_HOME",
    "npm_config_cache",
)
"""Variables that name a folder to write in, for commands that can't have a /tmp and home folder of their own."""
REAP_SECONDS: Final = 0.5
"""A killed process ends within a millisecond, unless the kernel holds it."""
_NOTE_BYTES: Final = 4096
_PACKAGES: Final = os.path.dirname(os.path.dirname(longshore.__file__))


def make_sandbox(
    level: Level = DEFAULT_LEVEL,
    *,
    limits: Limits = DEFAULT_LIMITS,
    read_paths: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    host: HostMechanisms | None = None,
) -> Sandbox:
    """A sandbox of this level. Raises SandboxUnavailable if this machine can't enforce it."""
    host = host or detect_host()
    if sys.platform != "linux" and level not in ("none", "limits"):
        raise SandboxUnavailable(f"the level {level} can't be enforced: {host.bubblewrap}", NEEDS_LINUX)
    if level != "none" and limits.processes is not None and host.is_root and isinstance(host.cgroups, str):
        raise SandboxUnavailable(
            f"the number of root's processes can't be limited without cgroups: {host.cgroups}",
            f"run the server as another user, or {CGROUPS}",
        )
    replaceable = host.landlock >= landlock.NEEDED_VERSION and host.seccomp and host.mounts
    if level not in ("none", "limits") and isinstance(host.bubblewrap, str) and not replaceable:
        lacking = "no mounts of their own" if not host.mounts else "no seccomp"
        if host.landlock < landlock.NEEDED_VERSION:
            lacking = f"landlock {host.landlock or 'none'}"
        raise SandboxUnavailable(
            f"the level {level} can't be enforced: {host.bubblewrap}, and the kernel ({lacking}) can't replace it",
            f"{bubblewrap_fix(host.bubblewrap)}, or {NEWER_KERNEL}",
        )
    if limits.memory_bytes is not None:
        most = int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") * MEMORY_SHARE)
        limits = structs.replace(limits, memory_bytes=min(limits.memory_bytes, most))
    return Sandbox(level, limits, read_paths, dict(os.environ if environ is None else environ), host)


class _Order(Struct, frozen=True):
    """A command to start."""

    argv: tuple[str, ...]
    cwd: str
    env: dict[str, str]
    roots: tuple[str, ...]
    terminal: bool
    group: Cgroup | None
    rlimits: Rlimits

    @property
    def members(self) -> tuple[str, ...]:
        return self.group.members if self.group is not None else ()


@final
class Sandbox:
    """One level of confinement, which this machine can enforce."""

    def __init__(
        self, level: Level, limits: Limits, read_paths: Sequence[str], environ: Mapping[str, str], host: HostMechanisms
    ) -> None:
        self.level: Final = level
        self._limits, self._environ, self._read_paths, self._host = limits, environ, tuple(read_paths), host
        self._confined = level not in ("none", "limits")
        self._writable = level != "read-only"
        self._network = level not in ("read-only", "workspace")
        self._bubblewrap = host.bubblewrap if self._confined and isinstance(host.bubblewrap, Bubblewrap) else None

    @property
    def mechanism(self) -> str:
        """The mechanisms that enforce this level, such as "bubblewrap + cgroups"."""
        if self.level == "none":
            return "none"
        bounds = "rlimits" if isinstance(self._host.cgroups, str) else "cgroups"
        if not self._confined:
            return bounds
        return f"{'bubblewrap' if self._bubblewrap else 'landlock + seccomp'} + {bounds}"

    def launch(
        self,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        roots: Sequence[str],
        name: str,
        terminal: bool = False,
    ) -> Launch:
        """How to start a command in some roots, given by their real paths.

        `env` is added to the variables that are allowed; `terminal` says that fd 0 will be one. The first launch in a
        set of roots looks for toolchains, which takes some 40 ms. Raises ToolError for text that no process can have,
        OSError if the machine has no descriptors, cgroups or space left.
        """
        if any("\0" in text for text in (*argv, cwd, *env, *env.values())):
            raise ToolError("a NUL character can't be in a command, its folder or its environment; leave it out")
        if wrong := [key for key in env if not key or "=" in key]:
            raise ToolError(f"{wrong[0]!r} can't be the name of a variable; give a name without =")
        variables = command_environment(self._environ, env, terminal=terminal, network=self._network)
        if self._confined:
            git = {"GIT_CONFIG_GLOBAL": self._git_settings or os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
            variables = git | variables
        rlimits = process_limits(self._limits) if self.level != "none" else ()
        group = self._make_cgroup(name)
        # A root within another could be replaced by a link before it is mounted.
        order = _Order(tuple(argv), cwd, variables, merge(roots), terminal, group, rlimits)
        try:
            if self._bubblewrap is not None:
                return self._by_bubblewrap(order, self._bubblewrap)
            return self._by_launcher(order)
        except BaseException:
            if group is not None:
                group.remove()
            raise

    def _make_cgroup(self, name: str) -> Cgroup | None:
        if self.level == "none" or isinstance(self._host.cgroups, str):
            return None
        return self._host.cgroups.make(safe_name(name), self._limits)

    def _by_bubblewrap(self, order: _Order, program: Bubblewrap) -> Launch:
        visible, home = self._paths.find(order.roots), self._environ.get("HOME", "")
        arguments = program.arguments(visible, order.roots, home, writable=self._writable, network=self._network)
        arguments += [*([] if order.terminal else ["--new-session"]), "--chdir", order.cwd, "--clearenv"]
        for variable in order.env.items():
            arguments += ["--setenv", *variable]
        argv, limit = order.argv, ""
        if order.group is None and self._limits.processes is not None:
            # Within the namespace, which may count its own processes only. dash calls this limit -p.
            most = user_processes(self._limits.processes)
            limit = f"{{ ulimit -u {most} 2>&- || ulimit -p {most}; }} && "
        if limit or not (os.path.isabs(argv[0]) and os.access(argv[0], os.X_OK)):
            # Of a missing program a shell says so, with exit code 127; bubblewrap would exit with 1, as programs do.
            argv = ("/bin/sh", "-c", f'{limit}exec "$@"', "sh", *argv)
        first = _open_data(b"")
        arguments += ["--info-fd", str(first)]
        data = list[int]()
        if self._host.seccomp:
            data.append(_open_data(key_filter()))
            arguments += ["--seccomp", str(data[0])]
        data.append(_open_data("".join(f"{each}\0" for each in arguments).encode(errors="surrogateescape")))
        started = program.argv(data[-1], argv, members=order.members, rlimits=order.rlimits, terminal=order.terminal)
        release = _Release(data, order.group, first=first)
        return Launch(started, STARTER, order.cwd, (*data, first), WRAPPERS, True, release)

    def _by_launcher(self, order: _Order) -> Launch:
        rlimits = order.rlimits
        if order.group is None and self._limits.processes is not None and self.level != "none":
            rlimits += ((resource.RLIMIT_NPROC, user_processes(self._limits.processes)),)
        plan: launcher.Plan = structs.asdict(order) | {"rlimits": rlimits, "members": order.members, "group": None}
        temporary = ""
        if self._confined:
            readable = ["/proc", *self._paths.find(order.roots).paths, *order.roots]
            temporary = tempfile.mkdtemp(prefix="longshore-")
            folders = [temporary, *(order.roots if self._writable else ())]
            plan |= {"readable": readable, "writable": [*DEVICES, *folders], "folders": folders}
            plan |= {"network": self._network, "env": dict.fromkeys(_TEMPORARY, temporary) | order.env}
        lifeline, kept = os.pipe()
        plan |= {"lifeline": lifeline, "temporary": temporary}
        data = _open_data(marshal.dumps(plan))
        started = (sys.executable, "-I", "-S", "-c", launcher.RUN, _PACKAGES, str(data))
        release = _Release([kept, lifeline, data], order.group, temporary)
        return Launch(started, STARTER, order.cwd, (data, lifeline), 1, False, release)

    @cached_property
    def _git_settings(self) -> str | None:
        return write_git_settings(self._environ)

    @cached_property
    def _paths(self) -> VisiblePaths:
        git = (self._git_settings,) if self._git_settings is not None else ()
        return VisiblePaths(self._environ, (*self._read_paths, *git))


class _Release:
    """Ends what is left of a command, and frees what its launch holds.

    Bubblewrap notes in the descriptor `first` which process is the first of the namespace. It ends a moment after the
    one that was started, so a server that adopts orphans has to reap it.
    """

    def __init__(
        self, descriptors: list[int], group: Cgroup | None, folder: str = "", first: int | None = None
    ) -> None:
        self._descriptors, self._group, self._folder, self._first = descriptors, group, folder, first
        self._orphan: int | None = None
        self._lock = Lock()
        """A command may end by itself while it is killed: both release it, on threads of their own."""

    def __call__(self) -> None:
        with self._lock:
            self._release()

    def _release(self) -> None:
        if self._first is not None:
            noted = re.search(rb'"child-pid": *(\d+)', os.pread(self._first, _NOTE_BYTES, 0))
            self._orphan = int(noted[1]) if noted else None
            self._descriptors.append(self._first)
            self._first = None
        while self._descriptors:
            os.close(self._descriptors.pop())
        if self._group is not None:
            self._group.remove()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)
        if self._orphan is not None and reap(self._orphan, REAP_SECONDS):
            self._orphan = None


def _open_data(data: bytes) -> int:
    """A descriptor to read some bytes from."""
    if sys.platform == "linux":
        descriptor = os.memfd_create("longshore")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
