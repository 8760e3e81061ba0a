"""Copies of uploaded files, without a browser."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.roots import Roots
from longshore.toolsets.browser.uploads import copy_uploads

CALLERS = 8


def test_concurrent_uploads_have_copies_of_their_own(tmp_path: Path) -> None:
    root, folder = tmp_path / "root", tmp_path / "uploads"
    root.mkdir()
    folder.mkdir()
    (root / "a.txt").write_text("x" * 1_000_000)
    files = ConfinedFiles(Roots((str(root),)))
    with ThreadPoolExecutor(CALLERS) as pool:
        given = list(pool.map(lambda _: copy_uploads(files, ["a.txt", "a.txt"], str(folder)), range(10 * CALLERS)))
    paths = [path for each in given for path in each]
    assert len(set(paths)) == 20 * CALLERS
    for path in paths:
        assert os.path.getsize(path) == 1_000_000 and os.path.basename(path) == "a.txt"
        assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o755  # the browser may run as another user
