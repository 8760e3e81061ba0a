"""The discovery toolset."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from longshore import Server, Tool, Toolset, __version__, tool
from longshore.builtin import make
from longshore.telemetry.records import Problem
from longshore.toolsets.discovery import Discovery
from longshore.toolsets.discovery.tools import MOST_OFFSET, PAGE
from talk import ERAS, Refused, call, listed, result, text

BUDGET_TOKENS = 600 + 1_150 + 800 + 2_600 + 1_000
"""Most tokens of the built-in server's tools/list, at four characters a token: discovery, files, terminal, browser."""


def anybodys() -> Server:
    """A server like the built-in one, to which tools of any kind can be added."""
    app = Server("longshore", version=__version__, standards="off")
    app.add_toolset(Discovery(app))
    return app


def many(count: int) -> Server:
    app = anybodys()
    for n in range(count):
        category = "even" if n % 2 == 0 else "odd"
        app.tool(name=f"tool_{n:03}", description=f"Do thing {n}. And more.", category=category, tags=[f"tag{n % 3}"])(
            lambda: "x"
        )
    return app


def said(app: Server, name: str, revision: str = ERAS[0], /, **arguments: Any) -> str:
    return text(call(app, name, arguments, revision))


@pytest.mark.parametrize("revision", ERAS)
def test_hello_describes_the_server_and_names_the_next_tools(revision: str) -> None:
    words = said(many(3), "hello", revision)
    assert words == (
        f"This is longshore {__version__}. It has 7 tools: discovery (4), even (2), odd (1).\n"
        "list_tools shows them by category or search word; tool_help explains one."
    )


class Files(Toolset):
    uses_folders = True

    @tool
    def read_file(self) -> str:
        return ""


def test_the_folders_are_named_where_a_toolset_uses_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    app = anybodys()
    assert str(tmp_path.resolve()) not in said(app, "hello")
    assert call(app, "server_status")["structuredContent"]["folders"] == []
    app.add_toolset(Files())
    assert said(app, "hello").endswith(f"\nIts tools use files in {tmp_path.resolve()}.")
    assert call(app, "server_status")["structuredContent"]["folders"] == [str(tmp_path.resolve())]
    app.disable("files")
    assert str(tmp_path.resolve()) not in said(app, "hello")
    assert call(app, "server_status")["structuredContent"]["folders"] == []


def test_a_workspace_is_named_in_hello_the_status_and_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    app, logged = anybodys(), list[Any]()
    app.add_toolset(Files())
    app.listen(logged.append)
    workspace = str(tmp_path.resolve() / "longshore/workspace")
    words = said(app, "hello")
    assert f"Its tools use files in {workspace}.\nNote: it was started in /, so it uses a folder of its own" in words
    assert call(app, "server_status")["structuredContent"]["folders"] == [workspace]
    [notice] = [record.text for record in logged if isinstance(record, Problem)]
    assert notice.startswith(f"files are in {workspace}: it was started in /")


def test_without_any_folder_hello_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    monkeypatch.setenv("XDG_DATA_HOME", "/dev/null")
    app = anybodys()
    app.add_toolset(Files())
    assert "\nNote: this server has no folder: it was started in /, and /dev/null/" in said(app, "hello")


def test_the_status_counts_what_runs_and_what_is_open() -> None:
    class Store(Toolset):
        def start(self) -> None: ...

        def status(self) -> dict[str, Any]:
            return {"rows": 3}

        @tool
        def put(self) -> str:
            return "x"

    app = anybodys()
    app.add_toolset(Store())
    status = call(app, "server_status")["structuredContent"]
    assert status["name"] == "longshore" and status["version"] == __version__
    assert status["revisions"] == ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
    assert (status["tools"], status["running"], status["parked"], status["abandoned_threads"]) == (5, 0, 0, 0)
    assert status["uptime_seconds"] >= 0
    assert status["toolsets"] == [
        {"name": "discovery", "tools": 4, "open": True, "details": {}},
        {"name": "store", "tools": 1, "open": False, "details": {"rows": 3}},
    ]
    call(app, "put")
    later = call(app, "server_status")["structuredContent"]
    assert later["toolsets"][1]["open"] is True
    assert later["calls"] > status["calls"]


def test_a_toolset_with_a_failing_status_does_not_hide_the_rest() -> None:
    class Broken(Toolset):
        def status(self) -> dict[str, Any]:
            raise KeyError("secret")

    class Odd(Toolset):
        def status(self) -> dict[str, Any]:
            return {"x": object()}

    app = anybodys()
    app.add_toolset(Broken())
    app.add_toolset(Odd())
    status = call(app, "server_status")
    assert "isError" not in status and "secret" not in str(status)
    assert [found["details"].get("problem", "")[:10] for found in status["structuredContent"]["toolsets"][1:]] == [
        "its status",
        "its status",
    ]


# -- tool_help


class Size(enum.Enum):
    S = "small"
    L = "large"


@dataclass
class Item:
    name: str


def test_the_help_of_a_tool_says_what_it_takes_gives_and_how_it_fails() -> None:
    app = anybodys()

    @app.tool(effects="destroy", errors={"gone": "it was sold"}, examples=[{"item": {"name": "tea"}, "size": "small"}])
    def order(
        item: Item,
        size: Size,
        tags: list[str] | None = None,
        mode: Annotated[Literal["fast", "slow"], "how fast"] = "fast",
        items: list[Item] = [],  # noqa: B006
    ) -> dict[str, int]:
        """Order something. It is final.

        item: what to order
        """
        return {}

    words = said(app, "tool_help", name="order").splitlines()
    assert words[0] == "order: Order something. It is final."
    assert "  item (object with name, required): what to order" in words
    assert '  size (one of "small", "large", required)' in words
    assert '  mode (one of "fast", "slow", default "fast"): how fast' in words
    assert "  items (list of object with name, default [])" in words
    assert any(line.startswith("  tags (list of string") for line in words)
    assert "Effects: destroy" in words
    assert "  gone: it was sold" in words
    assert '  {"item":{"name":"tea"},"size":"small"}' in words


def test_the_help_of_a_raw_tool_reads_its_schema() -> None:
    app = anybodys()
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"], "description": "A"},
            "b": {"$ref": "#/$defs/b"},
            "c": {"const": 5},
            "d": True,
            "e": {"oneOf": [{"type": "integer"}, {"type": "string"}]},
            "f": {"$ref": "#/$defs/tree"},
            "g": {"$ref": "#/$defs/loop"},
            "h": {"type": "array", "items": {"$ref": "#/$defs/json"}},
        },
        "required": ["b"],
        "$defs": {
            "b": {"type": "integer"},
            "tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
            "loop": {"$ref": "#/$defs/loop"},
            "json": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/json"}}]},
        },
    }
    app.add_tool(Tool(name="raw", input_schema=schema), lambda arguments, ctx: {"content": []})
    words = said(app, "tool_help", name="raw").splitlines()
    assert words == [
        "raw: no description",
        "Takes:",
        "  a (string or null, optional): A",
        "  b (integer, required)",
        "  c (one of 5, optional)",
        "  d (any value, optional)",
        "  e (integer or string, optional)",
        "  f (list of tree, optional)",
        "  g (loop, optional)",
        "  h (list of null or list of json, optional)",
    ]


def helpful() -> Server:
    app = anybodys()

    @app.tool(
        category="money",
        aliases=["refund_v1"],
        help="""
        Ask for the receipt first.

            A refund takes three days.
        """,
    )
    def refund(order: str) -> str:
        """Pay an order back."""
        return order

    return app


@pytest.mark.parametrize("name", ["refund", "refund_v1"])
def test_the_long_help_is_in_tool_help_only(name: str) -> None:
    assert said(helpful(), "tool_help", name=name).splitlines() == [
        "refund: Pay an order back.",
        "",
        "Ask for the receipt first.",
        "",
        "    A refund takes three days.",
        "",
        "Category: money",
        "Earlier names: refund_v1",
        "Takes:",
        "  order (string, required)",
    ]
    lists = json.dumps(result(helpful(), "tools/list")) + said(helpful(), "list_tools")
    assert "receipt" not in lists and "refund_v1" not in lists


@pytest.mark.parametrize("search", ["receipt", "refund_v1", "Three DAYS", "pay"])
def test_the_search_looks_into_help_and_earlier_names(search: str) -> None:
    assert said(helpful(), "list_tools", search=search) == "refund [money] Pay an order back."


@pytest.mark.parametrize("name", ["hello", "server_status", "tool_help", "list_tools"])
def test_every_built_in_tool_has_help_that_is_short(name: str) -> None:
    words = said(make(), "tool_help", name=name)
    assert words.startswith(f"{name}: ") and len(words) < 1600


@pytest.mark.parametrize(
    ("name", "answer"),
    [("list_tool", "no tool 'list_tool'; did you mean 'list_tools'?"), ("zzz", "no tool 'zzz'; list_tools shows all")],
)
def test_help_for_an_unknown_tool_names_the_nearest(name: str, answer: str) -> None:
    found = call(make(), "tool_help", {"name": name})
    assert found["isError"] is True and text(found) == answer


# -- list_tools


def test_the_list_has_a_line_for_each_tool_with_its_category_and_first_sentence() -> None:
    lines = said(many(2), "list_tools").splitlines()
    assert len(lines) == 7
    assert lines[0] == "Categories: discovery (4), even (1), odd (1)"
    assert lines[1].startswith("hello [discovery] Say what this server is and what its tools are for.")
    assert lines[5:] == ["tool_000 [even] Do thing 0.", "tool_001 [odd] Do thing 1."]


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ({"category": "discovery"}, ["hello", "server_status", "tool_help", "list_tools"]),
        ({"category": "odd"}, ["tool_001", "tool_003", "tool_005"]),
        ({"search": "tag0"}, ["tool_000", "tool_003"]),
        ({"search": "THING 4"}, ["tool_004"]),
        ({"search": "tool_00 more"}, [f"tool_00{n}" for n in range(6)]),
        ({"search": "thing", "category": "even"}, ["tool_000", "tool_002", "tool_004"]),
        ({"search": "  "}, ["hello", "server_status", "tool_help", "list_tools", *[f"tool_00{n}" for n in range(6)]]),
    ],
)
def test_the_list_can_be_narrowed(arguments: dict[str, Any], names: list[str]) -> None:
    assert [line.split()[0] for line in said(many(6), "list_tools", **arguments).splitlines()] == names


def test_an_empty_search_says_what_to_try() -> None:
    assert said(many(6), "list_tools", search="zzz") == "no tool fits; try fewer words"
    assert said(many(6), "list_tools", offset=99) == "there are only 10; offset=99 is past the last"
    answer = call(many(6), "list_tools", {"category": "evn"})
    assert answer["isError"] is True
    assert text(answer) == "no category 'evn'; there are: discovery, even, odd"
    for offset in (-1, MOST_OFFSET + 1):
        assert call(many(1), "list_tools", {"offset": offset})["isError"] is True
    assert "isError" not in call(many(1), "list_tools", {"offset": MOST_OFFSET})


@pytest.mark.parametrize("tools", [PAGE - 1, PAGE, PAGE + 1, 2 * PAGE, 137])
def test_the_pages_of_the_list_are_the_list(tools: int) -> None:
    app = many(tools - 4)
    found: list[str] = []
    offset: int | None = 0
    while offset is not None:
        lines = said(app, "list_tools", offset=offset).splitlines()
        assert lines[0].startswith("Categories: ") is (offset == 0)
        lines = lines[1:] if offset == 0 else lines
        offset = int(lines.pop().rpartition("=")[2]) if lines[-1].startswith("… ") else None
        assert len(lines) <= PAGE
        found += [line.split()[0] for line in lines]
    assert found == [entry["name"] for entry in result(app, "tools/list")["tools"]]
    assert len(found) == tools


# -- what it costs, and what it tells


def test_the_list_of_the_built_in_tools_costs_few_tokens() -> None:
    tools = result(make(), "tools/list")["tools"]
    assert len(json.dumps(tools, separators=(",", ":"))) / 4 <= BUDGET_TOKENS


def test_every_built_in_tool_has_a_title_a_description_and_honest_hints() -> None:
    for name in ("hello", "server_status", "tool_help", "list_tools"):
        shown = listed(make(), name)
        assert shown["title"] and shown["description"].endswith(".")
        assert shown["annotations"] == {"readOnlyHint": True}
        for parameter in shown["inputSchema"].get("properties", {}).values():
            assert parameter["description"]


def test_disabled_tools_are_in_no_list(tmp_path: Any) -> None:
    from longshore.config import load

    app = many(2)
    path = tmp_path / "longshore.toml"
    path.write_text("[tools.tool_000]\nenabled = false\n")
    app.config = load(None, path=str(path))
    assert "tool_000" not in said(app, "list_tools")
    assert call(app, "tool_help", {"name": "tool_000"})["isError"] is True
    with pytest.raises(Refused):
        call(app, "tool_000")
