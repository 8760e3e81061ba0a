"""Every transcript of this folder, over memory, over stdio and over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from serving import OWN

from .over_http import ELSEWHERE, play_over_http
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


@each
@pytest.mark.parametrize("own", [False, True], ids=["uvicorn", "longshore"])
def test_over_http(path: Path, own: bool) -> None:
    token = OWN.set(own)
    try:
        play_over_http(parse(path), path.stem)
    finally:
        OWN.reset(token)


def test_every_transcript_not_run_over_http_exists() -> None:
    for stem, part, number in ELSEWHERE:
        lines = (Path(__file__).parent / f"{stem}.txt").read_text().splitlines()
        assert sum(line.startswith("> ") and part in line for line in lines) >= number, (stem, part)
