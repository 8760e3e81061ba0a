"""Checking a server against its recording."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
from pathlib import Path
from typing import Annotated, Any

import pytest

from longshore import Ask, Client, Context, Limits, Server
from longshore.testing import Answers, acheck, check, record
from longshore.testing.transcript import read_transcript


def shop(price: int = 5, *, chatty: bool = False, clock: Any = None) -> Server:
    app = Server("shop", version="1", limits=Limits(page=2))

    @app.tool(effects="read")
    async def cost(item: str, ctx: Context) -> dict[str, Any]:
        """What it costs."""
        await ctx.info(f"asked for {item}")
        if chatty:
            await ctx.info("and again")
        return {"item": item, "price": price, **({} if clock is None else {"at": next(clock)})}

    for name in "abc":
        app.tool(name=name)(lambda: "x")
    return app


def recorded(path: Path, app: Server, era: str = "auto") -> Path:
    async def work() -> None:
        async with Client(record(app, path), era=era, timeout=5, log_level="info") as client:
            await client.list_tools()
            await asyncio.gather(client.call_tool("cost", {"item": "tea"}), client.call_tool("cost", {"item": "milk"}))

    asyncio.run(work())
    return path


@pytest.fixture(params=["modern", "legacy"])
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_same_server_passes(era: str, tmp_path: Path) -> None:
    path = recorded(tmp_path / "t", shop(), era)
    check(shop(), path)
    asyncio.run(acheck(shop(), path))
    assert sum(line.method == "tools/list" for line in read_transcript(path)) == 2, "there were pages"


def test_another_answer_fails_with_the_difference(era: str, tmp_path: Path) -> None:
    path = recorded(tmp_path / "t", shop(), era)
    with pytest.raises(AssertionError) as caught:
        check(shop(6), path)
    text = str(caught.value)
    assert "tools/call is not answered as it was" in text and f"{path}:" in text
    assert '-      "price": 5' in text and '+      "price": 6' in text


def test_volatile_values_are_not_compared(era: str, tmp_path: Path) -> None:
    count = itertools.count()
    path = recorded(tmp_path / "t", shop(clock=count), era)
    with pytest.raises(AssertionError, match='"at"'):
        check(shop(clock=count), path)
    check(shop(clock=count), path, volatile=["at", "text"])


def test_more_messages_than_recorded_fail(era: str, tmp_path: Path) -> None:
    path = recorded(tmp_path / "t", shop(), era)
    with pytest.raises(AssertionError, match=r"said more than was recorded:\n.*and again"):
        check(shop(chatty=True), path)


def test_fewer_messages_than_recorded_fail(era: str, tmp_path: Path) -> None:
    path = recorded(tmp_path / "t", shop(chatty=True), era)
    with pytest.raises(AssertionError, match=r"(?s)did not say this: it did not come within 2 s.*and again"):
        check(shop(), path, timeout=2)


def test_a_server_that_exits_fails_with_its_stderr(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t", shop())
    code = "import sys; sys.stdin.readline(); sys.exit('out of order')"
    with pytest.raises(AssertionError, match=r"(?s)the connection was lost.*out of order"):
        check([sys.executable, "-c", code], path)


def test_ids_of_server_requests_may_differ(tmp_path: Path) -> None:
    app = Server("asking")

    @app.tool
    async def refund(ok: Annotated[bool, Ask("Refund?")]) -> str:
        """Refund."""
        return f"refunded: {ok}"

    async def work() -> None:
        async with Client(record(app, path), era="legacy", timeout=5, on_elicit=Answers(True)) as client:
            await client.call_tool("refund")

    path = tmp_path / "t"
    asyncio.run(work())
    asked = next(line.id for line in read_transcript(path) if line.method == "elicitation/create")
    text, id = path.read_text(), json.dumps(asked)
    assert text.count(f'"id":{id}') == 2
    path.write_text(text.replace(f'"id":{id}', '"id":"then"'))
    check(app, path)


ODD = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        agreed = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        agreed["serverInfo"] = {"name": "t", "version": "1"}
        print(json.dumps({"jsonrpc": "2.0", "id": id, "result": agreed}), flush=True)
    elif method == "tools/call":
        token = message["params"]["_meta"]["progressToken"]
        said = [
            {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": n}}
            for n in (1, 2)
        ]
        said = [json.dumps(each) for each in [*said, {"jsonrpc": "2.0", "id": id, "result": {"content": []}}]]
        how = sys.argv[1]
        if how == "backwards":
            said.reverse()
        elif how == "deep":
            said[2] = '{"jsonrpc":"2.0","id":%d,"result":{"content":%s}}' % (id, "[" * 900 + "]" * 900)
        elif how == "ids":
            said[2] = '{"jsonrpc":"2.0","id":[1],"result":{"content":[]}}'
        print(*said, sep="\\n", flush=True)
"""


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("straight", None),
        ("backwards", None),
        ("deep", "(?s)it did not come within 1 s.*nesting is deeper than 128 levels"),
        ("ids", "it did not come within 1 s"),
    ],
)
def test_answers_may_come_in_another_order_but_must_come(how: str, says: str | None, tmp_path: Path) -> None:
    def command(how: str) -> list[str]:
        return [sys.executable, "-c", ODD, how]

    async def work() -> None:
        async with Client(record(command("straight"), tmp_path / "t"), era="legacy", timeout=5) as client:
            await client.call_tool("a", on_progress=lambda *_: None)

    asyncio.run(work())
    if says is None:
        check(command(how), tmp_path / "t")
        return
    with pytest.raises(AssertionError, match=says):
        check(command(how), tmp_path / "t", timeout=1)


def test_volatile_takes_names(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"write volatile=\['at'\]"):
        check(shop(), tmp_path / "t", volatile="at")


def test_patterns_bind_values_in_a_check(tmp_path: Path) -> None:
    app = Server("t")
    ids = itertools.count(700)

    @app.tool
    async def book() -> str:
        """Book a seat."""
        return f"seat-{next(ids)}"

    @app.tool
    async def cancel(seat: str) -> str:
        """Give it back."""
        return f"gave {seat} back"

    prefix = "io.modelcontextprotocol/"
    meta = f'"_meta":{{"{prefix}protocolVersion":"2026-07-28","{prefix}clientCapabilities":{{}}}}'
    path = tmp_path / "t"
    path.write_text(f"""
@let J "jsonrpc":"2.0"
@let M {meta}
> {{$J,"id":1,"method":"tools/call","params":{{"name":"book","arguments":{{}},$M}}}}
< {{$J,"id":1,"result":{{"content":[{{"type":"text","text":"…seat"}}],"…":"…"}}}}
> {{$J,"id":2,"method":"tools/call","params":{{"name":"cancel","arguments":{{"seat":"…seat"}},$M}}}}
< {{$J,"id":2,"result":{{"content":[{{"type":"text","text":"…gave seat-…"}}],"…":"…"}}}}
""")
    check(app, path)
    path.write_text(path.read_text().replace("gave", "took"))
    with pytest.raises(AssertionError):
        check(app, path)


def test_a_loop_that_runs_is_not_blocked_by_another_server(tmp_path: Path) -> None:
    path = recorded(tmp_path / "t", shop())

    async def work() -> None:
        check(shop(), path)

    asyncio.run(work())
