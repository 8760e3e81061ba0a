"""Who may come in, by what, and how far: credentials, challenges, scopes, and what belongs to whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asgi import configured
from premises import Site, opened

from longshore import Server
from longshore.protocol.peer import Principal
from posting import LEGACY, Session, bearer, call, encode, modern, modern_headers, notice, request
from serving import Exchange, Pairs

OWNER = "token-of-the-owner-0123456789"
ANN = "token-of-ann-0123456789abcdef"
BOB = "token-of-bob-0123456789abcdef"
CY = "token-of-cy-0123456789abcdefg"
TOKENS = f"""
[auth]
token = "{OWNER}"
[tokens.ann]
token = "{ANN}"
scopes = ["notes:read", "notes:write", "admin"]
[tokens.bob]
token = "{BOB}"
scopes = ["notes:read"]
[tokens.cy]
token = "{CY}"
scopes = []
"""
ASKS = {"elicitation": {"form": {}}}
LOOK = modern(call("look"))


@pytest.fixture(scope="module", params=["uvicorn", "own"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened(tmp_path_factory.mktemp("authorization"), TOKENS, own=request.param == "own") as found:
        yield found


def ask(site: Site, message: Any, *headers: tuple[str, str], path: str = "/mcp") -> Exchange:
    return site.send("POST", path, [*modern_headers(message), *headers], encode(message)).finish()


def caller(site: Site, *headers: tuple[str, str]) -> str:
    """Whom a tool sees."""
    answer = ask(site, LOOK, *headers)
    assert answer.status == 200, answer
    return str(site.premises.seen.pop().principal.name)


def challenge(answer: Exchange) -> str:
    return answer.headers["www-authenticate"]


# -- credentials

PATHS: list[tuple[str, str]] = [
    *[(method, "/mcp") for method in ("POST", "GET", "DELETE", "PUT")],
    *[("POST", path) for path in ("/", "/messages?sessionId=x", "/auth/cookie", "/tools/safe", "/nothing")],
    *[("GET", path) for path in ("/sse", "/metrics", "/tools", "/openapi.json", "/nothing", "/mcp/x")],
    ("POST", "/health/x"),
]


@pytest.mark.parametrize(("method", "path"), PATHS)
def test_without_a_credential_nothing_is_to_be_had(site: Site, method: str, path: str) -> None:
    with site.untouched():
        body = encode(LOOK) if method == "POST" else None
        answer = site.send(method, path, modern_headers(LOOK), body).finish()
        assert (answer.status, challenge(answer)) == (401, 'Bearer realm="mcp"')
        assert answer.json["error"]["message"] == "this server asks for a credential and there is none"


def test_health_is_for_everybody(site: Site) -> None:
    assert site.send("GET", "/health").finish().status == 200
    assert site.send("GET", "/health", [bearer("wrong")]).finish().status == 200


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ([bearer(OWNER)], "token"),
        ([bearer(ANN)], "ann"),
        ([("authorization", f"bearer  {ANN} ")], "ann"),
        ([("X-API-Key", BOB)], "bob"),
        ([("x-api-key", f" {BOB} ")], "bob"),
        ([("X-Api-Key", CY), ("Cookie", f"longshore={ANN}")], "cy"),  # a cookie that is not ours to read
    ],
)
def test_a_credential_says_who_calls(site: Site, headers: Pairs, name: str) -> None:
    assert caller(site, *headers) == name


UNKNOWN = 'Bearer error="invalid_token", error_description="the token is not one that this server knows"'


@pytest.mark.parametrize("token", ["x" * 30, ANN[:-1], ANN + "x", ANN.upper(), ANN + "=", "a" * 8000, "null"])
def test_a_wrong_token_is_no_good(site: Site, token: str) -> None:
    for header in (bearer(token), ("X-API-Key", token)):
        with site.untouched():
            answer = ask(site, LOOK, header)
            assert (answer.status, challenge(answer)) == (401, UNKNOWN)


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (("Authorization", "Bearer"), "the token is empty"),
        (("Authorization", f"Bearer {ANN} {BOB}"), "the token holds characters that no token has"),
        (("Authorization", f"Bearer {ANN},Bearer {BOB}"), "the token holds characters that no token has"),
        (("Authorization", f'Bearer "{ANN}"'), "the token holds characters that no token has"),
        (("Authorization", f"Bearer {ANN}\xe9"), "the token holds characters that no token has"),
        (("Authorization", "Bearer " + "a" * 8193), "the token is longer than 8192 bytes"),
        (("X-API-Key", ""), "the token is empty"),
        (("X-API-Key", f"Bearer {ANN}"), "the token holds characters that no token has"),
    ],
)
def test_what_is_no_credential_is_told_why(site: Site, header: tuple[str, str], why: str) -> None:
    with site.untouched():
        answer = ask(site, LOOK, header)
        assert answer.status == 400
        assert challenge(answer) == f'Bearer error="invalid_request", error_description="{why}"'


@pytest.mark.parametrize("value", [f"Basic {ANN}", f"Digest {ANN}", ANN, ""])
def test_a_credential_of_another_kind_is_none(site: Site, value: str) -> None:
    with site.untouched():
        answer = ask(site, LOOK, ("Authorization", value))
        assert (answer.status, challenge(answer)) == (401, 'Bearer realm="mcp"')
        assert "not of the form: Bearer TOKEN" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    "headers",
    [
        [bearer(ANN), bearer(ANN)],
        [bearer(ANN), bearer(BOB)],
        [("X-API-Key", ANN), ("x-api-key", ANN)],
        [bearer(ANN), ("X-API-Key", ANN)],
        [bearer(BOB), ("X-API-Key", ANN)],
        [("Cookie", "a=b"), ("Cookie", "c=d"), bearer(ANN)],
    ],
)
def test_two_credentials_are_none(site: Site, headers: Pairs) -> None:
    with site.untouched():
        answer = ask(site, LOOK, *headers)
        assert answer.status == 400
        assert challenge(answer).startswith('Bearer error="invalid_request", error_description="')


@pytest.mark.parametrize("name", ["access_token", "token", "api_key", "apikey", "X-API-Key", "authorization", "bearer"])
def test_a_token_in_the_address_is_not_looked_at(site: Site, name: str) -> None:
    with site.untouched():
        for path in (f"/mcp?{name}={ANN}", f"/tools/look?{name}={ANN}", f"/metrics?{name}=Bearer%20{ANN}"):
            method = "GET" if "metrics" in path else "POST"
            answer = site.send(method, path, modern_headers(LOOK), encode(LOOK) if method == "POST" else None).finish()
            assert (answer.status, challenge(answer)) == (401, 'Bearer realm="mcp"')


def test_a_token_in_the_body_is_not_looked_at(site: Site) -> None:
    with site.untouched():
        message = modern(call("look", {"access_token": ANN}), Authorization=f"Bearer {ANN}")
        assert ask(site, message).status == 401


def test_who_asks_is_asked_before_anything_else_is(site: Site) -> None:
    """A caller without a credential learns nothing of paths, methods, sessions or limits."""
    for headers in ([("Accept", "text/html")], [("Content-Type", "text/plain")], [("Content-Encoding", "gzip")]):
        with site.untouched():
            assert site.send("POST", "/mcp", headers, b"{").finish().status == 401
    with site.untouched():
        assert site.send("POST", "/mcp", [("Host", "evil.com")], b"{").finish().status == 421
        assert site.send("POST", "/mcp", [("Origin", "http://evil.com"), bearer(ANN)], b"{").finish().status == 403


# -- scopes

NEEDS = "this needs scopes that the credential does not have: "
AMEND = modern(call("amend"))


def refused_amend(answer: Exchange, scope: str = "admin notes:write", lacking: str = "admin notes:write") -> None:
    assert answer.status == 403, answer
    assert challenge(answer) == (
        f'Bearer error="insufficient_scope", scope="{scope}", error_description="{NEEDS}{lacking}"'
    )


@pytest.mark.parametrize("token", [BOB, CY])
def test_all_that_a_tool_needs_is_named_at_once(site: Site, token: str) -> None:
    with site.untouched():
        answer = ask(site, AMEND, bearer(token))
        refused_amend(answer)
        assert answer.json["id"] == 1
        assert answer.json["error"]["message"] == "amend needs the scope admin notes:write"
        refused_amend(ask(site, AMEND, bearer(token), ("Accept", "text/event-stream")))
        rest = site.send("POST", "/tools/amend", [bearer(token)], b"{}").finish()
        refused_amend(rest)
        assert rest.json["error"]["kind"] == "permission"


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("accept", ["application/json, text/event-stream", "application/json", "text/event-stream"])
def test_a_session_needs_them_too(site: Site, version: str, accept: str) -> None:
    session = Session(site.server, version, headers=[bearer(BOB)]).open()
    with site.untouched():
        answer = session.post(call("amend"), ("Accept", accept)).finish()
        refused_amend(answer)
        assert answer.json["id"] == 1
    assert session.call("peruse") == "perused"
    session.delete().finish()


def test_a_batch_is_answered_message_by_message(site: Site) -> None:
    session = Session(site.server, "2025-03-26", headers=[bearer(BOB)]).open()
    before = site.premises.ran.copy()
    answer = session.post([call("amend", id=1), call("peruse", id=2)]).finish()
    assert answer.status == 200
    found = {message["id"]: message for message in answer.json}
    assert found[1]["error"]["message"] == "amend needs the scope admin notes:write"
    assert found[2]["result"]["content"][0]["text"] == "perused"
    assert site.premises.ran - before == Counter(peruse=1)
    session.delete().finish()


@pytest.mark.parametrize(
    ("token", "tool", "allowed"),
    [
        (OWNER, "amend", True),
        (ANN, "amend", True),
        (ANN, "peruse", True),
        (BOB, "peruse", True),
        (BOB, "safe", True),
        (CY, "safe", True),
        (CY, "peruse", False),
        (ANN, "correct", True),
        (CY, "correct", False),
    ],
)
def test_a_tool_is_open_to_those_who_have_its_scopes(site: Site, token: str, tool: str, allowed: bool) -> None:
    """Under its name, and under the one that it had."""
    ran = {"correct": "amend"}.get(tool, tool)
    before = site.premises.ran[ran]
    status = 200 if allowed else 403
    assert ask(site, modern(call(tool)), bearer(token)).status == status
    assert site.send("POST", f"/tools/{tool}", [bearer(token)], b"{}").finish().status == status
    assert site.premises.ran[ran] - before == (2 if allowed else 0)


def test_everybody_who_is_in_sees_what_there_is(site: Site) -> None:
    """The list is the same for all, so that it can be cached; scopes decide about calls."""
    lists = [ask(site, modern(request("tools/list")), bearer(token)).json["result"]["tools"] for token in (OWNER, CY)]
    assert lists[0] == lists[1]
    assert {"amend", "peruse"} <= {tool["name"] for tool in lists[0]}


def test_scopes_that_every_request_needs(tmp_path: Path) -> None:
    with opened(tmp_path, TOKENS.replace("[auth]", '[auth]\nscopes = ["notes:read"]')) as site, site.untouched():
        for message in (LOOK, modern(request("tools/list")), notice("notifications/x")):
            answer = ask(site, message, bearer(CY))
            assert answer.status == 403
            assert challenge(answer) == (
                f'Bearer error="insufficient_scope", scope="notes:read", error_description="{NEEDS}notes:read"'
            )
        refused_amend(ask(site, AMEND, bearer(BOB)), "admin notes:read notes:write", "admin notes:write")
        nobody = ask(site, LOOK)
        assert (nobody.status, challenge(nobody)) == (401, 'Bearer scope="notes:read"')


def test_where_nobody_is_asked_everybody_may_do_everything(tmp_path: Path) -> None:
    with opened(tmp_path, TOKENS + '[server]\nlog_level = "error"\n', own=True) as site:
        assert ask(site, AMEND, bearer(CY)).status == 403
    with opened(tmp_path, TOKENS.replace("[auth]", '[auth]\nmode = "off"')) as site:
        assert ask(site, AMEND).status == 200
        assert ask(site, AMEND, bearer("whatever")).status == 200


def test_where_a_credential_is_optional_and_none_is_configured_nobody_has_scopes(tmp_path: Path) -> None:
    with opened(tmp_path, '[auth]\nmode = "optional"\n') as site:
        assert ask(site, modern(call("safe"))).status == 200
        assert ask(site, AMEND).status == 403


# -- what belongs to whom


def test_a_session_is_its_callers_alone(site: Site) -> None:
    session = Session(site.server, headers=[bearer(ANN)]).open()
    stranger = Session(site.server, headers=[bearer(BOB)])
    stranger.id = session.id
    nowhere = Session(site.server, headers=[bearer(BOB)])
    nowhere.id = "nowhere"
    with site.untouched():
        for who in (stranger, nowhere):
            answers = [who.post(call("safe")).finish(), who.get().finish(), who.delete().finish()]
            assert [answer.status for answer in answers] == [404] * 3
            assert len({answer.body for answer in answers}) == 1  # whether there is one is not told
        stranger.extra = []
        assert stranger.post(call("safe")).finish().status == 401
        assert stranger.get().finish().status == 401
        assert stranger.delete().finish().status == 401
    assert session.call("safe") == "safe"
    session.delete().finish()


def test_the_id_of_a_session_is_no_credential_in_any_place(site: Site) -> None:
    session = Session(site.server, headers=[bearer(ANN)]).open()
    with site.untouched():
        for headers in ([bearer(session.id)], [("X-API-Key", session.id)], [("Cookie", f"longshore={session.id}")]):
            assert ask(site, LOOK, *headers).status == 401
        path = f"/mcp?sessionId={session.id}"
        answer = site.send("POST", path, [bearer(ANN), ("MCP-Protocol-Version", LEGACY)], encode(call("safe")))
        assert answer.finish().status == 400  # nor is it read from the address
    session.delete().finish()


def test_an_old_session_is_its_callers_alone(site: Site) -> None:
    stream = site.send("GET", "/sse", [bearer(ANN)])
    stream.wait(lambda it: it.events, "the address to POST to")
    [endpoint] = [event.data for event in stream.events if event.kind == "endpoint"]
    body = encode(request("ping", id="p"))
    with site.untouched():
        assert site.send("POST", endpoint, [bearer(BOB)], body).finish().status == 404
        assert site.send("POST", endpoint, [], body).finish().status == 401
    assert site.send("POST", endpoint, [bearer(ANN)], body).finish().status == 202
    stream.wait(lambda it: len(it.events) == 2, "the answer")
    assert stream.events[1].message == {"jsonrpc": "2.0", "id": "p", "result": {}}
    stream.close()
    site.server.until(lambda: not site.premises.app.sse.open, "the end of the stream")


def test_ids_of_sessions_can_not_be_guessed(tmp_path: Path) -> None:
    """As many as a real server makes in a day: no two alike, visible ASCII, and every bit as often set as not."""
    sessions = configured(Server("x"), tmp_path).sessions
    count = 100_000
    ids = [sessions.candidate(Principal("ann"), "ann").id for _ in range(count)]
    assert len(set(ids)) == count
    assert all(0x21 <= ord(character) <= 0x7E for character in set("".join(ids)))
    assert {len(id) for id in ids} == {32}  # 192 bits
    for at in range(32):
        seen = Counter(id[at] for id in ids)
        expected = count / 64
        chi_square = sum((seen[character] - expected) ** 2 / expected for character in seen)
        assert len(seen) == 64
        assert chi_square < 160  # 63 degrees of freedom: by chance once in a billion


def test_a_question_is_answered_by_whom_it_was_put_to(site: Site) -> None:
    order = modern(call("refund", {"order": "A7"}), capabilities=ASKS)
    asked = ask(site, order, bearer(ANN)).json["result"]
    assert asked["resultType"] == "input_required"
    [key] = asked["inputRequests"]
    answers = {key: {"action": "accept", "content": {"ok": True}}}
    again = order | {"params": order["params"] | {"inputResponses": answers, "requestState": asked["requestState"]}}
    with site.untouched():
        stolen = ask(site, again, bearer(BOB)).json
        assert stolen["error"]["code"] == -32602
        assert stolen["error"]["message"] == "requestState belongs to another request"
        assert ask(site, again).status == 401
    before = site.premises.ran["refund"]
    done = ask(site, again, bearer(ANN)).json["result"]
    assert done["content"][0]["text"] == "A7: True"
    assert site.premises.ran["refund"] == before + 1
    replayed = ask(site, again, bearer(ANN)).json
    assert replayed["error"]["message"] == "requestState was used already"
    assert site.premises.ran["refund"] == before + 1


# -- cookies


def cookie_of(answer: Exchange) -> tuple[str, str]:
    return "Cookie", answer.headers["set-cookie"].partition(";")[0]


def test_a_browser_gets_a_cookie_and_uses_it_from_our_own_page(site: Site) -> None:
    own = ("Origin", f"http://127.0.0.1:{site.port}")
    given = site.send("POST", "/auth/cookie", [bearer(ANN), own], b"").finish()
    assert given.status == 204
    assert given.headers["set-cookie"] == (f"longshore={ANN}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000")
    cookie = cookie_of(given)
    assert caller(site, cookie, own) == "ann"
    assert caller(site, cookie, ("Sec-Fetch-Site", "same-origin")) == "ann"
    assert caller(site, ("Cookie", f"a=b; {cookie[1]}; c=d"), own) == "ann"
    assert site.send("GET", "/tools", [cookie, ("Sec-Fetch-Site", "same-origin")]).finish().status == 200


def test_a_cookie_is_of_no_use_to_anybody_else(site: Site) -> None:
    cookie = ("Cookie", f"longshore={ANN}")
    with site.untouched():
        for headers in (
            [cookie],
            [cookie, ("Sec-Fetch-Site", "none")],
            [cookie, ("Referer", f"http://127.0.0.1:{site.port}/")],
        ):
            answer = ask(site, LOOK, *headers)
            assert (answer.status, challenge(answer)) == (401, 'Bearer realm="mcp"')
        for origin in ("http://evil.com", "null", f"https://127.0.0.1:{site.port}", f"http://localhost:{site.port}"):
            assert ask(site, LOOK, cookie, ("Origin", origin)).status == 403
            form = [cookie, ("Origin", origin), ("Content-Type", "text/plain")]
            assert site.send("POST", "/tools/safe", form, b"").finish().status == 403
        assert ask(site, LOOK, cookie, ("Sec-Fetch-Site", "cross-site")).status == 403
        assert ask(site, LOOK, cookie, ("Sec-Fetch-Site", "same-site")).status == 403


def test_a_cookie_makes_no_cookie(site: Site) -> None:
    own = ("Origin", f"http://127.0.0.1:{site.port}")
    with site.untouched():
        answer = site.send("POST", "/auth/cookie", [("Cookie", f"longshore={ANN}"), own], b"").finish()
        assert answer.status == 401
        assert "set-cookie" not in answer.headers
        for headers in ([], [bearer("x" * 30)]):
            assert site.send("POST", "/auth/cookie", [*headers, own], b"").finish().status == 401
        foreign = site.send("POST", "/auth/cookie", [bearer(ANN), ("Origin", "http://evil.com")], b"").finish()
        assert foreign.status == 403
        assert "set-cookie" not in foreign.headers
        assert site.send("GET", "/auth/cookie", [bearer(ANN)]).finish().status == 405


def test_an_old_cookie_does_not_keep_a_browser_from_getting_a_new_one(site: Site) -> None:
    own = ("Origin", f"http://127.0.0.1:{site.port}")
    for old in (f"longshore={BOB}", "longshore=no-longer-known-0123456789", f"longshore={BOB}; longshore={CY}"):
        given = site.send("POST", "/auth/cookie", [bearer(ANN), own, ("Cookie", old)], b"").finish()
        assert given.status == 204
        assert cookie_of(given) == ("Cookie", f"longshore={ANN}")


def test_two_of_our_cookies_are_none(site: Site) -> None:
    """A neighbour on another port or path can plant one beside ours."""
    own = ("Origin", f"http://127.0.0.1:{site.port}")
    with site.untouched():
        for value in (f"longshore={BOB}; longshore={ANN}", f"longshore={ANN}; longshore={ANN}"):
            answer = ask(site, LOOK, ("Cookie", value), own)
            assert answer.status == 400
            assert 'error="invalid_request"' in challenge(answer)
        assert ask(site, LOOK, ("Cookie", f"longshore={ANN}"), own, bearer(BOB)).status == 400


def test_behind_a_proxy_our_own_page_is_the_public_one(tmp_path: Path) -> None:
    """TLS ends at the proxy: the browser's origin is https, the connection to us is not."""
    settings = {"public_url": "https://mcp.example.com"}
    with opened(tmp_path, TOKENS, own=True, **settings) as site:
        host = ("Host", "mcp.example.com")
        page = ("Origin", "https://mcp.example.com")
        given = site.send("POST", "/auth/cookie", [host, page, bearer(ANN)], b"").finish()
        assert given.headers["set-cookie"].endswith("; Secure")
        assert caller(site, host, page, cookie_of(given)) == "ann"
        with site.untouched():
            assert ask(site, LOOK, host, cookie_of(given), ("Origin", "http://mcp.example.com.evil.com")).status == 403


def test_a_page_that_is_named_but_not_ours_gets_nothing_for_a_cookie(tmp_path: Path) -> None:
    page = ("Origin", "https://app.example.com")
    with opened(tmp_path, TOKENS, origins=["https://app.example.com"]) as site:
        assert caller(site, page, bearer(ANN)) == "ann"
        with site.untouched():
            assert ask(site, LOOK, page, ("Cookie", f"longshore={ANN}")).status == 401


def test_other_names_and_none(tmp_path: Path) -> None:
    renamed = TOKENS.replace("[auth]", '[auth]\nkey_header = "X-Shop-Key"\ncookie = "shop"')
    with opened(tmp_path, renamed) as site:
        own = ("Origin", f"http://127.0.0.1:{site.port}")
        assert caller(site, ("X-Shop-Key", ANN)) == "ann"
        assert caller(site, own, ("Cookie", f"shop={ANN}")) == "ann"
        with site.untouched():
            assert ask(site, LOOK, ("X-API-Key", ANN)).status == 401
            assert ask(site, LOOK, ("X-Shop-Key", ANN), ("x-shop-key", ANN)).status == 400
            assert ask(site, LOOK, own, ("Cookie", f"longshore={ANN}")).status == 401
    without = TOKENS.replace("[auth]", '[auth]\nkey_header = ""\ncookie = ""')
    with opened(tmp_path, without) as site, site.untouched():
        own = ("Origin", f"http://127.0.0.1:{site.port}")
        assert ask(site, LOOK, ("X-API-Key", ANN)).status == 401
        assert ask(site, LOOK, own, ("Cookie", f"longshore={ANN}")).status == 401
        assert site.send("POST", "/auth/cookie", [bearer(ANN)], b"").finish().status == 404
