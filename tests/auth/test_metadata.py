"""Protected-resource metadata, and the URLs that the configuration may hold."""

from __future__ import annotations

from typing import Any

import pytest

from longshore.auth.settings import canonical, metadata_url
from longshore.errors import ConfigError

from .conftest import error, guard

SERVER: dict[str, Any] = {
    "introspection_url": "https://login.example.com/introspect",
    "introspection_client": "c",
    "introspection_secret": "s",
}
BAD_URL = "expected an absolute http(s) URL without a user, like https://mcp.example.com/mcp"


def test_the_metadata_document_names_resource_servers_and_scopes() -> None:
    found = guard(issuer="https://login.example.com", scopes=["mcp"], **SERVER)
    assert found.metadata() == {
        "resource": "https://mcp.example.com/mcp",
        "authorization_servers": ["https://login.example.com"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["mcp"],
    }


def test_the_app_adds_scopes_and_a_name_to_the_metadata() -> None:
    assert "scopes_supported" not in (guard(issuer="https://login.example.com", **SERVER).metadata() or {})
    scopes = frozenset({"write", "read", "offline_access"})
    app = {"known_scopes": lambda: scopes, "resource_name": "Notes"}
    document = guard(issuer="https://login.example.com", **app, **SERVER).metadata() or {}
    assert document["scopes_supported"] == ["read", "write"]
    assert document["resource_name"] == "Notes"


def test_configured_authorization_servers_are_named() -> None:
    servers = ["https://a.example", "https://b.example/tenant"]
    found = guard(issuer="https://login.example.com", authorization_servers=servers, **SERVER)
    assert (found.metadata() or {})["authorization_servers"] == servers


@pytest.mark.parametrize("settings", [{}, {"token": "s3cret-s3cret-s3cret"}, SERVER, {**SERVER, "mode": "off"}])
def test_without_an_authorization_server_there_is_no_metadata(settings: dict[str, Any]) -> None:
    assert guard(**settings).metadata() is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://mcp.example.com/mcp", "https://mcp.example.com/mcp"),
        ("HTTPS://MCP.Example.COM/Mcp", "https://mcp.example.com/Mcp"),
        ("https://mcp.example.com/mcp/", "https://mcp.example.com/mcp"),
        ("https://mcp.example.com/", "https://mcp.example.com"),
        ("https://mcp.example.com/mcp#part", "https://mcp.example.com/mcp"),
        ("https://mcp.example.com:8443/a/mcp?x=1", "https://mcp.example.com:8443/a/mcp?x=1"),
        ("http://127.0.0.1:9100/mcp", "http://127.0.0.1:9100/mcp"),
        ("http://[::1]:9100/mcp", "http://[::1]:9100/mcp"),
        ("http://127.0.0.1:0/mcp", "http://127.0.0.1:0/mcp"),
    ],
)
def test_the_canonical_address_has_no_fragment_and_no_final_slash(url: str, expected: str) -> None:
    assert canonical("http.public_url", url) == expected


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("https://h/a/mcp", "https://h/.well-known/oauth-protected-resource/a/mcp"),
        ("https://h", "https://h/.well-known/oauth-protected-resource"),
        ("https://h:1/mcp", "https://h:1/.well-known/oauth-protected-resource/mcp"),
    ],
)
def test_the_metadata_url_has_the_well_known_path(resource: str, expected: str) -> None:
    assert metadata_url(resource) == expected


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mcp.example.com",
        "/mcp",
        "ftp://h/mcp",
        "file:///etc/passwd",
        "https:///mcp",
        "https://user@h/mcp",
        "https://user:pass@h/mcp",
        "https://h:port/",
        "https://h:70000/",
        "https://[::1/",
        'https://h/"x',
        "https://h/a b",
        "https://h/\r\nX: y",
        "https://h/é",
        "javascript:alert(1)",
    ],
)
def test_a_malformed_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        canonical("http.public_url", url)
    assert str(caught.value) == f"http.public_url: {BAD_URL}"
    assert error(token="s3cret-s3cret-s3cret", resource=url) == f"http.public_url: {BAD_URL}"


@pytest.mark.parametrize("key", ["issuer", "authorization_servers", "introspection_url"])
def test_secrets_and_keys_go_over_https_or_stay_on_the_machine(key: str) -> None:
    def settings(url: str) -> dict[str, Any]:
        return {**SERVER, key: [url] if key == "authorization_servers" else url}

    for url in ("http://login.example.com", "http://localhost.example.com", "http://0.0.0.0", "http://10.0.0.1"):
        assert error(**settings(url)) == f"auth.{key}: expected an https URL; http is for loopback only"
    for url in (
        "http://localhost:1",
        "http://127.0.0.1:1",
        "http://127.8.9.1:1",
        "http://[::1]:1",
        "https://x.example",
    ):
        guard(**settings(url))
    assert error(**settings("https://u:p@h")) == f"auth.{key}: {BAD_URL}"
