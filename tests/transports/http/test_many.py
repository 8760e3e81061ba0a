"""Many clients at once that all use the same ids: nobody ever gets what is another's."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from secrets import token_hex
from typing import Any

from posting import Session, call, encode, modern, modern_headers
from serving import Exchange, Served

from .fixture import rigged

CLIENTS, CALLS = 50, 200
TOOLS = ("echo", "later", "threaded", "echo", "count")


def talk(server: Served, session: Session | None) -> list[str]:
    """Make all calls of one client, with ids from 0 on. What came wrong."""
    nonce, wrong = token_hex(8), list[str]()
    connection = server.connect()
    for id, tool in enumerate(islice(cycle(TOOLS), CALLS)):
        text = f"{nonce}-{id}"
        message = call(tool, {"to": 2} if tool == "count" else {"text": text}, id, progressToken=id)
        if session is None:
            message = modern(message)
        headers = list(modern_headers(message)) if session is None else session.headers
        answer = connection.send("POST", "/mcp", headers, encode(message)).finish()
        if not is_mine(answer, id, "counted to 2" if tool == "count" else text):
            wrong.append(f"{tool} {text}: {answer}")
    return wrong


def is_mine(answer: Exchange, id: int, text: str) -> bool:
    *notes, last = answer.messages
    mine = all(note["params"]["progressToken"] == id for note in notes)
    result: dict[str, Any] = last.get("result", {"content": [{}]})
    return mine and last["id"] == id and result["content"][0].get("text") == text


def test_clients_with_the_same_ids_never_get_each_others_answers() -> None:
    with rigged() as (rig, server):
        sessions = [Session(server).open() if n % 2 else None for n in range(CLIENTS)]
        with ThreadPoolExecutor(CLIENTS) as pool:
            wrong = [line for lines in pool.map(lambda session: talk(server, session), sessions) for line in lines]
        assert wrong == []
        assert server.look(lambda: rig.executor.calls) == CLIENTS * CALLS
        assert server.look(lambda: (len(rig.executor.live), rig.executor.running)) == (0, 0)


def test_a_session_may_have_many_requests_at_once_and_each_hears_its_own() -> None:
    with rigged() as (rig, server):
        session = Session(server).open()
        held = [session.post(call("hold_loudly", id=n, progressToken=f"t{n}")) for n in range(40)]
        for exchange in held:
            exchange.wait(lambda it: it.messages)
        server.look(rig.gate.set)
        for n, exchange in enumerate(held):
            note, answer = exchange.finish().messages
            assert (note["params"]["progressToken"], answer["id"]) == (f"t{n}", n)
