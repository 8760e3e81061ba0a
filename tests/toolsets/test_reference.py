"""`longshore tools`, and the page docs/tools.md that it generates."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from longshore import Server
from longshore.builtin import make
from longshore.cli.main import run
from longshore.cli.tools import reference
from longshore.schema.output import count_tokens
from talk import ERAS, result

from .test_discovery import BUDGET_TOKENS

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_the_built_in_tools_is_fresh(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "--markdown"]) == 0
    assert (DOCS / "tools.md").read_text() == capsys.readouterr().out, "longshore tools --markdown > docs/tools.md"


def test_the_surface_is_the_one_that_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    """To write it anew: `longshore schema snapshot --output tests/toolsets/surface.json`."""
    code = run(["schema", "snapshot", "--check", "--output", str(Path(__file__).with_name("surface.json"))])
    assert code == 0, capsys.readouterr().out


@pytest.mark.parametrize("revision", ERAS)
def test_the_page_says_what_the_list_costs(revision: str) -> None:
    tools = result(make(), "tools/list", revision=revision)["tools"]
    cost = count_tokens(tools)
    assert cost == -(-len(json.dumps(tools, separators=(",", ":"))) // 4)
    assert cost <= BUDGET_TOKENS
    assert f"costs a model {cost} tokens" in (DOCS / "tools.md").read_text()


def test_the_page_has_a_section_for_each_tool() -> None:
    page = (DOCS / "tools.md").read_text()
    for tool in result(make(), "tools/list")["tools"]:
        assert f"\n## {tool['name']}\n\n{tool['description']}" in page
        assert f"](#{tool['name']})" in page


def test_json_is_what_a_client_gets(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == result(make(), "tools/list", revision=ERAS[-1])["tools"]


def test_a_table_shows_the_tools_of_anybodys_server(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from longshore import Server\n"
        "app = Server('mine')\n"
        "@app.tool(effects='write', idempotent=True, category='sums')\n"
        "def add(a: int) -> int:\n"
        "    '''Add one [bold]thing[/bold]. And more.'''\n"
        "    return a\n"
    )
    assert run(["tools", str(path)]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("add", "sums", "write, idempotent", "Add one [bold]thing[/bold]."))
    assert "1 tools, " in out
    assert run(["tools", str(path), "--markdown"]) == 0
    assert f"<!-- Made by `longshore tools {path} --markdown`. -->" in capsys.readouterr().out


def test_a_server_that_is_not_there_is_a_line_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["tools", "nowhere.py"]) == 2
    assert "nowhere.py: there is no such file" in capsys.readouterr().err


def test_a_page_tells_of_errors_examples_and_results() -> None:
    app = Server("t")

    @app.tool(errors={"gone": "it was sold"}, examples=[{"a": 1}], help="Sold is\n  sold.", aliases=["trade"])
    def sell(a: int, b: str = "x|y") -> list[int]:
        """Sell | give."""
        return [a]

    page = reference("t", list(app.engine.tools.values()))
    assert "| Sell \\| give. |" in page
    assert '- `a` (integer, required)\n- `b` (string, default "x|y")\n' in page
    assert "Gives: object with result." in page
    assert "- Error `gone`: it was sold" in page
    assert "Sell | give.\n\nSold is\nsold.\n\nEarlier names: `trade`.\n" in page
    assert 'For example: `{"a":1}`.' in page
