"""The script that makes the README's picture works: a real server, a real client, a real browser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from struct import unpack

import pytest

from toolsets.browser.page import TestPage

ROOT = Path(__file__).parents[3]
SECONDS = 150.0


@pytest.mark.timeout(2 * SECONDS)
def test_the_picture_of_the_console_is_made_from_a_real_run(browser: TestPage, tmp_path: Path) -> None:
    picture = tmp_path / "console.png"
    argv = [sys.executable, str(ROOT / "scripts" / "console_picture.py"), str(picture)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert unpack(">II", data[16:24]) == (1280, 1120)
    assert len(data) > 50_000, "it is nearly empty"
