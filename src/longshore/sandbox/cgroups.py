"""Cgroups of commands: the kernel bounds processes and memory of a whole tree, and all of it can be killed.

Version 2 is used where its controllers are on, else version 1. A cgroup is made beneath the server's own, or for
version 2 beside it: there a group whose controllers are on for its children has no processes of its own.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from itertools import count
from time import monotonic, sleep
from typing import Final

from msgspec import Struct

from longshore.sandbox.launch import Limits

PREFIX: Final = "longshore-"
_OWNER: Final = re.compile(rf"{PREFIX}(\d+)-([1-9]\d*)-")
"""The number of a group's server, and the namespace of that number, if it is known."""
KILL_SECONDS: Final = 2.0
"""How long a killed cgroup may take to become empty. A process that survives this is stuck in the kernel."""
_STEP_SECONDS: Final = 0.001
_NEEDED: Final = ("pids", "memory", "cpu")
"""Controllers in the order of their importance: without the first there is no use in the others.

That of the CPU has no limit here: as one group, many busy processes get no more time than the server gets.
"""
_numbers = count()


class Cgroup:
    """The cgroup of one command: a folder in each hierarchy."""

    def __init__(self, folders: tuple[str, ...], version: int) -> None:
        self.folders = folders
        self._version = version

    @property
    def members(self) -> tuple[str, ...]:
        """Files that a process with one thread writes a 0 to for joining.

        In version 1 the file of threads: for cgroup.procs the kernel stops all forks, which takes it up to 10 ms.
        """
        name = "cgroup.procs" if self._version == 2 else "tasks"
        return tuple(os.path.join(folder, name) for folder in self.folders)

    def remove(self) -> None:
        """Kill every process in the group and delete it. May be called again."""
        end = monotonic() + KILL_SECONDS
        while not self._is_removed() and monotonic() < end:
            self._kill()
            sleep(_STEP_SECONDS)

    def _is_removed(self) -> bool:
        """Delete the folders. A group with a process in it can't be deleted."""
        left = [folder for folder in self.folders if os.path.isdir(folder)]
        for folder in left:
            try:
                os.rmdir(folder)
            except OSError:
                return False
        return True

    def _kill(self) -> None:
        for folder in self.folders:
            if not _write(folder, "cgroup.kill", "1"):
                _write(folder, "pids.max", "0")  # those that are left can start no others meanwhile
                for pid in _members(folder):
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except OSError:
                        pass


class CgroupParents(Struct, frozen=True):
    """The folders in which cgroups of commands can be made, each with its controllers."""

    version: int
    folders: tuple[tuple[str, tuple[str, ...]], ...]

    @property
    def controllers(self) -> frozenset[str]:
        return frozenset(name for _, names in self.folders for name in names)

    def make(self, name: str, limits: Limits) -> Cgroup:
        """Make a cgroup with these limits. Raises OSError."""
        name = f"{PREFIX}{os.getpid()}-{process_namespace()}-{next(_numbers)}-{name}"
        group = Cgroup(tuple(os.path.join(parent, name) for parent, _ in self.folders), self.version)
        try:
            for folder, (_, controllers) in zip(group.folders, self.folders, strict=True):
                os.mkdir(folder, 0o755)
                self._limit(folder, controllers, limits)
        except BaseException:
            group.remove()
            raise
        return group

    def _limit(self, folder: str, controllers: tuple[str, ...], limits: Limits) -> None:
        if "pids" in controllers and limits.processes is not None:
            _write_limit(folder, "pids.max", limits.processes)
        if "memory" in controllers and limits.memory_bytes is not None:
            _write_limit(folder, "memory.max" if self.version == 2 else "memory.limit_in_bytes", limits.memory_bytes)
            swap = ("memory.swap.max", 0) if self.version == 2 else ("memory.memsw.limit_in_bytes", limits.memory_bytes)
            if os.path.exists(os.path.join(folder, swap[0])):  # where swap is counted
                _write_limit(folder, *swap)

    def sweep(self) -> None:
        """Kill and delete the cgroups of servers that have ended without it.

        Only of those whose processes are seen here: in a container that shares the hierarchy, others' numbers are not.
        """
        namespace = process_namespace()
        for parent, _ in self.folders:
            for name in os.listdir(parent):
                found = _OWNER.match(name)
                if found and int(found[2]) == namespace and not os.path.exists(f"/proc/{found[1]}"):
                    Cgroup((os.path.join(parent, name),), self.version).remove()


def process_namespace() -> int:
    """The number of the namespace in which this process has its number; 0 where /proc does not show it."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def find_cgroups() -> CgroupParents | str:
    """Where cgroups can be made; else a sentence that says why they can't. Old cgroups of ours are deleted."""
    try:
        parents = read_parents()
    except OSError as problem:
        return f"{problem.filename} can't be read ({problem.strerror})"
    if parents is None:
        return "no folder of /sys/fs/cgroup that has the controller of processes can be written"
    try:
        parents.sweep()
        parents.make("probe", Limits()).remove()
    except OSError as problem:
        return f"no cgroup can be made in {parents.folders[0][0]} ({problem.strerror})"
    return parents


def read_parents(process: str = "/proc/self") -> CgroupParents | None:
    """Where a process, given by its folder in /proc, may make cgroups. Raises OSError."""
    with open(os.path.join(process, "cgroup"), encoding="utf-8") as file:
        own = [line.rstrip("\n").split(":", 2) for line in file]
    with open(os.path.join(process, "mountinfo"), encoding="utf-8") as file:
        mounts = [line.split() for line in file]
    return _find_version_2(own, mounts) or _find_version_1(own, mounts)


def _find_version_2(own: list[list[str]], mounts: list[list[str]]) -> CgroupParents | None:
    path = next((path for number, _, path in own if number == "0"), None)
    for top, shown in _mounted(mounts, "cgroup2"):
        folder = _beneath(top, shown, path)
        while folder is not None and len(folder) >= len(top):
            try:
                with open(os.path.join(folder, "cgroup.subtree_control"), encoding="ascii") as file:
                    delegated = file.read().split()
            except OSError:
                break
            controllers = tuple(name for name in _NEEDED if name in delegated)
            if "pids" in controllers and os.access(os.path.join(folder, "cgroup.procs"), os.W_OK):
                return CgroupParents(2, ((folder, controllers),))
            folder = os.path.dirname(folder)
    return None


def _find_version_1(own: list[list[str]], mounts: list[list[str]]) -> CgroupParents | None:
    found = list[tuple[str, tuple[str, ...]]]()
    for _, names, path in own:
        controllers = tuple(name for name in names.split(",") if name in _NEEDED)
        for top, shown in _mounted(mounts, "cgroup", controllers):
            folder = _beneath(top, shown, path)
            if folder is not None and os.access(folder, os.W_OK):
                found.append((folder, controllers))
                break
    if not any("pids" in controllers for _, controllers in found):
        return None
    return CgroupParents(1, tuple(sorted(found, key=lambda one: min(map(_NEEDED.index, one[1])))))


def _mounted(mounts: list[list[str]], kind: str, controllers: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Mount points of a hierarchy, and which of its groups is shown there."""
    for fields in mounts:
        after = fields[fields.index("-") + 1 :]
        if after[0] == kind and (kind == "cgroup2" or set(controllers) & set(after[2].split(","))):
            yield fields[4], fields[3]


def _beneath(top: str, shown: str, path: str | None) -> str | None:
    """The folder of a group, if a mount shows it."""
    if path is None or os.path.commonpath((path, shown)) != shown:
        return None
    return os.path.normpath(os.path.join(top, os.path.relpath(path, shown)))


def _members(folder: str) -> list[int]:
    try:
        with open(os.path.join(folder, "cgroup.procs"), encoding="ascii") as file:
            return [int(line) for line in file]
    except OSError:
        return []


def _write(folder: str, name: str, text: str) -> bool:
    try:
        _write_limit(folder, name, text)
    except OSError:
        return False
    return True


def _write_limit(folder: str, name: str, value: int | str) -> None:
    # Not created: in a folder that is no cgroup such a file would only look like a limit.
    descriptor = os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(value).encode())
    finally:
        os.close(descriptor)
