"""Files for a page: only those of the server's folders, copied to a folder that the browser's user can read."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from secrets import token_hex
from typing import Final

from longshore.errors import ToolError
from longshore.sandbox.confined import ConfinedFiles

MOST_FILES: Final = 20
MOST_BYTES: Final = 100_000_000
"""Of one file."""


def copy_uploads(files: ConfinedFiles, paths: Sequence[str], folder: str | None) -> list[str]:
    """The paths for the browser. Without a folder (an attached browser), those of the files themselves.

    Raises ToolError or FileError for a path outside the server's folders.
    """
    if not 1 <= len(paths) <= MOST_FILES:
        raise ToolError(f"{len(paths)} paths; give 1 to {MOST_FILES}")
    given = list[str]()
    for path in paths:
        if folder is None:
            with files.open_file(path, MOST_BYTES):
                given.append(files.real_path(path))
            continue
        place = os.path.join(folder, token_hex(8))  # others may copy at the same time
        os.mkdir(place, 0o755)
        copy = os.path.join(place, os.path.basename(path))
        with files.open_file(path, MOST_BYTES) as source, open(copy, "wb") as target:
            shutil.copyfileobj(source, target)
        os.chmod(copy, 0o644)
        given.append(copy)
    return given
