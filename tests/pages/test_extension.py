"""The pages on middleware, state and own checks of tokens: their code is that of examples, which do what they say."""

from __future__ import annotations

import asyncio
import json
import re
import runpy
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from longshore import Client, Server, ToolFailed
from posting import ask_modern, bearer, call, modern, post_modern
from serving import serve
from waiting import PATIENCE

ROOT = Path(__file__).parents[2]
EXAMPLES = [
    path for name in ("middleware", "state", "auth") for path in sorted((ROOT / "examples" / name).glob("*.py"))
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def load(path: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / path))


def run(app: Server, script: Callable[[Client], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(PATIENCE), Client(app) as client:
            await script(client)

    asyncio.run(main())


@pytest.mark.parametrize("page", ["middleware.md", "state.md", "authorization.md"])
def test_the_code_on_the_page_is_that_of_an_example(page: str) -> None:
    sources = [path.read_text() for path in EXAMPLES]
    blocks = [block for block in BLOCK.findall((ROOT / "docs" / page).read_text()) if "Starlette(" not in block]
    assert blocks
    for block in blocks:
        assert any(block in source for source in sources), block


def test_the_cache_answers_from_memory_until_something_is_written_or_a_result_expires() -> None:
    found = load("middleware/cache.py")
    looked_up: list[str] = found["looked_up"]

    async def script(client: Client) -> None:
        for expected in (["tea"], ["tea"], ["tea", "tea"]):
            if expected == ["tea", "tea"]:
                await client.call_tool("change_prices")
            result = await client.call_tool("price", {"item": "tea"})
            assert result.text == "300"
            assert looked_up == expected

    run(found["app"], script)
    now = [0.0]
    timed, calls = Server("timed"), list[str]()
    timed.add_middleware(found["ReadCache"](seconds=60, most=1, clock=lambda: now[0]))

    @timed.tool(effects="read")
    def look(item: str) -> str:
        calls.append(item)
        return item

    async def later(client: Client) -> None:
        for at, item, count in ((0, "a", 1), (59.9, "a", 1), (60, "a", 2), (61, "b", 3), (62, "a", 4)):
            now[0] = at
            assert (await client.call_tool("look", {"item": item})).text == item
            assert len(calls) == count

    run(timed, later)


def test_the_audit_log_has_a_line_for_each_call_however_it_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app: Server = load("middleware/audit_log.py")["app"]

    async def script(client: Client) -> None:
        await client.call_tool("close_account", {"number": 2000})
        with pytest.raises(ToolFailed, match="there is no account 7"):
            await client.call_tool("close_account", {"number": 7})
        waiting = asyncio.ensure_future(client.call_tool("wait_for_clearance"))
        while not app.engine.executor.live:
            await asyncio.sleep(0)
        waiting.cancel()
        while app.engine.executor.live or app.engine.executor.cancelled_tasks:
            await asyncio.sleep(0)

    run(app, script)
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [(each["tool"], each["arguments"], each["outcome"]) for each in lines] == [
        ("close_account", {"number": 2000}, "ok"),
        ("close_account", {"number": 7}, "failed"),
        ("wait_for_clearance", {}, "stopped"),
    ]
    assert {each["principal"] for each in lines} == {"local"}


def test_the_database_is_there_for_every_call() -> None:
    async def script(client: Client) -> None:
        assert [(await client.call_tool("add_note", {"text": each})).text for each in "ab"] == ["1", "2"]

    run(load("state/lifespan.py")["app"], script)


def test_the_cart_belongs_to_the_session() -> None:
    async def script(client: Client) -> None:
        carts = [(await client.call_tool("put_into_cart", {"item": each})).text for each in ("tea", "milk")]
        assert carts == ['["tea"]', '["tea","milk"]']
        await client.call_tool("empty_cart")
        assert (await client.call_tool("put_into_cart", {"item": "bread"})).text == '["bread"]'

    run(load("state/cart.py")["app"], script)


def test_the_table_of_keys_lets_its_callers_in() -> None:
    with serve(load("auth/keys.py")["app"].asgi()) as served:
        answer = ask_modern(served, call("whoami"), bearer("ann-s3cret-of-the-example"))
        assert answer.json["result"]["content"][0]["text"] == "ann"
        refused = post_modern(served, modern(call("whoami")), bearer("bob-s3cret-of-the-example")).finish()
        assert refused.status == 401
