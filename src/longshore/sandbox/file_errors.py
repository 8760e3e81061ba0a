"""The failure of a file operation, in words for a model: the path as it was given, the problem and what to do."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, Literal, Self

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
    "binary",  # `mime`, `size`
    "invalid",  # the request makes no sense for any file
    # of a text
    "ambiguous",  # `lines` and `count`: where the text to replace was found
    "beyond_end",  # `size`, and for lines `total_lines`
    "encoding",  # `encoding`, `character`
    "no_match",  # `line`: where the nearest place begins, or None
    "overlapping",  # `lines`: where the first two matches that overlap begin
]
"""The problems, and the figures that come with them."""

SHOWN_CHARACTERS: Final = 300
"""Of a path in a message. The model knows what it wrote; a path of 4,000 characters would only cost it tokens."""

_TEXTS: Final[dict[Kind, tuple[str, str]]] = {
    "outside": ("is outside the folders that you may use", "use a path within them"),
    "missing": ("does not exist", "list the folder above it to see what is there"),
    "exists": ("exists already", "choose another name, or set overwrite"),
    "changed": ("was changed since you read it", "read it again and repeat the change on its present content"),
    "not_a_file": ("is a folder, not a file", "name a file in it, or list it"),
    "not_a_folder": ("is not a folder, or a part of the path is a file", "list the folder above it"),
    "not_empty": ("is a folder that is not empty", "empty it first, or choose another name"),
    "special": ("is no ordinary file (a device, pipe, socket or file of the kernel)", "use ordinary files and folders"),
    "denied": ("may not be used: the server's settings deny it", "do without it, or ask the user"),
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
    "binary": ("is no text but", "use a text file"),
}
"""The problem, optionally followed by a detail, and the usual fix. For other codes the detail says everything."""

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
    """A file operation was refused or failed. `path` is the path as the caller wrote it; no other path is revealed.

    Code that works on open files does not know the path: it is empty until `at` sets it. `facts` has the
    figures.
    """

    def __init__(self, path: str, kind: Kind, detail: str = "", fix: str = "", **facts: Any) -> None:
        self.kind: Kind = kind
        self.path, self.detail, self.facts = path, detail, facts
        self.fix = fix or _TEXTS.get(kind, ("", ""))[1]
        super().__init__(str(self))

    def at(self, path: str) -> Self:
        """The same error with this path, unless it has one or the request is invalid for every file."""
        if self.kind != "invalid":
            self.path = self.path or path
        return self

    def __str__(self) -> str:
        """The text for a model."""
        if self.kind in _TEXTS:
            text = f"{shown(self.path) if self.path else 'it'} {_TEXTS[self.kind][0]}{self.detail}"
        else:
            text = f"{shown(self.path)}: {self.detail}" if self.path else self.detail
        return f"{text}; {self.fix}" if self.fix else text


def too_large(size: int, most: int, instead: str = "read it in parts with fs_read") -> FileError:
    """The error of a file over the limit, which is not read whole."""
    what = f": {size:,} bytes, more than the limit of {most:,} (max_file_size)"
    fix = f"{instead}, or ask the user to raise the limit"
    return FileError("", "too_large", what, fix, size=size, most=most)


def file_error(path: str, problem: OSError) -> FileError:
    """The meaning of an operating system's error for the path that was given."""
    kind = _KINDS.get(problem.errno or 0, "failed")
    reason = f" ({os.strerror(problem.errno)})" if kind == "failed" and problem.errno else ""
    return FileError(path, kind, reason)


@contextmanager
def explain(path: str) -> Generator[None]:
    """Turn an OSError into the FileError of the given path, and set the path of a FileError without one."""
    try:
        yield
    except FileError as problem:
        problem.at(path)
        raise
    except OSError as problem:
        raise file_error(path, problem) from None


def shown(path: str) -> str:
    """A path for a message: in quotes, without raw control characters, cut if it is long."""
    cut = path if len(path) <= SHOWN_CHARACTERS else path[: SHOWN_CHARACTERS - 1] + "…"
    return repr(cut)
