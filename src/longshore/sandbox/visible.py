"""The paths that a confined command sees: the roots, the system's programs, the toolchains on PATH, and no user data.

The server may run as root, for which file modes mean nothing. So no file is visible that may hold a secret: of /etc
only some files, of the home folder only folders where version managers install programs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from glob import escape, iglob
from itertools import islice
from typing import Final

from msgspec import Struct

from longshore.files import read_regular
from longshore.sandbox.roots import is_in, is_within, leads_through

SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store", "/run/current-system")
ETC: Final = (
    *("alternatives", "crypto-policies", "fonts", "group", "hosts", "java*", "ld.so.cache", "locale.conf", "localtime"),
    *("mime.types", "nsswitch.conf", "os-release", "passwd", "pki/ca-trust/extracted", "pki/tls/certs", "protocols"),
    *("resolv.conf", "services", "ssl/certs", "ssl/openssl.cnf"),
)
"""Each file is a mount for each command, 0.13 ms. So only what programs need is here."""
TOOLCHAINS: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("PYENV_ROOT", ".pyenv", ()),
    ("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python", ()),
    ("UV_TOOL_DIR", ".local/share/uv/tools", ()),
    ("PIPX_HOME", ".local/share/pipx", ()),
    ("NVM_DIR", ".nvm", ()),
    ("FNM_DIR", ".local/share/fnm", ()),
    ("VOLTA_HOME", ".volta", ()),
    ("PNPM_HOME", ".local/share/pnpm", ()),
    ("BUN_INSTALL", ".bun", ("bin", "install")),
    ("DENO_INSTALL", ".deno", ("bin",)),
    ("CARGO_HOME", ".cargo", ("bin", "registry", "git")),
    ("RUSTUP_HOME", ".rustup", ()),
    ("GOPATH", "go", ("bin", "pkg")),
    ("RBENV_ROOT", ".rbenv", ()),
    ("ASDF_DATA_DIR", ".asdf", ()),
    ("MISE_DATA_DIR", ".local/share/mise", ()),
    ("SDKMAN_DIR", ".sdkman", ("candidates",)),
    ("JAVA_HOME", "", ()),
    ("GOROOT", "", ()),
    ("", ".local", ("bin", "lib")),
    ("", ".m2", ("repository",)),
    ("", ".tool-versions", ()),
)
"""A variable, the usual folder in the home folder, and its folders that are shown: in the others may be credentials."""
SETTINGS_BYTES: Final = 1 << 16
"""Read of a pyvenv.cfg, which has five lines."""
MOST_FOLDERS: Final = 500
"""Looked at in each root for virtual environments."""
MOST_CACHED: Final = 32
"""Sets of roots whose visible paths are known. A server has one, and those that clients narrow it to."""
MOST_LINKED: Final = 40
"""Single programs outside of every toolchain that links on PATH lead to. Each is a mount, for each command."""
_INSTALLED: Final = ("lib", "lib64", "libexec", "pkg")
_VERSIONS: Final = ("versions", "installs")
"""Where version managers, whose folder of programs is called shims, install what those start: pyenv and rbenv, asdf."""
_PYTHON_PARTS: Final = ("bin", "lib", "lib64", "include", "pyvenv.cfg")
_PYTHON = re.compile(r"(python|pypy)[0-9.]*t?")
_UNSEARCHED: Final = frozenset({"node_modules", ".git", "__pycache__"})


class Visible(Struct, frozen=True):
    """The paths of the machine, besides the roots, that are visible to a command."""

    paths: tuple[str, ...]
    """Real paths, read-only."""
    links: tuple[tuple[str, str], ...]
    """A symbolic link, such as /bin, and the real path that it leads to."""


class VisiblePaths:
    """Finds the visible paths. Toolchains are looked for once for each set of roots."""

    def __init__(self, environ: Mapping[str, str], read_paths: Sequence[str] = ()) -> None:
        self._environ, self._read_paths = environ, read_paths
        self._home = environ.get("HOME", "") or "/nonexistent"
        self._programs = dict[tuple[str, ...], _Paths]()
        self._found = dict[tuple[tuple[str, int], ...], Visible]()

    def find(self, roots: Sequence[str]) -> Visible:
        """The visible paths. Virtual environments are looked for again when a root has changed."""
        key = tuple((root, os.stat(root).st_mtime_ns) for root in roots)
        found = self._found.get(key)
        if found is None:
            for cached in (self._found, self._programs):
                if len(cached) >= MOST_CACHED:
                    cached.clear()
            found = self._found[key] = self._find(tuple(roots))
        return found

    def _find(self, roots: tuple[str, ...]) -> Visible:
        if roots not in self._programs:
            self._programs[roots] = self._find_programs(roots)
        paths = self._programs[roots].copy()
        for root in roots:
            for program in _virtual_environment_pythons(root):
                for part in _python_installation(program):
                    paths.show(part)
        return paths.visible()

    def _find_programs(self, roots: tuple[str, ...]) -> _Paths:
        paths = _Paths(roots)
        etc = (found for name in ETC for found in iglob(os.path.join("/etc", name)))
        for path in (*SYSTEM, *etc, *self._read_paths, *self._managed()):
            paths.show(path)
        listed = self._environ.get("PATH", "").split(":")
        folders = [path for path in listed if os.path.isabs(path) and not self._holds_home(path)]
        for folder in folders:
            paths.show(self._toolchain(folder))
        linked = (path for folder in folders for path in _linked_programs(folder, paths.has, roots))
        for path in islice(linked, MOST_LINKED):
            toolchain = self._toolchain(os.path.dirname(path))
            paths.show(path if toolchain == os.path.dirname(path) else toolchain)
        return paths

    def _managed(self) -> Iterator[str]:
        """Folders in which version managers install programs."""
        for variable, usual, parts in TOOLCHAINS:
            folder = self._environ.get(variable, "") or (usual and os.path.join(self._home, usual))
            if os.path.isabs(folder) and not self._holds_home(folder):
                yield from (os.path.join(folder, part) for part in parts) if parts else (folder,)

    def _toolchain(self, programs: str) -> str:
        """The folder that a folder of programs belongs to, if it looks like an installation; else the folder itself."""
        parts = programs.split("/")
        if parts[1:2] == ["opt"] and len(parts) > 2:
            return "/".join(parts[:3])
        folder = os.path.dirname(programs)
        if os.path.basename(programs) == "shims" and any(os.path.isdir(os.path.join(folder, n)) for n in _VERSIONS):
            return folder if not self._holds_home(folder) else programs
        if os.path.basename(programs) not in ("bin", "sbin", "condabin") or self._holds_home(folder):
            return programs
        if folder == os.path.join(self._home, ".local") or os.path.exists(os.path.join(folder, ".git")):
            return programs
        return folder if any(os.path.isdir(os.path.join(folder, name)) for name in _INSTALLED) else programs

    def _holds_home(self, folder: str) -> bool:
        return is_within(os.path.realpath(self._home), os.path.realpath(folder))


class _Paths:
    """Visible real paths, and links to them. In the roots everything is visible anyway."""

    def __init__(
        self, roots: tuple[str, ...], paths: Iterable[str] = (), links: Iterable[tuple[str, str]] = ()
    ) -> None:
        self._roots = roots
        self._paths = set(paths)
        self._links = dict(links)

    def copy(self) -> _Paths:
        return _Paths(self._roots, self._paths, self._links.items())

    def has(self, path: str) -> bool:
        return is_in(path, self._paths) or is_in(path, self._links)

    def show(self, path: str) -> None:
        """Make the target of a path visible, and if it is another path, a link to it.

        Does nothing if it doesn't exist, or if it leads through a root, where commands can write links to anything.
        """
        path = os.path.normpath(path)
        real = os.path.realpath(path)
        if real == "/" or not os.path.exists(real) or leads_through(path, self._roots):
            return
        if not self.has(real):
            self._paths.add(real)
        if not self.has(path):
            self._links[path] = real

    def visible(self) -> Visible:
        """All visible paths that are not inside another path or link."""
        paths = sorted(path for path in self._paths if not is_in(path, self._paths - {path}))
        links = sorted(link for link in self._links if not is_in(link, self._links.keys() - {link}))
        return Visible(tuple(paths), tuple((link, self._links[link]) for link in links))


def _linked_programs(folder: str, is_shown: Callable[[str], bool], roots: Sequence[str]) -> Iterator[str]:
    """Programs not yet shown that links in a folder of programs lead to, but not through a root."""
    try:
        with os.scandir(folder) as entries:
            links = sorted(entry.path for entry in entries if entry.is_symlink())
    except OSError:
        return
    for link in links:
        path = os.path.realpath(link)
        if not is_shown(path) and not leads_through(link, roots) and os.path.isfile(path) and os.access(path, os.X_OK):
            yield path


def _virtual_environment_pythons(root: str) -> Iterator[str]:
    """The programs outside of a root that Python's virtual environments in it start with, and those on the way."""
    for folder in islice(_folders(root), MOST_FOLDERS):
        try:
            text, _ = read_regular(os.path.join(folder, "pyvenv.cfg"), SETTINGS_BYTES)  # never waits for a pipe
        except OSError:
            continue
        settings = dict(_setting(line) for line in text.decode(errors="replace").splitlines())
        home = settings.get("home", "")
        if os.path.isabs(home) and "\0" not in home:
            yield os.path.join(home, "python3")
        for link in iglob(os.path.join(escape(folder), "bin", "python*")):
            for _ in range(40):  # as many links as Linux follows
                if not os.path.islink(link):
                    break
                link = os.path.normpath(os.path.join(os.path.dirname(link), os.readlink(link)))
                yield link


def _setting(line: str) -> tuple[str, str]:
    key, _, value = line.partition("=")
    return key.strip(), value.strip()


def _folders(root: str) -> Iterator[str]:
    """A root, the folders in it and those in them."""
    yield root
    for folder in _subfolders(root):
        yield folder
        yield from _subfolders(folder)


def _subfolders(folder: str) -> Iterable[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(e.path for e in entries if e.name not in _UNSEARCHED and e.is_dir(follow_symlinks=False))
    except OSError:
        return ()


def _python_installation(program: str) -> Iterator[str]:
    """The parts of an installation that a Python program belongs to.

    A command can write any links and settings in the roots. So nothing else is made visible for them, not even the
    program if it is no Python.
    """
    folder = os.path.dirname(os.path.dirname(program))
    known = os.path.basename(os.path.dirname(program)) == "bin" and _PYTHON.fullmatch(os.path.basename(program))
    if known and os.access(program, os.X_OK) and any(iglob(os.path.join(escape(folder), "lib", "py*", "os.py"))):
        for part in _PYTHON_PARTS:
            yield os.path.join(folder, part)
