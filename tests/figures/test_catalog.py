"""The catalogue and the requests that search in tools is held to."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.catalog_capture import SOURCES as SERVERS
from benchmarks.catalog_capture import Source, capture
from benchmarks.catalog_corpus import FOLDER, SOURCES, read_requests, read_tools
from benchmarks.environment import HERE, pinned
from benchmarks.stdio_server import StdioServer

QUICK = [server for server in SERVERS if server.prefix in ("filesystem", "memory")]


def source_of(name: str) -> str:
    prefix = name.partition("_")[0]
    return prefix if prefix in SOURCES else "services"


def test_300_tools_have_names_of_their_own_and_are_described() -> None:
    tools = read_tools()
    assert len({tool["name"] for tool in tools}) == len(tools) == 300
    for tool in tools:
        assert tool["description"].strip(), tool["name"]
        assert tool["inputSchema"]["type"] == "object", tool["name"]


@pytest.mark.parametrize("fresh", [False, True], ids=["first", "fresh"])
def test_100_requests_are_answered_by_tools_of_every_source(fresh: bool) -> None:
    names = {tool["name"] for tool in read_tools()}
    requests = read_requests(fresh=fresh)
    assert len({request.text for request in requests}) == len(requests) == 100
    for request in requests:
        assert request.tools, request.text
        assert request.tools <= names, request.text
    answering = Counter(source_of(name) for request in requests for name in request.tools)
    assert set(answering) == set(SOURCES)
    assert sum(all(source_of(name) == "services" for name in request.tools) for request in requests) == 60


def test_no_fresh_request_is_one_of_the_first() -> None:
    assert {request.text for request in read_requests()}.isdisjoint(
        request.text for request in read_requests(fresh=True)
    )


def test_the_listings_are_those_of_the_locked_versions() -> None:
    for server in SERVERS:
        source = json.loads((FOLDER / f"{server.prefix}.json").read_text())["source"]
        assert source == f"{server.package} {pinned(server.package, server.pins)}", (
            "run: python -m benchmarks.catalog_capture"
        )


@pytest.mark.parametrize("server", QUICK, ids=lambda server: server.prefix)
def test_a_listing_is_what_the_server_says(server: Source, tmp_path: Path) -> None:
    assert asyncio.run(capture(server, tmp_path)) == json.loads((FOLDER / f"{server.prefix}.json").read_text())["tools"]


def test_the_server_of_the_catalogue_lists_it_and_answers(tmp_path: Path) -> None:
    command = [sys.executable, str(HERE / "servers" / "catalog_server.py")]
    with StdioServer(command, folder=tmp_path, home=tmp_path) as server:
        listed = server.ask("tools/list").result["tools"]
        texts = [server.call(name, **arguments).text for name, arguments in [
            ("calendar_list_calendars", {}), ("memory_read_graph", {}), ("maps_geocode", {"address": "Oslo"}),
        ]]  # fmt: skip
    # Tools of ours have no field for tasks.
    assert listed == [{key: tool[key] for key in tool if key != "execution"} for tool in read_tools()]
    assert texts == ["ok"] * 3
