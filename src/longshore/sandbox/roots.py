"""Roots: the folders that tools may touch.

They are the server's, from its configuration or its working directory. A client's roots can only narrow them. Paths are
compared by their components after symbolic links are resolved, never as texts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from longshore.errors import ConfigError
from longshore.files import user_directory

WORKSPACE: Final = "workspace"
"""The folder in the user's data directory that is used where the working directory is no place for an agent."""
MOST_STEPS: Final = 1000
"""On the way of a path, with those of its links. Linux follows 40 links."""
_SCHEME: Final = "file://"


class Roots(Struct, frozen=True):
    """Real, absolute folders, none of them within another."""

    folders: tuple[str, ...] = ()
    why: str = ""
    """Why these folders, if the user did not choose them; or why there are none."""
    given: tuple[str, ...] = ()
    """Folders as the user wrote them, where these are other paths, such as a link to a root or to a folder in it."""

    def narrow(self, uris: Sequence[str]) -> Roots:
        """The part of these folders that lies within a client's roots, which are `file://` URIs."""
        written = [path for uri in uris if (path := _path(uri)) is not None and os.path.isdir(path)]
        wanted = [os.path.realpath(path) for path in written]
        mine = [root for root in self.folders if any(is_within(root, path) for path in wanted)]
        theirs = [path for path in wanted if any(is_within(path, root) for root in self.folders)]
        narrowed = merge([*mine, *theirs])
        if narrowed or not self.folders:
            return Roots(narrowed, self.why, _others((*self.given, *written), narrowed))
        listed = ", ".join(uris[:5])[:500] or "none"
        served = ", ".join(self.folders)
        return Roots((), f"the client's roots ({listed}) hold nothing of this server's folders ({served})")


def configured_roots(paths: Sequence[str], origin: str = "") -> Roots:
    """The folders of the configuration. Raises ConfigError for one that is no folder."""
    real: list[str] = []
    for path in paths:
        if not path or "\0" in path or not os.path.isdir(folder := os.path.realpath(os.path.expanduser(path))):
            where = f" ({origin})" if origin else ""
            raise ConfigError(f"server.roots{where}: {path!r} is no folder; create it, or name another one")
        real.append(folder)
    roots = merge(real)
    for path, folder in zip(paths, real, strict=True):
        others = [root for root in roots if not is_within(folder, root) and not os.path.samefile(folder, root)]
        if leads_through(os.path.abspath(os.path.expanduser(path)), others):
            what = f"{path!r} leads to {folder} by a link in another root, which tools could change"
            raise ConfigError(f"server.roots{f' ({origin})' if origin else ''}: {what}; name {folder} itself")
    return Roots(roots, given=_others([os.path.abspath(os.path.expanduser(path)) for path in paths], roots))


def default_roots(environ: Mapping[str, str] | None = None) -> Roots:
    """The working directory; where it was deleted, is the home folder or holds it, a workspace folder of our own."""
    try:
        here = os.path.realpath(os.getcwd())
    except FileNotFoundError:
        return _workspace("the folder that it was started in was deleted", environ)
    home = os.path.expanduser("~") if environ is None else environ.get("HOME", "")
    written = (os.environ if environ is None else environ).get("PWD", here)
    if here == os.sep or (os.path.isabs(home) and is_within(os.path.realpath(home), here)):
        return _workspace(f"it was started in {here}", environ)
    # The shell keeps in PWD the links by which the user entered the folder.
    return Roots((here,), given=_others([written], (here,)))


def _workspace(why: str, environ: Mapping[str, str] | None) -> Roots:
    fix = "start it with --root DIR, or set server.roots in longshore.toml"
    folder = user_directory("data", environ)
    if folder is None:
        return Roots((), f"this server has no folder: {why}, and the user has no home; {fix}")
    path = os.path.join(folder, WORKSPACE)
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError as problem:
        return Roots((), f"this server has no folder: {why}, and {path} can't be made ({problem.strerror}); {fix}")
    real = os.path.realpath(path)
    return Roots((real,), f"{why}, so it uses a folder of its own; to choose others, {fix}", _others([path], (real,)))


def is_within(path: str, folder: str) -> bool:
    """Whether a real path is a folder or inside it."""
    return os.path.commonpath((path, folder)) == folder


def is_in(path: str, folders: Iterable[str]) -> bool:
    """Whether a real path is one of some folders or inside one."""
    return any(is_within(path, folder) for folder in folders)


def leads_through(path: str, folders: Sequence[str]) -> bool:
    """Whether a path comes by one of these folders, when its links are followed.

    A folder may have several names: in other case, where the file system ignores it, or where it is mounted twice.
    """
    identities = {_identity(folder) for folder in folders} - {None}
    pending, here = path.split("/")[::-1], "/"
    for _ in range(MOST_STEPS):
        if not pending:
            return False
        name = pending.pop()
        here = os.path.dirname(here) if name == ".." else os.path.join(here, name) if name not in ("", ".") else here
        if is_in(here, folders) or _identity(here) in identities:
            return True
        if os.path.islink(here):
            pending += os.readlink(here).split("/")[::-1]
            here = "/" if os.readlink(here).startswith("/") else os.path.dirname(here)
    return True


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino


def is_in_roots(path: str, configured: Sequence[str]) -> bool:
    """Whether what is at an absolute path can be changed in these roots, or in the usual ones where there are none."""
    folders = [os.path.realpath(os.path.expanduser(each)) for each in configured] or default_roots().folders
    return leads_through(path, folders)


def merge(paths: Iterable[str]) -> tuple[str, ...]:
    """Each folder once, without those inside another."""
    distinct = list(dict.fromkeys(paths))
    return tuple(p for p in distinct if not any(p != other and is_within(p, other) for other in distinct))


def _others(paths: Iterable[str], roots: tuple[str, ...]) -> tuple[str, ...]:
    """The absolute paths that lead into the roots by a link."""
    distinct = dict.fromkeys(path for path in paths if os.path.isabs(path) and os.path.realpath(path) != path)
    return tuple(path for path in distinct if any(is_within(os.path.realpath(path), root) for root in roots))


def _path(uri: str) -> str | None:
    """The path of a `file://` URI of this machine; None for any other."""
    if not uri.lower().startswith(_SCHEME):
        return None
    from urllib.parse import unquote

    host, slash, rest = uri[len(_SCHEME) :].partition("/")
    path = slash + unquote(rest)
    if host.lower() not in ("", "localhost") or not slash or "\0" in path:
        return None
    return path.rstrip("/") or "/"
