"""The URLs of metadata, their order, and the URLs that are refused."""

from __future__ import annotations

import json
from contextlib import nullcontext
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from longshore.addresses import is_loopback
from longshore.client import Client
from longshore.client.auth import FileStorage, MemoryStorage
from longshore.client.auth.discovery import MOST_LISTED, resource_metadata_urls, server_metadata_urls
from longshore.client.auth.oauth_http import MOST_BYTES, UrlPolicy, check_given_url, covers, is_internal
from longshore.errors import AuthorizationError

from .conftest import first_headers, login, run, talk
from .oauth_servers import AuthorizationServer, ProtectedServer, Received, Reply, running

WELL = "https://h.example/.well-known"


@pytest.mark.parametrize(
    ("server", "named", "places"),
    [
        ("https://h.example/a/mcp", None, ["/oauth-protected-resource/a/mcp", "/oauth-protected-resource"]),
        ("https://h.example/a/mcp/", None, ["/oauth-protected-resource/a/mcp", "/oauth-protected-resource"]),
        ("https://h.example/", None, ["/oauth-protected-resource"]),
        ("https://h.example", None, ["/oauth-protected-resource"]),
        ("https://h.example/m", f"{WELL}/x", ["/x", "/oauth-protected-resource/m", "/oauth-protected-resource"]),
        ("https://h.example/", f"{WELL}/oauth-protected-resource", ["/oauth-protected-resource"]),
    ],
)
def test_metadata_urls_of_a_resource_are_requested_in_order(server: str, named: str | None, places: list[str]) -> None:
    assert resource_metadata_urls(urlsplit(server), named) == [WELL + each for each in places]


@pytest.mark.parametrize(
    ("issuer", "places"),
    [
        ("https://h.example", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
        ("https://h.example/", ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]),
        (
            "https://h.example/t1",
            [
                "/.well-known/oauth-authorization-server/t1",
                "/.well-known/openid-configuration/t1",
                "/t1/.well-known/openid-configuration",
            ],
        ),
    ],
)
def test_metadata_urls_of_an_issuer_are_requested_in_order(issuer: str, places: list[str]) -> None:
    assert server_metadata_urls(urlsplit(issuer)) == ["https://h.example" + each for each in places]


@pytest.mark.parametrize(
    ("resource", "server", "good"),
    [
        ("https://h.example/mcp", "https://h.example/mcp", True),
        ("https://h.example/mcp/", "https://h.example/mcp", True),
        ("https://H.example:443/mcp", "https://h.example/mcp", True),
        ("https://h.example", "https://h.example/mcp", True),
        ("https://h.example/a", "https://h.example/a/mcp", True),
        ("https://h.example/a", "https://h.example/ab", False),
        ("https://h.example/mcp/x", "https://h.example/mcp", False),
        ("https://h.example:8443/mcp", "https://h.example/mcp", False),
        ("http://h.example/mcp", "https://h.example/mcp", False),
        ("https://g.example/mcp", "https://h.example/mcp", False),
        ("https://h.example.evil/mcp", "https://h.example/mcp", False),
        ("https://h.example@evil.example/mcp", "https://h.example/mcp", False),
        ("https://h.example/mcp?tenant=2", "https://h.example/mcp", False),
        ("https://h.example/mcp#x", "https://h.example/mcp", False),
        ("", "https://h.example/mcp", False),
    ],
)
def test_metadata_must_be_about_the_server(resource: str, server: str, good: bool) -> None:
    assert covers(resource, server) is good


PUBLIC, LOCAL = "https://mcp.example/mcp", "http://127.0.0.1:9100/mcp"


@pytest.mark.parametrize(
    ("server", "url", "good"),
    [
        (PUBLIC, "https://as.example", True),
        (PUBLIC, "https://9.9.9.9/x", True),
        (PUBLIC, "http://as.example", False),
        (PUBLIC, "http://127.0.0.1:80/", False),
        (PUBLIC, "https://127.0.0.1/", False),
        (PUBLIC, "https://localhost/", False),
        (PUBLIC, "https://x.localhost./", False),
        (PUBLIC, "https://[::1]/", False),
        (PUBLIC, "https://[::ffff:127.0.0.1]/", False),
        (PUBLIC, "https://2130706433/", False),
        (PUBLIC, "https://0177.0.0.1/", False),
        (PUBLIC, "https://0x7f.1/", False),
        (PUBLIC, "https://0/", False),
        (PUBLIC, "https://169.254.169.254/latest", False),
        (PUBLIC, "https://10.0.0.1/", False),
        (PUBLIC, "https://192.168.1.1/", False),
        (PUBLIC, "https://[fd00::1]/", False),
        (PUBLIC, "https://[fe80::1%25eth0]/", False),
        (LOCAL, "http://127.0.0.1:1/x", True),
        (LOCAL, "http://localhost:1/x", True),
        (LOCAL, "https://as.example", True),
        (LOCAL, "http://as.example", False),
        (LOCAL, "http://10.0.0.1/", False),
        (PUBLIC, "file:///etc/passwd", False),
        (PUBLIC, "javascript:alert(1)", False),
        (PUBLIC, "a:$(calc)?", False),
        (PUBLIC, "--upload-pack=x", False),
        (PUBLIC, "//as.example/x", False),
        (PUBLIC, "https://user@as.example/", False),
        (PUBLIC, "https://as.example/\r\nX: y", False),
        (PUBLIC, "https://as.example/ x", False),
        (PUBLIC, 'https://as.example/"&calc"', False),
        (PUBLIC, "https://as.example:99999/", False),
        (PUBLIC, "https://[/", False),
        (PUBLIC, "https:///x", False),
        (PUBLIC, "https://as.example/" + "x" * 3000, False),
        (PUBLIC, "", False),
    ],
)
def test_which_named_urls_are_allowed(server: str, url: str, good: bool) -> None:
    if good:
        assert UrlPolicy(server).check(url, "it").geturl() == url
    else:
        with pytest.raises(AuthorizationError) as caught:
            UrlPolicy(server).check(url, "the token_endpoint")
        assert str(caught.value).startswith("the token_endpoint ") and len(str(caught.value)) < 400
        assert "\n" not in str(caught.value)


def test_which_hosts_are_on_this_machine() -> None:
    assert is_loopback("LOCALHOST") and is_loopback("127.8.9.1") and not is_loopback("localhost.example")
    assert is_internal("172.16.0.1")
    with pytest.raises(ValueError, match="idp"):
        check_given_url("http://idp.example", "idp")


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
@pytest.mark.parametrize("url", ["http://10.0.0.1/x", "file:///etc/passwd", "http://as.example/x", "a:$(calc)?"])
def test_internal_endpoints_in_metadata_end_the_authorization(
    authority: AuthorizationServer, server: ProtectedServer, name: str, url: str
) -> None:
    authority.metadata[name] = url
    with pytest.raises(AuthorizationError, match=name):
        talk(server, login())
    assert authority.count("/authorize") == authority.count("/token") == 0


def test_metadata_at_an_internal_url_is_not_fetched(authority: AuthorizationServer, server: ProtectedServer) -> None:
    server.named = "http://169.254.169.254/latest"
    with pytest.raises(AuthorizationError, match="resource metadata"):
        talk(server, login())
    server.named, server.metadata = None, {"authorization_servers": ["http://169.254.169.254/latest"]}
    with pytest.raises(AuthorizationError, match="the authorization server"):
        talk(server, login())


def test_the_metadata_url_of_the_challenge_comes_first(authority: AuthorizationServer, server: ProtectedServer) -> None:
    server.places = {"/elsewhere/metadata"}
    server.named = f"{server.url}/elsewhere/metadata"
    assert talk(server, login()) == ["hello"]
    assert [path for path in server.paths(method="GET") if path != "/mcp"] == ["/elsewhere/metadata"]


def test_the_metadata_url_at_the_root_comes_last(authority: AuthorizationServer, server: ProtectedServer) -> None:
    server.places = {"/.well-known/oauth-protected-resource"}
    server.metadata = {"resource": server.url}
    assert talk(server, login()) == ["hello"]
    asked = [path for path in server.paths(method="GET") if path != "/mcp"]
    assert asked == ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]


@pytest.mark.parametrize(
    ("place", "asked"),
    [
        ("/.well-known/oauth-authorization-server/t1", 1),
        ("/.well-known/openid-configuration/t1", 2),
        ("/t1/.well-known/openid-configuration", 3),
    ],
)
def test_an_issuer_with_a_path_has_its_own_metadata(place: str, asked: int) -> None:
    authority = AuthorizationServer("/t1")
    authority.places = {place}
    server = ProtectedServer(authority)
    with running(authority, server):
        assert talk(server, login()) == ["hello"]
    assert len([each for each in authority.paths() if ".well-known" in each]) == asked
    assert "/.well-known/oauth-authorization-server" not in authority.paths()


def test_malformed_metadata_are_an_error(authority: AuthorizationServer, server: ProtectedServer) -> None:
    authority.metadata["scopes_supported"] = "a b"
    with pytest.raises(AuthorizationError, match=r"malformed: Expected `array \| null`.*scopes_supported"):
        talk(server, login())


def test_an_issuer_without_metadata_is_an_error(authority: AuthorizationServer, server: ProtectedServer) -> None:
    authority.places = set()
    with pytest.raises(AuthorizationError, match="publishes no metadata; asked"):
        talk(server, login())


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"", b"{", b'"x"', b"[" * 100_000, b"\xff"])
def test_a_page_is_not_taken_for_metadata(authority: AuthorizationServer, server: ProtectedServer, body: bytes) -> None:
    page = f"{server.url}/page"
    server.named = page
    server.elsewhere = lambda received: Reply(200, body) if received.path == "/page" else Reply(404)  # type: ignore[method-assign]
    assert talk(server, login()) == ["hello"]


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_size_of_metadata_is_bounded(authority: AuthorizationServer, server: ProtectedServer, over: int) -> None:
    body = json.dumps(server.about()).encode().ljust(MOST_BYTES + over)
    server.about = lambda: body  # type: ignore[method-assign, assignment, return-value]
    with pytest.raises(AuthorizationError, match="could not be asked") if over > 0 else nullcontext():
        assert talk(server, login()) == ["hello"]


@pytest.mark.parametrize("status", [502, 429])
def test_a_server_that_fails_is_not_taken_for_one_without_metadata(
    authority: AuthorizationServer, server: ProtectedServer, status: int
) -> None:
    storage, places = MemoryStorage(), server.places
    talk(server, login(storage=storage))
    authority.tokens.clear()
    server.places = set()
    server.elsewhere = lambda received: Reply(status)  # type: ignore[method-assign]
    with pytest.raises(AuthorizationError, match=f"{status}; try again later"):
        talk(server, login(storage=storage))
    server.places = places
    assert talk(server, login(storage=storage)) == ["hello"]
    assert authority.count("/authorize") == 1, "the refresh token is kept"


class Old(ProtectedServer):
    """A server of 2025-03-26: it is its own authorization server, or passes for it."""

    def __init__(self, authority: AuthorizationServer) -> None:
        super().__init__(authority)
        self.metadata = None

    def elsewhere(self, received: Received) -> Reply:
        return self.authorities[0].handle(received)


@pytest.mark.parametrize("metadata", [True, False])
def test_a_server_of_2025_03_26_gets_a_login(metadata: bool) -> None:
    authority = AuthorizationServer()
    server = Old(authority)
    if not metadata:
        authority.places = set()
    with running(server):
        authority.url = server.url
        storage: dict[str, Any] = {}
        auth = login(**storage)
        assert talk(server, auth) == ["hello"]
        authority.tokens.clear()
        assert talk(server, auth) == ["hello"]
    assert server.count("/register") == server.count("/authorize") == 1
    assert not any("resource" in each.query for each in server.asked)


def test_the_error_for_a_server_without_oauth_says_to_give_a_token(
    authority: AuthorizationServer, server: ProtectedServer
) -> None:
    server.metadata = None
    with pytest.raises(AuthorizationError, match=r"says nowhere how to get one.*give it by auth="):
        talk(server, login())


@pytest.mark.parametrize("metadata", [None, {"authorization_servers": None}])
@pytest.mark.parametrize("slash", ["", "/"])
def test_an_issuer_that_no_server_named_may_have_a_slash_or_not(metadata: Any, slash: str) -> None:
    """Its own origin issues tokens: whether that is written with a slash, only its metadata say."""
    authority = AuthorizationServer()
    server = Old(authority)
    server.metadata = metadata
    storage = MemoryStorage()
    with running(server):
        authority.url = server.url
        authority.metadata["issuer"] = authority.iss = server.url + slash
        authority.metadata["authorization_response_iss_parameter_supported"] = True
        for _ in range(2):
            assert talk(server, login(storage=storage)) == ["hello"]
            authority.tokens.clear()
        assert talk(server, login(storage=storage, issuer=server.url + slash)) == ["hello"]
        authority.metadata["issuer"] = server.url + "/other"
        with pytest.raises(AuthorizationError, match="it may be the metadata of another"):
            talk(server, login())
    assert server.count("/authorize") == server.count("/register") == 1


class Tenants(ProtectedServer):
    """Each tenant, which the query names, is a resource of its own."""

    def about(self) -> dict[str, Any]:
        return {**super().about(), "resource": f"{self.mcp}?{urlencode(self.asked[-1].query)}"}

    def refused(self, received: Received, method: str) -> Reply | None:
        token = received.headers.get("authorization", "").removeprefix("Bearer ")
        held = self.authorities[0].tokens.get(token, {})
        good = held.get("resource") == f"{self.mcp}?{urlencode(received.query)}"
        return None if good else self.challenge(401)


@pytest.mark.parametrize("own", [True, False])
def test_the_query_of_a_server_is_part_of_its_resource_if_metadata_say_so(own: bool, tmp_path: Any) -> None:
    """The query is part of the resource if the metadata say so, and is not stored."""
    authority = AuthorizationServer()
    server = Tenants(authority) if own else ProtectedServer(authority)

    async def call(tenant: str) -> str:
        auth = login(storage=FileStorage(tmp_path / "oauth.json"))
        url = f"{server.mcp}?tenant={tenant}"
        async with Client(url, auth=auth, era="2025-11-25", timeout=10, reconnect=False) as client:
            return (await client.call_tool("hello")).text

    with running(authority, server):
        for tenant in ("one", "two", "one", "two"):
            assert run(lambda tenant=tenant: call(tenant)) == "hello"  # type: ignore[misc]
    assert authority.count("/authorize") == (2 if own else 1)
    kept = [each for each in json.loads((tmp_path / "oauth.json").read_bytes()) if each.startswith("tokens")]
    assert kept and not any("tenant" in each for each in kept)


def test_the_error_for_a_host_that_is_not_ascii_says_how_to_write_it() -> None:
    with pytest.raises(AuthorizationError, match=r"a host in other letters as xn--"):
        run(lambda: first_headers(login(), "https://b\u00fccher.example/mcp"))


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_the_length_of_a_list_in_metadata_is_bounded(
    authority: AuthorizationServer, server: ProtectedServer, over: int
) -> None:
    """The issuer that the caller names is found among the first ones only."""
    others = [f"https://h{n}.example" for n in range(MOST_LISTED + over)]
    server.metadata["authorization_servers"] = [*others, authority.issuer]
    if over < 0:
        assert talk(server, login(issuer=authority.issuer)) == ["hello"]
    else:
        with pytest.raises(AuthorizationError, match="issuer= says"):
            talk(server, login(issuer=authority.issuer))
