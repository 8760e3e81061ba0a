"""System calls that Python 3.11 has no function for: openat2, statx, an exclusive rename, the type of a file system."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from functools import cache
from struct import Struct
from typing import Final

RESOLVE_NO_MAGICLINKS: Final = 0x02
RESOLVE_NO_SYMLINKS: Final = 0x04
RESOLVE_BENEATH: Final = 0x08
RESOLVE_CACHED: Final = 0x20
"""Raise EAGAIN where a name is not in the kernel's memory (Linux 5.12)."""
AT_FDCWD: Final = -100
FREE_DEVICES: Final = 0xFFFFFFFF
"""The devices up to this are file systems without a disk: a number is used again when one was unmounted."""

_AT_EMPTY_PATH: Final = 0x1000
_AT_STATX_DONT_SYNC: Final = 0x4000
_STATX_BASIC: Final = 0x7FF
_STATX_ATTR_MOUNT_ROOT: Final = 0x2000
_OPENAT2: Final = 437  # the same number on every architecture that Python runs on
_RENAME_NOREPLACE: Final = 1
_RENAME_EXCL: Final = 4  # macOS
_KERNEL_FILE_SYSTEMS: Final = {
    0x9FA0: b"proc",  # /proc/self/environ holds the server's own secrets
    0x62656572: b"sysfs",
    0x64626720: b"debugfs",
    0x74726163: b"tracefs",  # reading trace_pipe waits for events
    0x73636673: b"securityfs",
    0x27E0EB: b"cgroup",
    0x63677270: b"cgroup2",
}
_LOCAL_FILE_SYSTEMS: Final = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # xfs
        0x9123683E,  # btrfs
        0xF2F52010,  # f2fs
        0xCA451A4E,  # bcachefs
        0x2FC12FC1,  # zfs
        0x01021994,  # tmpfs
        0x794C7630,  # overlay: of containers
    }
)
_ENCODING: Final = sys.getfilesystemencoding()
_ENCODING_ERRORS: Final = sys.getfilesystemencodeerrors()
_Statx: Final = ctypes.c_char * 256
_STATX_FIELDS: Final = Struct("=8x Q 12x H 10x Q 88x I I")  # attributes, mode, size, major and minor device
_Statfs: Final = ctypes.c_long * 64  # struct statfs begins with the type and is smaller than this everywhere


class _OpenHow(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.syscall.restype = ctypes.c_long
    # openat2 is the only one that is called by its number. Types that are known are not found out at each call.
    library.syscall.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_long)
    return library


@cache
def _open_how(flags: int, resolve: int) -> tuple[object, int]:
    """The last two arguments of openat2."""
    how = _OpenHow(flags | os.O_CLOEXEC, 0, resolve)
    return ctypes.byref(how), ctypes.sizeof(how)


def openat2(folder: int, path: str, flags: int, resolve: int) -> int:
    """Open a path below a directory descriptor as `resolve` allows. Raises OSError."""
    how, size = _open_how(flags, resolve)
    encoded = path.encode(_ENCODING, _ENCODING_ERRORS)  # as os.fsencode does
    descriptor: int = _libc().syscall(_OPENAT2, folder, encoded, how, size)
    if descriptor < 0:
        raise _last_error()
    return descriptor


def reopen(descriptor: int, flags: int) -> int:
    """Open the file of an O_PATH descriptor, whatever its path means by now. Raises OSError."""
    return os.open(str(descriptor), flags, dir_fd=_own_descriptors())


@cache
def _own_descriptors() -> int:
    """The folder of this process's descriptors.

    From here the kernel looks up one name, and from the root four, one of them a link: 3 µs instead of 4.
    """
    return os.open("/proc/self/fd", getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_CLOEXEC)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_own_descriptors.cache_clear)  # it shows the descriptors of the parent


def read_cached_status(descriptor: int) -> tuple[int, int, int, bool]:
    """The mode, size and device of an open file, and whether it is itself a mount point. Raises OSError.

    They are what the kernel has in memory: no disk and no other machine is asked. The device is at most FREE_DEVICES if
    its number belongs to no disk.
    """
    found = _Statx()
    if _libc().statx(descriptor, b"", _AT_EMPTY_PATH | _AT_STATX_DONT_SYNC, _STATX_BASIC, found) != 0:
        raise _last_error()
    attributes, mode, size, major, minor = _STATX_FIELDS.unpack_from(found)
    return mode, size, major << 32 | minor, attributes & _STATX_ATTR_MOUNT_ROOT != 0


@cache
def has_openat2() -> bool:
    """Whether openat2 works here, and /proc tells the path of a descriptor.

    Old kernels, seccomp filters and macOS have no openat2.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        descriptor = openat2(AT_FDCWD, "/", os.O_PATH | os.O_DIRECTORY, RESOLVE_NO_SYMLINKS)
    except OSError:
        return False
    try:
        return descriptor_path(descriptor) == "/"
    except OSError:
        return False
    finally:
        os.close(descriptor)


@cache
def has_cached_open() -> bool:
    """Whether openat2 can be limited to names in memory, and files read and looked at without waiting."""
    if not has_openat2() or not hasattr(os, "RWF_NOWAIT") or not hasattr(_libc(), "statx"):
        return False
    try:
        os.close(openat2(AT_FDCWD, "/", os.O_PATH | os.O_DIRECTORY, RESOLVE_NO_SYMLINKS | RESOLVE_CACHED))
    except OSError as problem:
        return problem.errno == errno.EAGAIN
    return True


def descriptor_path(descriptor: int) -> str:
    """The real path of an open file, on Linux. Raises OSError where /proc is not mounted."""
    return os.readlink(f"/proc/self/fd/{descriptor}")


def is_kernel_file(descriptor: int) -> bool:
    """Whether an open file is generated by the kernel, such as all of /proc."""
    return sys.platform.startswith("linux") and _file_system_type(descriptor) in _KERNEL_FILE_SYSTEMS


def is_on_local_disk(descriptor: int) -> bool:
    """Whether an open file is on a file system of this machine's own disks (or memory), on Linux.

    Others ask another machine or process whenever a file is opened, in spite of caches.
    """
    return _file_system_type(descriptor) in _LOCAL_FILE_SYSTEMS


def _file_system_type(descriptor: int) -> int:
    """The number of the type of file system that an open file is on, on Linux. Raises OSError."""
    status = _Statfs()
    if _libc().fstatfs(descriptor, ctypes.byref(status)) != 0:
        raise _last_error()
    return int(status[0]) & 0xFFFFFFFF


def holds_kernel_files(folder: int) -> bool:
    """Whether a file system of the kernel's own is mounted somewhere below an open folder, on Linux.

    Raises OSError where /proc is not mounted.
    """
    path = os.fsencode(descriptor_path(folder)).rstrip(b"/") + b"/"
    with open("/proc/self/mountinfo", "rb") as file:
        # … the mount point is the fifth field, where spaces are escaped; after " - " comes the type.
        mounts = [line.partition(b" - ") for line in file]
    points = [head.split()[4] for head, _, tail in mounts if tail.split()[0] in _KERNEL_FILE_SYSTEMS.values()]
    return any(point.replace(b"\\040", b" ").startswith(path) for point in points)


def rename_exclusive(source: str, target: str, source_folder: int, target_folder: int) -> None:
    """Rename unless the target exists. Raises OSError, FileExistsError if it does."""
    try:
        _rename_by_kernel(source, target, source_folder, target_folder)
    except OSError as problem:
        if problem.errno not in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
            raise
        rename_by_link(source, target, source_folder, target_folder)


def _rename_by_kernel(source: str, target: str, source_folder: int, target_folder: int) -> None:
    name, flag = ("renameatx_np", _RENAME_EXCL) if sys.platform == "darwin" else ("renameat2", _RENAME_NOREPLACE)
    function = getattr(_libc(), name, None)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    paths = (ctypes.c_char_p(os.fsencode(source)), ctypes.c_char_p(os.fsencode(target)))
    if function(ctypes.c_int(source_folder), paths[0], ctypes.c_int(target_folder), paths[1], ctypes.c_uint(flag)):
        raise _last_error()


def rename_by_link(source: str, target: str, source_folder: int, target_folder: int) -> None:
    """Rename unless the target exists, on file systems without an exclusive rename."""
    try:
        os.link(source, target, src_dir_fd=source_folder, dst_dir_fd=target_folder, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError:  # a folder, or a file system without hard links: a check before the rename is the only way
        try:
            os.lstat(target, dir_fd=target_folder)
        except FileNotFoundError:
            os.rename(source, target, src_dir_fd=source_folder, dst_dir_fd=target_folder)
            return
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST)) from None
    os.unlink(source, dir_fd=source_folder)


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
