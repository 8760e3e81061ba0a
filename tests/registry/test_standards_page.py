"""`docs/standards.md` is true: its code runs, and what it shows is what is told."""

from __future__ import annotations

import itertools
import linecache
import re
from pathlib import Path
from typing import Any

import pytest

from longshore import RegistrationError, Server
from longshore.telemetry.records import Problem

PAGE = Path(__file__).parents[2] / "docs/standards.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(found[1], found[2]) for found in FENCE.finditer(PAGE.read_text())]
SNIPPETS = [
    (code, after if kind == "text" else "")
    for (language, code), (kind, after) in itertools.pairwise([*BLOCKS, ("", "")])
    if language == "python"
]


def run(code: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(linecache.cache, "server.py", (len(code), None, code.splitlines(keepends=True), "server.py"))
    names: dict[str, Any] = {"__name__": "server"}
    try:
        exec(compile(code, "server.py", "exec"), names)
    except RegistrationError as problem:
        return str(problem)
    app, lines = names["app"], list[str]()
    assert isinstance(app, Server) and app.catalog.tools
    app.listen(lambda record: lines.append(record.text) if isinstance(record, Problem) else None)
    app.admission.report()
    return "\n".join(lines)


@pytest.mark.parametrize(("code", "shown"), SNIPPETS)
def test_a_snippet_says_what_the_page_shows(
    code: str, shown: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert run(code, monkeypatch) == shown.rstrip("\n")
