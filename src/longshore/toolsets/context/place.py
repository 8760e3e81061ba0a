"""The place of a project's context graph: the configured database, else a file in the project's folder."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from longshore.errors import StoreError
from longshore.files import user_directory
from longshore.sandbox.file_errors import FileError
from longshore.sandbox.path_text import absolute_text
from longshore.sandbox.roots import is_within

FOLDER: Final = ".contextgraph"
FILE: Final = "context.db"
PROJECT_FILES: Final = (
    ".git", ".hg", "pyproject.toml", "setup.py", "package.json", "Cargo.toml", "go.mod", "pom.xml", "build.gradle",
    "build.gradle.kts", "Gemfile", "composer.json", "mix.exs", "CMakeLists.txt", "deno.json", "longshore.toml",
)  # fmt: skip
"""Names that the top folder of a project has."""


_SQLITE_NAME: Final = re.compile(r"(.*/)?(:memory:|file:.*)", re.DOTALL)
"""Also after the working directory, which a relative path is given."""
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def is_address(place: str) -> bool:
    """Whether a place is the address of a PostgreSQL server, not a file. Raises StoreError for other addresses."""
    if place.startswith(("postgresql://", "postgres://")):
        return True
    if scheme := _SCHEME.match(place):
        what = "that is no address of PostgreSQL, and no file"
        raise StoreError(f"{scheme[0]}…", what, "name a file, or postgresql://USER@HOST/DATABASE")
    return False


class Place(Struct, frozen=True, kw_only=True):
    """A context graph's database and project."""

    address: str
    """A file, or the address of a server."""
    project: str
    """The folder that the paths of nodes start from."""
    why: str = ""
    """Why it is there, if the project has no folder for it."""

    def stored_path(self, given: str, first_root: str) -> str:
        """A path as nodes have it: relative to the project, or absolute outside of it; empty for the project itself.

        It is read as `ingest_path` reads it. A text that can't be a path, such as an address, is returned unchanged.
        """
        if not given or "://" in given:
            return given
        try:
            real = os.path.realpath(absolute_text(given, first_root))
        except (FileError, ValueError):
            return given
        path = os.path.relpath(real, self.project) if self.project and is_within(real, self.project) else real
        return "" if path == "." else path


def find_place(configured: str, roots: Sequence[str], environ: Mapping[str, str] | None = None) -> Place:
    """The configured place, else one in the first root's project, else in the state directory. Raises StoreError."""
    project = find_project(roots[0], environ) if roots else None
    top = project or (roots[0] if roots else "")
    if configured:
        is_address(configured)  # raises for paths that can't be opened
        if _SQLITE_NAME.fullmatch(configured):
            what = "it is SQLite's name for a memory that ends with the process, or for options of a file"
            raise StoreError(configured, what, "name a file by its path")
        return Place(address=configured, project=top)
    if project is not None:
        return Place(address=_own_file(project), project=project)
    state = user_directory("state", environ)
    if state is None:
        what = "there is no project here, and the user has no home"
        raise StoreError("of the context", what, "name a file in CONTEXTGRAPH_DB")
    name = f"{os.path.basename(top) or 'none'}-{blake2b(top.encode(errors='replace'), digest_size=4).hexdigest()}.db"
    why = f"{top or 'the server'} is in no project, which would have a .git or a file such as pyproject.toml"
    return Place(address=os.path.join(state, "context", name), project=top, why=why)


def find_project(root: str, environ: Mapping[str, str] | None = None) -> str | None:
    """The nearest folder at or above one that has a project's file; never the home folder or one above it."""
    home = os.path.realpath(os.path.expanduser("~") if environ is None else environ.get("HOME") or os.sep)
    folder = os.path.realpath(root)
    while not is_within(home, folder):
        if any(os.path.lexists(os.path.join(folder, name)) for name in PROJECT_FILES):
            return folder
        folder = os.path.dirname(folder)
    return None


def _own_file(project: str) -> str:
    """The file in the project's folder. Raises StoreError for a link, which may come from a cloned repository."""
    path = os.path.join(project, FOLDER, FILE)
    if os.path.realpath(path) != path:
        raise StoreError(
            path, "it is a link to another place", "remove the link, or name that place in CONTEXTGRAPH_DB"
        )
    return path


def strange_mode(address: str) -> str:
    """The warning for a file that others may read, unlike those that Longshore creates; else empty."""
    try:
        mode = 0 if is_address(address) else stat.S_IMODE(os.stat(address).st_mode)
    except OSError:
        return ""
    if not mode & 0o077:
        return ""
    what = f"Others may read the file (mode {mode:o}), and none that Longshore makes"
    return f"{what}: if a clone or an archive has brought it, its texts and labels are no truer than that."


def keep_out_of_git(address: str) -> None:
    """Create the folder of a project's own file, and let git ignore it. Raises StoreError."""
    folder = os.path.dirname(address)
    if os.path.basename(folder) != FOLDER:
        return
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        with open(os.path.join(folder, ".gitignore"), "x", encoding="utf-8") as file:
            file.write("*\n")
    except FileExistsError:
        pass
    except OSError as problem:
        what = f"its folder can't be made ({problem.strerror})"
        raise StoreError(address, what, "mend that, or name another file in CONTEXTGRAPH_DB") from None
