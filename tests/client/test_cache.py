"""The cache: which answers it holds, for how long, and what drops them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from client.scripted import script, until
from longshore.client import Client
from longshore.client.server_lists import MOST, MOST_BYTES, MOST_SECONDS, Cache, lifetime

SERVER = """
version = 0
for m in modern_calls():
    method = m["method"]
    mark("asked", method)
    version += 1
    keep = KEEP
    match method:
        case "tools/list": reply(m, dict(tools=[dict(TOOL, name=f"v{version}")], resultType="complete", **keep))
        case "resources/read": reply(m, dict(contents=[dict(uri=m["params"]["uri"], text=f"v{version}")], **keep))
        case "prompts/get": reply(m, dict(messages=[], description=f"v{version}", **keep))
        case "tools/call": reply(m, dict(text(f"v{version}"), **keep))
    AFTER
"""
CAPABILITIES = "CAPABILITIES.update(tools=dict(listChanged=True), resources=dict(listChanged=True, subscribe=True))\n"


def connect_to(folder: Path, keep: str, after: str = "pass", **options: Any) -> Client:
    # tools/list is answered by the script, not as usual
    code = "_usual = usual\ndef usual(m): return m.get('method') != 'tools/list' and _usual(m)\n" + CAPABILITIES
    code += SERVER.replace("KEEP", keep).replace("AFTER", after)
    return Client(script(folder, code), **{"era": "modern", "timeout": 10.0, **options})


def asked(folder: Path, method: str) -> int:
    path = folder / "asked"
    return path.read_text().split().count(method) if path.exists() else 0


async def names(client: Client, **options: Any) -> str:
    return (await client.list_tools(**options))[0].name


async def contents(client: Client, uri: str = "x://a", **options: Any) -> str | None:
    return (await client.read_resource(uri, **options))[0].text


async def test_a_cached_answer_is_not_requested_again(tmp_path: Path) -> None:
    async with connect_to(tmp_path, "dict(ttlMs=600000, cacheScope='private')") as client:
        assert [await names(client) for _ in range(3)] == ["v1"] * 3
        assert [await contents(client) for _ in range(3)] == ["v2"] * 3
        assert await contents(client, "x://b") == "v3", "another is another"
        assert await contents(client, "x://a") == "v2"
        assert await names(client, fresh=True) == "v4"
        assert await names(client) == "v4", "what is fresh is kept in turn"
        assert await contents(client, fresh=True) == "v5"
        assert (await client.call_tool("x")).text != (await client.call_tool("x")).text, "a call is never kept"
        first, second = await client.get_prompt("p"), await client.get_prompt("p")
        assert first.description != second.description


@pytest.mark.parametrize("scope", ["'public'", "'private'", "'nonsense'", "None", "5"])
async def test_the_cache_ignores_the_scope(tmp_path: Path, scope: str) -> None:
    """A client has one login, so that its own cache serves it alone, whatever the scope. Two clients share nothing."""
    keep = f"dict(ttlMs=600000, cacheScope={scope})"
    async with connect_to(tmp_path, keep) as client:
        assert [await names(client) for _ in range(2)] == ["v1"] * 2
        async with connect_to(tmp_path, keep) as other:
            await names(other)
    assert asked(tmp_path, "tools/list") == 2


@pytest.mark.parametrize(
    "keep",
    [
        "{}",
        "dict(ttlMs=0)",
        "dict(ttlMs=-5)",
        "dict(ttlMs='600000')",
        "dict(ttlMs=None)",
        "dict(ttlMs=True)",
        "dict(ttlMs=[1])",
        "dict(ttl=600000)",
        "dict(_meta=dict(ttlMs=600000))",
    ],
)
async def test_an_answer_without_ttl_is_not_cached(tmp_path: Path, keep: str) -> None:
    async with connect_to(tmp_path, keep) as client:
        assert [await names(client), await names(client)] == ["v1", "v2"]
        assert [await contents(client), await contents(client)] == ["v3", "v4"]


@pytest.mark.parametrize("ttl", ["10**30", "1e308", "2**63", "10**400"])
async def test_for_ever_is_no_trouble(tmp_path: Path, ttl: str) -> None:
    async with connect_to(tmp_path, f"dict(ttlMs={ttl})") as client:
        assert await names(client) == "v1"
        assert await names(client) in ("v1", "v2")


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_nothing_is_cached_for_longer_than_a_day(more: int) -> None:
    assert lifetime({"ttlMs": 1000 * MOST_SECONDS + more}) == MOST_SECONDS + min(more, 0) / 1000


async def test_it_is_over_when_it_is_over(tmp_path: Path) -> None:
    async with connect_to(tmp_path, "dict(ttlMs=150)") as client:
        assert await names(client) == "v1"

        async def newer() -> bool:
            return await names(client) != "v1"

        async with asyncio.timeout(10):
            while not await newer():
                await asyncio.sleep(0.02)


async def test_nothing_is_cached_with_cache_false(tmp_path: Path) -> None:
    async with connect_to(tmp_path, "dict(ttlMs=600000)", cache=False) as client:
        assert [await names(client), await names(client)] == ["v1", "v2"]
        assert [await contents(client), await contents(client)] == ["v3", "v4"]


async def test_another_connection_is_another_server(tmp_path: Path) -> None:
    after = "if method == 'tools/call': sys.exit(0)"
    async with connect_to(tmp_path, "dict(ttlMs=600000)", after) as client:
        assert await names(client) == "v1"
        await client.call_tool("x")
        await until("that it is noticed", lambda: not client.connected)
        await names(client)
        assert asked(tmp_path, "tools/list") == 2


async def test_a_reopened_client_has_an_empty_cache(tmp_path: Path) -> None:
    client = connect_to(tmp_path, "dict(ttlMs=600000)")
    for times in (1, 2, 3):
        async with client:
            for _ in range(2):
                await names(client)
                await contents(client)
            assert asked(tmp_path, "tools/list") == asked(tmp_path, "resources/read") == times


# -- notices

NOTICES = {
    "notify('notifications/tools/list_changed')": ("tools/list", True),
    "notify('notifications/resources/updated', uri='x://a')": ("resources/read", True),
    "notify('notifications/prompts/list_changed')": ("tools/list", False),
    "notify('notifications/resources/updated', uri='x://a/b')": ("resources/read", True),  # which is a part of it
    "notify('notifications/resources/updated', uri='x://ab')": ("resources/read", False),
    "notify('notifications/resources/updated', uri='x://')": ("resources/read", False),
    "notify('notifications/resources/updated', uri='')": ("resources/read", False),
    "notify('notifications/resources/updated', uri='x://b')": ("resources/read", False),
    "notify('notifications/resources/updated')": ("resources/read", False),
    "send(dict(jsonrpc='2.0', method='notifications/tools/list_changed'))": ("tools/list", True),
}


@pytest.mark.parametrize(("notice", "effect"), NOTICES.items(), ids=list(NOTICES))
async def test_a_notification_drops_only_the_cached_answers_it_names(
    tmp_path: Path, notice: str, effect: tuple[str, bool]
) -> None:
    method, ends = effect
    after = f"if method == 'tools/call': {notice}"
    async with connect_to(tmp_path, "dict(ttlMs=600000)", after) as client:
        for _ in range(2):
            await names(client)
            await contents(client)
        await client.call_tool("x")
        await client.call_tool("x")  # by whose answer the notice has surely come
        await names(client)
        await contents(client)
        assert asked(tmp_path, method) == (2 if ends else 1)


async def test_a_notice_right_behind_the_answer_ends_that_too(tmp_path: Path) -> None:
    """Both come in one piece: the answer was old when it was read."""
    code = (
        CAPABILITIES
        + """
version = 0
for m in modern_calls():
    mark("asked", m["method"])
    version += 1
    answer = dict(contents=[dict(uri="x://a", text=f"v{version}")], ttlMs=600000)
    both = [dict(jsonrpc="2.0", id=m["id"], result=answer),
            dict(jsonrpc="2.0", method="notifications/resources/updated", params=dict(uri="x://a"))]
    raw(b"".join(json.dumps(each).encode() + b"\\n" for each in (both if version == 1 else both[:1])))
"""
    )
    async with Client(script(tmp_path, code), era="modern", timeout=10) as client:
        assert await contents(client) == "v1"
        assert await contents(client) == "v2", "what changed since is asked for again"
        assert await contents(client) == "v2"


async def test_callers_get_copies_of_cached_answers(tmp_path: Path) -> None:
    async with connect_to(tmp_path, "dict(ttlMs=600000)") as client:
        [tool] = await client.list_tools()
        tool.record["name"] = "changed"
        tool.input_schema["changed"] = True
        [again] = await client.list_tools()
        assert again.name == "v1"
        assert again.record["name"] == "v1"
        assert again.input_schema == {"type": "object"}


async def test_an_answer_after_questions_is_not_cached(tmp_path: Path) -> None:
    code = """
        n = 0
        for m in modern_calls():
            n += 1
            contents = {"contents": [{"uri": "a:b", "text": str(n)}], "ttlMs": 60000, "cacheScope": "private"}
            if m["params"]["uri"] == "a:asks" and "inputResponses" not in m["params"]:
                question = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": {}}}
                reply(m, {"resultType": "input_required", "inputRequests": {"q": question}})
            else:
                reply(m, contents)
    """
    async with Client(script(tmp_path, code), era="modern", on_elicit=lambda _: True) as client:

        async def read(uri: str) -> str | None:
            return (await client.read_resource(uri))[0].text

        assert [await read("a:plain"), await read("a:plain")] == ["1", "1"]
        assert [await read("a:asks"), await read("a:asks")] == ["3", "5"]
        assert await read("a:plain") == "1"


def test_the_cache_is_bounded_in_number_and_size() -> None:
    cache = Cache()
    for n in range(MOST + 1):
        cache.put(("m", str(n)), {"ttlMs": 1000}, 0.0)
    assert cache.get(("m", "0"), 0.0) is None and cache.get(("m", "1"), 0.0) is not None
    half = {"ttlMs": 1000, "contents": [{"text": "x" * (MOST_BYTES // 2)}]}
    cache.clear()
    cache.put(("m", "a"), half, 0.0)
    cache.put(("m", "b"), half, 0.0)
    assert cache.get(("m", "a"), 0.0) is None and cache.get(("m", "b"), 0.0) is not None
    cache.put(("m", "c"), {"ttlMs": 1000, "text": "x" * MOST_BYTES, "more": ["y"]}, 0.0)
    assert cache.get(("m", "c"), 0.0) is None and cache.get(("m", "b"), 0.0) is not None
    cache.drop("m")
    cache.put(("m", "a"), half, 0.0)
    assert cache.get(("m", "a"), 0.0) is not None


@pytest.mark.parametrize("ttl", [0, -1, True, "1000", None])
def test_an_uncacheable_answer_drops_the_cached_one(ttl: Any) -> None:
    cache = Cache()
    cache.put(("m", None), {"ttlMs": 1000}, 0.0)
    cache.put(("m", None), {"ttlMs": ttl}, 0.0)
    assert cache.get(("m", None), 0.0) is None
