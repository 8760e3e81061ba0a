"""Seccomp: a filter on system calls for confined commands, where no namespaces keep them apart.

Landlock does not cover UDP, nor the unix sockets of the system's services, nor operations on the machine that only root
may do. The filter refuses those calls with EPERM. It is written as BPF instructions: no library is needed.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from errno import EPERM
from typing import Final

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in struct seccomp_data. The low half of an argument comes first on the machines that are known here."""
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | EPERM, 0x80000000
_PR_SET_NO_NEW_PRIVS, _PR_GET_SECCOMP, _PR_SET_SECCOMP, _FILTER = 38, 21, 22, 2
_NETWORK: Final = (2, 10, 16)
"""AF_INET, AF_INET6, and AF_NETLINK, by which resolvers list the addresses of this machine."""
_X32: Final = 0x40000000
"""System calls of 64-bit x86 with 32-bit pointers have numbers from here on: a second name for each."""

_ARCHITECTURES: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_SOCKET: Final = {"x86_64": 41, "aarch64": 198}
_PRLIMIT64: Final = {"x86_64": 302, "aarch64": 261}
_REFUSED: Final = {
    # The numbers from 424 on are the same everywhere: open_tree, move_mount, fsopen, fsconfig, fsmount, fspick,
    # pidfd_getfd, mount_setattr. io_uring (425 to 427) makes sockets without the call that is filtered.
    "both": (428, 429, 430, 431, 432, 433, 438, 442, 425, 426, 427),
    # ptrace, mount, umount2, pivot_root, chroot, unshare, setns, keyctl, add_key, request_key, bpf, userfaultfd,
    # perf_event_open, open_by_handle_at, kexec_load, kexec_file_load, init_module, finit_module, delete_module,
    # process_vm_readv, process_vm_writev, swapon, swapoff, reboot
    "x86_64": (
        *(101, 165, 166, 155, 161, 272, 308, 250, 248, 249, 321, 323),
        *(298, 304, 246, 320, 175, 313, 176, 310, 311, 167, 168, 169),
    ),
    "aarch64": (
        *(117, 40, 39, 41, 51, 97, 268, 219, 217, 218, 280, 282),
        *(241, 265, 104, 294, 105, 273, 106, 270, 271, 224, 225, 142),
    ),
}


_KEYS: Final = {
    0xC000003E: (248, 249, 250, _X32 | 248, _X32 | 249, _X32 | 250),  # x86_64
    0x40000003: (286, 287, 288),  # its 32-bit programs
    0xC00000B7: (217, 218, 219),  # aarch64
    0x40000028: (309, 310, 311),  # its 32-bit programs
}
"""add_key, request_key and keyctl of each architecture."""


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def is_available() -> bool:
    """Whether the kernel has seccomp, and the numbers of system calls are known here."""
    if sys.platform != "linux" or os.uname().machine not in _ARCHITECTURES:
        return False
    return int(ctypes.CDLL(None).prctl(_PR_GET_SECCOMP, 0, 0, 0, 0)) >= 0


def refuse_calls(*, network: bool) -> None:
    """Refuse dangerous calls, and sockets other than a network's, to this process and its children. Raises OSError."""
    instructions = _instructions(os.uname().machine, _NETWORK if network else ())
    program = _Program(len(instructions) // 8, instructions)
    libc = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0)):
        if libc.prctl(*arguments) != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))


def key_filter() -> bytes:
    """A filter that refuses the kernel's keyrings only: no namespace keeps a command from those of the server."""
    lines = [(_LOAD, 0, 0, _ARCHITECTURE)]
    for architecture, numbers in _KEYS.items():
        body = [(_LOAD, 0, 0, _NUMBER)]
        for number in numbers:
            body += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
        body.append((_RETURN, 0, 0, _ALLOW))
        lines += [(_JUMP_EQUAL, 0, len(body), architecture), *body]
    return _assemble([*lines, (_RETURN, 0, 0, _ALLOW)])


def _instructions(machine: str, families: tuple[int, ...]) -> bytes:
    """The filter, 8 bytes an instruction. A pair of sockets (socketpair) reaches no other process and is allowed."""
    refused = _REFUSED["both"] + _REFUSED[machine]
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        lines += [(_JUMP_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _REFUSE)]
    for number in refused:
        lines += [(_JUMP_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE)]
    own_process = (0,)  # a command has no need to limit other processes
    for number, allowed in ((_SOCKET[machine], families), (_PRLIMIT64[machine], own_process)):
        body = [(_LOAD, 0, 0, _FIRST_ARGUMENT)]
        for value in allowed:
            body += [(_JUMP_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
        body.append((_RETURN, 0, 0, _REFUSE))
        lines += [(_JUMP_EQUAL, 0, len(body), number), *body]
    return _assemble([*lines, (_RETURN, 0, 0, _ALLOW)])


def _assemble(lines: list[tuple[int, int, int, int]]) -> bytes:
    return b"".join(struct.pack("HBBI", *line) for line in lines)
