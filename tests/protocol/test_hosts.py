"""Which Host and Origin headers are answered: every spelling that has ever climbed such a wall."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.protocol.http_headers import LONGEST_KNOWN, MOST_KNOWN, Hosts, parse_host, parse_origin, same_origin

P = 9100
LOOPBACK = ("127.0.0.1", P)
LAN = ("192.168.1.5", P)


def local() -> Hosts:
    """A server on loopback with nothing configured."""
    return Hosts([])


def public() -> Hosts:
    """A server behind `https://mcp.example.com`, with a second name, that one web page may call."""
    return Hosts(
        ["mcp.example.com", "Backup.Example.com:8443", "[2001:DB8:0::1]:9100"],
        ["https://app.example.com", "http://localhost:3000", "vscode-webview://1a2b3c"],
    )


# Host


@pytest.mark.parametrize(
    "raw",
    [
        b"localhost:9100",
        b"LOCALHOST:9100",
        b"LocalHost:9100",
        b"127.0.0.1:9100",
        b"[::1]:9100",
        b"[0:0:0:0:0:0:0:1]:9100",
    ],
)
@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
def test_a_server_on_loopback_answers_to_its_own_names_with_its_own_port(raw: bytes, address: str) -> None:
    hosts = local()
    for _ in range(2):
        assert hosts.host_ok(raw, (address, P))
        assert not hosts.host_ok(raw, (address, P + 1))


def test_an_unusual_loopback_address_is_accepted_by_its_own_name_only() -> None:
    assert local().host_ok(b"127.0.0.2:9100", ("127.0.0.2", P))
    assert not local().host_ok(b"127.0.0.2:9100", LOOPBACK)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        b"",
        b" ",
        b"evil.com",
        b"evil.com:9100",
        b"localhost",
        b"127.0.0.1",
        b"[::1]",
        b"localhost:9101",
        b"localhost:80",
        b"localhost.evil.com:9100",
        b"evil-localhost:9100",
        b"127.0.0.1.evil.com:9100",
        b"127.0.0.1:9100evil",
        b"127.0.0.1:9100.evil.com",
        b"127.0.0.1:9100@evil",
        b"localhost:9100@evil.com",
        b"user@localhost:9100",
        b"user:pass@localhost:9100",
        b"127.0.0.1.:9100",
        b"localhost.:9100",
        b".localhost:9100",
        b"local..host:9100",
        b"127.0.0.1:",
        b"127.0.0.1:09100",
        b"127.0.0.1:009100",
        b"127.0.0.1:+9100",
        b"127.0.0.1:-9100",
        b"127.0.0.1: 9100",
        b" 127.0.0.1:9100",
        b"127.0.0.1:9100 ",
        b"127.0.0.1:9100,evil.com",
        b"127.0.0.1:9100/",
        b"127.0.0.1:9100#",
        b"http://127.0.0.1:9100",
        b"127.0.0.1:74636",
        b"127.0.0.1:0",
        b"127.0.0.1:99999999999",
        b"127.0.0.1:9100:9100",
        b"127.1:9100",
        b"2130706433:9100",
        b"0x7f.0.0.1:9100",
        b"0177.0.0.1:9100",
        b"127.0.0.01:9100",
        b"0.0.0.0:9100",
        b"::1:9100",
        b"[::1:9100",
        b"[::1]9100",
        b"[::1]evil.com:9100",
        b"[::1]:9100]",
        b"[[::1]]:9100",
        b"[::1%lo]:9100",
        b"[::1%25lo]:9100",
        b"[::ffff:127.0.0.1]:9100",
        b"[127.0.0.1]:9100",
        b"[localhost]:9100",
        b"[]:9100",
        b"[v1.x]:9100",
        b"localhost\x00:9100",
        b"localhost:9100\r\nx",
        b"localhost:9100\n",
        "lоcalhost:9100".encode(),  # a Cyrillic letter
        "localhost:९१००".encode(),
        b"localhost\xb9:9100",
        b"*",
        b"*:9100",
        b"%6cocalhost:9100",
        b"a" * 254 + b":9100",
        b"[" * 60000,
        b"a." * 30000,
    ],
)
def test_nothing_else_gets_an_answer_there(raw: bytes | None) -> None:
    for hosts in (local(), public()):
        for _ in range(2):
            assert not hosts.host_ok(raw, LOOPBACK)


@pytest.mark.parametrize("port", [80, 443])
def test_a_default_port_may_be_left_out(port: int) -> None:
    hosts = local()
    for raw in (b"localhost", b"127.0.0.1", b"[::1]", b"localhost:%d" % port):
        assert hosts.host_ok(raw, ("127.0.0.1", port))
    assert not hosts.host_ok(b"localhost:9100", ("127.0.0.1", port))


@pytest.mark.parametrize(
    "server",
    [LAN, ("0.0.0.0", P), ("::", P), ("example.com", P), ("localhost", P), ("", P), ("/run/x.sock", None), None],
)
def test_elsewhere_only_configured_hosts_are_answered(server: tuple[str, int | None] | None) -> None:
    assert not any(local().host_ok(raw, server) for raw in (b"localhost:9100", b"127.0.0.1:9100", b"192.168.1.5:9100"))
    assert public().host_ok(b"mcp.example.com", server)


def test_a_host_accepted_on_loopback_is_not_accepted_elsewhere() -> None:
    hosts = local()
    assert hosts.host_ok(b"localhost:9100", LOOPBACK)
    assert not hosts.host_ok(b"localhost:9100", LAN)
    assert not hosts.host_ok(b"localhost:9100", None)


@pytest.mark.parametrize(
    ("raw", "good"),
    [
        (b"mcp.example.com", True),
        (b"MCP.Example.COM", True),
        (b"mcp.example.com:443", True),
        (b"mcp.example.com:80", True),
        (b"mcp.example.com:8443", False),
        (b"mcp.example.com:9100", False),
        (b"backup.example.com:8443", True),
        (b"backup.example.com", False),
        (b"backup.example.com:443", False),
        (b"[2001:db8::1]:9100", True),
        (b"[2001:0db8:0:0:0:0:0:1]:9100", True),
        (b"[2001:db8::1]", False),
        (b"example.com", False),
        (b"x.mcp.example.com", False),
        (b"mcp.example.com.evil.com", False),
        (b"mcp.example.com.", False),
        (b"mcp.example.com@evil.com", False),
        (b"mcpxexample.com", False),
    ],
)
def test_a_configured_host_is_compared_whole(raw: bytes, good: bool) -> None:
    hosts = public()
    for server in (LAN, LOOPBACK, None, LAN):
        assert hosts.host_ok(raw, server) is good


def test_a_port_that_is_the_default_may_be_configured_and_left_out() -> None:
    hosts = Hosts(["mcp.example.com:443"])
    assert hosts.host_ok(b"mcp.example.com", LAN) and hosts.host_ok(b"mcp.example.com:443", LAN)
    assert not hosts.host_ok(b"mcp.example.com:80", LAN)


def test_a_server_may_be_given_as_a_list() -> None:
    assert local().host_ok(b"localhost:9100", ["127.0.0.1", P])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "entry", ["", "*", "*.example.com", "https://example.com", "example.com/", "a b", "x:", "x:0", "é"]
)
def test_a_host_that_could_never_match_is_a_mistake_in_the_configuration(entry: str) -> None:
    with pytest.raises(ValueError, match="is no host; write host or host:port"):
        Hosts([entry])


@given(st.text(max_size=40) | st.binary(max_size=40).map(lambda raw: raw.decode("latin-1")))
def test_a_parsed_host_is_its_own_only_form(text: str) -> None:
    found = parse_host(text)
    if found is not None:
        name, port = found
        again = name if port is None else f"{name}:{port}"
        assert parse_host(again) == found and again.isascii() and again == again.lower()
        assert not set(again) & set("@/?# ,%\\") and not name.endswith(".")


def test_headers_are_cached_up_to_a_bound_and_long_ones_never() -> None:
    hosts = Hosts(["localhost:9100"], ["https://localhost"])
    spellings = [bytes(c ^ (0x20 if n >> i & 1 else 0) for i, c in enumerate(b"localhost")) for n in range(512)]
    for spelling in spellings:
        assert hosts.host_ok(spelling + b":9100", LOOPBACK)
        assert hosts.origin_ok(b"http://localhost:9100", spelling + b":9100", "http", LOOPBACK)
        assert hosts.cors(b"https://" + spelling) == "https://" + spelling.decode()
        assert hosts.cors(b"http://" + spelling) is None
    caches = (hosts._is_host, hosts._is_origin, hosts._cors)
    assert [cache.cache_info().currsize for cache in caches] == [MOST_KNOWN] * 3
    before = [cache.cache_info().misses for cache in caches]
    long = b"x" * (LONGEST_KNOWN + 1)
    assert not hosts.host_ok(long, LOOPBACK)
    assert not hosts.origin_ok(long, b"localhost:9100", "http", LOOPBACK)
    assert hosts.cors(long) is None
    assert [cache.cache_info().misses for cache in caches] == before


def test_a_refusal_names_the_host_and_the_settings() -> None:
    text = Hosts.explain_host(b"evil.com", LOOPBACK)
    assert "'evil.com'" in text and "localhost:9100" in text
    assert all(setting in text for setting in ("http.hosts", "http.public_url", "--public-url"))
    assert "localhost" not in Hosts.explain_host(b"evil.com", LAN)
    assert "without Host" in Hosts.explain_host(None, None)
    long = Hosts.explain_host(b"\r\n\xff" * 5000, LOOPBACK)
    assert long.isascii() and long.isprintable() and len(long) < 800


# Origin


@pytest.mark.parametrize(
    ("origin", "host", "scheme"),
    [
        (b"http://localhost:9100", b"localhost:9100", "http"),
        (b"http://LOCALHOST:9100", b"localhost:9100", "http"),
        (b"http://127.0.0.1:9100", b"127.0.0.1:9100", "http"),
        (b"http://[::1]:9100", b"[::1]:9100", "http"),
        (b"https://localhost:9100", b"localhost:9100", "https"),
        (b"https://mcp.example.com", b"mcp.example.com", "https"),
        (b"https://mcp.example.com:443", b"mcp.example.com", "https"),
        (b"https://mcp.example.com", b"mcp.example.com:443", "https"),
        (b"http://mcp.example.com", b"mcp.example.com", "http"),
        # listed
        (b"https://app.example.com", b"localhost:9100", "http"),
        (b"https://app.example.com:443", b"localhost:9100", "http"),
        (b"http://localhost:3000", b"localhost:9100", "http"),
        (b"vscode-webview://1a2b3c", b"localhost:9100", "http"),
        (None, b"localhost:9100", "http"),
        (None, b"evil.com", "http"),
    ],
)
def test_our_own_pages_and_listed_ones_may_call(origin: bytes | None, host: bytes, scheme: str) -> None:
    hosts = public()
    for _ in range(2):
        assert hosts.origin_ok(origin, host, scheme, LOOPBACK)


@pytest.mark.parametrize(
    "origin",
    [
        b"",
        b"null",
        b"NULL",
        b"*",
        b"http://evil.com",
        b"http://evil.com:9100",
        b"http://localhost.evil.com",
        b"http://localhost.evil.com:9100",
        b"http://localhost:1@evil.com",
        b"http://localhost:9100@evil.com",
        b"http://user@localhost:9100",
        b"https://localhost:9100",  # another scheme
        b"https://127.0.0.1:9100",
        b"http://127.0.0.1:9100",  # another name for the same machine is another origin
        b"http://localhost",
        b"http://localhost:9101",
        b"http://localhost:80",
        b"http://localhost:9100/",
        b"http://localhost:9100/path",
        b"http://localhost:9100?x",
        b"http://localhost:9100#x",
        b"http://localhost.:9100",
        b"http://localhost:9100 http://evil.com",
        b"http://evil.com, http://localhost:9100",
        b"http:/localhost:9100",
        b"http:localhost:9100",
        b"//localhost:9100",
        b"localhost:9100",
        b"file://",
        b"file:///etc/passwd",
        b"javascript:alert(1)",
        b"data:text/html,x",
        b"ws://localhost:9100",
        b"https://app.example.com.evil.com",
        b"https://xapp.example.com",
        b"https://evil.com/https://app.example.com",
        b"http://app.example.com",
        b"https://app.example.com:8443",
        b"https://app.example.com\x00",
        b"https://app.example.com\n",
        "https://аpp.example.com".encode(),
        b"chrome-extension://1a2b3c",
        b"vscode-webview://1a2b3c.evil.com",
    ],
)
def test_no_other_page_may(origin: bytes) -> None:
    hosts = public()
    for _ in range(2):
        assert not hosts.origin_ok(origin, b"localhost:9100", "http", LOOPBACK)
        assert hosts.cors(origin) is None


def test_a_page_that_was_reached_under_a_foreign_name_is_not_our_own() -> None:
    """Rebinding: the page, its Origin and the Host all say evil.com, and the connection comes to loopback."""
    for hosts in (local(), public()):
        assert not hosts.origin_ok(b"http://evil.com:9100", b"evil.com:9100", "http", LOOPBACK)
        assert not hosts.origin_ok(b"http://localhost:9100", b"localhost:9100", "http", LAN)
    assert not public().origin_ok(b"https://app.example.com", b"evil.com", "http", LOOPBACK)


def test_only_listed_origins_are_echoed() -> None:
    hosts = public()
    for _ in range(2):
        assert hosts.cors(b"https://app.example.com") == "https://app.example.com"
        assert hosts.cors(b"vscode-webview://1a2b3c") == "vscode-webview://1a2b3c"
        assert hosts.cors(b"http://localhost:9100") is None
        assert hosts.cors(b"https://mcp.example.com") is None
        assert hosts.cors(None) is None
    assert local().cors(b"https://app.example.com") is None


@pytest.mark.parametrize(
    "entry", ["", "*", "null", "app.example.com", "https://app.example.com/", "https://*.example.com"]
)
def test_an_origin_that_could_never_match_is_a_mistake_in_the_configuration(entry: str) -> None:
    with pytest.raises(ValueError, match="is no origin; write scheme://host"):
        Hosts([], [entry])


def test_same_origin_is_about_scheme_host_and_port() -> None:
    assert same_origin(b"http://localhost:9100", b"localhost:9100", "http")
    assert same_origin(b"https://mcp.example.com", b"mcp.example.com:443", "https")
    assert not same_origin(b"https://mcp.example.com", b"mcp.example.com", "http")
    assert not same_origin(b"null", b"", "http")
    assert not same_origin(b"null", b"null", "http")


@given(st.text(max_size=60))
def test_a_parsed_origin_is_its_own_only_form(text: str) -> None:
    found = parse_origin(text)
    if found is not None:
        scheme, name, port = found
        assert parse_origin(f"{scheme}://{name}" + ("" if port is None else f":{port}")) == found
