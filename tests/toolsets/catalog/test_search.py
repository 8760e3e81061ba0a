"""`search_tools` and `tool_api`: what is found for plain words, what is said of it, and how much."""

from __future__ import annotations

import json
from typing import Any

import pytest
from benchmarks.catalog_corpus import read_requests, read_tools

from longshore import Server, Tool
from longshore.builtin import make
from longshore.registry.token_budget import count_tokens
from longshore.toolsets.catalog.search import ToolSearch
from longshore.toolsets.catalog.tools import ANSWER_TOKENS, MOST_HITS
from talk import ERAS, call, text


def said(app: Server, tool: str, **arguments: Any) -> str:
    return text(call(app, tool, arguments))


@pytest.fixture(scope="module")
def builtin() -> Server:
    return make()


def catalogue() -> Server:
    """The 300 tools of the corpus."""
    app = Server("catalogue", catalog="search", standards="off")
    for each in read_tools():
        tool = Tool(name=each["name"], description=each["description"], input_schema=each["inputSchema"])
        app.add_tool(tool, lambda arguments, ctx: {"content": []})
    return app


@pytest.mark.parametrize(
    ("request_text", "tool"),
    [
        ("show me what is in this folder", "fs_list"),
        ("erase a document", "fs_delete"),
        ("rename a file", "fs_move"),
        ("look for a word in all source files", "fs_search"),
        ("change a line of a text file", "fs_edit"),
        ("run a shell command", "terminal_run"),
        ("stop the process that hangs", "terminal_kill"),
        ("take a picture of the web page", "browser_screenshot"),
        ("press the login button", "browser_click"),
        ("go to a web site", "browser_navigate"),
        ("fill in the form", "browser_fill"),
        ("which errors did the page log to the console", "browser_console"),
        ("run javascript on the page", "browser_evaluate"),
        ("remember a decision", "add_context"),
        ("is the server stuck", "server_status"),
    ],
)
def test_a_tool_is_found_by_everyday_words(builtin: Server, request_text: str, tool: str) -> None:
    assert tool in said(builtin, "search_tools", query=request_text, detail="name").splitlines()


def test_most_plain_requests_find_a_right_tool_of_300_among_the_first_five() -> None:
    """`benchmarks/tool_search.py` measures the share; this is far below it, so that a slip shows and a tie does not."""
    search = ToolSearch(catalogue().engine.listed_tools())
    requests = read_requests()
    found = [bool(each.tools & {entry.name for entry in search.search(each.text, 5)}) for each in requests]
    assert sum(found) >= 0.82 * len(found)


@pytest.mark.parametrize("query", ["fs_read", "FS-READ", "fs read"])
def test_a_tool_is_found_by_its_name(builtin: Server, query: str) -> None:
    assert said(builtin, "search_tools", query=query, detail="name").splitlines()[0] == "fs_read"


def test_parameters_and_their_descriptions_are_searched() -> None:
    app = Server("t", catalog="search")

    @app.tool
    def first(where: str) -> str:
        """Do it.

        where: latitude and longitude
        """
        return where

    @app.tool
    def second(postcode: str) -> str:
        """Do it too."""
        return postcode

    app.tool(tags=["gardening"], name="third", description="Do it as well.")(lambda: "")
    assert said(app, "search_tools", query="longitude", detail="name") == "first"
    assert said(app, "search_tools", query="postcode", detail="name") == "second"
    assert said(app, "search_tools", query="gardening", detail="name") == "third"


@pytest.mark.parametrize("revision", ERAS)
def test_each_detail_says_more(builtin: Server, revision: str) -> None:
    def at(detail: str) -> str:
        return text(call(builtin, "search_tools", {"query": "move a file", "detail": detail, "limit": 1}, revision))

    assert at("name") == "fs_move"
    assert at("summary") == "fs_move(path, to, copy?, overwrite?): Move, rename or copy."
    full = at("full")
    assert full.startswith("def fs_move(path: str, to: str, *, copy: bool = ..., overwrite: bool = ...) -> str:")
    assert "  to: " in full


def test_nothing_found_says_what_there_is(builtin: Server) -> None:
    found = said(builtin, "search_tools", query="xyzzy")
    assert "There are 40 tools: discovery (4), filesystem (8)" in found
    assert "Similar names: fs_read" in said(builtin, "search_tools", query="fsread")


@pytest.mark.parametrize(
    ("tool", "arguments", "error"),
    [
        ("search_tools", {"query": "file", "limit": 0}, "limit=0: give 1 to 50"),
        ("search_tools", {"query": "file", "limit": 51}, "limit=51: give 1 to 50"),
        ("tool_api", {"names": []}, "0 names: give 1 to 50"),
        ("tool_api", {"names": ["hello"] * 51}, "51 names: give 1 to 50"),
    ],
)
def test_bounds_that_no_list_shows_are_in_the_errors(tool: str, arguments: dict[str, Any], error: str) -> None:
    assert said(catalogue(), tool, **arguments) == error


def test_the_most_that_can_be_asked_for_is_answered() -> None:
    names = [each["name"] for each in read_tools()][:50]
    assert len(said(catalogue(), "tool_api", names=names, max_tokens=25_000).splitlines()) >= 50
    found = said(catalogue(), "search_tools", query="get the page file message", detail="name", limit=50)
    assert len(found.splitlines()) == 50


def test_answers_keep_to_their_budget() -> None:
    app = catalogue()
    for detail in ("name", "summary", "full"):
        arguments = {"query": "get the page file message", "detail": detail, "limit": MOST_HITS}
        assert count_tokens(said(app, "search_tools", **arguments)) <= ANSWER_TOKENS
        short = said(app, "search_tools", **arguments, max_tokens=200)
        assert count_tokens(short) <= 200
        assert "more of the hits: a larger max_tokens or less detail shows them" in short
    names = [each["name"] for each in read_tools()][:50]
    stubs = said(app, "tool_api", names=names, max_tokens=300)
    assert count_tokens(stubs) <= 300
    assert "ask for fewer at once" in stubs


def test_the_listing_in_form_search_costs_a_fiftieth() -> None:
    app = catalogue()
    shown = [entry.describe() for entry in app.engine.shown_tools()]
    assert len(json.dumps(shown)) <= 0.02 * len(json.dumps(read_tools()))


def test_tools_that_come_and_go_are_found_and_are_not() -> None:
    app = Server("t", catalog="search")
    app.tool(name="water_plants", description="Water the plants.")(lambda: "")
    assert said(app, "search_tools", query="plants", detail="name") == "water_plants"
    app.tool(name="repot_plants", description="Put the plants into larger pots.")(lambda: "")
    assert "repot_plants" in said(app, "search_tools", query="plants", detail="name")
    app.remove_tool("water_plants")
    assert said(app, "search_tools", query="plants", detail="name") == "repot_plants"


def test_the_tools_of_the_forms_are_not_found(builtin: Server) -> None:
    found = said(builtin, "search_tools", query="search tools, call a tool", detail="name", limit=MOST_HITS)
    assert not {"search_tools", "call_tool", "tool_api"} & set(found.splitlines())


def test_stubs_are_shown_of_aliases_too_and_an_unknown_name_gets_the_nearest(builtin: Server) -> None:
    assert said(builtin, "tool_api", names=["hello"]).startswith("def hello() -> str: ...  # ")
    answer = call(builtin, "tool_api", {"names": ["hello", "fs_reed"]})
    assert answer["isError"]
    assert "no tool 'fs_reed'; did you mean 'fs_read'?" in text(answer)
