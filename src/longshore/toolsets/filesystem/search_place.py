"""The place where a listing or a search begins: its folder, and the paths that it shows."""

from __future__ import annotations

import os

from longshore.sandbox.confined import ConfinedFiles, OpenFolder


def find_place(files: ConfinedFiles, path: str, max_file_size: int) -> tuple[str, str]:
    """The folder to search and, if only one file in it is meant, the file's name. Raises FileError."""
    if files.status(path).kind != "file":
        return path, ""
    files.open_file(path, max_file_size).close()  # an error for a file that would be left out as too large
    return os.path.split(files.real_path(path))


def path_prefix(files: ConfinedFiles, folder: OpenFolder) -> str:
    """The beginning of the paths of a folder's files, as the tools take them."""
    path = folder.relative if folder.root == files.roots.folders[0] else folder.path
    return f"{path.rstrip('/')}/" if path else ""
