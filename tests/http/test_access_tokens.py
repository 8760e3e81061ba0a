"""Access tokens of an authorization server, end to end: a real one on loopback, its keys, its bad days, metadata."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from asgi import configured, request
from premises import Site, opened
from starlette.applications import Starlette
from starlette.routing import Mount, Route

from auth.issuer import Issuer, ec, jwt, send, serving
from longshore import Server
from posting import Session, bearer, call, encode, modern, modern_headers
from serving import Exchange, serve

RESOURCE = "https://mcp.example.com/mcp"
METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
OWNER = "token-of-the-owner-0123456789"
HOST = ("Host", "mcp.example.com")
LOOK = modern(call("look"))
AMEND = modern(call("amend"))


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with serving() as found:
        yield found


def settings(issuer: Issuer, more: str = "") -> str:
    return f"""
[http]
public_url = "https://mcp.example.com"
[auth]
issuer = "https://login.example.com"
jwks = "{issuer.jwks}"
{more}
"""


def opaque(issuer: Issuer, more: str = "") -> str:
    return f"""
[http]
public_url = "https://mcp.example.com"
[auth]
issuer = "https://login.example.com"
introspection_url = "{issuer.introspection}"
introspection_client = "longshore"
introspection_secret = "a-secret-between-us"
{more}
"""


class Keys:
    """An issuer's key, and the tokens that it signs."""

    def __init__(self, issuer: Issuer) -> None:
        self.key = ec("one")
        issuer.publish(self.key)

    def token(self, subject: str = "ann", scope: str = "", **claims: Any) -> str:
        now = time.time()
        usual = {"iss": "https://login.example.com", "aud": RESOURCE, "sub": subject, "iat": now, "exp": now + 600}
        own = {key: value for key, value in (usual | {"scope": scope} | claims).items() if value is not None}
        return jwt(self.key, "ES256", own)


def ask(site: Site, message: Any, *headers: tuple[str, str]) -> Exchange:
    return site.send("POST", "/mcp", [HOST, *modern_headers(message), *headers], encode(message)).finish()


def caller(site: Site, token: str) -> tuple[str, set[str]]:
    answer = ask(site, LOOK, bearer(token))
    assert answer.status == 200, answer
    principal = site.premises.seen.pop().principal
    return principal.name, set(principal.scopes)


def challenge(answer: Exchange) -> str:
    return answer.headers["www-authenticate"]


# -- JWT


@pytest.mark.parametrize("own", [False, True])
def test_a_good_token_says_who_calls_and_what_they_may(issuer: Issuer, tmp_path: Path, own: bool) -> None:
    keys = Keys(issuer)
    with opened(tmp_path, settings(issuer), own=own) as site:
        assert caller(site, keys.token(scope="notes:read other")) == ("login.example.com:ann", {"notes:read", "other"})
        assert caller(site, keys.token("bob")) == ("login.example.com:bob", set())
        assert issuer.asked == [("GET", "/jwks")]


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        (
            {"aud": "https://mcp.example.com"},
            f"the access token was issued for another server: its aud must contain {RESOURCE}",
        ),
        (
            {"aud": "https://other.example.com/mcp"},
            f"the access token was issued for another server: its aud must contain {RESOURCE}",
        ),
        ({"aud": None}, f"the access token was issued for another server: its aud must contain {RESOURCE}"),
        ({"iss": "https://evil.example.com"}, "the access token comes from another issuer"),
        ({"exp": 1_000_000_000}, "the access token has expired"),
        ({"exp": None}, "the access token has no expiry"),
        ({"nbf": 9_000_000_000}, "the access token is not valid yet"),
        ({"sub": None}, "the access token does not say whom it is for"),
    ],
)
def test_a_token_that_is_not_for_us_is_no_good(
    issuer: Issuer, tmp_path: Path, claims: dict[str, Any], why: str
) -> None:
    keys = Keys(issuer)
    with opened(tmp_path, settings(issuer)) as site, site.untouched():
        answer = ask(site, LOOK, bearer(keys.token(**claims)))
        assert answer.status == 401
        assert challenge(answer) == (
            f'Bearer error="invalid_token", error_description="{why}", resource_metadata="{METADATA}"'
        )


def test_a_token_of_a_stranger_is_no_good(issuer: Issuer, tmp_path: Path) -> None:
    keys, forger = Keys(issuer), Keys(issuer)
    issuer.publish(keys.key)
    with opened(tmp_path, settings(issuer)) as site, site.untouched():
        answer = ask(site, LOOK, bearer(forger.token()))
        assert answer.status == 401
        assert "the signature of the access token is wrong" in challenge(answer)
        assert ask(site, LOOK, bearer("not.a.jwt")).status == 401


def test_a_challenge_says_where_to_go_and_what_for(issuer: Issuer, tmp_path: Path) -> None:
    keys = Keys(issuer)
    with opened(tmp_path, settings(issuer, 'scopes = ["mcp", "offline_access"]')) as site, site.untouched():
        nobody = ask(site, LOOK)
        assert (nobody.status, challenge(nobody)) == (401, f'Bearer resource_metadata="{METADATA}", scope="mcp"')
        few = ask(site, AMEND, bearer(keys.token(scope="mcp offline_access notes:write")))
        assert few.status == 403
        assert challenge(few) == (
            f'Bearer error="insufficient_scope", scope="admin mcp notes:write", resource_metadata="{METADATA}", '
            'error_description="this needs scopes that the credential does not have: admin"'
        )


def test_a_static_token_works_beside_them(issuer: Issuer, tmp_path: Path) -> None:
    Keys(issuer)
    with opened(tmp_path, settings(issuer, f'token = "{OWNER}"')) as site:
        assert ask(site, AMEND, bearer(OWNER)).status == 200
        assert issuer.asked == []


def test_a_session_asks_for_a_token_each_time_and_goes_by_what_it_says_now(issuer: Issuer, tmp_path: Path) -> None:
    """Stepping up after a 403 must help, and a weaker token must not inherit what a stronger one could."""
    keys = Keys(issuer)
    weak, strong = keys.token(scope=""), keys.token(scope="admin notes:write")
    with opened(tmp_path, settings(issuer), own=True) as site:
        session = Session(site.server, headers=[HOST, bearer(weak)]).open()
        assert session.post(call("amend")).finish().status == 403
        session.extra = [HOST, bearer(strong)]
        assert session.call("amend") == "amended"
        session.extra = [HOST, bearer(weak)]
        with site.untouched():
            assert session.post(call("amend")).finish().status == 403
            session.extra = [HOST, bearer(keys.token("bob", scope="admin notes:write"))]
            assert session.post(call("amend")).finish().status == 404
            session.extra = [HOST]
            assert session.post(call("amend")).finish().status == 401
        strong_first = Session(site.server, headers=[HOST, bearer(strong)]).open()
        assert strong_first.call("amend") == "amended"
        strong_first.extra = [HOST, bearer(weak)]
        assert strong_first.post(call("amend")).finish().status == 403


def test_an_old_session_goes_by_the_token_of_each_message(issuer: Issuer, tmp_path: Path) -> None:
    keys = Keys(issuer)
    weak, strong = keys.token(scope=""), keys.token(scope="admin notes:write")
    with opened(tmp_path, settings(issuer)) as site:
        stream = site.send("GET", "/sse", [HOST, bearer(strong)])
        stream.wait(lambda it: it.events, "the address to POST to")
        endpoint = stream.events[0].data
        info = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        first = encode({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": info})
        assert site.send("POST", endpoint, [HOST, bearer(strong)], first).finish().status == 202
        stream.wait(lambda it: len(it.events) == 2, "the answer")
        before = site.premises.ran["amend"]
        site.send("POST", endpoint, [HOST, bearer(weak)], encode(call("amend"))).finish()
        site.server.settle()
        assert site.premises.ran["amend"] == before
        assert site.send("POST", endpoint, [HOST, bearer(strong)], encode(call("amend", id=2))).finish().status == 202
        stream.wait(lambda it: any(event.data and event.message.get("id") == 2 for event in it.events[1:]), "it")
        assert site.premises.ran["amend"] == before + 1
        stream.close()
        site.server.until(lambda: not site.premises.app.sse.open, "the end of the stream")


def test_a_cookie_holds_an_access_token_for_as_long_as_it_is_good(issuer: Issuer, tmp_path: Path) -> None:
    keys = Keys(issuer)
    page = ("Origin", "https://mcp.example.com")
    with opened(tmp_path, settings(issuer), own=True) as site:
        given = site.send("POST", "/auth/cookie", [HOST, page, bearer(keys.token())], b"").finish()
        assert given.status == 204
        fields = [field.strip() for field in given.headers["set-cookie"].split(";")]
        [age] = [int(field.removeprefix("Max-Age=")) for field in fields if field.startswith("Max-Age=")]
        assert 500 < age <= 600
        assert ask(site, LOOK, page, ("Cookie", fields[0])).status == 200


# -- opaque tokens


def test_an_opaque_token_is_looked_up(issuer: Issuer, tmp_path: Path) -> None:
    issuer.tokens = {
        "opaque-token-of-ann": {"active": True, "sub": "ann", "aud": RESOURCE, "scope": "admin notes:write"}
    }
    with opened(tmp_path, opaque(issuer), own=True) as site:
        assert caller(site, "opaque-token-of-ann") == ("login.example.com:ann", {"admin", "notes:write"})
        assert ask(site, AMEND, bearer("opaque-token-of-ann")).status == 200
        assert len(issuer.forms) == 1  # the first answer holds for a while
        with site.untouched():
            unknown = ask(site, LOOK, bearer("opaque-token-of-nobody"))
            assert unknown.status == 401
            assert 'error="invalid_token"' in challenge(unknown)


@pytest.mark.parametrize("kind", ["introspection", "jwks"])
def test_while_nobody_can_tell_nobody_comes_in_and_nobody_is_sent_away_for_good(
    issuer: Issuer, tmp_path: Path, kind: str
) -> None:
    keys = Keys(issuer)
    issuer.answer = lambda asked: send(asked, {}, 503)
    text = opaque(issuer, f'token = "{OWNER}"') if kind == "introspection" else settings(issuer, f'token = "{OWNER}"')
    token = "opaque-token-of-ann" if kind == "introspection" else keys.token()
    with opened(tmp_path, text) as site:
        with site.untouched():
            answer = ask(site, LOOK, bearer(token))
            assert (answer.status, answer.headers["retry-after"]) == (503, "5")
            assert "www-authenticate" not in answer.headers  # a client would throw a good token away
            assert token not in answer.body.decode()
        assert ask(site, LOOK, bearer(OWNER)).status == 200
        assert [problem.level for problem in site.premises.problems] == ["warning"]


def test_an_issuer_that_is_not_there_is_the_same(issuer: Issuer, tmp_path: Path) -> None:
    with serving() as gone:
        text = opaque(gone)
    with opened(tmp_path, text) as site, site.untouched():
        answer = ask(site, LOOK, bearer("opaque-token-of-ann"))
        assert (answer.status, answer.headers["retry-after"]) == (503, "5")


# -- metadata


def described(site: Site, path: str, *headers: tuple[str, str]) -> Exchange:
    return site.send("GET", path, [HOST, *headers]).finish()


@pytest.mark.parametrize("own", [False, True])
def test_metadata_is_at_both_addresses_and_open_to_all(issuer: Issuer, tmp_path: Path, own: bool) -> None:
    with opened(tmp_path, settings(issuer, 'scopes = ["mcp", "offline_access"]'), own=own) as site, site.untouched():
        for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
            answer = described(site, path)
            assert answer.status == 200
            assert answer.json == {
                "resource": RESOURCE,
                "authorization_servers": ["https://login.example.com"],
                "bearer_methods_supported": ["header"],
                "scopes_supported": ["admin", "mcp", "notes:read", "notes:write"],
                "resource_name": "premises",
            }
            assert described(site, path, bearer("wrong")).status == 200
        for path in (f"{WELL_KNOWN}/other", f"{WELL_KNOWN}x", f"{WELL_KNOWN}/mcp/x", "/.well-known/other"):
            assert described(site, path).status == 401
            assert site.send("POST", path, [HOST], b"{}").finish().status == 401
        for path in (WELL_KNOWN, f"{WELL_KNOWN}/mcp"):
            for method in ("POST", "HEAD", "DELETE"):
                answer = site.send(method, path, [HOST], b"{}" if method == "POST" else None).begin()
                assert (answer.status, answer.headers["allow"]) == (405, "GET")
        assert site.send("GET", WELL_KNOWN, [("Host", "evil.com")]).finish().status == 421


def test_the_metadata_names_the_scopes_of_the_tools_that_there_are_now(issuer: Issuer, tmp_path: Path) -> None:
    with opened(tmp_path, settings(issuer)) as site:
        before = described(site, WELL_KNOWN).json["scopes_supported"]

        @site.premises.server.tool(run="inline", scopes=["late"])
        def late() -> str:
            """Came later."""
            return ""

        assert described(site, WELL_KNOWN).json["scopes_supported"] == sorted([*before, "late"])


def test_the_challenge_leads_to_the_metadata(issuer: Issuer, tmp_path: Path) -> None:
    with opened(tmp_path, settings(issuer)) as site:
        address = challenge(ask(site, LOOK)).partition('resource_metadata="')[2].partition('"')[0]
        assert described(site, address.removeprefix("https://mcp.example.com")).json["resource"] == RESOURCE


@pytest.mark.parametrize(
    ("public", "path", "resource", "at"),
    [
        ("https://mcp.example.com", "/mcp", RESOURCE, f"{WELL_KNOWN}/mcp"),
        ("https://mcp.example.com/", "/mcp", RESOURCE, f"{WELL_KNOWN}/mcp"),
        ("https://mcp.example.com/mcp", "/mcp", RESOURCE, f"{WELL_KNOWN}/mcp"),
        ("https://MCP.example.com", "/mcp", RESOURCE, f"{WELL_KNOWN}/mcp"),
        ("https://mcp.example.com/a", "/mcp", "https://mcp.example.com/a/mcp", f"{WELL_KNOWN}/a/mcp"),
        ("https://mcp.example.com", "/", "https://mcp.example.com", WELL_KNOWN),
        ("https://mcp.example.com", "/deep/er", "https://mcp.example.com/deep/er", f"{WELL_KNOWN}/deep/er"),
    ],
)
def test_metadata_follows_the_address(
    issuer: Issuer, tmp_path: Path, public: str, path: str, resource: str, at: str
) -> None:
    text = settings(issuer).replace("https://mcp.example.com", public, 1)
    app = configured(Server("addressed"), tmp_path, text, path=path)

    async def main() -> None:
        host = {"host": "mcp.example.com"}
        nobody = await request(app, "POST", path, host, b"{}")
        assert nobody.headers["www-authenticate"] == f'Bearer resource_metadata="https://mcp.example.com{at}"'
        found = await request(app, "GET", at, host)
        assert found.json()["resource"] == resource
        await app.shut(0)
        await app.close()

    asyncio.run(main())


def test_without_an_authorization_server_there_is_no_metadata(tmp_path: Path) -> None:
    for text in (f'[auth]\ntoken = "{OWNER}"\n', ""):
        with opened(tmp_path, text) as site, site.untouched():
            assert site.send("GET", WELL_KNOWN).finish().status == 404


@contextmanager
def mounted(issuer: Issuer, folder: Path) -> Iterator[Any]:
    """In somebody's app at /agents, which hands on the well-known address of it too."""
    server = Server("mounted")

    @server.tool(run="inline")
    def safe() -> str:
        """Harmless."""
        return "safe"

    text = settings(issuer).replace('"https://mcp.example.com"', '"https://mcp.example.com/agents"', 1)
    app = configured(server, folder, text)
    routes = [Route("/.well-known/oauth-protected-resource/agents/mcp", app), Mount("/agents", app)]
    with serve(Starlette(routes=routes), shut=[app]) as served:
        yield served
        served.do(app.close)


def test_a_mounted_app_has_its_metadata_at_the_root_and_below_itself(issuer: Issuer, tmp_path: Path) -> None:
    keys = Keys(issuer)
    with mounted(issuer, tmp_path) as server:
        resource = "https://mcp.example.com/agents/mcp"
        message = modern(call("safe"))
        nobody = server.send("POST", "/agents/mcp", [HOST, *modern_headers(message)], encode(message)).finish()
        assert nobody.status == 401
        assert challenge(nobody) == f'Bearer resource_metadata="https://mcp.example.com{WELL_KNOWN}/agents/mcp"'
        for path in (f"{WELL_KNOWN}/agents/mcp", f"/agents{WELL_KNOWN}", f"/agents{WELL_KNOWN}/agents/mcp"):
            found = server.send("GET", path, [HOST]).finish()
            assert (found.status, json.loads(found.body)["resource"]) == (200, resource)
        headers = [HOST, *modern_headers(message), bearer(keys.token(aud=resource))]
        assert server.send("POST", "/agents/mcp", headers, encode(message)).finish().status == 200
        assert server.send("POST", "/agents/", headers, encode(message)).finish().status == 200
