"""docs/from-fastmcp.md and docs/from-official-sdk.md: what they quote runs, and both halves answer the same."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from longshore import ServerError, SyncClient, ToolFailed
from waiting import PATIENCE

from .client.peers import command

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "coming_from"
PAGES = {"fastmcp": "from-fastmcp.md", "official": "from-official-sdk.md"}
QUOTE = re.compile(r"^```python\n# examples/coming_from/(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINES = ["['price', 'order']", "{'item': 'tea', 'cents': 500}", "milk: 99"]
WRONG = {"item": "tea", "peaces": 2}
both = pytest.mark.parametrize("peer", PAGES)


def program(peer: str) -> str:
    """The Python that has the peer's package."""
    return command("fast")[0] if peer == "fastmcp" else sys.executable


def server(name: str, peer: str = "") -> list[str]:
    return [program(peer), str(EXAMPLES / f"{name}.py")]


def before(peer: str, era: str = "legacy") -> SyncClient:
    return connect(server(f"{peer}_before", peer), era)


def after(era: str = "legacy") -> SyncClient:
    return connect(server("after"), era)


def connect(argv: list[str], era: str) -> SyncClient:
    env = {"FASTMCP_CHECK_FOR_UPDATES": "off"}  # it would ask the package index
    return SyncClient(
        argv, era=era, env=env, on_elicit=lambda question: dict.fromkeys(question.schema["properties"], True)
    )


def offer(client: SyncClient) -> Any:
    """What clients see of a server: the tools with their parameters, answers, failures, resources and prompts."""
    tools = [
        (tool.name, tool.description, tool.annotations, list(tool.input_schema["properties"]))
        for tool in client.list_tools()
    ]
    missing = client.call_tool("price", {"item": "cup"}, check=False)
    return (
        tools,
        client.call_tool("price", {"item": "tea", "pieces": 2}).structured,
        (missing.is_error, missing.text.removeprefix("Error executing tool price: ")),
        client.call_tool("order", {"item": "tea"}).text,
        client.read_resource("prices://milk")[0].text,
        client.get_prompt("letter", {"item": "tea"}).messages,
    )


@both
def test_the_server_answers_as_before(peer: str) -> None:
    with before(peer) as old, after() as new:
        assert offer(new) == offer(old)


@both
def test_the_clients_print_the_same(peer: str) -> None:
    env = {**os.environ, "FASTMCP_CHECK_FOR_UPDATES": "off"}
    for argv in (
        [*server(f"{peer}_client_before", peer), str(EXAMPLES / f"{peer}_before.py")],
        [*server("client_after"), str(EXAMPLES / "after.py")],
    ):
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert (done.returncode, done.stdout.splitlines()) == (0, LINES), done.stderr


@both
def test_the_question_works_in_the_modern_era_only_with_ours(peer: str) -> None:
    with after("modern") as new:
        assert new.call_tool("order", {"item": "tea"}).text == "tea is ordered"
    with before(peer, "modern") as old, pytest.raises((ToolFailed, ServerError), match="server-initiated requests"):
        old.call_tool("order", {"item": "tea"})


def test_only_the_sdk_ignores_an_argument_that_the_tool_does_not_have() -> None:
    with before("official") as old:
        assert old.call_tool("price", WRONG).structured == {"item": "tea", "cents": 250}
    with after() as new, pytest.raises(ToolFailed, match="did you mean pieces"):
        new.call_tool("price", WRONG)


def test_the_sdk_puts_words_before_a_failure() -> None:
    with before("official") as old, after() as new:
        texts = [client.call_tool("price", {"item": "cup"}, check=False).text for client in (old, new)]
    assert texts == ["Error executing tool price: there is no cup", "there is no cup"]


def test_the_text_of_an_unexpected_exception_reaches_the_client_only_with_fastmcp() -> None:
    with before("fastmcp") as old, after() as new:
        with pytest.raises(ServerError) as told:
            old.read_resource("prices://cup")
        with pytest.raises(ServerError) as logged:
            new.read_resource("prices://cup")
    assert told.value.message.endswith(": 'cup'")
    assert re.fullmatch("shelf failed unexpectedly; the server's log has it as error [0-9a-f]+", logged.value.message)


@pytest.mark.parametrize("page", PAGES.values())
def test_the_page_quotes_whole_examples(page: str) -> None:
    text = (ROOT / "docs" / page).read_text()
    quotes = QUOTE.findall(text)
    assert len(quotes) == text.count("```python") == 4
    assert [name for name, code in quotes if code != (EXAMPLES / name).read_text()] == []
