"""Registrations: one for each that is needed, none lost to another, and a new one where the old one is forgotten."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from longshore.client import Client
from longshore.client.auth import FileStorage, MemoryStorage, OAuth
from longshore.client.auth.oauth import Registration
from longshore.client.auth.tokens import Identity
from longshore.errors import AuthorizationError

from .conftest import login, run, talk
from .oauth_servers import AuthorizationServer, ProtectedServer, Received, Refused, Reply, running

BY_HAND = {"redirect_uris": ["http://127.0.0.1:9107/callback"], "token_endpoint_auth_method": "none"}


def test_two_servers_with_different_scopes_have_a_registration_each(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    other = ProtectedServer(authority)
    server.scope, other.scope = "a", "b"
    storage = MemoryStorage()
    with running(other):
        for _ in range(3):
            for place in (server, other):
                assert talk(place, login(storage=storage)) == ["hello"]
            authority.tokens.clear()  # the refresh tokens stay good
    assert authority.count("/register") == authority.count("/authorize") == 2


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_concurrent_logins_register_once(
    authority: AuthorizationServer, server: ProtectedServer, tmp_path: Any, kind: str
) -> None:
    other = ProtectedServer(authority)
    auth = login(storage=MemoryStorage() if kind == "memory" else FileStorage(tmp_path / "oauth.json"))

    async def work() -> None:
        clients = [Client(place.mcp, auth=auth, era="2025-11-25", timeout=15) for place in (server, other)]
        await asyncio.gather(*(client.open() for client in clients))
        await asyncio.gather(*(client.close() for client in clients))

    with running(other):
        run(work)
    assert authority.count("/register") == 1 and authority.count("/authorize") == 2


def test_another_name_needs_another_registration(authority: AuthorizationServer, server: ProtectedServer) -> None:
    other = ProtectedServer(authority)
    storage = MemoryStorage()
    with running(other):
        talk(server, login(storage=storage, client_name="One"))
        talk(other, login(storage=storage, client_name="Two", token_endpoint_auth_method="client_secret_post"))
    said = {(each["client_name"], each["token_endpoint_auth_method"]) for each in authority.clients.values()}
    assert said == {("One", "none"), ("Two", "client_secret_post")}


def test_a_refused_client_id_of_the_caller_deletes_no_registration(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    authority.clients["hand"] = BY_HAND
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    talk(server, login(storage=storage, client_id="hand"))
    authority.tokens.clear()
    authority.refusal = Refused("invalid_client", "", 401)
    with pytest.raises(AuthorizationError, match="invalid_client"):
        talk(server, login(storage=storage, client_id="hand"))
    authority.refusal = None
    assert talk(server, login(storage=storage)) == ["hello"]
    assert authority.count("/register") == 1


class Strict(AuthorizationServer):
    """Says in the browser, and there alone, that it does not know a client; or in the way back, if `tells`."""

    tells = ""

    def authorize(self, received: Received) -> Reply:
        if received.query["client_id"] in self.clients:
            return super().authorize(received)
        if not self.tells:
            return Reply(400, {"error": "invalid_client"})
        back = f"{received.query['redirect_uri']}?error={self.tells}&state={received.query['state']}"
        return Reply(302, None, (("Location", back),))


def forgotten(authority: AuthorizationServer, storage: MemoryStorage) -> None:
    """The authorization server has lost all that it knew, and the client its tokens."""
    for lost in (authority.clients, authority.tokens, authority.refresh_tokens):
        lost.clear()
    for key in [each for each in storage._records if each.startswith("tokens")]:
        storage.write(key, None)


def test_a_login_that_times_out_leads_to_a_new_registration(monkeypatch: pytest.MonkeyPatch) -> None:
    import longshore.client.auth.loopback as redirect

    monkeypatch.setenv("BROWSER", "none")
    monkeypatch.setattr(redirect, "_open", _browse)
    authority = Strict()
    server, storage = ProtectedServer(authority), MemoryStorage()
    with running(authority, server):
        talk(server, OAuth(storage=storage))
        forgotten(authority, storage)
        monkeypatch.setattr(redirect, "SECONDS", 0.5)
        with pytest.raises(AuthorizationError, match="the next try registers it again"):
            talk(server, OAuth(storage=storage))
        monkeypatch.setattr(redirect, "SECONDS", 15)
        assert talk(server, OAuth(storage=storage)) == ["hello"]
    assert authority.count("/register") == 2


def _browse(url: str) -> None:
    from urllib.error import HTTPError
    from urllib.request import urlopen

    try:
        with urlopen(url, timeout=10) as page:
            page.read()
    except HTTPError as refused:
        refused.close()


def test_a_doubted_client_still_renews(
    authority: AuthorizationServer, server: ProtectedServer, monkeypatch: Any
) -> None:
    """Nobody came to a second server's login: that is no reason to lose the first server's tokens."""
    other = ProtectedServer(authority)
    storage = MemoryStorage()

    async def nobody(url: str) -> str:
        await asyncio.Event().wait()
        return ""

    talk(server, login(storage=storage))
    monkeypatch.setattr("longshore.client.auth.loopback.SECONDS", 0.1)
    with running(other), pytest.raises(AuthorizationError, match="no one logged in"):
        talk(other, login(storage=storage, redirect=nobody))
    authority.tokens.clear()
    assert talk(server, login(storage=storage, redirect=nobody)) == ["hello"]


def test_tokens_are_renewed_after_their_registration_was_deleted(
    authority: AuthorizationServer, server: ProtectedServer, monkeypatch: Any
) -> None:
    """Nobody came to a second server's login: that is no reason to lose the first server's tokens."""
    other = ProtectedServer(authority)
    storage = MemoryStorage()

    async def nobody(url: str) -> str:
        await asyncio.Event().wait()
        return ""

    talk(server, login(storage=storage))
    monkeypatch.setattr("longshore.client.auth.loopback.SECONDS", 0.1)
    with running(other), pytest.raises(AuthorizationError, match="no one logged in"):
        talk(other, login(storage=storage, redirect=nobody))
    authority.tokens.clear()
    assert talk(server, login(storage=storage, redirect=nobody)) == ["hello"]


def test_a_timeout_error_of_redirect_is_not_a_login_timeout(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    other = ProtectedServer(authority)

    def impatient(url: str) -> str:
        raise TimeoutError("of a proxy")

    with running(other), pytest.raises(AuthorizationError, match="redirect= raised TimeoutError"):
        talk(other, login(storage=storage, redirect=impatient))
    assert any(key.startswith("client ") for key in storage._records)


def test_an_unknown_client_error_in_the_redirect_leads_to_a_new_registration() -> None:
    authority = Strict()
    authority.tells = "unauthorized_client"
    server, storage = ProtectedServer(authority), MemoryStorage()
    with running(authority, server):
        talk(server, login(storage=storage))
        forgotten(authority, storage)
        assert talk(server, login(storage=storage)) == ["hello"]
    assert authority.count("/register") == 2


def test_a_new_registration_that_is_refused_is_an_error(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    authority.refusal = Refused("invalid_client", "", 401)
    with pytest.raises(AuthorizationError, match="invalid_client"):
        talk(server, login())
    assert authority.count("/register") == authority.count("/authorize") == 1


class ReadOnly:
    """A storage that keeps what it has."""

    def __init__(self, inner: MemoryStorage) -> None:
        self.read = inner.read

    def write(self, key: str, record: Any) -> None:
        raise PermissionError(13, "read-only")


def test_a_storage_that_can_not_delete_is_overruled_by_memory(
    authority: AuthorizationServer, server: ProtectedServer, capfd: Any
) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    known = dict(authority.clients)
    authority.tokens.clear()
    authority.refresh_tokens.clear()
    authorize = authority.authorize

    def kind(received: Received) -> Reply:
        authority.clients.update({name: known[name] for name in known if name == received.query["client_id"]})
        return authorize(received)

    authority.authorize = kind  # type: ignore[method-assign]
    authority.before_token = lambda: [authority.clients.pop(name, None) for name in known] and None
    assert talk(server, login(storage=ReadOnly(storage))) == ["hello"]
    assert authority.count("/register") == 2
    assert capfd.readouterr().err.count("could not be written") == 1


def test_a_registration_shows_no_secret() -> None:
    assert "hush" not in repr(Registration(Identity("x", secret="hush"), "y"))


def test_a_new_registration_is_for_the_earlier_scopes_too(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    other = ProtectedServer(authority)
    server.scope, other.scope = "a", "b"
    storage = MemoryStorage()
    with running(other):
        for _ in range(2):
            for place in (server, other):
                assert talk(place, login(storage=storage)) == ["hello"]
            authority.tokens.clear()
            authority.refresh_tokens.clear()
    assert [each["scope"] for each in authority.clients.values()] == ["a", "a b"]
    assert authority.count("/register") == 2 and authority.count("/authorize") == 4
