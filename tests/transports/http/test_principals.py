"""Whose session it is, and with which rights a request of it is made."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from auth.issuer import ec, jwt
from longshore import Limits
from longshore.server.engine import Rates
from posting import Session, ask_modern, call, encode, notice, request
from serving import Exchange, Served

from .fixture import rigged

PEOPLE = """
[tokens.alice]
token = "alice-token-0123456789abcdef"
[tokens.bob]
token = "bob-token-0123456789abcdefgh"
"""
TOKENS = {"alice": "alice-token-0123456789abcdef", "bob": "bob-token-0123456789abcdefgh"}
ISSUER = """
[auth]
issuer = "https://issuer.example"
audience = "https://rig.example"
jwks = "{jwks}"
algorithms = ["ES256"]
"""


@pytest.fixture
def people(tmp_path: Path) -> str:
    path = tmp_path / "longshore.toml"
    path.write_text(PEOPLE)
    return str(path)


def bearer(token: str) -> tuple[str, str]:
    return "Authorization", f"Bearer {TOKENS.get(token, token)}"


class Issuer:
    """Issues tokens to one person, with whatever scopes."""

    def __init__(self, folder: Path) -> None:
        self._key = ec("k1")
        (folder / "jwks.json").write_text(json.dumps({"keys": [self._key.as_dict(private=False)]}))
        self.config = folder / "longshore.toml"
        self.config.write_text(ISSUER.format(jwks=folder / "jwks.json"))

    def token(self, scope: str) -> tuple[str, str]:
        now = time.time()
        claims: dict[str, Any] = {"iss": "https://issuer.example", "aud": "https://rig.example", "sub": "carol"}
        return bearer(jwt(self._key, "ES256", claims | {"iat": now, "exp": now + 600, "scope": scope}))


def test_a_session_is_its_principals_alone(people: str) -> None:
    with rigged(config_path=people) as (rig, server):
        alices = Session(server, headers=[bearer("alice")]).open()
        stolen = Session(server, headers=[bearer("bob")])
        stolen.id = alices.id
        stream = alices.get().begin()
        for exchange in (stolen.post(call("echo")), stolen.get(), stolen.delete(), stolen.post(notice("x"))):
            assert exchange.finish().status == 404
        nobody = Session(server)
        nobody.id = alices.id
        for exchange in (nobody.post(call("echo")), nobody.get(), nobody.delete()):
            assert exchange.finish().status == 401
        assert alices.call("echo", text="mine") == "mine"
        assert not stream.drain().ended
        assert server.look(rig.stored) == 1


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


def test_a_request_has_the_rights_of_its_own_token_not_of_the_sessions_first(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path)
    with rigged(config_path=str(issuer.config)) as (_, server):
        assert ask_modern(server, call("guarded"), issuer.token("admin")).status == 200
        refused = ask_modern(server, call("guarded"), issuer.token("read"))
        assert refused.status == 403
        assert 'scope="admin' in refused.headers["www-authenticate"]
        for first, second in (("read", "admin"), ("admin", "read")):
            session = Session(server, headers=[issuer.token(first)]).open()
            assert session.post(call("guarded")).finish().status == (200 if first == "admin" else 403)
            session.extra = [issuer.token(second)]
            assert session.post(call("guarded")).finish().status == (200 if second == "admin" else 403)


def endpoint(server: Served, header: tuple[str, str]) -> tuple[Exchange, str]:
    stream = server.send("GET", "/sse", [header]).wait(lambda it: it.events)
    return stream, stream.events[0].data


def test_an_old_stream_takes_messages_of_its_own_token_only(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path)
    with rigged(config_path=str(issuer.config)) as (_, server):
        reader, admin = issuer.token("read"), issuer.token("admin")
        stream, path = endpoint(server, reader)
        body = encode(request("ping", id=7))
        assert server.send("POST", path, [admin], body).finish().status == 404
        assert server.send("POST", path, (), body).finish().status == 401
        assert server.send("POST", path, [reader], body).finish().status == 202
        stream.wait(lambda it: len(it.events) == 2)
        assert stream.events[1].message == {"jsonrpc": "2.0", "id": 7, "result": {}}
