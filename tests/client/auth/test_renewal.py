"""Tokens that expire, are revoked or don't reach far enough, and servers that move to another issuer."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from longshore.client import Client
from longshore.client.auth import FileStorage, MemoryStorage
from longshore.errors import AuthorizationError, ClientError

from .conftest import age, first_headers, login, run, talk, tokens_sent
from .oauth_servers import AuthorizationServer, ProtectedServer, Received, Refused, Reply, follow, running


def grants(authority: AuthorizationServer) -> list[str]:
    return [each.form["grant_type"] for each in authority.asked if each.path == "/token"]


def test_a_token_is_renewed_before_it_expires(authority: AuthorizationServer, server: ProtectedServer) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    age(storage, 3590)
    before = len(server.asked)
    assert talk(server, login(storage=storage), calls=3) == ["hello"] * 3
    assert grants(authority) == ["authorization_code", "refresh_token"]
    assert [each for each in server.asked[before:] if "authorization" not in each.headers] == []


def test_an_expired_token_is_not_sent(authority: AuthorizationServer, server: ProtectedServer) -> None:
    authority.gives_refresh = False
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    [first] = authority.tokens
    age(storage, 4000)
    before = len(server.asked)
    talk(server, login(storage=storage))
    assert not [each for each in server.asked[before:] if first in each.headers.get("authorization", "")]
    assert authority.count("/authorize") == 2


def test_a_short_lived_token_is_renewed_at_half_its_life(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    authority.seconds = 15
    assert talk(server, login(), calls=5) == ["hello"] * 5
    assert grants(authority) == ["authorization_code"]


def test_a_failed_renewal_of_a_valid_token_fails_no_request(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    age(storage, 3590)
    authority.refusal = Refused("", "", 503)
    assert talk(server, login(storage=storage)) == ["hello"]
    age(storage, 100)
    with pytest.raises(AuthorizationError, match=r"renewing the token.*503"):
        talk(server, login(storage=storage))


def test_many_requests_renew_once(authority: AuthorizationServer, server: ProtectedServer) -> None:
    """Twenty requests are refused together, and none of them by a token that came after theirs."""
    gate = threading.Barrier(20, timeout=10)
    refused, together = server.refused, threading.Event()

    def at_once(received: Received, method: str) -> Reply | None:
        found = refused(received, method)
        if together.is_set() and found is not None and method == "tools/call":
            gate.wait()  # nobody is answered before all have asked
        return found

    server.refused = at_once  # type: ignore[method-assign]

    async def work() -> None:
        async with Client(server.mcp, auth=login(), era="2025-11-25", timeout=15) as client:
            for _ in range(3):
                authority.tokens.clear()  # revoked
                together.set()
                await asyncio.gather(*(client.call_tool("hello") for _ in range(20)))
                together.clear()

    run(work)
    assert grants(authority) == ["authorization_code"] + ["refresh_token"] * 3
    assert authority.count("/authorize") == 1 and len(authority.tokens) == 1


def test_a_revoked_token_is_renewed_without_a_login(authority: AuthorizationServer, server: ProtectedServer) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    authority.tokens.clear()
    talk(server, login(storage=storage))
    assert grants(authority) == ["authorization_code", "refresh_token"]


def test_a_refresh_token_may_stay_the_same(authority: AuthorizationServer, server: ProtectedServer) -> None:
    authority.rotates = False
    storage = MemoryStorage()
    for _ in range(3):
        talk(server, login(storage=storage))
        authority.tokens.clear()
    assert grants(authority) == ["authorization_code", "refresh_token", "refresh_token"]


def test_a_spent_refresh_token_leads_to_a_login(authority: AuthorizationServer, server: ProtectedServer) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    authority.tokens.clear()
    authority.refresh_tokens.clear()
    assert talk(server, login(storage=storage)) == ["hello"]
    assert grants(authority) == ["authorization_code", "refresh_token", "authorization_code"]
    assert authority.count("/register") == 1


def test_a_token_endpoint_that_is_down_costs_no_login(authority: AuthorizationServer, server: ProtectedServer) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    authority.tokens.clear()
    authority.refusal = Refused("", "", 503)
    with pytest.raises(AuthorizationError, match=r"renewing the token.*503"):
        talk(server, login(storage=storage))
    authority.refusal = None
    talk(server, login(storage=storage))
    assert authority.count("/authorize") == 1


def test_tokens_that_another_process_renewed_are_used(
    authority: AuthorizationServer, server: ProtectedServer, tmp_path: Any
) -> None:
    path = tmp_path / "oauth.json"

    async def work() -> None:
        mine, other = login(storage=FileStorage(path)), login(storage=FileStorage(path))
        one = Client(server.mcp, auth=mine, era="2025-11-25", timeout=15)
        two = Client(server.mcp, auth=other, era="2025-11-25", timeout=15)
        async with one, two:
            await one.call_tool("hello")
            authority.tokens.clear()
            await two.call_tool("hello")  # renews, and our refresh token is spent
            await one.call_tool("hello")
            authority.tokens.clear()
            await asyncio.gather(one.call_tool("hello"), two.call_tool("hello"))  # both at once

    run(work)
    assert grants(authority) == ["authorization_code", "refresh_token", "refresh_token"]


class Clock:
    """The time, and as much more as a test lets pass."""

    def __init__(self) -> None:
        self.passed = 0.0
        self.monotonic = time.monotonic

    def time(self) -> float:
        return time.time() + self.passed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr("longshore.client.auth.tokens.time", made)
    return made


def test_a_refresh_token_that_another_process_spent_is_not_sent(
    authority: AuthorizationServer, server: ProtectedServer, tmp_path: Any, clock: Clock
) -> None:
    """Another renewed, and then all was quiet until its token was old too: its refresh token is the good one."""
    path = tmp_path / "oauth.json"
    mine, other = login(storage=FileStorage(path)), login(storage=FileStorage(path))
    talk(server, mine)
    talk(server, other)
    clock.passed = 3590
    talk(server, other)
    clock.passed = 7300
    assert talk(server, mine) == talk(server, other) == ["hello"]
    assert grants(authority) == ["authorization_code", "refresh_token", "refresh_token"]


def test_a_refused_renewal_does_not_delete_newer_tokens(
    authority: AuthorizationServer, server: ProtectedServer, tmp_path: Any, clock: Clock
) -> None:
    """Another has logged in for fewer scopes: its tokens are of no use to us, and ours are refused."""
    storage = FileStorage(tmp_path / "oauth.json")
    people = [follow]

    async def one_login(url: str) -> str:
        return await people.pop()(url)

    mine, other = login(storage=storage, scopes=["more"], redirect=one_login), login(storage=storage)
    talk(server, mine)
    authority.tokens.clear()
    authority.refresh_tokens.clear()
    [key] = [name for name in json.loads(Path(storage.path).read_bytes()) if name.startswith("tokens ")]
    storage.write(key, None)
    talk(server, other)
    newer = storage.read(key)
    clock.passed = 7300
    with pytest.raises(AuthorizationError, match="redirect= raised IndexError"):
        talk(server, mine)
    assert grants(authority) == ["authorization_code"] * 2 + ["refresh_token"]
    assert newer is not None and storage.read(key) == newer
    assert talk(server, login(storage=storage, redirect=one_login)) == ["hello"]


@pytest.mark.parametrize("passed", [0, 7300])
def test_a_login_that_another_process_made_is_used(
    authority: AuthorizationServer, server: ProtectedServer, tmp_path: Any, clock: Clock, passed: float
) -> None:
    """A client without tokens uses those that another process stored since, or renews them."""
    path = tmp_path / "oauth.json"

    async def nobody(url: str) -> str:
        raise LookupError("nobody")

    mine = login(storage=FileStorage(path), redirect=nobody)
    with pytest.raises(AuthorizationError, match="redirect= raised LookupError"):
        talk(server, mine)
    talk(server, login(storage=FileStorage(path)))
    clock.passed = passed
    assert talk(server, mine) == ["hello"]
    assert grants(authority) == ["authorization_code"] + ["refresh_token"] * bool(passed)


def test_a_stored_token_that_is_refused_leads_to_a_login(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    storage = MemoryStorage()
    auth = login(storage=storage)

    async def work() -> None:
        await first_headers(auth, server.mcp)  # it has looked, and there was nothing

    run(work)
    talk(server, login(storage=storage))
    authority.tokens.clear()
    authority.refresh_tokens.clear()
    assert talk(server, auth) == ["hello"]
    assert grants(authority) == ["authorization_code", "refresh_token", "authorization_code"]


def test_scopes_come_from_the_challenge(authority: AuthorizationServer, server: ProtectedServer) -> None:
    server.scope, server.metadata = "a b", {"scopes_supported": ["c"]}
    talk(server, login())
    assert _scopes(authority) == [{"a", "b"}]


def test_scopes_come_from_the_metadata(authority: AuthorizationServer, server: ProtectedServer) -> None:
    server.metadata = {"scopes_supported": ["c", "offline_access", "a b"]}
    talk(server, login())
    assert _scopes(authority) == [{"c"}]


def test_offline_access_is_requested_if_the_issuer_lists_it(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    server.scope, authority.metadata["scopes_supported"] = "a", ["a", "offline_access"]
    talk(server, login())
    assert _scopes(authority) == [{"a", "offline_access"}]


def test_a_step_up_requests_the_union_of_scopes(authority: AuthorizationServer, server: ProtectedServer) -> None:
    server.scope, server.needs = "read", {"tools/call": {"write"}}
    assert talk(server, login()) == ["hello"]
    assert _scopes(authority) == [{"read"}, {"read", "write"}]
    assert grants(authority) == ["authorization_code", "authorization_code"]


def test_a_step_up_registers_the_new_scopes(authority: AuthorizationServer, server: ProtectedServer) -> None:
    server.scope, server.needs = "read", {"tools/call": {"write"}}
    authorize = authority.authorize

    def strict(received: Any) -> Any:
        registered = authority.clients[received.query["client_id"]]["scope"]
        assert set(received.query["scope"].split()) <= set(registered.split())
        return authorize(received)

    authority.authorize = strict  # type: ignore[method-assign]
    assert talk(server, login()) == ["hello"]
    assert authority.count("/register") == 2


def test_endless_step_ups_are_an_error(authority: AuthorizationServer, server: ProtectedServer) -> None:
    server.needs = {"tools/call": {"write"}}
    authority.authorize = _without_scope(authority)  # type: ignore[method-assign]
    auth = login()
    for _ in range(3):
        with pytest.raises(ClientError, match=r"403|still refuses"):
            talk(server, auth)
    assert authority.count("/authorize") <= 1 + 3


def test_a_403_without_a_challenge_leads_to_no_login(authority: AuthorizationServer, server: ProtectedServer) -> None:
    server.needs = {"tools/call": {"write"}}
    challenge = server.challenge
    server.challenge = lambda status, **fields: challenge(status, **{**fields, "error": "no"})  # type: ignore[method-assign, assignment]
    with pytest.raises(ClientError, match="403"):
        talk(server, login())
    assert authority.count("/authorize") == 1


def test_a_server_that_changes_its_issuer_gets_a_new_login(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    second = AuthorizationServer()
    second.number = iter(range(500, 600))  # type: ignore[assignment]
    with running(second):
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


def test_a_refresh_token_is_not_sent_to_another_issuer_that_knows_a_client_of_the_same_name(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    second = AuthorizationServer()
    neighbour = ProtectedServer(second)
    with running(second, neighbour):
        auth = login()
        talk(server, auth)
        talk(neighbour, auth)
        assert set(authority.clients) == set(second.clients) == {"client-1"}
        server.authorities[:] = [second]
        assert talk(server, auth) == ["hello"]
    assert grants(second) == ["authorization_code"] * 2


def test_a_token_for_one_resource_is_not_renewed_when_the_server_names_another(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    auth = login()
    talk(server, auth)
    authority.tokens.clear()
    server.metadata = {"resource": server.url}
    assert talk(server, auth) == ["hello"]
    assert grants(authority) == ["authorization_code"] * 2
    assert [held["resource"] for held in authority.tokens.values()] == [server.url]


@pytest.mark.parametrize("refresh", [True, False])
def test_when_a_token_is_renewed(authority: AuthorizationServer, server: ProtectedServer, refresh: bool) -> None:
    """A renewal that failed is not tried before each request."""
    storage = MemoryStorage()
    authority.gives_refresh = refresh
    talk(server, login(storage=storage))
    age(storage, 3585)
    authority.refresh_tokens.clear()
    before = len(authority.asked)
    assert talk(server, login(storage=storage), calls=10) == ["hello"] * 10
    assert [each.path for each in authority.asked[before:]].count("/token") == int(refresh)
    assert len(authority.asked) - before == 2 * int(refresh)


@pytest.mark.parametrize("down", ["token", "metadata"])
def test_a_token_is_used_until_it_expires_while_the_issuer_is_down(
    authority: AuthorizationServer, server: ProtectedServer, down: str
) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    age(storage, 3585)
    if down == "token":
        authority.refusal = Refused("", "", 503)
    else:
        authority.about = lambda: None  # type: ignore[method-assign, assignment, return-value]
    before = len(authority.asked)
    assert talk(server, login(storage=storage), calls=10) == ["hello"] * 10
    assert len(authority.asked) - before == 2


def test_an_issuer_that_does_not_exist_any_more_leads_to_a_login_at_the_new_one(server: ProtectedServer) -> None:
    """The server has moved to another. Nobody is locked out because the old one does not answer."""
    gone, storage = AuthorizationServer(), MemoryStorage()
    new = server.authorities[0]
    with running(gone):
        server.authorities[:] = [gone]
        talk(server, login(storage=storage))
    age(storage, 4000)
    server.authorities[:] = [new]
    assert talk(server, login(storage=storage)) == talk(server, login(storage=storage)) == ["hello"]
    assert new.count("/authorize") == 1


def test_an_issuer_that_is_down_leads_to_no_login(authority: AuthorizationServer, server: ProtectedServer) -> None:
    storage = MemoryStorage()
    away = AuthorizationServer()
    with running(away):
        server.authorities[:] = [away]
        talk(server, login(storage=storage))
        url = away.url
    age(storage, 4000)
    with pytest.raises(AuthorizationError, match="could not be asked"):
        talk(server, login(storage=storage))
    away.url = authority.url  # it is there again
    authority.handle = away.handle  # type: ignore[method-assign]
    for key in list(storage._records):
        _rename(storage, key, url, authority.url)
    assert talk(server, login(storage=storage)) == ["hello"]
    assert grants(authority) == ["refresh_token"]


def test_two_programs_with_different_scopes_share_tokens_for_both(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    storage = MemoryStorage()
    for _ in range(3):
        for scope in ("a", "b"):
            assert talk(server, login(storage=storage, scopes=[scope])) == ["hello"]
    assert _scopes(authority) == [{"a"}, {"a", "b"}]


def test_a_step_up_requests_the_scopes_of_another_program_too(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    storage = MemoryStorage()
    server.needs = {"tools/call": {"c"}}
    first = login(storage=storage, scopes=["a"])

    async def work() -> None:
        async with Client(server.mcp, auth=first, era="2025-11-25", timeout=15) as one:
            async with Client(
                server.mcp, auth=login(storage=storage, scopes=["b"]), era="2025-11-25", timeout=15
            ) as two:
                await two.list_tools()
            await one.call_tool("hello")

    run(work)
    assert _scopes(authority) == [{"a"}, {"a", "b"}, {"a", "b", "c"}]


def test_a_client_id_is_sent_to_one_issuer_only(authority: AuthorizationServer, server: ProtectedServer) -> None:
    by_hand = {"redirect_uris": ["http://127.0.0.1:9107/callback"], "token_endpoint_auth_method": "none"}
    authority.clients["mine"] = by_hand
    second = AuthorizationServer()
    second.clients["mine"] = by_hand
    storage = MemoryStorage()
    with running(second):
        talk(server, login(client_id="mine", storage=storage))
        server.authorities[:] = [second]
        with pytest.raises(AuthorizationError, match="never shown to another"):
            talk(server, login(client_id="mine", storage=storage))
        assert not [each for each in second.asked if "mine" in str(each)]
        assert talk(server, login(client_id="mine", issuer=second.issuer, storage=storage)) == ["hello"]
        with pytest.raises(AuthorizationError, match="issuer= says"):
            talk(server, login(client_id="mine", issuer="https://other.example"))


def _scopes(authority: AuthorizationServer) -> list[set[str]]:
    return [set(each.query.get("scope", "").split()) for each in authority.asked if each.path == "/authorize"]


def _without_scope(authority: AuthorizationServer) -> Any:
    """An authorization server that gives no scope, whatever is asked for."""
    authorize = authority.authorize

    def strict(received: Any) -> Any:
        return authorize(received._replace(query={**received.query, "scope": ""}))

    return strict


def _rename(storage: MemoryStorage, key: str, old: str, new: str) -> None:
    record = msgspec.json.encode(storage.read(key)).decode().replace(old, new)
    storage.write(key, None)
    storage.write(key.replace(old, new), msgspec.json.decode(record))
