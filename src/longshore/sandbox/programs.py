"""Finding the programs that the server itself starts, outside of the sandbox."""

from __future__ import annotations

import os
from collections.abc import Sequence

from longshore.sandbox.roots import is_in_roots


def find_program(name: str, roots: Sequence[str] = ()) -> str | None:
    """The program of a name on PATH, left out what tools can write in these roots, or in the usual ones if none.

    The folders of an active virtual environment, or of `node_modules`, are on PATH and in the working folder.
    """
    for folder in os.environ.get("PATH", os.defpath).split(os.pathsep):
        path = os.path.join(folder, name)
        if os.path.isabs(folder) and is_program(path) and not is_in_roots(path, roots):
            return path
    return None


def is_program(path: str) -> bool:
    """Whether there is a file that may be run."""
    return os.path.isfile(path) and os.access(path, os.X_OK)
