"""The guard as a whole: modes, cookies, the cache of tokens, and that no token leaks."""

from __future__ import annotations

import asyncio
import gc
from http.cookies import SimpleCookie
from typing import Any

import pytest

from longshore.auth.verifiers import Verified, VerifiedTokens
from longshore.config.sections import TokenConfig
from longshore.protocol.peer import Principal

from .conftest import RESOURCE, bearer, error, guard, look_up, principal, refusal
from .issuer import Clock, Issuer, ec, jwt

TOKEN = "s3cret-s3cret-s3cret"
HOW = "set auth.token_file, [tokens.NAME], or auth.issuer and auth.jwks"


# Modes


def test_without_configuration_every_caller_is_local() -> None:
    found = guard()
    assert not found.required
    for headers in ({}, bearer("whatever"), {b"authorization": b"Basic x", b"x-api-key": b"\xff"}):
        assert found.check(headers, False) == Principal("local", None)
        assert look_up(found, headers) == Principal("local", None)


def test_mode_off_requires_no_credential_and_warns() -> None:
    found = guard({"bob": TokenConfig(token="short")}, mode="off", token_file="/no/such/file")
    assert not found.required
    assert found.check({}, False) == Principal("local", None)
    assert found.warnings == ['auth.mode is "off": everyone is let in, the configured credentials are not asked for']
    assert guard(mode="off").warnings == []


@pytest.mark.parametrize(
    "settings",
    [
        {"token": TOKEN},
        {"tokens": {"bob": TokenConfig(token=TOKEN)}},
        {"extra_token": TOKEN},
        {"extra_token": TOKEN, "mode": "required"},
        {"introspection_url": "https://h/i", "introspection_client": "c", "introspection_secret": "s"},
        {"issuer": "https://h", "jwks": "https://h/jwks"},
    ],
)
def test_any_configured_verifier_requires_a_credential(settings: dict[str, Any]) -> None:
    found = guard(**settings)
    assert found.required
    assert refusal(found.check({}, True)).status == 401


def test_an_optional_credential_is_checked_and_callers_on_this_machine_may_come_without_scopes() -> None:
    found = guard(mode="optional", token=TOKEN)
    assert not found.required
    assert found.check({}, False) == found.anyone == Principal("anonymous", frozenset())
    assert refusal(found.check({}, False, is_local=False)).status == 401
    assert found.check(bearer(TOKEN), False, is_local=False) == Principal("token", None)
    assert refusal(found.check(bearer("wrong" * 5), False)).status == 401
    assert refusal(found.cookie({})).status == 401
    nothing = guard(mode="optional")
    assert (nothing.optional, nothing.check({}, False)) == (False, nothing.anyone)
    assert nothing.anyone.scopes == frozenset()


def test_mode_required_without_a_verifier_is_refused() -> None:
    assert error(mode="required") == f'auth.mode is "required", but nothing says who may come in; {HOW}'


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"scopes": ["mcp"]}, f"auth.scopes: nothing checks who has them; {HOW}"),
        (
            {"audience": "x", "token": TOKEN},
            "auth.audience: no access token can be checked; set auth.jwks or auth.introspection_url",
        ),
        (
            {"authorization_servers": ["https://h"]},
            "auth.authorization_servers: no access token can be checked; set auth.jwks or auth.introspection_url",
        ),
        ({"introspection_secret": "s"}, "auth.introspection_secret: of no use without auth.introspection_url"),
        ({"token": TOKEN, "scopes": ["a b"]}, 'auth.scopes: a scope is printable ASCII without blanks, " and \\'),
        ({"token": TOKEN, "scopes": [""]}, 'auth.scopes: a scope is printable ASCII without blanks, " and \\'),
        ({"token": TOKEN, "scopes": ["a\r\n"]}, 'auth.scopes: a scope is printable ASCII without blanks, " and \\'),
    ],
)
def test_settings_that_check_nothing_are_refused(settings: dict[str, Any], why: str) -> None:
    assert error(**settings) == why


def test_a_credential_in_a_place_that_is_not_configured_is_ignored() -> None:
    found = guard(token=TOKEN)
    for name in (b"x-forwarded-authorization", b"proxy-authorization", b"x-auth-token", b":path", b"referer"):
        assert refusal(found.check({name: b"Bearer " + TOKEN.encode()}, True)).status == 401


# Cookies


def test_a_header_credential_becomes_a_cookie() -> None:
    found = guard(token=TOKEN)
    for headers in (bearer(TOKEN), {b"x-api-key": TOKEN.encode()}):
        made = found.cookie(headers)
        assert made == f"longshore={TOKEN}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000; Secure"
    parsed = SimpleCookie(str(made))["longshore"]
    assert (parsed.value, parsed["httponly"], parsed["samesite"]) == (TOKEN, True, "Strict")
    assert found.check({b"cookie": f"longshore={parsed.value}".encode()}, True) == Principal("token", None)


def test_over_plain_http_a_cookie_is_not_secure() -> None:
    made = guard(token=TOKEN, resource="http://127.0.0.1:9100/mcp", cookie="mcp").cookie(bearer(TOKEN))
    assert made == f"mcp={TOKEN}; HttpOnly; SameSite=Strict; Path=/; Max-Age=2592000"


def test_an_old_cookie_does_not_keep_a_new_one_from_being_made() -> None:
    headers = {**bearer(TOKEN), b"cookie": b"longshore=an-old-one; longshore=planted"}
    assert str(guard(token=TOKEN).cookie(headers)).startswith(f"longshore={TOKEN};")


def test_no_cookie_without_a_good_header() -> None:
    found = guard({"bob": TokenConfig(token=TOKEN, scopes=[])}, token=TOKEN + "2", scopes=["mcp"])
    assert refusal(found.cookie({})).status == 401
    assert refusal(found.cookie({b"cookie": f"longshore={TOKEN}2".encode()})).status == 401
    assert refusal(found.cookie(bearer("x" * 20))).status == 401
    assert refusal(found.cookie({**bearer(TOKEN), b"x-api-key": TOKEN.encode()})).status == 400
    assert refusal(found.cookie(bearer(TOKEN))).status == 403
    assert isinstance(found.cookie(bearer(TOKEN + "2")), str)


def test_without_cookies_the_endpoint_is_404() -> None:
    for found in (guard(), guard(token=TOKEN, cookie=""), guard(token=TOKEN, mode="off")):
        refused = refusal(found.cookie(bearer(TOKEN)))
        assert (refused.status, refused.challenge) == (404, "")


def test_a_cookie_lives_as_long_as_its_token(issuer: Issuer, clock: Clock) -> None:
    key = ec("k")
    issuer.publish(key)
    found = guard(issuer="https://h", jwks=issuer.jwks, clock=clock)
    claims = {"iss": "https://h", "sub": "alice", "aud": RESOURCE, "exp": clock.now + 90}
    headers = bearer(jwt(key, "ES256", claims))
    assert refusal(found.cookie(headers)).status == 503, "it has to be looked up first"
    assert principal(look_up(found, headers, same_origin=False))
    assert "; Max-Age=90; " in str(found.cookie(headers))


def test_a_cookie_of_a_long_lived_token_is_bounded(issuer: Issuer, clock: Clock) -> None:
    issuer.tokens["opaque"] = {"active": True, "sub": "a", "aud": RESOURCE, "exp": clock.now + 1e9}
    found = guard(
        introspection_url=issuer.introspection, introspection_client="c", introspection_secret="s", clock=clock
    )
    assert principal(look_up(found, bearer("opaque")))
    assert "; Max-Age=2592000; " in str(found.cookie(bearer("opaque")))


# The cache


def test_the_cache_of_tokens_is_bounded() -> None:
    known = VerifiedTokens()
    for number in range(VerifiedTokens.MOST + 10):
        known.add(str(number).encode(), Verified(Principal(str(number)), 0, 100))
    assert known.get(b"9", 1) is None
    assert known.get(b"10", 1) is not None
    assert known.get(str(VerifiedTokens.MOST + 9).encode(), 1) is not None


def test_a_token_evicted_from_the_cache_is_found_again(issuer: Issuer, clock: Clock) -> None:
    names = [f"caller{number}" for number in range(VerifiedTokens.MOST + 5)]
    found = guard({name: TokenConfig(token=f"{name}-{TOKEN}") for name in names})
    for _ in range(2):
        for name in names[:10] + names[-10:]:
            assert principal(found.check(bearer(f"{name}-{TOKEN}"), False)).name == name


def test_refused_tokens_take_no_memory() -> None:
    found = guard(token=TOKEN)
    for number in range(100):
        found.check(bearer(f"made-up-{number}"), False)
    gc.collect()
    before = len(gc.get_objects())
    for number in range(5000):
        found.check(bearer(f"made-up-{number}-again"), False)
    gc.collect()
    assert len(gc.get_objects()) - before < 100


def test_no_object_of_the_guard_holds_the_token() -> None:
    token = "s3cret-" + "-".join(["in", "memory", "only", "once"])
    found = guard({"bob": TokenConfig(token=token + "-bob")}, token=token)
    assert principal(found.check(bearer(token), False)).name == "token"
    seen: set[int] = set()
    texts: list[str] = []

    def walk(value: Any) -> None:
        if id(value) in seen or len(seen) > 20_000:
            return
        seen.add(id(value))
        if isinstance(value, (str, bytes)):
            texts.append(str(value))
        elif isinstance(value, dict):
            for part in (*value.keys(), *value.values()):
                walk(part)
        elif isinstance(value, (list, tuple, set, frozenset)):
            for part in value:
                walk(part)
        elif type(value).__module__.startswith("longshore."):
            walk(getattr(value, "__dict__", None))
            walk([getattr(value, name) for name in getattr(value, "__struct_fields__", ())])

    walk(found)
    assert len(texts) > 10
    assert not [text for text in texts if token in text]


def test_a_principal_holds_no_token() -> None:
    assert Principal.__struct_fields__ == ("name", "scopes")


def test_closing_twice_and_closing_an_idle_guard() -> None:
    async def main() -> None:
        async with asyncio.timeout(10):
            for found in (guard(), guard(token=TOKEN), guard(issuer="https://h", jwks="https://h/jwks")):
                await found.close()
                await found.close()

    asyncio.run(main())


def test_a_static_token_still_works_after_closing() -> None:
    found = guard(token=TOKEN)
    asyncio.run(found.close())
    assert found.check(bearer(TOKEN), False) == Principal("token", None)
