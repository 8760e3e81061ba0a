"""Secrets, assertions and stored tokens of one issuer are sent to no other, and no error shows them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from joserfc.jwk import ECKey

from longshore.client.auth import ClientCredentials, FileStorage, JwtBearer, MemoryStorage
from longshore.client.auth.token_store import TokenStore
from longshore.errors import AuthorizationError

from .conftest import age, login, run, talk, tokens_sent
from .oauth_servers import AuthorizationServer, ProtectedServer, Refused, running


@pytest.fixture
def evil() -> Any:
    """A server, and an authorization server that it names."""
    place = ProtectedServer(AuthorizationServer())
    with running(place.authorities[0], place):
        yield place


def by_secret(secret: str = "s3cret") -> dict[str, Any]:
    back = ["http://127.0.0.1:9107/callback"]
    return {
        "redirect_uris": back,
        "token_endpoint_auth_method": "client_secret_basic",
        "client_secret": secret,
    }


def test_a_second_server_does_not_get_the_secret(
    authority: AuthorizationServer, server: ProtectedServer, evil: ProtectedServer
) -> None:
    authority.clients["me"] = evil.authorities[0].clients["me"] = by_secret()
    auth = ClientCredentials("me", "s3cret")
    assert talk(server, auth) == ["hello"]
    with pytest.raises(AuthorizationError, match=r"client_id 'me' was used with.*give its name by issuer="):
        talk(evil, auth)
    assert evil.authorities[0].count("/token") == 0
    assert talk(evil, ClientCredentials("me", "s3cret", issuer=evil.authorities[0].issuer)) == ["hello"]


def test_a_second_server_does_not_get_a_persons_client(
    authority: AuthorizationServer, server: ProtectedServer, evil: ProtectedServer, tmp_path: Any
) -> None:
    authority.clients["me"] = by_secret()
    for place in (server, evil):
        auth = login(client_id="me", client_secret="s3cret", storage=FileStorage(tmp_path / "oauth.json"))
        if place is server:
            assert talk(place, auth) == ["hello"]
        else:
            with pytest.raises(AuthorizationError, match="never shown to another"):
                talk(place, auth)
    assert evil.authorities[0].count("/authorize") == evil.authorities[0].count("/token") == 0


def test_an_issuer_that_the_caller_names_overrides_the_bound_one(
    authority: AuthorizationServer, server: ProtectedServer, evil: ProtectedServer
) -> None:
    authority.clients["me"] = by_secret()
    storage = MemoryStorage()
    assert talk(server, ClientCredentials("me", "s3cret", issuer=authority.issuer, storage=storage)) == ["hello"]
    with pytest.raises(AuthorizationError, match="never shown to another"):
        talk(evil, ClientCredentials("me", "s3cret", storage=storage))
    with pytest.raises(AuthorizationError, match="issuer= says"):
        talk(evil, ClientCredentials("me", "s3cret", issuer=authority.issuer))
    assert evil.authorities[0].count("/token") == 0


@pytest.mark.parametrize("kind", ["one", "two"])
def test_of_two_concurrent_bindings_the_first_counts(tmp_path: Any, kind: str) -> None:
    """Two servers of one client, or two programs that share a file."""
    stores = [TokenStore(FileStorage(tmp_path / "oauth.json"), "") for _ in range(2)]
    if kind == "one":
        stores = [TokenStore(MemoryStorage(), "")] * 2

    async def work() -> list[str]:
        ways = zip(stores, ("https://a.example", "https://b.example"), strict=True)
        binding = [store.bind("me", issuer, given=False) for store, issuer in ways]
        return [type(each).__name__ for each in await asyncio.gather(*binding, return_exceptions=True)]

    assert sorted(run(work)) == ["AuthorizationError", "NoneType"]


def test_an_assertion_is_sent_to_one_issuer_only(
    authority: AuthorizationServer, server: ProtectedServer, evil: ProtectedServer
) -> None:
    authority.public_keys["vouched"] = evil.authorities[0].public_keys["vouched"] = True
    auth = JwtBearer("vouched")
    assert talk(server, auth) == ["hello"]
    with pytest.raises(AuthorizationError, match="the assertion was used with"):
        talk(evil, auth)
    authority.tokens.clear()
    server.authorities[:] = evil.authorities  # it moves
    with pytest.raises(AuthorizationError, match="the assertion was used with"):
        talk(server, auth)
    assert evil.authorities[0].count("/token") == 0
    assert talk(evil, JwtBearer("vouched", issuer=evil.authorities[0].issuer)) == ["hello"]


def test_a_refused_assertion_is_remembered_where_it_was_refused(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    authority.public_keys["vouched"] = True
    authority.refusal = Refused("invalid_scope", "not today")
    auth = JwtBearer("vouched")
    with pytest.raises(AuthorizationError, match="invalid_scope"):
        talk(server, auth)
    authority.refusal = None
    assert talk(server, auth) == ["hello"], "it was not the assertion that was refused"


def test_stored_tokens_of_another_issuer_are_not_used(
    authority: AuthorizationServer, server: ProtectedServer, evil: ProtectedServer
) -> None:
    storage, other = MemoryStorage(), evil.authorities[0]
    authority.clients["me"], other.clients["me"] = by_secret("of-the-first"), by_secret("of-the-second")
    talk(server, login(client_id="me", client_secret="of-the-first", storage=storage))
    age(storage, 4000)
    server.authorities[:] = [other]
    before = len(authority.asked)
    auth = login(client_id="me", client_secret="of-the-second", issuer=other.issuer, storage=storage)
    assert talk(server, auth) == ["hello"]
    assert authority.asked[before:] == []


@pytest.mark.parametrize("dpop", [True, False])
def test_stored_tokens_that_do_not_fit_dpop_are_not_used(
    authority: AuthorizationServer, server: ProtectedServer, dpop: bool
) -> None:
    storage = MemoryStorage()
    authority.bound = not dpop
    talk(server, login(storage=storage, dpop=not dpop))
    authority.bound = dpop
    before = len(tokens_sent(server))
    assert talk(server, login(storage=storage, dpop=dpop)) == ["hello"]
    sent = [each.split()[0] for each in tokens_sent(server)[before:] if each]
    assert set(sent) == {"DPoP" if dpop else "Bearer"}


def test_a_broken_stored_key_leads_to_a_login(authority: AuthorizationServer, server: ProtectedServer) -> None:
    storage = MemoryStorage()
    authority.bound = True
    talk(server, login(storage=storage, dpop=True))
    [name] = [each for each in storage._records if each.startswith("tokens")]
    storage.write(name, {**(storage.read(name) or {}), "key": {"kty": "EC", "d": "x"}})
    assert talk(server, login(storage=storage, dpop=True)) == ["hello"]


@pytest.mark.parametrize("offset", [0, 150, 190])
def test_a_long_secret_is_not_shown_in_part(
    authority: AuthorizationServer, server: ProtectedServer, offset: int
) -> None:
    secret = "".join(f"{n:04}" for n in range(200))
    authority.before_token = lambda: setattr(
        authority, "refusal", Refused("invalid_grant", "x" * offset + authority.asked[-1].form["assertion"])
    )
    with pytest.raises(AuthorizationError, match="invalid_grant") as caught:
        talk(server, JwtBearer(secret))
    assert secret[:12] not in str(caught.value)


def test_a_proof_is_not_shown(authority: AuthorizationServer, server: ProtectedServer) -> None:
    authority.metadata["token_endpoint_auth_methods_supported"] = ["private_key_jwt"]
    sent: list[str] = []

    def refuse() -> None:
        sent.append(authority.asked[-1].form["client_assertion"])
        authority.refusal = Refused("invalid_client", f"{sent[-1]} is no good")

    authority.before_token = refuse
    key = ECKey.generate_key("P-256").as_dict(private=True)
    with pytest.raises(AuthorizationError, match="is no good") as caught:
        talk(server, ClientCredentials("me", private_key=key))
    assert sent and sent[0][:20] not in str(caught.value)


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_a_client_secret_is_not_shown_as_it_was_sent(
    authority: AuthorizationServer, server: ProtectedServer, method: str
) -> None:
    authority.metadata["token_endpoint_auth_methods_supported"] = [method]
    sent: list[str] = []

    def refuse() -> None:
        heard = authority.asked[-1]
        sent.extend((heard.headers.get("authorization", "Basic x").split()[1], "p%25%3A%2F", "p%:/"))
        authority.refusal = Refused(
            "invalid_client", f"{heard.headers.get('authorization')} {heard.body.decode()} p%:/"
        )

    authority.before_token = refuse
    with pytest.raises(AuthorizationError, match="invalid_client") as caught:
        talk(server, ClientCredentials("me", "p%:/"))
    assert not [each for each in sent if len(each) > 1 and each in str(caught.value)]
