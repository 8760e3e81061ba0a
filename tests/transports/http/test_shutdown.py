"""The end of the server: what runs may finish, the rest is answered, every stream ends, nothing new is taken."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from longshore import Limits
from posting import Session, call, modern, post_modern, request
from serving import Exchange, Served

from .fixture import UVICORN, Extra, Rig, rigged

LATE = Limits(stream_after_seconds=0.01)
TOKEN = {"progressToken": 1}


def busy(rig: Rig, server: Served, session: Session) -> list[Exchange]:
    """Calls of every kind that wait for the gate: as JSON, as streams, in both eras."""
    json_only = ("Accept", "application/json")
    held = [
        post_modern(server, modern(call("hold")), json_only),
        post_modern(server, modern(call("hold"))),
        post_modern(server, modern(call("hold_loudly", **TOKEN))),
        session.post(call("hold", id=1), json_only),
        session.post(call("hold", id=2)),
        session.post(call("hold_loudly", id=3, **TOKEN)),
    ]
    server.until(lambda: rig.befell["held"] == len(held))
    return held


def text(exchange: Exchange) -> str:
    return str(exchange.finish().messages[-1]["result"]["content"][0]["text"])


def test_what_finishes_within_the_grace_is_answered() -> None:
    with rigged(LATE) as (rig, server):
        session = Session(server).open()
        stream = session.get().begin()
        held = busy(rig, server, session)
        ending: list[asyncio.Task[Any]] = []
        server.look(lambda: ending.append(asyncio.ensure_future(rig.app.shut(30))))
        server.until(lambda: rig.app.stopping)
        stream.finish()
        for exchange in (session.post(call("echo")), session.get(), post_modern(server, modern(call("echo")))):
            assert (exchange.finish().status, exchange.headers["connection"]) == (503, "close")
        server.look(rig.gate.set)
        assert [text(exchange) for exchange in held] == ["released"] * len(held)
        server.until(lambda: ending[0].done())


def test_what_does_not_is_told_so() -> None:
    with rigged(LATE) as (rig, server):
        session = Session(server).open()
        held = busy(rig, server, session)
        server.do(lambda: rig.app.shut(0))
        for exchange in held:
            assert "was stopped: the server was shut down" in text(exchange)
            assert exchange.messages[-1]["result"]["isError"] is True
        assert rig.befell["cancelled"] == len(held)


def test_a_call_that_waits_for_the_client_does_not_hold_the_end() -> None:
    with rigged(LATE) as (rig, server):
        session = Session(server).open({"elicitation": {}})
        asking = session.post(call("refund", {"order": "A9"})).wait(lambda it: it.messages)
        server.do(lambda: rig.app.shut(0.05))
        answer = asking.finish().messages[-1]
        assert answer["result"]["isError"] is True


def test_an_answer_that_comes_within_the_grace_lets_the_call_end() -> None:
    with rigged(LATE) as (rig, server):
        session = Session(server).open({"elicitation": {}})
        asking = session.post(call("refund", {"order": "A9"})).wait(lambda it: it.messages)
        ending: list[asyncio.Task[Any]] = []
        server.look(lambda: ending.append(asyncio.ensure_future(rig.app.shut(30))))
        server.until(lambda: rig.app.stopping)
        question = asking.messages[0]
        answer = {"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"ok": True}}}
        assert session.post(answer).finish().status == 202
        assert "isError" not in asking.finish().messages[-1]["result"]
        server.until(lambda: ending[0].done())


@pytest.mark.parametrize("grace", [0.0, 30.0])
def test_an_idle_server_ends_at_once_whatever_is_connected(grace: float) -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        streams = [
            session.get().begin(),
            post_modern(server, modern(request("subscriptions/listen", {"notifications": {}}))).begin(),
            server.send("GET", "/sse").begin(),
        ]
        server.do(lambda: rig.app.shut(grace))
        for stream in streams:
            stream.finish()
        assert session.post(request("ping")).finish().status == 503
        server.until(lambda: not server.busy, "the end of every request")


@UVICORN
def test_what_changes_while_it_closes_is_not_sent_to_a_store_that_is_gone(tmp_path: Path) -> None:
    """As when mounted servers are taken away at the end: "the store is closed; open a new one", with a trace."""
    problems: list[str] = []

    async def main() -> None:
        rig = Rig(store=f"sqlite:///{tmp_path}/sessions.db")
        rig.server.listen(lambda it: problems.append(str(it)) if getattr(it, "level", "") == "error" else None)
        rig.app.closing = lambda: took_away(rig)
        await rig.app.start()
        await rig.app.shut(0)
        await rig.app.close()
        rig.server.resource_changed("note://a")
        for _ in range(9):
            await asyncio.sleep(0)

    async def took_away(rig: Rig) -> None:
        rig.server.add_toolset(Extra())

    asyncio.run(main())
    assert problems == []
