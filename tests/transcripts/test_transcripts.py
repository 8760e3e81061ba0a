"""Every transcript of this folder, over memory and over stdio."""

from __future__ import annotations

from pathlib import Path

import pytest

from .peers import play_in_memory, play_on_stdio
from .script import parse

PATHS = sorted(Path(__file__).parent.glob("*.txt"))
each = pytest.mark.parametrize("path", PATHS, ids=[path.stem for path in PATHS])


@each
def test_over_memory(path: Path) -> None:
    play_in_memory(parse(path))


@each
def test_over_stdio(path: Path, tmp_path: Path) -> None:
    play_on_stdio(parse(path), tmp_path)
