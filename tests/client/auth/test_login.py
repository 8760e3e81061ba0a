"""Logging in, from the first 401 to a call that works, and all that may go wrong on the way."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from longshore.client import Client
from longshore.client.auth import Bearer, FileStorage, MemoryStorage, OAuth
from longshore.errors import AuthorizationError

from .conftest import login, run, talk, tokens_sent
from .oauth_servers import AuthorizationServer, ProtectedServer, Refused, Reply, follow, running


def test_a_login_leads_to_a_call(authority: AuthorizationServer, server: ProtectedServer) -> None:
    assert talk(server, login(), calls=3) == ["hello"] * 3
    assert authority.count("/authorize") == authority.count("/token") == authority.count("/register") == 1
    [asked] = [each.query for each in authority.asked if each.path == "/authorize"]
    assert asked["resource"] == server.mcp
    assert "scope" not in asked
    [form] = [each.form for each in authority.asked if each.path == "/token"]
    assert form["resource"] == server.mcp and len(form["code_verifier"]) >= 43


def test_the_resource_is_named_as_the_metadata_does(authority: AuthorizationServer, server: ProtectedServer) -> None:
    server.metadata = {"resource": server.url}
    assert talk(server, login()) == ["hello"]
    assert [each.query["resource"] for each in authority.asked if each.path == "/authorize"] == [server.url]


def test_a_registration_describes_the_client(authority: AuthorizationServer, server: ProtectedServer) -> None:
    talk(server, login(client_name="Harbour", application_type="web"))
    [said] = [json.loads(each.body) for each in authority.asked if each.path == "/register"]
    assert said["client_name"] == "Harbour" and said["application_type"] == "web"
    assert said["grant_types"] == ["authorization_code", "refresh_token"]


def test_tokens_outlive_the_client(authority: AuthorizationServer, server: ProtectedServer, tmp_path: Any) -> None:
    talk(server, login(storage=FileStorage(tmp_path / "oauth.json")))
    talk(server, login(storage=FileStorage(tmp_path / "oauth.json")))
    assert authority.count("/authorize") == 1


def test_an_authorizer_works_again_on_another_loop(authority: AuthorizationServer, server: ProtectedServer) -> None:
    auth = login()
    assert talk(server, auth) == talk(server, auth) == ["hello"]
    assert authority.count("/authorize") == 1


def test_another_client_id_shares_no_tokens(authority: AuthorizationServer, server: ProtectedServer) -> None:
    storage = MemoryStorage()
    for name in ("one", "two"):
        authority.clients[name] = _by_hand(redirect="http://127.0.0.1:9107/callback")
        talk(server, login(storage=storage, client_id=name))
    assert authority.count("/authorize") == 2
    assert authority.count("/register") == 0


def test_many_requests_make_one_login(authority: AuthorizationServer, server: ProtectedServer) -> None:
    async def work() -> None:
        clients = [Client(server.mcp, auth=auth, era="2025-11-25", timeout=15) for _ in range(8)]
        await asyncio.gather(*(client.open() for client in clients))
        await asyncio.gather(*(client.call_tool("hello") for client in clients for _ in range(5)))
        await asyncio.gather(*(client.close() for client in clients))

    auth = login()
    run(work)
    assert authority.count("/authorize") == authority.count("/token") == 1


def test_no_server_sees_the_tokens_of_another(authority: AuthorizationServer, server: ProtectedServer) -> None:
    other = ProtectedServer(AuthorizationServer())
    auth = login()
    with running(other.authorities[0], other):
        talk(server, auth)
        talk(other, auth)
        talk(server, auth)
    assert not set(tokens_sent(server)) & set(tokens_sent(other)) - {""}
    assert other.authorities[0].count("/register") == 1


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post", "none"])
def test_the_client_authenticates_by_a_method_of_the_server(
    authority: AuthorizationServer, server: ProtectedServer, method: str
) -> None:
    authority.metadata["token_endpoint_auth_methods_supported"] = [method]
    assert talk(server, login()) == ["hello"]


def test_special_characters_survive_basic_authentication(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    authority.clients["a:b/c d"] = {
        "redirect_uris": ["http://127.0.0.1:9107/callback"],
        "token_endpoint_auth_method": "client_secret_basic",
        "client_secret": "p%:/ü",
    }
    assert talk(server, login(client_id="a:b/c d", client_secret="p%:/ü")) == ["hello"]


def test_a_client_metadata_document_comes_before_registration(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    url = "https://harbour.example/client.json"
    authority.clients[url] = _by_hand(redirect="http://127.0.0.1:9107/callback")
    authority.metadata["client_id_metadata_document_supported"] = True
    talk(server, login(client_metadata_url=url))
    assert authority.count("/register") == 0
    authority.metadata.clear()
    talk(server, login(client_metadata_url=url))
    assert authority.count("/register") == 1


def test_the_error_without_registration_says_what_to_give(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    authority.metadata["registration_endpoint"] = None
    with pytest.raises(AuthorizationError, match=r"lets no client register itself.*OAuth\(client_id="):
        talk(server, login())


def test_a_registration_that_the_issuer_deleted_is_replaced(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    storage = MemoryStorage()
    talk(server, login(storage=storage))
    known = dict(authority.clients)
    authority.tokens.clear()
    authority.refresh_tokens.clear()
    authority.before_token = lambda: [authority.clients.pop(name, None) for name in known] and None
    talk(server, login(storage=storage))
    assert authority.count("/register") == 2


def test_without_pkce_there_is_no_login(authority: AuthorizationServer, server: ProtectedServer) -> None:
    for methods in (None, [], ["plain"]):
        authority.metadata["code_challenge_methods_supported"] = methods
        with pytest.raises(AuthorizationError, match="PKCE"):
            talk(server, login())
    assert authority.count("/authorize") == authority.count("/register") == 0


@pytest.mark.parametrize(
    ("promised", "said", "good"),
    [
        (True, "own", True),
        (True, None, False),
        (True, "https://evil.example", False),
        (None, None, True),
        (None, "own", True),
        (None, "https://evil.example", False),
        (False, "slash", False),
        (None, "", False),
    ],
)
def test_the_issuer_of_an_answer_is_checked(
    authority: AuthorizationServer, server: ProtectedServer, promised: bool | None, said: str | None, good: bool
) -> None:
    authority.metadata["authorization_response_iss_parameter_supported"] = promised
    authority.iss = {"own": authority.issuer, "slash": authority.issuer + "/"}.get(said or "", said)
    if good:
        assert talk(server, login()) == ["hello"]
    else:
        with pytest.raises(AuthorizationError, match="it was not used") as caught:
            talk(server, login())
        assert authority.count("/token") == 0
        assert "evil" not in str(caught.value)


async def _another_state(url: str) -> str:
    return (await follow(url)).replace("state=", "state=x")


async def _an_error(url: str) -> str:
    return (await follow(url)).replace("code=", "error=access_denied&error_description=not%0Atoday&x=")


async def _twice(url: str) -> str:
    return (await follow(url)) + "&code=mine"


async def _nothing(url: str) -> Any:
    return None


async def _raises(url: str) -> Any:
    raise RuntimeError("secret")


@pytest.mark.parametrize(
    ("redirect", "what"),
    [
        (_another_state, "does not belong to this login"),
        (_an_error, "refused: access_denied: not today"),
        (_twice, "names something twice"),
        (_nothing, "returned NoneType"),
        (_raises, "raised RuntimeError"),
        (lambda url: "http://[", "can't be read"),
        (lambda url: "", "does not belong"),
    ],
)
def test_an_answer_of_another_login_is_not_used(
    authority: AuthorizationServer, server: ProtectedServer, redirect: Any, what: str
) -> None:
    with pytest.raises(AuthorizationError, match=what):
        talk(server, login(redirect=redirect))
    assert authority.count("/token") == 0


def test_redirect_may_be_a_plain_function(authority: AuthorizationServer, server: ProtectedServer) -> None:
    assert talk(server, login(redirect=lambda url: asyncio.run(follow(url)))) == ["hello"]


def test_metadata_about_another_server_end_the_authorization(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    server.metadata = {"resource": "https://evil.example/mcp"}
    with pytest.raises(AuthorizationError, match="not about this server"):
        talk(server, login())
    assert not authority.asked


def test_metadata_of_another_issuer_end_the_authorization(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    authority.metadata["issuer"] = authority.issuer + "/"
    with pytest.raises(AuthorizationError, match="it may be the metadata of another"):
        talk(server, login())
    assert authority.count("/register") == authority.count("/authorize") == 0


def test_a_refusal_shows_no_secret(authority: AuthorizationServer, server: ProtectedServer) -> None:
    seen: list[str] = []

    def refuse() -> None:
        form = authority.asked[-1].form
        seen.extend((form["code"], form["code_verifier"]))
        authority.refusal = Refused("invalid_grant", f"{form['code']} {form['code_verifier']} is bad")

    authority.before_token = refuse
    with pytest.raises(AuthorizationError, match=r"exchanging the code.*invalid_grant") as caught:
        talk(server, login())
    assert not any(each in str(caught.value) for each in seen)


@pytest.mark.parametrize(
    "document",
    [
        {},
        [],
        b"<html>",
        {"access_token": "a b", "token_type": "Bearer"},
        {"access_token": "a\r\nX: y", "token_type": "Bearer"},
        {"access_token": 7, "token_type": "Bearer"},
        {"access_token": "x"},
        {"access_token": "x", "token_type": "mac"},
        {"access_token": "x", "token_type": "DPoP"},
        {"access_token": "x" * 70000, "token_type": "Bearer"},
    ],
)
def test_a_malformed_token_response_is_an_error(
    authority: AuthorizationServer, server: ProtectedServer, document: Any
) -> None:
    authority.token = lambda heard: Reply(200, document)  # type: ignore[method-assign]
    with pytest.raises(AuthorizationError, match="exchanging the code"):
        talk(server, login())


def test_a_redirect_of_the_token_endpoint_is_not_followed(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    authority.token = lambda heard: Reply(307, None, (("Location", f"{server.url}/steal"),))  # type: ignore[method-assign]
    with pytest.raises(AuthorizationError, match="redirects are not followed"):
        talk(server, login())
    assert server.count("/steal") == 0


def test_a_server_that_refuses_every_token_gets_a_bounded_number_of_logins(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    server.refuses_all = True
    authority.gives_refresh = False
    auth = login()
    for _ in range(3):
        with pytest.raises(Exception, match=r"401|still refuses"):
            talk(server, auth)
    assert authority.count("/authorize") == 3


def test_a_server_that_refuses_renewed_tokens_too(authority: AuthorizationServer, server: ProtectedServer) -> None:
    server.refuses_all = True
    for _ in range(2):
        with pytest.raises(Exception, match=r"401|still refuses"):
            talk(server, login())
        assert 1 <= authority.count("/authorize") <= 4
        authority.asked.clear()


def test_a_bearer_token_is_sent_and_not_shown(authority: AuthorizationServer, server: ProtectedServer) -> None:
    authority.tokens["given"] = {"client": None, "scope": "", "resource": server.mcp, "jkt": None}
    assert talk(server, "given") == ["hello"]
    with pytest.raises(AuthorizationError, match="refused the bearer token") as caught:
        talk(server, Bearer("wrong-one"))
    assert "wrong-one" not in str(caught.value) + repr(Bearer("wrong-one"))
    with pytest.raises(ValueError, match="printable ASCII"):
        Bearer("a\r\nb")


def test_closing_the_client_ends_a_login(authority: AuthorizationServer, server: ProtectedServer) -> None:
    async def work() -> None:
        waits, ended = asyncio.Event(), asyncio.Event()

        async def for_ever(url: str) -> str:
            waits.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return ""

        client = Client(server.mcp, auth=login(redirect=for_ever), era="2025-11-25", timeout=10)
        opening = asyncio.ensure_future(client.open())
        await waits.wait()
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        await client.close()
        assert ended.is_set()

    run(work)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"application_type": "other"}, "application_type"),
        ({"token_endpoint_auth_method": "magic"}, "token_endpoint_auth_method"),
        ({"client_secret": "x"}, "client_secret needs the client_id"),
        ({"private_key": "x"}, "private_key needs the client_id or the client_metadata_url"),
        ({"client_metadata_url": "http://harbour.example/x"}, "client_metadata_url"),
        ({"client_metadata_url": "https://harbour.example"}, "with a path"),
        ({"redirect_uri": "http://harbour.example/x"}, "redirect_uri"),
        ({"redirect_uri": "https://harbour.example/x", "redirect": None}, "redirect="),
        ({"dpop": "maybe"}, "dpop"),
        ({"scopes": ["a b"]}, "printable ASCII"),
        ({"scopes": ["x" * 257]}, "at most 256 printable ASCII"),
        ({"scopes": [f"s{n}" for n in range(101)]}, "scopes: at most 100, and there are 101"),
    ],
)
def test_wrong_options_are_refused_by_the_constructor(options: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError, match=what):
        login(**options)


def test_nothing_shows_a_secret() -> None:
    assert "s3cret" not in repr(OAuth(client_id="x", client_secret="s3cret", storage=MemoryStorage()))


def _by_hand(redirect: str) -> dict[str, Any]:
    return {"redirect_uris": [redirect], "token_endpoint_auth_method": "none"}
