"""No token gets any further than the guard: not into an answer, a record, a log, a store or a tool.

Every token that is sent here, good, bad or in the wrong place, holds the same odd word. Whatever happens to it, that
word must be nowhere afterwards.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from premises import Site, opened

from auth.issuer import Issuer, ec, jwt, send, serving
from posting import LEGACY, MODERN, Session, bearer, call, encode, modern, modern_headers, request
from serving import Exchange

WORD = "cAnArY"
OWNER = f"owner-{WORD}-0123456789"
ANN = f"ann-{WORD}-0123456789"
BOB = f"bob-{WORD}-0123456789"
RESOURCE = "https://mcp.example.com/mcp"
SAFE = modern(call("safe"))


class Watch:
    """Sends things, and keeps all that comes of it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.answers: list[Exchange] = []
        self.records: list[Any] = []
        site.premises.server.listen(self.records.append)

    def ask(self, message: Any, *headers: tuple[str, str], path: str = "/mcp") -> Exchange:
        usual = modern_headers(message) if isinstance(message, dict) else []
        body = message if isinstance(message, bytes) else encode(message)
        return self.send("POST", path, [*usual, *headers], body)

    def send(self, method: str, path: str, headers: Any, body: bytes | None = None) -> Exchange:
        answer = self.site.send(method, path, headers, body).finish()
        self.answers.append(answer)
        return answer

    def check(self, least: int) -> None:
        assert len(self.answers) >= least
        assert self.records
        for answer in self.answers:
            assert WORD.encode() not in answer.raw, answer
        assert WORD not in msgspec.json.encode(self.records).decode()
        assert WORD not in repr(self.site.server.look(lambda: self.site.premises.app.store._families))


@contextmanager
def watched(folder: Path, capfd: pytest.CaptureFixture[str], toml: str, **settings: Any) -> Iterator[Watch]:
    """Everything is logged, as loudly as can be, and looked through at the end."""
    loud = '[server]\nlog_level = "debug"\n'
    with opened(folder, loud + toml, own=True, **settings) as site:
        watch = Watch(site)
        yield watch
        watch.check(1)
    out, err = capfd.readouterr()
    assert '"type":"' in err, "nothing was logged at all"
    assert WORD not in out + err


TOKENS = f"""
[auth]
token = "{OWNER}"
[tokens.ann]
token = "{ANN}"
scopes = ["notes:read"]
[tokens.bob]
token = "{BOB}"
"""


def test_static_tokens(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with watched(tmp_path, capfd, TOKENS) as watch:
        own = ("Origin", f"http://127.0.0.1:{watch.site.port}")
        wrong = f"wrong-{WORD}-0123456789"
        # let in, whatever becomes of it then
        for header in (bearer(OWNER), bearer(ANN), ("X-API-Key", BOB), ("Cookie", f"longshore={ANN}")):
            assert watch.ask(SAFE, header, own).status == 200
        assert watch.ask(modern(call("burst")), bearer(ANN)).status == 200
        assert watch.ask(modern(call("look")), bearer(ANN)).status == 200
        assert watch.ask(modern(call("amend")), bearer(ANN)).status == 403
        assert watch.ask(modern(call("nothing")), bearer(ANN)).status == 200
        assert watch.ask(modern(call("region", {"where": 7})), bearer(ANN)).status == 400
        assert watch.ask(b"{", bearer(ANN)).status == 400
        assert watch.ask(SAFE, bearer(ANN), ("Mcp-Name", "x")).status == 400
        assert watch.ask(SAFE, bearer(ANN), ("Accept", "text/html")).status == 406
        assert watch.ask(SAFE, bearer(ANN), ("Content-Type", "text/plain")).status == 415
        assert watch.ask(SAFE, bearer(ANN), path="/nothing").status == 404
        # not let in
        for header in (
            bearer(wrong),
            ("X-API-Key", wrong),
            ("Cookie", f"longshore={wrong}"),
            ("Authorization", f"Basic {wrong}"),
            ("Authorization", wrong),
        ):
            assert watch.ask(SAFE, header, own).status == 401
        for header in (
            ("Authorization", f"Bearer {wrong} {wrong}"),
            ("Authorization", f"Bearer {wrong}\xe9"),
            ("Authorization", f"Bearer {wrong * 500}"),
            ("X-API-Key", f'"{wrong}"'),
            ("Cookie", f"longshore={wrong}; longshore={ANN}"),
        ):
            assert watch.ask(SAFE, header, own).status == 400
        assert watch.ask(SAFE, bearer(ANN), bearer(ANN)).status == 400
        assert watch.ask(SAFE, bearer(ANN), ("X-API-Key", BOB)).status == 400
        assert watch.ask(SAFE, path=f"/mcp?access_token={ANN}").status == 401
        assert watch.ask(SAFE, bearer(ANN), ("Host", "evil.com")).status == 421
        assert watch.ask(SAFE, bearer(ANN), ("Origin", "http://evil.com")).status == 403
        for path in ("/tools", "/metrics", "/openapi.json", "/health", "/.well-known/oauth-protected-resource"):
            assert watch.send("GET", path, [bearer(ANN)]).status in (200, 404)
        assert watch.send("POST", "/tools/burst", [bearer(ANN)], b"{}").status == 500
        assert watch.send("POST", "/tools/amend", [bearer(ANN)], b"{}").status == 403
        # sessions
        session = Session(watch.site.server, headers=[bearer(ANN)]).open()
        for message in (call("safe"), call("burst"), call("amend"), request("no/such")):
            watch.answers.append(session.post(message).finish())
        session.extra = [bearer(BOB)]
        watch.answers.append(session.post(call("safe")).finish())
        assert [answer.status for answer in watch.answers[-5:]] == [200, 200, 403, 200, 404]
        watch.check(40)
        assert session.id not in msgspec.json.encode(watch.records).decode()


def test_no_tool_can_see_a_token(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Not even one that goes where it should not: what a call holds on to is looked at, private parts too."""
    with watched(tmp_path, capfd, TOKENS) as watch:
        own = ("Origin", f"http://127.0.0.1:{watch.site.port}")
        for header in (bearer(ANN), ("X-API-Key", ANN), ("Cookie", f"longshore={ANN}")):
            assert watch.ask(modern(call("look")), header, own).status == 200
        session = Session(watch.site.server, headers=[bearer(ANN)]).open()
        assert session.call("look")
        assert watch.send("POST", "/tools/look", [bearer(ANN)], b"{}").status == 200
        seen = watch.site.premises.seen
        assert len(seen) == 5
        for ctx in seen:
            assert ctx.principal.name == "ann"
            assert WORD not in _inside(ctx, 4)


def _inside(thing: Any, depth: int) -> str:
    """The text of everything that can be reached from an object in so many steps by its own attributes."""
    if depth == 0 or isinstance(thing, (str, bytes, int, float, bool, type(None))):
        return repr(thing)
    if isinstance(thing, dict):
        return " ".join(_inside(each, depth - 1) for pair in thing.items() for each in pair)
    if isinstance(thing, (list, tuple, set, frozenset)):
        return " ".join(_inside(each, depth - 1) for each in thing)
    names = {name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())}
    names |= set(getattr(thing, "__dict__", {}))
    parts = [_inside(getattr(thing, name, None), depth - 1) for name in sorted(names) if name != "executor"]
    return " ".join([type(thing).__name__, *parts])


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with serving() as found:
        yield found


def test_access_tokens(tmp_path: Path, capfd: pytest.CaptureFixture[str], issuer: Issuer) -> None:
    key, other = ec("one"), ec("one")
    issuer.publish(key)
    now = time.time()
    good = {"iss": "https://login.example.com", "aud": RESOURCE, "sub": "ann", "exp": now + 600, "jti": WORD}
    toml = f'[http]\npublic_url = "{RESOURCE}"\n[auth]\nissuer = "{good["iss"]}"\njwks = "{issuer.jwks}"\n'
    with watched(tmp_path, capfd, toml) as watch:
        host = ("Host", "mcp.example.com")
        tokens = {
            jwt(key, "ES256", good): 200,
            jwt(key, "ES256", good | {"aud": "https://other.example.com"}): 401,
            jwt(key, "ES256", good | {"exp": 1}): 401,
            jwt(key, "ES256", good | {"iss": WORD}): 401,
            jwt(key, "ES256", good | {"sub": WORD + "\n"}): 401,
            jwt(key, "ES256", good, typ=WORD): 401,
            jwt(key, "ES256", good, kid=WORD): 401,
            jwt(other, "ES256", good): 401,
            f"ey{WORD}.{WORD}.{WORD}": 401,
        }
        for token, status in tokens.items():
            assert watch.ask(SAFE, host, bearer(token)).status == status
        issuer.answer = lambda asked: send(asked, {WORD: WORD}, 500)
        assert watch.ask(SAFE, host, bearer(jwt(ec(WORD), "ES256", good))).status in (401, 503)
        everything = b"".join(answer.raw for answer in watch.answers) + msgspec.json.encode(watch.records)
        for token in tokens:
            for part in token.split("."):
                assert part.encode() not in everything


def test_opaque_tokens(tmp_path: Path, capfd: pytest.CaptureFixture[str], issuer: Issuer) -> None:
    secret = f"our-secret-{WORD}"
    toml = f"""
[http]
public_url = "{RESOURCE}"
[auth]
introspection_url = "{issuer.introspection}"
introspection_client = "longshore"
introspection_secret = "{secret}"
"""
    issuer.tokens = {ANN: {"active": True, "sub": "ann", "aud": RESOURCE}, BOB: {"active": True, "aud": "x"}}
    with watched(tmp_path, capfd, toml) as watch:
        host = ("Host", "mcp.example.com")
        assert watch.ask(SAFE, host, bearer(ANN)).status == 200
        assert watch.ask(SAFE, host, bearer(BOB)).status == 401
        assert watch.ask(SAFE, host, bearer(OWNER)).status == 401
        for answer in (
            lambda asked: send(asked, {"error": WORD}, 401),
            lambda asked: send(asked, f"<p>{WORD}".encode()),
            lambda asked: send(asked, b"", 302, Location=f"/{WORD}"),
            lambda asked: send(asked, {"active": WORD}),
        ):
            issuer.answer = answer
            assert watch.ask(SAFE, host, bearer(f"again-{WORD}-0123456789")).status == 503


def test_a_fault_of_ours(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A trace goes into the log then, and a trace tells a lot."""
    with watched(tmp_path, capfd, TOKENS) as watch:
        store = watch.site.premises.app.store
        watch.site.server.do(lambda: store.set("session:damaged", b"\xff not a record", 60.0))
        headers = [bearer(ANN), ("Mcp-Session-Id", "damaged"), ("MCP-Protocol-Version", LEGACY)]
        assert watch.send("POST", "/mcp", headers, encode(call("safe"))).status == 500
        assert watch.send("GET", "/mcp", headers).status == 500
        assert watch.send("DELETE", "/mcp", headers).status == 500
        watch.site.server.settle()
        assert len([record for record in watch.records if getattr(record, "trace", "")]) == 3


def test_the_cookie_goes_to_its_owner_alone(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with watched(tmp_path, capfd, TOKENS) as watch:
        given = watch.site.send("POST", "/auth/cookie", [bearer(ANN)], b"").finish()
        assert given.headers["set-cookie"].startswith(f"longshore={ANN};")
        assert given.raw.count(WORD.encode()) == 1
        assert watch.ask(SAFE, bearer(ANN)).status == 200


# -- what peers write into a log


FORGED = "a\r\n2026-11-15 INFO root logged in\x1b[2J\u2028\x85"


def test_nothing_that_a_peer_says_forges_a_line_of_the_log(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Names of methods, tools and hosts, however long: one record a line, no control characters, no end of it."""
    with watched(tmp_path, capfd, "") as watch:
        for text in (FORGED, "x" * 1_000_000):
            for message in (modern(request(text)), modern(call(text)), modern(request("ping", id=text))):
                headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "x"), ("Mcp-Name", "x")]
                assert watch.ask(encode(message), *headers).status == 400
        session = Session(watch.site.server).open()
        for message in (request(FORGED), call(FORGED), request("ping", id=FORGED)):
            watch.answers.append(session.post(message).finish())
        watch.ask(SAFE, ("Host", "evil.com\xff"))
        watch.ask(SAFE, ("Origin", "http://evil\x85.com"))
        lines = capfd.readouterr().err.split("\n")
        assert lines.pop() == ""
        assert len(lines) > 10
        for line in lines:
            assert len(line) < 10_000
            assert line.isprintable()
            json.loads(line)
        watch.ask(SAFE)
