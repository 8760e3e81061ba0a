"""A root with links that lead out of it, and every verb of ConfinedFiles as a function of one path."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from longshore.errors import WouldBlock
from longshore.sandbox.beneath import OpenBeneath, open_beneath, walk_beneath
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.roots import Roots

WAYS: dict[str, OpenBeneath] = {"kernel": open_beneath, "walk": walk_beneath}
SECRET = b"secret of the outside"

FOLLOWING: dict[str, Callable[[ConfinedFiles, str], object]] = {
    "read": lambda files, path: _read(files, path),
    "read_cached": lambda files, path: _read_cached(files, path),
    "status": lambda files, path: files.status(path),
    "real_path": lambda files, path: files.real_path(path),
    "list": lambda files, path: files.list_folder(path),
    "open_folder": lambda files, path: _open_folder(files, path),
    "walk": lambda files, path: [entry.path for entry in files.walk(path)],
    "make_folder": lambda files, path: files.make_folder(path + "/made/here"),
    "write": lambda files, path: files.write(path, b"written"),
    "write_new": lambda files, path: files.write(path, b"written", overwrite=False),
    "write_parents": lambda files, path: files.write(path + "/made/file", b"written", parents=True),
    "append": lambda files, path: files.append(path, b"appended"),
    "copy_from": lambda files, path: files.copy(path, "copied", overwrite=True),
    "copy_to": lambda files, path: files.copy("file.txt", path, overwrite=True),
}
"""Verbs that follow a link at the end of the path."""
VERBS: dict[str, Callable[[ConfinedFiles, str], object]] = FOLLOWING | {
    "status_of_link": lambda files, path: files.status(path, follow=False),
    "move_from": lambda files, path: files.move(path, "moved", overwrite=True),
    "move_to": lambda files, path: files.move("file.txt", path, overwrite=True),
    "delete": lambda files, path: files.delete(path),
    "delete_tree": lambda files, path: files.delete(path, tree=True),
}


def _read(files: ConfinedFiles, path: str) -> bytes:
    with files.open_file(path) as file:
        return file.read()


def _read_cached(files: ConfinedFiles, path: str) -> bytes:
    """Read as the tool does: without waiting if that can be."""
    try:
        return files.read_cached(path, 1 << 20)
    except WouldBlock:
        return _read(files, path)


def _open_folder(files: ConfinedFiles, path: str) -> None:
    with files.open_folder(path):
        pass


def make_tree(base: Path) -> Path:
    """The folder that holds the root `allow`, and beside it what nobody may reach."""
    base = Path(os.path.realpath(base))
    for folder in ("allow/sub/deep", "allow_evil", "outside/sub"):
        (base / folder).mkdir(parents=True)
    (base / "allow/file.txt").write_bytes(b"file")
    (base / "allow/sub/inner.txt").write_bytes(b"inner")
    for name in ("allow_evil/secret", "outside/secret", "outside/sub/secret", "secret"):
        (base / name).write_bytes(SECRET)
    links = {
        "l": base / "outside",
        "rel": "../outside",
        "up": "..",
        "chain1": "chain2",
        "chain2": "sub/../chain3",
        "chain3": "../outside",
        "newdir": "../outside/missing",
        "to_secret": "../outside/secret",
        "abs_secret": base / "outside/secret",
        "etc": "/etc",
        "loop": "loop",
        "in": "sub",
        "abs_in": base / "allow/sub",
        "to_inner": "in/inner.txt",
        "round": "../allow/sub",
        "dangling": "sub/new.txt",
    }
    for name, target in links.items():
        (base / "allow" / name).symlink_to(target)
    return base


def confined(base: Path, way: str, **settings: list[str]) -> ConfinedFiles:
    roots = Roots((str(base / "allow"),), given=tuple(settings.get("given", [])))
    return ConfinedFiles(
        roots,
        read_only=settings.get("read_only", []),
        deny=settings.get("deny", []),
        open_beneath=WAYS[way],
    )


def snapshot(base: Path) -> list[tuple[str, int, bytes]]:
    """Everything beside the root: path, mode and content."""
    found = list[tuple[str, int, bytes]]()
    for folder, folders, names in os.walk(base):
        if "allow" in folders:
            folders.remove("allow")
        for name in [*folders, *names]:
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            found.append((path, mode, Path(path).read_bytes() if name in names else b""))
    return sorted(found)
