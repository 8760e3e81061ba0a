"""Opaque tokens, looked up at the authorization server."""

from __future__ import annotations

import asyncio
import base64
import threading
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from longshore.auth import Guard
from longshore.auth import guard as guards
from longshore.protocol.peer import Principal

from .conftest import RESOURCE, bearer, error, guard, look_up, principal, refusal
from .issuer import Answer, Clock, Issuer, ec, jwt, send

TOKEN = "opaque-opaque-opaque"
ISSUER = "https://login.example.com"


def _guard(server: Issuer, clock: Clock, **settings: Any) -> Guard:
    given = {"issuer": ISSUER, "introspection_client": "mcp", "introspection_secret": "p:w d&é", **settings}
    return guard(introspection_url=server.introspection, clock=clock, **given)


def _answer(clock: Clock, **fields: Any) -> dict[str, Any]:
    given = {"active": True, "sub": "alice", "aud": RESOURCE, "scope": "read write", "exp": clock.now + 300, **fields}
    return {name: value for name, value in given.items() if value is not None}


def test_an_active_token_is_accepted(issuer: Issuer, clock: Clock) -> None:
    issuer.tokens[TOKEN] = _answer(clock)
    outcome = look_up(_guard(issuer, clock), bearer(TOKEN))
    assert outcome == Principal("login.example.com:alice", frozenset({"read", "write"}))


def test_the_introspection_request_is_as_rfc_7662_says(issuer: Issuer, clock: Clock) -> None:
    odd = "a+b/c~d.e-f_g=="
    issuer.tokens[odd] = _answer(clock)
    assert principal(look_up(_guard(issuer, clock), bearer(odd)))
    authorization, form = issuer.forms[0]
    assert issuer.asked == [("POST", "/introspect")]
    assert form == {"token": [odd], "token_type_hint": ["access_token"]}
    assert authorization == "Basic " + base64.b64encode(b"mcp:p%3Aw+d%26%C3%A9").decode()


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"iss": ISSUER}, "login.example.com:alice"),
        ({"sub": None, "client_id": "bot"}, "login.example.com?client:bot"),
        ({"sub": "?client:bot"}, "login.example.com:?client:bot"),
        ({"aud": ["x", RESOURCE]}, "login.example.com:alice"),
        ({"exp": None}, "login.example.com:alice"),
        ({"nbf": 1_800_000_060}, "login.example.com:alice"),
        ({"username": "Alice", "token_type": "Bearer", "jti": "1", "ext": {"a": []}}, "login.example.com:alice"),
    ],
)
def test_introspection_results_that_are_accepted(
    issuer: Issuer, clock: Clock, fields: dict[str, Any], name: str
) -> None:
    issuer.tokens[TOKEN] = _answer(clock, **fields)
    assert principal(look_up(_guard(issuer, clock), bearer(TOKEN))).name == name


def test_without_an_issuer_the_name_begins_with_the_endpoint(issuer: Issuer, clock: Clock) -> None:
    issuer.tokens[TOKEN] = _answer(clock)
    outcome = principal(look_up(_guard(issuer, clock, issuer=None), bearer(TOKEN)))
    assert outcome.name == issuer.url.replace(":", "%3A") + ":alice"
    issuer.tokens[TOKEN + "2"] = _answer(clock, iss="https://other.example")
    outcome = principal(look_up(_guard(issuer, clock, issuer=None), bearer(TOKEN + "2")))
    assert outcome.name == "other.example:alice"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"active": False}, "the access token is unknown, has expired or was revoked"),
        ({"iss": "https://evil.example"}, "the access token comes from another issuer"),
        (
            {"aud": "https://other.example"},
            f"the access token was issued for another server: its aud must contain {RESOURCE}",
        ),
        ({"aud": None}, f"the access token was issued for another server: its aud must contain {RESOURCE}"),
        ({"exp": 1_800_000_000}, "the access token has expired"),
        ({"nbf": 1_800_000_061}, "the access token is not valid yet"),
        ({"sub": None}, "the access token does not say whom it is for"),
        ({"sub": None, "client_id": "a\nb"}, "the access token does not say whom it is for"),
    ],
)
def test_introspection_results_that_are_refused(issuer: Issuer, clock: Clock, fields: dict[str, Any], why: str) -> None:
    issuer.tokens[TOKEN] = _answer(clock, **fields)
    refused = refusal(look_up(_guard(issuer, clock), bearer(TOKEN)))
    assert (refused.status, refused.text) == (401, why)
    assert f'error="invalid_token", error_description="{why}"' in refused.challenge


def test_an_unknown_token_gets_401(issuer: Issuer, clock: Clock) -> None:
    assert refusal(look_up(_guard(issuer, clock), bearer(TOKEN))).status == 401


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda request: send(request, b"", 500), "answered with status 500"),
        (lambda request: send(request, b"", 401), "answered with status 401"),
        (lambda request: send(request, b"", 307, Location="/introspect2"), "redirects are not followed"),
        (lambda request: send(request, b"true"), "something else than RFC 7662 says"),
        (lambda request: send(request, b'{"active": "true"}'), "something else than RFC 7662 says"),
        (lambda request: send(request, b'{"active": 1}'), "something else than RFC 7662 says"),
        (lambda request: send(request, b"{}"), "did not say whether the token is active"),
        (lambda request: send(request, b'{"active": null}'), "did not say whether the token is active"),
        (lambda request: send(request, b'{"x":' + b"[" * 100_000), "something else than RFC 7662 says"),
        (lambda request: send(request, b" " * 300_000), "more than 262,144 bytes"),
        (lambda request: request.connection.close(), "it closed the connection without an answer"),
    ],
)
def test_no_token_is_accepted_while_introspection_fails(issuer: Issuer, clock: Clock, answer: Answer, why: str) -> None:
    issuer.answer = answer
    found = _guard(issuer, clock)
    refused = refusal(look_up(found, bearer(TOKEN)))
    assert (refused.status, refused.challenge) == (503, "")
    assert "can't be checked now" in refused.text
    assert why in (found.trouble or "")
    assert TOKEN not in (found.trouble or "")
    assert "p:w" not in (found.trouble or "")
    issuer.answer = None
    issuer.tokens[TOKEN] = _answer(clock)
    assert principal(look_up(found, bearer(TOKEN)))
    assert found.trouble is None


def test_an_introspection_result_is_cached_for_a_minute(issuer: Issuer, clock: Clock) -> None:
    issuer.tokens[TOKEN] = _answer(clock)
    found = _guard(issuer, clock)
    outcome = look_up(found, bearer(TOKEN))
    issuer.tokens.clear()
    clock.now += 59
    assert found.check(bearer(TOKEN), False) == outcome
    clock.now += 1
    assert found.check(bearer(TOKEN), False) is None
    assert refusal(look_up(found, bearer(TOKEN))).status == 401


def test_an_introspection_result_is_cached_no_longer_than_the_token(issuer: Issuer, clock: Clock) -> None:
    issuer.tokens[TOKEN] = _answer(clock, exp=clock.now + 10)
    found = _guard(issuer, clock)
    assert principal(look_up(found, bearer(TOKEN)))
    clock.now += 10
    assert refusal(look_up(found, bearer(TOKEN))).text == "the access token has expired"


def test_a_clock_that_was_set_back_does_not_prolong_the_cache(issuer: Issuer, clock: Clock) -> None:
    issuer.tokens[TOKEN] = _answer(clock)
    found = _guard(issuer, clock)
    assert principal(look_up(found, bearer(TOKEN)))
    clock.now -= 3600
    assert found.check(bearer(TOKEN), False) is None


def test_static_tokens_are_never_sent_out(issuer: Issuer, clock: Clock) -> None:
    found = _guard(issuer, clock, token="s3cret-s3cret-s3cret")
    assert principal(look_up(found, bearer("s3cret-s3cret-s3cret"))).name == "token"
    assert issuer.asked == []


def test_a_jwt_is_looked_up_if_no_key_set_is_configured(issuer: Issuer, clock: Clock) -> None:
    key = ec("k")
    token = jwt(key, "ES256", {"sub": "mallory"})
    issuer.tokens[token] = _answer(clock)
    assert principal(look_up(_guard(issuer, clock), bearer(token))).name == "login.example.com:alice"


def test_with_both_a_jwt_is_checked_here_and_all_else_is_looked_up(issuer: Issuer, clock: Clock) -> None:
    key = ec("k")
    issuer.publish(key)
    found = _guard(issuer, clock, jwks=issuer.jwks)
    claims = {"iss": ISSUER, "sub": "bob", "aud": RESOURCE, "exp": clock.now + 9}
    good, bad = jwt(key, "ES256", claims), jwt(ec("k"), "ES256", claims)
    issuer.tokens = {TOKEN: _answer(clock), bad: _answer(clock)}
    assert principal(look_up(found, bearer(good))).name == "login.example.com:bob"
    assert principal(look_up(found, bearer(TOKEN))).name == "login.example.com:alice"
    assert refusal(look_up(found, bearer(bad))).status == 401
    assert [path for _, path in issuer.asked] == ["/jwks", "/introspect"]


def test_the_same_token_is_looked_up_once_at_a_time(issuer: Issuer, clock: Clock) -> None:
    issuer.tokens[TOKEN] = _answer(clock)
    found = _guard(issuer, clock)

    async def main() -> list[Any]:
        async with asyncio.timeout(20):
            return await asyncio.gather(*(found.look_up(bearer(TOKEN), False) for _ in range(50)))

    assert {principal(outcome).name for outcome in asyncio.run(main())} == {"login.example.com:alice"}
    assert len(issuer.asked) == 1


def test_a_flood_of_invented_tokens_is_bounded(issuer: Issuer, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guards, "MOST_LOOK_UPS", 4)
    go = threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        go.wait(20)
        send(request, {"active": False})

    issuer.answer = answer
    found = _guard(issuer, clock, token="s3cret-s3cret-s3cret")

    async def main() -> list[int]:
        async with asyncio.timeout(20):
            tasks = [asyncio.create_task(found.look_up(bearer(f"made-up-{n}"), False)) for n in range(10)]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            assert principal(await found.look_up(bearer("s3cret-s3cret-s3cret"), False))
            joined = asyncio.create_task(found.look_up(bearer("made-up-0"), False))
            await asyncio.sleep(0)
            go.set()
            return [refusal(outcome).status for outcome in await asyncio.gather(*tasks, joined)]

    assert asyncio.run(main()) == [401] * 4 + [503] * 6 + [401]


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        (
            {"introspection_client": None},
            "auth.introspection_client: not set; auth.introspection_url needs a client id and its secret",
        ),
        (
            {"introspection_secret": None},
            "auth.introspection_secret: not set; auth.introspection_url needs a client id and its secret",
        ),
        (
            {"introspection_url": None},
            "auth.issuer: no access token can be checked; set auth.jwks or auth.introspection_url",
        ),
        (
            {"introspection_url": None, "issuer": None},
            "auth.introspection_client: of no use without auth.introspection_url",
        ),
    ],
)
def test_incomplete_settings_are_refused(settings: dict[str, Any], why: str) -> None:
    given = {
        "issuer": ISSUER,
        "introspection_url": "https://login.example.com/introspect",
        "introspection_client": "c",
        "introspection_secret": "s",
    }
    assert error(**{**given, **settings}) == why
