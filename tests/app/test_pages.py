"""Lists in pages: opaque cursors that stay good while the list changes."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from longshore import Limits, Server
from talk import NEWEST, Client, Refused, converse, result

LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def server(count: int, page: int = 3) -> Server:
    """A server with so many of each."""
    app = Server("t", limits=Limits(page=page))
    for n in range(count):
        app.tool(name=f"t{n}")(lambda: "x")
        app.prompt(name=f"t{n}")(lambda: "x")
        app.resource(f"a://{n}", name=f"t{n}")(lambda: "x")
        app.resource(f"b{n}://{{x}}", name=f"t{n}")(lambda x: x)
    return app


async def pages(client: Client, method: str) -> list[list[str]]:
    found: list[list[str]] = []
    cursor: dict[str, Any] = {}
    while True:
        page = await client.request(method, cursor)
        found.append([entry["name"] for entry in page[LISTS[method]]])
        if "nextCursor" not in page:
            return found
        assert isinstance(page["nextCursor"], str)
        cursor = {"cursor": page["nextCursor"]}


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize(("count", "sizes"), [(1, [1]), (2, [2]), (3, [3]), (4, [3, 1]), (6, [3, 3]), (7, [3, 3, 1])])
def test_the_pages_of_a_list_are_the_list(method: str, count: int, sizes: list[int]) -> None:
    async def script(client: Client) -> None:
        found = await pages(client, method)
        assert [len(page) for page in found] == sizes
        assert [name for page in found for name in page] == [f"t{n}" for n in range(count)]

    converse(server(count), script)


@pytest.mark.parametrize("method", LISTS)
@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "!!!!",
        "é",
        "AAAA",
        encoded("3:nothing"),
        encoded("9" * 5000),
        encoded("x:t3"),
        5,
        {},
    ],
)
def test_a_cursor_that_we_never_gave_is_an_invalid_parameter(method: str, cursor: Any) -> None:
    with pytest.raises(Refused) as caught:
        result(server(7), method, {"cursor": cursor})
    assert caught.value.code == -32602


def test_a_forged_position_gives_a_true_page_or_none() -> None:
    for position in (-1, -7, 99):
        page = result(server(7), "tools/list", {"cursor": encoded(f"{position}:t6")})
        assert [tool["name"] for tool in page["tools"]] == ["t6"]


def test_a_cursor_stays_good_while_others_come_and_go() -> None:
    app = server(7)

    async def script(client: Client) -> None:
        first = await client.request("tools/list")
        app.remove_tool("t0")
        app.tool(name="t7")(lambda: "x")
        second = await client.request("tools/list", {"cursor": first["nextCursor"]})
        assert [tool["name"] for tool in second["tools"]] == ["t3", "t4", "t5"]
        third = await client.request("tools/list", {"cursor": second["nextCursor"]})
        assert [tool["name"] for tool in third["tools"]] == ["t6", "t7"]

    converse(app, script)


def test_a_cursor_to_a_removed_entry_is_refused_with_the_fix() -> None:
    app = server(7)

    async def script(client: Client) -> None:
        first = await client.request("tools/list")
        app.remove_tool("t3")
        with pytest.raises(Refused, match="begin again without one") as caught:
            await client.request("tools/list", {"cursor": first["nextCursor"]})
        assert caught.value.code == -32602

    converse(app, script)


def test_resources_of_one_name_are_distinguished_by_uri() -> None:
    app = Server("t", limits=Limits(page=2))
    for n in range(5):
        app.resource(f"a://{n}", name="same")(lambda: "x")

    async def script(client: Client) -> None:
        first = await client.request("resources/list")
        del app.catalog.resources["a://0"]
        app.catalog.changed({"resources"})
        second = await client.request("resources/list", {"cursor": first["nextCursor"]})
        assert [resource["uri"] for resource in second["resources"]] == ["a://2", "a://3"]

    converse(app, script)


def test_every_page_of_the_modern_era_carries_the_same_cache_scope() -> None:
    app = server(7)

    async def script(client: Client) -> None:
        cursor: dict[str, Any] = {}
        for _ in range(3):
            page = await client.request("tools/list", cursor)
            assert (page["resultType"], page["ttlMs"], page["cacheScope"]) == ("complete", 0, "private")
            cursor = {"cursor": page.get("nextCursor")}

    converse(app, script, NEWEST)
