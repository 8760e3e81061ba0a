"""Whose session it is, and with which rights a request of it is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from longshore import Limits
from longshore.server.engine import Rates
from posting import Session, call, request

from .fixture import rigged

PEOPLE = """
[tokens.alice]
token = "alice-token-0123456789abcdef"
[tokens.bob]
token = "bob-token-0123456789abcdefgh"
"""
TOKENS = {"alice": "alice-token-0123456789abcdef", "bob": "bob-token-0123456789abcdefgh"}


@pytest.fixture
def people(tmp_path: Path) -> str:
    path = tmp_path / "longshore.toml"
    path.write_text(PEOPLE)
    return str(path)


def bearer(token: str) -> tuple[str, str]:
    return "Authorization", f"Bearer {TOKENS.get(token, token)}"


def test_whoever_has_the_most_sessions_makes_room(people: str) -> None:
    with rigged(Limits(sessions=5), config_path=people) as (rig, server):
        alices = [Session(server, headers=[bearer("alice")]).open() for _ in range(2)]
        assert [each.call("echo", text="mine") for each in alices] == ["mine", "mine"]
        bobs = list[Session]()
        for _ in range(20):
            bobs.append(Session(server, headers=[bearer("bob")]).open())
            assert bobs[-1].call("echo", text="mine") == "mine"
        assert server.look(rig.stored) == 5
        assert [each.post(request("ping")).finish().status for each in alices] == [200, 200]
        assert [each.post(request("ping")).finish().status for each in bobs] == [404] * 17 + [200] * 3


@pytest.mark.parametrize(("count", "refused"), [(2, 0), (3, 0), (4, 1)])
def test_the_handshakes_of_one_principal_have_a_rate(people: str, count: int, refused: int) -> None:
    with rigged(Limits(handshakes=3), config_path=people) as (rig, server):
        server.look(lambda: setattr(rig.app, "handshakes", Rates(0.3, 3, lambda: 1000.0)))
        answers = [Session(server, headers=[bearer("alice")]).initialize().finish() for _ in range(count)]
        assert [each.status for each in answers] == [200] * (count - refused) + [429] * refused
        for answer in answers[count - refused :]:
            assert answer.headers["retry-after"] == "4" and "mcp-session-id" not in answer.headers
            assert answer.json["id"] == "init" and "too often" in answer.json["error"]["message"]
        assert server.look(rig.stored) == count - refused
        assert Session(server, headers=[bearer("bob")]).initialize().finish().status == 200


def test_callers_without_a_principal_have_a_rate_for_each_address() -> None:
    with rigged(Limits(handshakes=3)) as (_, server):
        answers = [Session(server).initialize().finish().status for _ in range(20)]
        assert answers[:3] == [200] * 3 and 429 in answers


def test_a_stream_of_another_session_is_not_there(people: str) -> None:
    with rigged(config_path=people) as (_, server):
        alices, bobs = (Session(server, headers=[bearer(name)]).open() for name in ("alice", "bob"))
        events = alices.post(call("count", {"to": 3}, progressToken=1)).finish().events
        assert bobs.get(events[0].id).finish().status == 400
        assert alices.get(events[0].id).finish().messages == [event.message for event in events[1:]]
