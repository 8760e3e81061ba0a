"""The files of a folder that are ingested: beneath the roots, neither ignored nor denied, and their texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import PurePath
from typing import Final, NamedTuple, final

from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.denied import DENIED
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.file_type import SAMPLE_BYTES, detect_type
from longshore.sandbox.gitignore import Globs, Ignores
from longshore.sandbox.path_text import DeniedNames
from longshore.sandbox.roots import is_within
from longshore.sandbox.walking import GIT, Filter, read_rules_above, walk_files

LEFT_OUT: Final = (
    ".contextgraph", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".nox", ".mypy_cache", ".ruff_cache",
    ".pytest_cache", ".hg", ".svn", "site-packages", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "uv.lock",
    "poetry.lock", "Cargo.lock", "*.min.js", "*.min.css", "*.map",
)  # fmt: skip
"""Names of what programs have made, which many projects don't ignore because they commit it or ignore it globally."""


class FileFacts(NamedTuple):
    """The size and times of a file: if they are equal, the file counts as unchanged."""

    size: int
    modified_ns: int
    """When its inode was: an edit changes that, also if the time of the content is set back after it."""


class Content(NamedTuple):
    """The content of a file when it was read."""

    facts: FileFacts
    hash: str
    data: bytes


class Unreadable(Exception):
    """Raised for a file that is not ingested: `reason` is one word or two, as the report counts it."""

    def __init__(self, reason: str, content: Content | None = None) -> None:
        super().__init__(reason)
        self.reason, self.content = reason, content


@final
class SourceTree:
    """The files at and below one path. Stored paths begin at `base`; those outside of it are absolute."""

    def __init__(
        self, files: ConfinedFiles, path: str, base: str, include: Sequence[str], exclude: Sequence[str]
    ) -> None:
        """Raises FileError for globs that can't be read, and for a path outside of the roots."""
        self._files, self._base = files, base
        self._include, self._exclude = Globs(include), Globs(exclude)
        self.real_path = files.real_path(path)
        try:
            kind = files.status(path).kind
        except FileError as problem:
            if problem.kind != "missing":
                raise
            kind = None
        if kind not in (None, "file", "folder"):
            raise FileError(path, "special")
        if DeniedNames(DENIED).match(self.stored(self.real_path)):
            raise FileError(path, "denied")
        self.exists, self._is_folder = kind is not None, kind == "folder"
        self.is_ignored = self.exists and self._is_passed_over()

    def stored(self, real: str) -> str:
        """The path under which a file is stored."""
        return os.path.relpath(real, self._base) if is_within(real, self._base) else real

    def walk(self) -> Iterator[tuple[str, FileFacts]]:
        """The files, sorted: stored path and facts. Links and special files are left out and never opened."""
        if not self.exists or self.is_ignored:
            return
        if not self._is_folder:
            status = self._files.status(self.real_path).status
            yield self.stored(self.real_path), FileFacts(status.st_size, status.st_ctime_ns)
            return
        with self._files.open_folder(self.real_path) as folder:
            ignores = Ignores.from_above(read_rules_above(self._files, folder))
            seen = Filter(ignores, self._include, self._denies(folder.relative))
            prefix = self._prefix()
            for path, name, holder in walk_files(folder.descriptor, seen):
                if self._exclude and self._exclude.match(path):
                    continue
                try:
                    status = os.lstat(name, dir_fd=holder)
                except OSError:
                    continue  # deleted meanwhile
                yield prefix + path, FileFacts(status.st_size, status.st_ctime_ns)

    def covers(self, stored: str) -> bool:
        """Whether the tree and the globs include a stored path, even one that does not exist now."""
        if not self._is_folder and (stored == self.stored(self.real_path) or self.exists):
            return stored == self.stored(self.real_path)
        prefix = self._prefix()
        if not stored.startswith(prefix) or (not prefix and os.path.isabs(stored)):
            return False
        path = stored[len(prefix) :]
        wanted = not self._include or self._include.match(path)
        return wanted and not (self._exclude and self._exclude.match(path))

    def read(self, stored: str, most: int) -> Content:
        """A file's content. Raises Unreadable."""
        try:
            with self._files.open_file(os.path.join(self._base, stored), most) as file:
                before = os.fstat(file.fileno())
                data = file.read(most + 1)
                after = os.fstat(file.fileno())
        except FileError as problem:
            raise Unreadable(_REASONS.get(problem.kind, "unreadable")) from None
        except OSError:
            raise Unreadable("unreadable") from None
        facts = FileFacts(after.st_size, after.st_ctime_ns)
        if facts != (before.st_size, before.st_ctime_ns) or len(data) != after.st_size:
            raise Unreadable("changed meanwhile")
        return Content(facts, sha256(data).hexdigest(), data)

    def _is_passed_over(self) -> bool:
        """Whether a walk of the root skips the path: it or a folder above it is ignored."""
        path, is_folder = PurePath(self.real_path), self._is_folder
        for entry in (path, *path.parents):
            if str(entry) in self._files.roots.folders:
                break
            with self._files.open_folder(str(entry.parent)) as folder:
                ignores = Ignores.from_above(read_rules_above(self._files, folder))
                seen = Filter(ignores, Globs(()), self._denies(folder.relative)).enter(folder.descriptor, "")
                if entry.name == GIT or seen.hides(entry.name, "folder" if is_folder else "file"):
                    return True
            is_folder = True
        return False

    def _prefix(self) -> str:
        path = self.stored(self.real_path)
        return "" if path == "." else path.rstrip("/") + "/"

    def _denies(self, relative: str) -> Callable[[str], bool]:
        ours, theirs = DeniedNames((*DENIED, *LEFT_OUT)).match, self._files.denied_in(relative)
        return lambda path: ours(path) or theirs(path)


_REASONS: Final = {"missing": "vanished", "too_large": "too large", "permission": "unreadable", "denied": "denied"}


def decode(content: Content) -> str:
    """The text of a file, its lines ended by line feeds. Raises Unreadable."""
    found = detect_type(content.data[:SAMPLE_BYTES]).text
    if found is None:
        raise Unreadable("binary", content)
    if found.encoding == "cp1252":
        raise Unreadable("not UTF-8", content)
    try:
        text = content.data[len(found.bom) :].decode(found.encoding)
    except UnicodeDecodeError:
        raise Unreadable("not UTF-8", content) from None
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
