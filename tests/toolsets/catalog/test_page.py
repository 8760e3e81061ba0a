"""docs/tool-search.md: its configuration is valid, and its session happens as written."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from longshore import Server, config
from talk import Refused, call, result, text

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "tool-search.md").read_text()
EXAMPLE = ROOT / "examples" / "catalog" / "many_tools.py"


def answer(app: Server, request: str) -> str:
    if request == "list":
        return ", ".join(each["name"] for each in result(app, "tools/list")["tools"])
    _, tool, arguments = request.split(" ", 2)
    try:
        return text(call(app, tool, json.loads(arguments)))
    except Refused as problem:
        return problem.message


def test_the_session_is_as_on_the_page() -> None:
    session = re.findall(r"^```\n(> .*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    app: Any = runpy.run_path(str(EXAMPLE))["app"]
    steps = [step.splitlines() for step in re.split(r"^> ", session, flags=re.MULTILINE) if step]
    assert len(steps) == 6
    for request, *said in steps:
        assert answer(app, request).splitlines() == [line.removeprefix("< ") for line in said], request


def test_the_code_is_that_of_the_example() -> None:
    code = re.findall(r"^```python\n# examples/catalog/many_tools.py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0]
    assert code in EXAMPLE.read_text()


def test_the_configuration_on_the_page_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "longshore.toml"
    path.write_text(re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[0])
    found = config.load(path=str(path))
    assert (found.server.catalog, found.toolsets["browser"].catalog) == ("search", "full")
