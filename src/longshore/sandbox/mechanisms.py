"""The mechanisms of confinement on this machine: detected once, and described for a person."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from functools import cache
from typing import Final

from msgspec import Struct

from longshore.sandbox import landlock, seccomp
from longshore.sandbox.bubblewrap import PROBE_SECONDS, Bubblewrap, find_bubblewrap
from longshore.sandbox.cgroups import CgroupParents, find_cgroups
from longshore.sandbox.environment import STARTER, SYSTEM_PATH

INSTALL: Final = "install bubblewrap (sudo apt-get install bubblewrap; dnf, pacman, zypper and apk have it, too)"
NAMESPACES: Final = (
    "allow user namespaces (sudo sysctl kernel.unprivileged_userns_clone=1; on Ubuntu kernel.apparmor_restrict_"
    "unprivileged_userns=0 or an AppArmor profile for bwrap; in a container --security-opt seccomp=unconfined)"
)
NEWER_KERNEL: Final = "install bubblewrap, or use Linux 6.12 or newer with landlock in its lsm= list"
CGROUPS: Final = "run the server as a service of systemd with Delegate=yes, or make its cgroup writable"

NEEDS_LINUX: Final = 'run the server on Linux, for instance in its container, or set the level "limits" or "none"'
"""The fix on macOS for every mechanism."""


class HostMechanisms(Struct, frozen=True):
    """The mechanisms of this machine for confining commands; for a missing one, a sentence with the reason."""

    bubblewrap: Bubblewrap | str
    landlock: int
    """Its version; 0 without."""
    seccomp: bool
    mounts: bool
    """Whether a process may have mounts of its own."""
    cgroups: CgroupParents | str
    is_root: bool


class Mechanism(Struct, frozen=True):
    """One mechanism: whether it works here, else the reason and the fix."""

    name: str
    active: bool
    why: str
    fix: str = ""


@cache
def detect_host() -> HostMechanisms:
    """Try each mechanism."""
    if sys.platform != "linux":
        return HostMechanisms("bubblewrap needs Linux", 0, False, False, "cgroups need Linux", os.geteuid() == 0)
    kernel = (landlock.version(), seccomp.is_available(), _may_have_mounts())
    return HostMechanisms(find_bubblewrap(), *kernel, find_cgroups(), os.geteuid() == 0)


def _may_have_mounts() -> bool:
    """Whether a process may have mounts of its own, tried with the program `unshare`."""
    program = shutil.which("unshare", path=SYSTEM_PATH)
    if program is None:
        return False
    how = "--mount" if os.geteuid() == 0 else "-rm"
    try:
        done = subprocess.run([program, how, "true"], env=STARTER, capture_output=True, timeout=PROBE_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def mechanisms(host: HostMechanisms | None = None) -> tuple[Mechanism, ...]:
    """Describe each mechanism of a machine, by default of this one."""
    found = _describe(host or detect_host())
    if sys.platform != "linux":
        return tuple(each if each.active else Mechanism(each.name, False, each.why, NEEDS_LINUX) for each in found)
    return found


def _describe(host: HostMechanisms) -> tuple[Mechanism, ...]:
    return (
        _describe_bubblewrap(host),
        Mechanism(
            "landlock",
            host.landlock >= landlock.NEEDED_VERSION,
            f"version {host.landlock} of the kernel; {landlock.NEEDED_VERSION} is needed",
            "" if host.landlock >= landlock.NEEDED_VERSION else NEWER_KERNEL,
        ),
        Mechanism(
            "seccomp",
            host.seccomp,
            "refuses sockets and dangerous calls" if host.seccomp else "not in this kernel, or not for this processor",
            "" if host.seccomp else INSTALL,
        ),
        Mechanism(
            "mounts",
            host.mounts,
            "a process may have its own" if host.mounts else "a process may not have its own",
            "" if host.mounts else NAMESPACES,
        ),
        _describe_cgroups(host),
        Mechanism("rlimits", True, "bound memory, CPU time, open files and the size of files of each process"),
    )


def _describe_bubblewrap(host: HostMechanisms) -> Mechanism:
    if isinstance(host.bubblewrap, Bubblewrap):
        return Mechanism("bubblewrap", True, f"{host.bubblewrap.program} {'.'.join(map(str, host.bubblewrap.version))}")
    return Mechanism("bubblewrap", False, host.bubblewrap, bubblewrap_fix(host.bubblewrap))


def bubblewrap_fix(problem: str) -> str:
    """The fix for a bubblewrap that is missing or does not work."""
    return NAMESPACES if "does not work" in problem else INSTALL


def _describe_cgroups(host: HostMechanisms) -> Mechanism:
    if isinstance(host.cgroups, CgroupParents):
        bound = " and ".join(sorted(host.cgroups.controllers))
        return Mechanism("cgroups", True, f"version {host.cgroups.version}, with {bound}")
    return Mechanism("cgroups", False, host.cgroups, CGROUPS)
