"""`longshore lint --as CLIENT`: client views as text and JSON."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from longshore.cli.client_view import MOST_LINES, show
from longshore.cli.main import run
from longshore.cli.screen import Screen
from longshore.schema.lint.clients import CLIENTS, ClientName
from longshore.schema.lint.tool_list import ToolList

CITY = {"type": "string", "description": "a city", "pattern": "^[A-Z]"}
GET: dict[str, Any] = {
    "name": "get.weather",
    "description": "Get the weather",
    "inputSchema": {"type": "object", "properties": {"city": CITY, "other": CITY}},
}
SKIPPED = {**GET, "name": "skipped", "inputSchema": {"type": "object", "properties": {}, "anyOf": [{}]}}
HARBOUR = ToolList(name="harbour", tools=(GET, SKIPPED), instructions="i" * 3000)


@pytest.fixture
def shown(capsysbinary: pytest.CaptureFixture[bytes]) -> Any:
    def run(surface: ToolList, client: ClientName, form: str = "text") -> str:
        show(surface, client, form, Screen())
        return capsysbinary.readouterr().out.decode()

    return run


def test_the_text_form_shows_names_effects_and_losses(shown: Any) -> None:
    assert shown(HARBOUR, "claude") == (
        "mcp__harbour__get_weather  63 tokens\n"
        "  Get the weather\n"
        "  ~ name: called `get_weather`  (E06; measured with Claude Code 2.1.197)\n"
        "\n"
        "skipped  lost\n"
        "  ! inputSchema.anyOf: the tool is skipped: a combinator at the root of its schema"
        "  (E04; measured with Claude Code 2.1.197)\n"
        "\n"
        "~ instructions: cut to 2,048 of 3,000 characters  (W21; measured with Claude Code 2.1.197)\n"
        "Claude Code hands on 1 of 2 tools, about 64 tokens\n"
    )


def test_an_effect_in_many_places_is_one_line(shown: Any) -> None:
    told = shown(HARBOUR, "codex")
    assert "~ inputSchema.properties.city: `pattern` dropped, and in 1 more place  (W25; measured with Codex" in told


def test_a_refused_request_is_the_last_line(shown: Any) -> None:
    assert shown(HARBOUR, "openai").endswith("no request gets through with this list\n")


def test_a_lost_tool_causes_no_refused_request(shown: Any) -> None:
    """`any` is refused by the API, but the client skips this tool, or can't read the list that it is in."""
    odd = {"type": "object", "properties": {"x": {"type": "any"}}, "anyOf": [{}]}
    skipped = ToolList(tools=({**GET, "inputSchema": odd},))
    assert shown(skipped, "claude").endswith("Claude Code hands on 0 of 1 tool, about 0 tokens\n")
    unread = ToolList(tools=(GET, {**GET, "inputSchema": {"properties": {"x": {"type": "array"}}}}))
    for client in ("claude", "gemini"):
        assert shown(unread, client).endswith("\nthe list can't be read, so none of its tools is there\n")


def test_the_json_form_has_the_list_of_the_request(shown: Any) -> None:
    told = json.loads(shown(HARBOUR, "claude", "json"))
    assert told["tools"] == [
        {"name": "mcp__harbour__get_weather", "description": "Get the weather", "input_schema": GET["inputSchema"]}
    ]
    assert (told["client"], told["tokens"], told["instructions"][2046:]) == ("claude", 64, "ii… [truncated]")
    assert [(each["tool"], each["sent"]) for each in told["changes"]] == [
        ("get.weather", "mcp__harbour__get_weather"),
        ("skipped", ""),
    ]
    assert told["changes"][1]["marks"][0]["costs"] == "tool"


def test_control_characters_are_escaped_and_long_texts_cut(shown: Any) -> None:
    bad = "\x1b]0;owned\x07\u202e" + "x" * 5000
    properties = {f"{bad}{n}": {"type": "any" * n} for n in range(1, 3 * MOST_LINES)}
    tool = {"name": bad, "description": bad, "inputSchema": {"type": "object", "properties": properties}}
    for client in ("claude", "codex", "openai"):
        for form in ("text", "json"):
            told = shown(ToolList(name=bad, tools=(tool, None, {})), client, form)
            assert not set(told) & set("\x1b\x07\u202e\x9b")
            assert form == "json" or len(told) < 10_000


def test_an_empty_list_is_shown(shown: Any) -> None:
    assert shown(ToolList(), "codex") == "Codex hands on 0 of 0 tools, about 0 tokens\n"
    assert json.loads(shown(ToolList(), "codex", "json"))["tools"] == []


PAGE = (Path(__file__).parents[2] / "docs/client-views.md").read_text(encoding="utf-8")


def test_the_page_shows_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    [code], [(command, said)] = (
        re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL),
        re.findall(r"```text\n\$ longshore (.*?)\n(.*?)```", PAGE, re.DOTALL),
    )
    (tmp_path / "server.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert run(shlex.split(command)) == 0
    assert capsysbinary.readouterr().out.decode() == said


def test_the_page_has_every_client() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(CLIENTS)
