"""`docs/evolution.md` and its example say the same, and it is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from longshore import SyncClient
from longshore.testing import load_server

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "evolution.md").read_text()
EXAMPLE = ROOT / "examples" / "evolution" / "forecast.py"
ROWS = re.findall(r"^\| `(\w+) (\{.*\})` \| (.*) \| (.*) \|$", PAGE, re.MULTILINE)


def test_the_page_shows_the_example() -> None:
    (block,) = re.findall(r"^```python\n# examples/evolution/forecast.py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert block in EXAMPLE.read_text()


@pytest.mark.parametrize(("name", "arguments", "text", "note"), ROWS)
def test_each_row_of_the_table_holds(name: str, arguments: str, text: str, note: str) -> None:
    with SyncClient(load_server(str(EXAMPLE))) as client:
        result = client.call_tool(name, json.loads(arguments))
    assert (result.text, result.meta["longshore/notes"]) == (text, [note])


def test_the_table_has_each_kind_of_earlier_call() -> None:
    assert len(ROWS) == 5
