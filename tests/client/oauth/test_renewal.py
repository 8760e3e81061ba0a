"""Tokens that expire, are revoked or don't reach far enough, and servers that move to another issuer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from longshore.client import Client
from longshore.client.oauth import FileStorage, MemoryStorage
from longshore.errors import AuthorizationError, ClientError

from .conftest import login, run, talk, tokens_sent
from .town import Authority, Protected, Refused, living


def grants(authority: Authority) -> list[str]:
    return [each.form["grant_type"] for each in authority.asked if each.path == "/token"]


def test_a_token_is_renewed_before_it_expires(authority: Authority, server: Protected) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    _age(storage, server, authority, 3590)
    before = len(server.asked)
    assert talk(server, login(storage=storage), calls=3) == ["hello"] * 3
    assert grants(authority) == ["authorization_code", "refresh_token"]
    assert [each for each in server.asked[before:] if "authorization" not in each.headers] == []


def test_an_expired_token_is_not_sent(authority: Authority, server: Protected) -> None:
    authority.gives_refresh = False
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    [first] = authority.tokens
    _age(storage, server, authority, 4000)
    before = len(server.asked)
    talk(server, login(storage=storage))
    assert not [each for each in server.asked[before:] if first in each.headers.get("authorization", "")]
    assert authority.count("/authorize") == 2


def test_a_short_token_is_used_for_a_while(authority: Authority, server: Protected) -> None:
    authority.seconds = 15
    assert talk(server, login(), calls=5) == ["hello"] * 5
    assert grants(authority) == ["authorization_code"]


def test_while_a_token_is_good_a_failing_renewal_is_no_failure(authority: Authority, server: Protected) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    _age(storage, server, authority, 3590)
    authority.refusal = Refused("", "", 503)
    assert talk(server, login(storage=storage)) == ["hello"]
    _age(storage, server, authority, 100)
    with pytest.raises(AuthorizationError, match=r"renewing the token.*503"):
        talk(server, login(storage=storage))


def test_many_requests_renew_once(authority: Authority, server: Protected) -> None:
    async def work() -> None:
        async with Client(server.mcp, auth=login(), era="2025-11-25", timeout=15) as client:
            for _ in range(3):
                authority.tokens.clear()  # revoked
                await asyncio.gather(*(client.call("hello") for _ in range(20)))

    run(work)
    assert authority.count("/authorize") == 1 + grants(authority).count("authorization_code") - 1
    assert len(authority.tokens) == 1
    assert len(grants(authority)) == 4


def test_a_revoked_token_needs_no_login(authority: Authority, server: Protected) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    authority.tokens.clear()
    talk(server, login(storage=storage))
    assert grants(authority) == ["authorization_code", "refresh_token"]


def test_a_refresh_token_that_stays(authority: Authority, server: Protected) -> None:
    authority.rotates = False
    storage = MemoryStorage()
    for _ in range(3):
        talk(server, login(storage=storage))
        authority.tokens.clear()
    assert grants(authority) == ["authorization_code", "refresh_token", "refresh_token"]


def test_a_spent_refresh_token_leads_to_a_login(authority: Authority, server: Protected) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    authority.tokens.clear()
    authority.refresh_tokens.clear()
    assert talk(server, login(storage=storage)) == ["hello"]
    assert grants(authority) == ["authorization_code", "refresh_token", "authorization_code"]
    assert authority.count("/register") == 1


def test_a_token_endpoint_that_is_down_costs_no_login(authority: Authority, server: Protected) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    authority.tokens.clear()
    authority.refusal = Refused("", "", 503)
    with pytest.raises(AuthorizationError, match=r"renewing the token.*503"):
        talk(server, login(storage=storage))
    authority.refusal = None
    talk(server, login(storage=storage))
    assert authority.count("/authorize") == 1


def test_what_another_process_renewed_is_used(authority: Authority, server: Protected, tmp_path: Any) -> None:
    path = tmp_path / "oauth.json"

    async def work() -> None:
        mine, other = login(storage=FileStorage(path)), login(storage=FileStorage(path))
        one = Client(server.mcp, auth=mine, era="2025-11-25", timeout=15)
        two = Client(server.mcp, auth=other, era="2025-11-25", timeout=15)
        async with one, two:
            await one.call("hello")
            authority.tokens.clear()
            await two.call("hello")  # renews, and our refresh token is spent
            await one.call("hello")
            authority.tokens.clear()
            await asyncio.gather(one.call("hello"), two.call("hello"))  # both at once

    run(work)
    assert grants(authority) == ["authorization_code", "refresh_token", "refresh_token"]


def test_scopes_by_the_challenge(authority: Authority, server: Protected) -> None:
    server.scope, server.metadata = "a b", {"scopes_supported": ["c"]}
    talk(server, login())
    assert _scopes(authority) == [{"a", "b"}]


def test_scopes_by_the_metadata(authority: Authority, server: Protected) -> None:
    server.metadata = {"scopes_supported": ["c", "offline_access", 7]}
    talk(server, login())
    assert _scopes(authority) == [{"c"}]


def test_a_refresh_token_is_asked_for_where_it_is_known(authority: Authority, server: Protected) -> None:
    server.scope, authority.metadata["scopes_supported"] = "a", ["a", "offline_access"]
    talk(server, login())
    assert _scopes(authority) == [{"a", "offline_access"}]


def test_step_up_asks_for_all(authority: Authority, server: Protected) -> None:
    server.scope, server.needs = "read", {"tools/call": {"write"}}
    assert talk(server, login()) == ["hello"]
    assert _scopes(authority) == [{"read"}, {"read", "write"}]
    assert grants(authority) == ["authorization_code", "authorization_code"]


def test_step_up_where_scopes_are_registered(authority: Authority, server: Protected) -> None:
    server.scope, server.needs = "read", {"tools/call": {"write"}}
    authorize = authority.authorize

    def strict(heard: Any) -> Any:
        registered = authority.clients[heard.query["client_id"]]["scope"]
        assert set(heard.query["scope"].split()) <= set(registered.split())
        return authorize(heard)

    authority.authorize = strict  # type: ignore[method-assign]
    assert talk(server, login()) == ["hello"]
    assert authority.count("/register") == 2


def test_step_up_ends(authority: Authority, server: Protected) -> None:
    server.needs = {"tools/call": {"write"}}
    authority.authorize = _without_scope(authority)  # type: ignore[method-assign]
    auth = login()
    for _ in range(3):
        with pytest.raises(ClientError, match=r"403|still refuses"):
            talk(server, auth)
    assert authority.count("/authorize") <= 1 + 3


def test_a_plain_403_is_no_reason_to_log_in(authority: Authority, server: Protected) -> None:
    server.needs = {"tools/call": {"write"}}
    challenge = server.challenge
    server.challenge = lambda status, **fields: challenge(status, **{**fields, "error": "no"})  # type: ignore[method-assign, assignment]
    with pytest.raises(ClientError, match="403"):
        talk(server, login())
    assert authority.count("/authorize") == 1


def test_a_server_that_moves_to_another_issuer(authority: Authority, server: Protected) -> None:
    second = Authority()
    second.number = iter(range(500, 600))  # type: ignore[assignment]
    with living(second):
        auth = login()
        talk(server, auth)
        server.authorities[:] = [second]
        assert talk(server, auth) == ["hello"]
    assert second.count("/register") == 1
    old = set(authority.clients)
    assert not any(each.query.get("client_id") in old for each in second.asked)
    assert not any(each.form.get("client_id") in old for each in second.asked if each.path == "/token")
    assert "refresh_token" not in grants(authority) + grants(second)
    assert len(tokens_sent(server)) == 3


def test_a_client_id_is_shown_to_one_issuer_only(authority: Authority, server: Protected) -> None:
    by_hand = {"redirect_uris": ["http://127.0.0.1:9107/callback"], "token_endpoint_auth_method": "none"}
    authority.clients["mine"] = by_hand
    second = Authority()
    second.clients["mine"] = by_hand
    storage = MemoryStorage()
    with living(second):
        talk(server, login(client_id="mine", storage=storage))
        server.authorities[:] = [second]
        with pytest.raises(AuthorizationError, match="never shown to another"):
            talk(server, login(client_id="mine", storage=storage))
        assert not [each for each in second.asked if "mine" in str(each)]
        assert talk(server, login(client_id="mine", issuer=second.issuer, storage=storage)) == ["hello"]
        with pytest.raises(AuthorizationError, match="issuer= says"):
            talk(server, login(client_id="mine", issuer="https://other.example"))


def _age(storage: MemoryStorage, server: Protected, authority: Authority, seconds: float) -> None:
    """Let time pass for the stored tokens."""
    key = f"tokens - {authority.issuer} {server.mcp}"
    record = storage.read(key)
    assert record is not None
    storage.write(key, {**record, **{name: record[name] - seconds for name in ("expires", "renew")}})


def _scopes(authority: Authority) -> list[set[str]]:
    return [set(each.query.get("scope", "").split()) for each in authority.asked if each.path == "/authorize"]


def _without_scope(authority: Authority) -> Any:
    """An authorization server that gives no scope, whatever is asked for."""
    authorize = authority.authorize

    def strict(heard: Any) -> Any:
        return authorize(heard._replace(query={**heard.query, "scope": ""}))

    return strict
