"""Which URLs, origins and addresses a browser may reach."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from longshore.errors import ConfigError, ToolError
from longshore.toolsets.browser.origins import (
    Origin,
    OriginRules,
    canonical_host,
    check_url,
    is_private,
    make_rules,
    origin_of_url,
)

OPEN = OriginRules()
CLOSED = OriginRules(private=False)


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "FILE:///etc/passwd",
        " \x01file:///etc/passwd",
        "fi\tle:///etc/pass\nwd",
        "file:/etc/passwd",
        "chrome://settings",
        "chrome-extension://abc/x.html",
        "view-source:http://example.com/",
        "View-Source:file:///etc/passwd",
        "data:text/html,<script>1</script>",
        "javascript:alert(1)",
        "java\nscript:alert(1)",
        "blob:http://example.com/1",
        "filesystem:http://example.com/temporary/x",
        "devtools://devtools/bundled/inspector.html",
        "about:version",
        "about:srcdoc",
        "ftp://example.com/",
        "ws://example.com/",
    ],
)
def test_other_schemes_are_refused_by_name(url: str) -> None:
    scheme = url.strip("\x01 ").replace("\t", "").replace("\n", "").partition(":")[0].lower()
    with pytest.raises(ToolError, match=f"a {scheme}: URL can't be opened: only http:// and https:// URLs and about"):
        check_url(url, OPEN)


@pytest.mark.parametrize(
    "url", ["example.com", "example.com:80/x", "localhost:8080", "build:8080/x", "", "//example.com"]
)
def test_a_url_without_a_scheme_says_so(url: str) -> None:
    with pytest.raises(ToolError, match="has no scheme; write https://"):
        check_url(url, OPEN)


@pytest.mark.parametrize("url", ["http://", "http://a b/", "http://1.2.3.4.5/", "http://[::1/", "http://x:99999/"])
def test_a_malformed_url_is_refused(url: str) -> None:
    with pytest.raises(ToolError, match="is no URL of a page"):
        check_url(url, OPEN)


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("about:blank", "about:blank"),
        ("About:Blank#x", "About:Blank#x"),
        (" http://example.com/a b ", "http://example.com/a b"),
        ("ht\ntps://example.com/", "https://example.com/"),
        ("HTTP:example.com", "HTTP:example.com"),
    ],
)
def test_pages_and_the_blank_page_are_opened(url: str, read: str) -> None:
    assert check_url(url, OPEN) == read


@pytest.mark.parametrize(
    ("host", "canonical"),
    [
        ("EXAMPLE.com", "example.com"),
        ("example.com.", "example.com"),
        ("ex%61mple.com", "example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("BÜCHER。example", "xn--bcher-kva.example"),
        ("ex\u00adample.com", "example.com"),
        ("2130706433", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0x7F000001", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("１２７.０.０.１", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("0xa9fea9fe", "169.254.169.254"),
        ("[::FFFF:127.0.0.1]", "127.0.0.1"),
        ("[::ffff:7f00:1]", "127.0.0.1"),
        ("[0:0::1]", "::1"),
        ("256.1.1.1", None),
        ("1.2.3.09", None),
        ("a.1", None),
        ("4294967296", None),
        ("[1.2.3.4]", None),
        ("[fe80::1%25eth0]", None),
        ("a b", None),
        ("a%2fb", None),
        ("", None),
    ],
)
def test_a_host_is_read_as_a_browser_reads_it(host: str, canonical: str | None) -> None:
    assert canonical_host(host) == canonical


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://good.com@evil.com/", Origin("http", "evil.com", 80)),
        ("http://good.com\\@evil.com/", Origin("http", "good.com", 80)),
        ("https:/\\evil.com:8443\\x", Origin("https", "evil.com", 8443)),
        ("wss://a.example/x", Origin("https", "a.example", 443)),
        ("http://a.example:/", Origin("http", "a.example", 80)),
        ("http://[::1]:8080/", Origin("http", "::1", 8080)),
        ("http://a.example#@evil.com/", Origin("http", "a.example", 80)),
    ],
)
def test_the_origin_of_a_url(url: str, origin: Origin) -> None:
    assert origin_of_url(url) == origin


METADATA = [
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9.254.0251.254/",
    "http://[::ffff:169.254.169.254]/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[2002:a9fe:a9fe::]/",
    "http://[64:ff9b:1::a9fe:a9fe]/",
    "http://[::ffff:0:a9fe:a9fe]/",
    "http://[2001:0:4136:e378:8000:63bf:5601:5601]/",
    "http://[::a9fe:a9fe]/",
    "http://169.254.170.2/",
    "http://169.254.0.1/",
    "http://[fe80::1]/",
    "http://[fd00:ec2::254]/",
    "http://[fd20:ce::254]/",
    "http://100.100.100.200/",
    "http://192.0.0.192/",
    "http://168.63.129.16/",
    "http://metadata.google.internal/",
    "https://METADATA.google.internal.:8443/",
    "http://metadata/",
]


@pytest.mark.parametrize("url", METADATA)
@pytest.mark.parametrize("listed", [False, True])
def test_metadata_services_are_blocked_whatever_is_allowed(url: str, listed: bool) -> None:
    origin = origin_of_url(url)
    assert origin is not None
    rules = OriginRules(allowed=(str(origin),)) if listed else OPEN
    with pytest.raises(ToolError, match="always blocked"):
        check_url(url, rules)


PRIVATE = [
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "0.0.0.0",
    "[fc00::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[::]",
]


@pytest.mark.parametrize("host", [*PRIVATE, "224.0.0.1", "255.255.255.255", "[64:ff9b::a00:1]", "0", "0xa.1"])
def test_private_addresses_are_an_option(host: str) -> None:
    assert check_url(f"http://{host}/", OPEN)
    with pytest.raises(ToolError, match="is a private address"):
        check_url(f"http://{host}/", CLOSED)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.9.9.9", "localhost", "a.localhost", "[::1]", "2130706433", "0177.1"]
)
def test_loopback_stays_open(host: str) -> None:
    assert check_url(f"http://{host}:8080/", CLOSED)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.1", "0.0.0.0"])
def test_a_name_that_resolves_to_a_private_address_is_refused_even_if_it_is_allowed(address: str) -> None:
    origin = Origin("https", "example.com", 443)
    rules = OriginRules(allowed=("example.com",), private=False)
    assert rules.origin_problem(origin) is None
    problem = rules.address_problem(origin, ip_address(address))
    assert problem is not None and f"example.com, which resolves to {address}, is a private address" in problem
    assert (
        OriginRules(("example.com", "10.0.0.1"), private=False).address_problem(origin, ip_address("10.0.0.1")) is None
    )


def test_a_name_that_resolves_to_a_blocked_or_metadata_address_is_refused() -> None:
    origin = Origin("", "example.com", 443)
    assert "always blocked" in str(OPEN.address_problem(origin, ip_address("169.254.169.254")))
    assert "blocked origins" in str(OriginRules(blocked=("8.8.8.8",)).address_problem(origin, ip_address("8.8.8.8")))
    assert OPEN.address_problem(origin, ip_address("8.8.8.8")) is None


MATCHES = [
    (
        "https://example.com",
        "https://example.com/x https://EXAMPLE.com.:443",
        "http://example.com https://a.example.com",
    ),
    ("https://example.com", "https://example.com", "https://example.com:8443"),
    ("example.com", "http://example.com https://example.com:8443", "http://a.example.com http://badexample.com"),
    ("example.com", "http://example.com", "http://example.com.evil"),
    ("*.example.com", "http://a.example.com https://a.b.example.com:1", "http://example.com http://aexample.com"),
    ("example.com:8080", "http://example.com:8080 https://example.com:8080", "http://example.com"),
    ("https://*.example.com:8443/", "https://a.example.com:8443", "https://a.example.com"),
    ("bücher.example", "http://xn--bcher-kva.example http://BÜCHER.example", "http://bucher.example"),
    ("127.0.0.1:80", "http://0177.1/ http://[::ffff:127.0.0.1]/", "http://127.0.0.2/"),
    ("wss://example.com", "https://example.com", "http://example.com"),
]


@pytest.mark.parametrize(("pattern", "matching", "others"), MATCHES)
def test_origins_match_by_scheme_host_and_port(pattern: str, matching: str, others: str) -> None:
    for url in matching.split():
        assert check_url(url, OriginRules(allowed=(pattern,))) == url
        with pytest.raises(ToolError, match="is one of the blocked origins; nothing was requested"):
            check_url(url, OriginRules(blocked=(pattern,)))
    for url in others.split():
        assert check_url(url, OriginRules(blocked=(pattern,))) == url
        with pytest.raises(ToolError, match="is not one of the allowed origins"):
            check_url(url, OriginRules(allowed=(pattern,)))


def test_blocked_has_precedence() -> None:
    rules = OriginRules(allowed=("*.example.com",), blocked=("secret.example.com",))
    assert check_url("https://a.example.com", rules)
    with pytest.raises(ToolError, match="blocked"):
        check_url("https://secret.example.com", rules)


@pytest.mark.parametrize(
    "pattern", ["", "*", "ftp://x", "a b", "https://", "x:0", "x:99999", "*.1.2.3.4", "https://x/path"]
)
def test_a_malformed_origin_is_an_error_of_the_configuration(pattern: str) -> None:
    with pytest.raises(ConfigError, match="is no origin; write it as https://example"):
        make_rules([pattern], [], True)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "172.32.0.1", "100.128.0.1"])
def test_public_addresses(address: str) -> None:
    assert not is_private(ip_address(address))
