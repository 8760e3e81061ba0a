"""What went wrong with a file, in words for a model: the path as it was given, the problem and what to do."""

from __future__ import annotations

import errno
import os
from typing import Final, Literal

from longshore.errors import ToolError

Kind = Literal[
    "outside",
    "missing",
    "exists",
    "changed",
    "not_a_file",
    "not_a_folder",
    "not_empty",
    "special",
    "denied",
    "read_only",
    "root",
    "into_itself",
    "too_large",
    "no_space",
    "bad_path",
    "link_loop",
    "permission",
    "busy",
    "failed",
]

SHOWN_CHARACTERS: Final = 300
"""Of a path in a message. The model knows what it wrote; a path of 4,000 characters would only cost it tokens."""

_TEXTS: Final[dict[Kind, tuple[str, str]]] = {
    "outside": ("is outside the folders that you may use", "use a path within them"),
    "missing": ("does not exist", "list the folder above it to see what is there"),
    "exists": ("exists already", "choose another name, or say that it may be overwritten"),
    "changed": ("was changed since you read it", "read it again and repeat the change on its present content"),
    "not_a_file": ("is a folder, not a file", "name a file in it, or list it"),
    "not_a_folder": ("is not a folder, or a part of the path is a file", "list the folder above it"),
    "not_empty": ("is a folder that is not empty", "say that everything in it is meant, or empty it first"),
    "special": ("is no ordinary file (a device, pipe, socket or file of the kernel)", "use ordinary files and folders"),
    "denied": ("may not be used: the server's settings deny files of this name", "do without it, or ask the user"),
    "read_only": ("can't be changed: it is read-only here", "write to another folder"),
    "root": (
        "is one of the folders that you may use, which can't itself be moved, replaced or deleted",
        "name what is in it",
    ),
    "into_itself": ("lies within the folder that is to be moved or copied there", "choose a target outside of it"),
    "too_large": ("is too large", "take a part of it"),
    "no_space": ("can't be written: no space is left there; what was there is unchanged", "delete something first"),
    "bad_path": ("is no usable path", "give a path without control characters, at most 255 bytes per name"),
    "link_loop": (
        "goes through too many symbolic links, or one that can't be followed",
        "use the path of the file itself",
    ),
    "permission": ("can't be used: the operating system denies it to this server", "ask the user to allow it"),
    "busy": ("is in use at the moment", "try again"),
    "failed": ("could not be used", "try another path"),
}

_KINDS: Final[dict[int, Kind]] = {
    errno.ENOENT: "missing",
    errno.EEXIST: "exists",
    errno.EISDIR: "not_a_file",
    errno.ENOTDIR: "not_a_folder",
    errno.ENOTEMPTY: "not_empty",
    errno.ENXIO: "special",
    errno.ENODEV: "special",
    errno.EROFS: "read_only",
    errno.ENOSPC: "no_space",
    errno.EDQUOT: "no_space",
    errno.EFBIG: "no_space",
    errno.E2BIG: "too_large",
    errno.ENAMETOOLONG: "bad_path",
    errno.EILSEQ: "bad_path",
    errno.ELOOP: "link_loop",
    errno.EACCES: "permission",
    errno.EPERM: "permission",
    errno.EBUSY: "busy",
    errno.EAGAIN: "busy",
    errno.ETXTBSY: "busy",
    errno.EMFILE: "busy",
    errno.ENFILE: "busy",
}


class FileError(ToolError):
    """A file operation was refused or failed. `path` is the path as the caller wrote it; nothing else is revealed."""

    def __init__(self, path: str, kind: Kind, detail: str = "", fix: str = "") -> None:
        what, usual = _TEXTS[kind]
        self.kind: Kind = kind
        self.path, self.fix = path, fix or usual
        super().__init__(f"{shown(path)} {what}{detail}; {self.fix}")


def file_error(path: str, problem: OSError) -> FileError:
    """What an operating system's error means for the path that was given."""
    kind = _KINDS.get(problem.errno or 0, "failed")
    reason = f" ({os.strerror(problem.errno)})" if kind == "failed" and problem.errno else ""
    return FileError(path, kind, reason)


def shown(path: str) -> str:
    """A path for a message: in quotes, without raw control characters, cut if it is long."""
    cut = path if len(path) <= SHOWN_CHARACTERS else path[: SHOWN_CHARACTERS - 1] + "…"
    return repr(cut)
