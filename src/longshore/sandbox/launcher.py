"""The process that runs a command where bubblewrap is absent, or where it is only limited: python -c RUN FD.

It reads its plan from a descriptor, starts the command confined and waits for it. It is the subreaper of all that the
command starts, and holds the read end of a pipe whose write end only the server has: at the command's end, or when the
pipe closes because the server closed it or was killed, it kills everything that is left.

It runs without site-packages, on the standard library alone.
"""

from __future__ import annotations

import ctypes
import errno
import marshal
import os
import resource
import select
import signal
import sys
from typing import Any, Final

from longshore.sandbox import landlock, mounts, seccomp
from longshore.sandbox.descendants import adopt, descendants, end_all, signal_on_parent_death

RUN: Final = "import sys; sys.path.insert(0, sys.argv[1]); from longshore.sandbox.launcher import main; main()"
"""The program, with two arguments: the folder that holds the package, and the descriptor of the plan."""
NOT_STARTED: Final = 126
"""Exit code if the command could not be confined or run; of a missing program it is 127, as in a shell."""
KILL_ATTEMPTS: Final = 20
"""Of 0.2 seconds each, on what the command left behind. Only a tree that keeps forking needs more than one."""
_PR_CAPBSET_DROP: Final = 24
_FORWARDED: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
Plan = dict[str, Any]
"""argv, env, cwd, terminal, lifeline (a descriptor), rlimits, members (of cgroups), temporary (a folder to delete).

If the command is to be confined, also readable and writable paths, the writable folders, and whether it has a network.
"""


def main() -> None:
    """Run the command of the plan and exit as it does, with 128 + n after signal n."""
    with open(int(sys.argv[2]), "rb") as file:
        plan: Plan = marshal.load(file)  # noqa: S302 - written by the server; as data it needs no import of a parser
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for signum in (signal.SIGCHLD, *_FORWARDED):
        signal.signal(signum, _wake)
    adopt()
    os.set_inheritable(plan["lifeline"], False)
    command = os.fork()
    if command == 0:
        _become_command(plan)
    code = _wait(command, woken, plan["lifeline"])
    _kill_rest(plan["members"])
    if code is None:
        _delete_folders(plan)
    os._exit(128 + signal.SIGKILL if code is None else code)


def _kill_rest(members: list[str]) -> None:
    """Kill all that the command left behind. In a cgroup, those that are left can start no others meanwhile."""
    for path in members:
        try:
            _write(os.path.join(os.path.dirname(path), "pids.max"), "0")
        except OSError:  # the server has deleted the group, or the controller differs
            pass
    for _ in range(KILL_ATTEMPTS):
        end_all(0.0)
        if not descendants():
            break


def _delete_folders(plan: Plan) -> None:
    """Delete the cgroup and the folder for temporary files. The server does it, if it can."""
    for path in plan["members"]:
        try:
            os.rmdir(os.path.dirname(path))
        except OSError:
            pass
    if plan["temporary"]:
        import shutil

        shutil.rmtree(plan["temporary"], ignore_errors=True)


def _wake(signum: int, frame: object) -> None:
    """Do nothing: the number of the signal is in the pipe. Unlike ignored signals, handlers end at exec."""


def _wait(command: int, woken: int, lifeline: int) -> int | None:
    """Wait for the command's end, forwarding signals to it. None if the server has closed the pipe or ended."""
    polled = select.poll()
    polled.register(woken, select.POLLIN)
    polled.register(lifeline, select.POLLIN)
    while True:
        ready = {descriptor for descriptor, _ in polled.poll()}
        for signum in os.read(woken, 512) if woken in ready else b"":
            if signum in _FORWARDED:
                _signal_group(command, signum)
        while (ended := _reap()) is not None:
            if ended[0] == command:
                code = os.waitstatus_to_exitcode(ended[1])
                return code if code >= 0 else 128 - code
        if lifeline in ready:
            return None


def _reap() -> tuple[int, int] | None:
    try:
        ended = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return ended if ended[0] else None


def _signal_group(command: int, signum: int) -> None:
    try:
        os.killpg(command, signum)
    except OSError:
        pass


def _become_command(plan: Plan) -> None:
    """Confine this process and run the command in it. Never returns."""
    try:
        _prepare(plan)
        if "readable" in plan:
            mounts.keep_writable(plan["folders"])
            _drop_capabilities()
            landlock.restrict(plan["readable"], plan["writable"], network=plan["network"])
            seccomp.refuse_calls(network=plan["network"])
        os.chdir(plan["cwd"])
        os.execvpe(plan["argv"][0], plan["argv"], plan["env"])  # noqa: S606
    except OSError as problem:
        print(f"{plan['argv'][0]}: {problem.strerror}", file=sys.stderr, flush=True)
        os._exit(127 if problem.errno == errno.ENOENT else NOT_STARTED)
    except BaseException as problem:
        print(f"{plan['argv'][0]} was not started: {problem}", file=sys.stderr, flush=True)
    os._exit(NOT_STARTED)


def _prepare(plan: Plan) -> None:
    """A session of its own, with the terminal if there is one, in the cgroup and within the limits."""
    signal.set_wakeup_fd(-1)
    for signum in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the command would inherit that
        signal.signal(signum, signal.SIG_DFL)
    signal_on_parent_death(signal.SIGKILL)
    os.setsid()
    if plan["terminal"]:
        import fcntl
        import termios

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for path in plan["members"]:
        _write(path, "0")
    for kind, limit in plan["rlimits"]:
        resource.setrlimit(kind, (limit, limit))


def _write(path: str, text: str) -> None:
    with open(path, "r+", encoding="ascii") as file:  # this folder must exist
        file.write(text)


def _drop_capabilities() -> None:
    """Take every capability from the command, also if root runs it."""
    libc = ctypes.CDLL(None, use_errno=True)
    capability = 0
    while libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0) == 0:
        capability += 1
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # the third version, of this process
    none = (ctypes.c_uint32 * 6)()
    if libc.capset(ctypes.byref(header), ctypes.byref(none)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
