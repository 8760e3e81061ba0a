"""Tokens that are bound to a key. The servers check each proof: signature, key, method, URL, hash, nonce, used once."""

from __future__ import annotations

import json
from base64 import b64decode
from contextlib import nullcontext
from typing import Any

import pytest
from joserfc.jwk import ECKey

from longshore.client import Client
from longshore.client.auth import ClientCredentials, FileStorage, MemoryStorage
from longshore.client.auth.dpop import MOST_NONCE_CHARS, MOST_ORIGINS, Prover
from longshore.client.auth.tokens import _NONCE_TRIES
from longshore.errors import AuthorizationError

from .conftest import login, run, talk, tokens_sent
from .oauth_servers import AuthorizationServer, Proofs, ProtectedServer, Received, Reply, follow


def claims(received: Received) -> dict[str, Any]:
    part = received.headers["dpop"].split(".")[1]
    found: dict[str, Any] = json.loads(b64decode(part + "=" * (-len(part) % 4), altchars=b"-_"))
    return found


@pytest.fixture
def bound(authority: AuthorizationServer, server: ProtectedServer) -> ProtectedServer:
    authority.bound, server.dpop = True, Proofs()
    authority.metadata["dpop_signing_alg_values_supported"] = ["ES256"]
    return server


@pytest.mark.parametrize("dpop", [True, "auto"])
def test_a_token_is_bound_to_a_key(authority: AuthorizationServer, bound: ProtectedServer, dpop: bool | str) -> None:
    assert talk(bound, login(dpop=dpop), calls=3) == ["hello"] * 3
    sent = [each for each in bound.asked if "authorization" in each.headers]
    assert all(each.headers["authorization"].startswith("DPoP ") for each in sent)
    assert len({claims(each)["jti"] for each in sent}) == len(sent)
    assert all("content_digest" in claims(each) for each in sent if each.body)


def test_nonces_of_server_and_issuer_are_used(authority: AuthorizationServer, bound: ProtectedServer) -> None:
    assert bound.dpop is not None
    authority.dpop.nonce, bound.dpop.nonce = "of-the-issuer", "of-the-server"
    assert talk(bound, login(), calls=3) == ["hello"] * 3
    assert authority.count("/authorize") == 1
    assert [claims(each).get("nonce") for each in authority.asked if each.path == "/token"] == [None, "of-the-issuer"]
    nonces = [claims(each).get("nonce") for each in bound.asked if "dpop" in each.headers]
    assert nonces[:2] == [None, "of-the-server"] and set(nonces[1:]) == {"of-the-server"}


def test_a_changed_nonce_is_used(authority: AuthorizationServer, bound: ProtectedServer) -> None:
    assert bound.dpop is not None
    bound.dpop.nonce = "first"
    auth = login()
    talk(bound, auth)
    bound.dpop.nonce = "second"
    assert talk(bound, auth) == ["hello"]
    assert authority.count("/authorize") == 1


def test_endless_requests_for_a_nonce_are_an_error(authority: AuthorizationServer, bound: ProtectedServer) -> None:
    assert bound.dpop is not None
    check = bound.dpop.check

    def never(received: Received, url: str, token: str | None) -> str:
        assert bound.dpop is not None
        bound.dpop.nonce = f"n{len(bound.asked)}"
        return check(received, url, token)

    bound.dpop.check = never  # type: ignore[method-assign]
    with pytest.raises(Exception, match="401"):
        talk(bound, login())
    assert authority.count("/authorize") == 1


@pytest.mark.parametrize("changes", [_NONCE_TRIES - 1, _NONCE_TRIES, _NONCE_TRIES + 1])
def test_an_expired_nonce_of_the_issuer_is_replaced(
    authority: AuthorizationServer, bound: ProtectedServer, changes: int
) -> None:
    check, asked = authority.dpop.check, []

    def hasty(received: Received, url: str, token: str | None) -> str:
        asked.append(received)
        if len(asked) <= changes:
            authority.dpop.nonce = f"n{len(asked)}"
        return check(received, url, token)

    authority.dpop.check = hasty  # type: ignore[method-assign]
    with pytest.raises(AuthorizationError, match="use_dpop_nonce") if changes > _NONCE_TRIES else nullcontext():
        assert talk(bound, login()) == ["hello"]
    assert len(asked) == min(changes, _NONCE_TRIES) + 1


def test_the_key_is_stored_with_the_tokens(
    authority: AuthorizationServer, bound: ProtectedServer, tmp_path: Any
) -> None:
    path = tmp_path / "oauth.json"
    talk(bound, login(storage=FileStorage(path)))
    talk(bound, login(storage=FileStorage(path)))
    authority.tokens.clear()
    assert talk(bound, login(storage=FileStorage(path))) == ["hello"]
    assert authority.count("/authorize") == 1


def test_auto_binds_tokens_if_the_server_supports_it(authority: AuthorizationServer, server: ProtectedServer) -> None:
    authority.bound = True
    authority.metadata["dpop_signing_alg_values_supported"] = ["ES256"]
    server.metadata = {"dpop_signing_alg_values_supported": ["ES256"]}
    assert talk(server, login()) == ["hello"]
    assert server.asked[-1].headers["authorization"].startswith("DPoP ")


def test_auto_does_not_bind_tokens_if_only_the_issuer_supports_it(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    authority.metadata["dpop_signing_alg_values_supported"] = ["ES256"]
    assert talk(server, login()) == ["hello"]
    assert "dpop" not in server.asked[-1].headers


def test_dpop_true_requires_a_bound_token(authority: AuthorizationServer, server: ProtectedServer) -> None:
    with pytest.raises(AuthorizationError, match="not bound to our key"):
        talk(server, login(dpop=True))


def test_dpop_false_gets_no_bound_token(authority: AuthorizationServer, bound: ProtectedServer) -> None:
    with pytest.raises(AuthorizationError, match="allow that by dpop="):
        talk(bound, login(dpop=False))


def test_other_grants_are_bound_too(authority: AuthorizationServer, bound: ProtectedServer) -> None:
    authority.clients["me"] = {"token_endpoint_auth_method": "client_secret_basic", "client_secret": "s"}
    assert talk(bound, ClientCredentials("me", "s", storage=MemoryStorage())) == ["hello"]


def test_a_step_up_keeps_a_token_bound(authority: AuthorizationServer, server: ProtectedServer) -> None:
    """The 401 wants a bound token, the 403 no more than a scope: that is no reason to take a weaker one."""
    authority.metadata["dpop_signing_alg_values_supported"] = ["ES256"]
    server.needs = {"tools/call": {"write"}}
    token, challenge = authority.token, server.challenge

    def willing(received: Received) -> Reply:
        authority.bound = "dpop" in received.headers
        return token(received)

    def varying(status: int, headers: Any = (), **fields: str) -> Reply:
        said = challenge(status, headers, **fields)
        scheme = "DPoP" if status == 401 else "Bearer"
        return said._replace(headers=tuple((name, value.replace("Bearer", scheme)) for name, value in said.headers))

    authority.token, server.challenge = willing, varying  # type: ignore[method-assign]
    assert talk(server, login()) == ["hello"]
    assert authority.count("/authorize") == 2
    assert {each.split()[0] for each in tokens_sent(server) if each} == {"DPoP"}


def test_a_failed_step_up_leaves_the_current_token(authority: AuthorizationServer, bound: ProtectedServer) -> None:
    """The key of a token is not given up before there is another token."""
    bound.needs = {"tools/call": {"write"}}
    refuses = [False, True]

    async def person(url: str) -> str:
        return await follow(url) if not refuses.pop(0) else "http://127.0.0.1:9107/callback?error=x"

    async def work() -> None:
        auth = login(redirect=person)
        async with Client(bound.mcp, auth=auth, era="2025-11-25", timeout=10) as client:
            with pytest.raises(AuthorizationError):
                await client.call_tool("hello")
            assert [tool.name for tool in await client.list_tools()] == ["hello"]

    run(work)


def test_the_path_of_a_proof_is_never_empty() -> None:
    for url in ("https://h.example", "https://h.example/", "https://h.example/?x#y"):
        proof = Prover().prove("POST", url)
        assert claims(Received("POST", "/", {}, {"dpop": proof}, b""))["htu"] == "https://h.example/"


@pytest.mark.parametrize(("size", "taken"), [(MOST_NONCE_CHARS - 1, True), (MOST_NONCE_CHARS, True), (0, False)])
def test_the_size_of_a_nonce_is_bounded(size: int, taken: bool) -> None:
    prover, url = Prover(), "https://h.example/"
    assert prover.save_nonce(url, [("dpop-nonce", "n" * size)]) is taken
    assert not prover.save_nonce(url, [("dpop-nonce", "m" * (MOST_NONCE_CHARS + 1))])
    said = claims(Received("POST", "/", {}, {"dpop": prover.prove("POST", url)}, b""))
    assert said.get("nonce") == ("n" * size if taken else None)


def test_a_key_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prover, read = Prover(), []
    monkeypatch.setattr(ECKey, "import_key", lambda *given: read.append(given))
    assert len({prover.prove("POST", "https://h.example/") for _ in range(3)}) == 3
    assert not read


def test_nonces_of_a_bounded_number_of_origins_are_stored() -> None:
    prover = Prover()
    for n in range(MOST_ORIGINS):
        prover.save_nonce(f"https://h{n}.example/", [("dpop-nonce", "n")])
    assert not prover.save_nonce("https://h0.example/", [("dpop-nonce", "n")]), "it is known still"
    prover.save_nonce("https://more.example/", [("dpop-nonce", "n")])
    assert prover.save_nonce("https://h0.example/", [("dpop-nonce", "n")])
