"""The gate, from the street: every Host, Origin, media type, method, target and body that may come, and what it gets.

Each refusal is checked to have its status and to leave nothing behind: no handler ran, no session, link or call is
there that was not. Headers that no client library would send go out as bytes on a socket. All of it holds for the app
behind uvicorn, where anybody may run it, and behind our own listener; where the two differ, the case says so.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from asgi import PORT
from asgi import request as in_process
from premises import Site, opened, wait_cut_off

from posting import LEGACY, MODERN, call, encode, modern, modern_headers, notice, request
from serving import ABSENT, Exchange, Pairs, request_head

CALL = modern(call("safe"))
BODY = encode(CALL)
MOST = 50_000
"""The longest body that these premises take."""


@pytest.fixture(scope="module", params=["uvicorn", "own"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    limits = f"[limits]\nframe_bytes = {MOST}\n"
    with opened(tmp_path_factory.mktemp("gate"), limits, own=request.param == "own") as found:
        yield found


def post(site: Site, *headers: tuple[str, str], path: str = "/mcp", body: bytes = BODY) -> Exchange:
    """A good call, but for these headers."""
    given = {name.lower() for name, _ in headers}
    usual = [pair for pair in modern_headers(CALL) if pair[0].lower() not in given]
    return site.send("POST", path, [*usual, *headers], body).finish()


def filled(text: str, site: Site) -> str:
    """A value with the real port where it says P."""
    return text.replace("{P}", str(site.port))


def refused(site: Site, status: int, *headers: tuple[str, str], **more: Any) -> Exchange:
    with site.untouched():
        answer = post(site, *[(name, filled(value, site)) for name, value in headers], **more)
        assert answer.status == status, answer
    return answer


def accepted(site: Site, *headers: tuple[str, str], **more: Any) -> Exchange:
    before = site.premises.ran["safe"]
    answer = post(site, *[(name, filled(value, site)) for name, value in headers], **more)
    assert answer.status == 200, answer
    assert site.premises.ran["safe"] == before + 1
    return answer


# -- Host

HOSTS = ["127.0.0.1:{P}", "localhost:{P}", "LOCALHOST:{P}", "LocalHost:{P}", "[::1]:{P}", "[0:0:0:0:0:0:0:1]:{P}"]
FOREIGN_HOSTS = [
    "evil.com",
    "evil.com:{P}",
    "localhost.evil.com:{P}",
    "127.0.0.1.evil.com:{P}",
    "evil.com:{P}@127.0.0.1:{P}",
    "127.0.0.1:{P}@evil.com",
    "127.0.0.1:{P}evil",
    "127.0.0.1:{P}.evil.com",
    "127.0.0.1:{P}, evil.com",
    "127.0.0.1:{P}/",
    "127.0.0.1:{P}#",
    "127.0.0.1:{P}?",
    "http://127.0.0.1:{P}",
    "user@localhost:{P}",
    "xlocalhost:{P}",
    "localhostx:{P}",
    "localhost.:{P}",
    "127.0.0.1.:{P}",
    ".localhost:{P}",
    "localhost",
    "127.0.0.1",
    "localhost:",
    "localhost:0{P}",
    "localhost:+{P}",
    "localhost:{P}0",
    "localhost:1",
    "localhost :{P}",
    "localhost: {P}",
    "localhost:{P}:{P}",
    "127.0.0.2:{P}",
    "127.1:{P}",
    "0.0.0.0:{P}",
    "2130706433:{P}",
    "0x7f000001:{P}",
    "0177.0.0.1:{P}",
    "127.0.0.01:{P}",
    "[::]:{P}",
    "[::2]:{P}",
    "[::1%25lo]:{P}",
    "[::ffff:127.0.0.1]:{P}",
    "[127.0.0.1]:{P}",
    "[::1:{P}",
    "::1:{P}",
    "%6cocalhost:{P}",
    "localh\xf6st:{P}",
    "localhost\xa0:{P}",
    "*",
    "null",
    "",
    "a" * 254 + ":{P}",
]


@pytest.mark.parametrize("host", HOSTS)
def test_a_name_of_this_machine_with_the_port_is_answered(site: Site, host: str) -> None:
    accepted(site, ("Host", host))


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_any_other_host_is_misdirected(site: Site, host: str) -> None:
    answer = refused(site, 421, ("Host", host))
    assert answer.json["id"] is None
    assert "http.hosts" in answer.json["error"]["message"]


def test_a_request_without_a_host_is_misdirected(site: Site) -> None:
    refused(site, 421, ("Host", ABSENT))


@pytest.mark.parametrize(
    "hosts", [("127.0.0.1:{P}", "evil.com"), ("evil.com", "127.0.0.1:{P}"), ("localhost:{P}", "localhost:{P}")]
)
def test_two_hosts_are_none(site: Site, hosts: tuple[str, str]) -> None:
    refused(site, 421, *[("Host", host) for host in hosts])


@pytest.mark.parametrize("name", ["X-Forwarded-Host", "X-Host", "X-Forwarded-Server", "X-Original-Host", "Forwarded"])
def test_only_the_host_header_says_the_host(site: Site, name: str) -> None:
    value = "host=localhost:{P}" if name == "Forwarded" else "localhost:{P}"
    refused(site, 421, ("Host", "evil.com"), (name, value))
    accepted(site, (name, value.replace("localhost:{P}", "evil.com")))


PLACES: list[tuple[str, str]] = [
    *[(method, "/mcp") for method in ("POST", "GET", "DELETE", "OPTIONS", "PUT")],
    *[("POST", path) for path in ("/", "/messages?sessionId=x", "/auth/cookie", "/tools/safe")],
    *[("GET", path) for path in ("/sse", "/health", "/metrics", "/tools", "/openapi.json", "/nothing")],
    ("GET", "/.well-known/oauth-protected-resource"),
    ("OPTIONS", "/tools/safe"),
]


@pytest.mark.parametrize(("method", "path"), PLACES)
def test_host_and_origin_are_looked_at_everywhere(site: Site, method: str, path: str) -> None:
    body = BODY if method == "POST" else None
    usual = [*modern_headers(CALL), ("Accept", "text/event-stream, application/json")]
    with site.untouched():
        for header, status in ((("Host", "evil.com"), 421), (("Origin", "http://evil.com"), 403)):
            answer = site.send(method, path, [*usual, header], body).begin()
            assert answer.status == status
            assert not [name for name in answer.headers if name.startswith("access-control-")]


# -- Origin

ORIGINS = [
    "http://evil.com",
    "http://evil.com:{P}",
    "http://localhost.evil.com",
    "http://localhost.evil.com:{P}",
    "http://127.0.0.1.evil.com:{P}",
    "http://localhost:1@evil.com",
    "http://127.0.0.1:{P}@evil.com",
    "http://evil.com#127.0.0.1:{P}",
    "http://evil.com?http://127.0.0.1:{P}",
    "https://127.0.0.1:{P}",
    "ws://127.0.0.1:{P}",
    "http://127.0.0.1",
    "http://127.0.0.1:80",
    "http://127.0.0.1:1",
    "http://localhost:{P}",
    "http://[::1]:{P}",
    "http://127.0.0.1:{P}/",
    "http://127.0.0.1:{P}/mcp",
    "http://127.0.0.1:{P} http://evil.com",
    "http://127.0.0.1:{P}, http://evil.com",
    "http:// 127.0.0.1:{P}",
    "//127.0.0.1:{P}",
    "127.0.0.1:{P}",
    "null",
    "NULL",
    "",
    "*",
    "file://",
    "chrome-extension://abcdefghijklmnop",
    "app://localhost",
    "http://127.0.0.1:{P}\xa0",
]


@pytest.mark.parametrize("origin", ORIGINS)
def test_pages_of_other_origins_are_refused(site: Site, origin: str) -> None:
    answer = refused(site, 403, ("Origin", origin))
    assert "http.origins" in answer.json["error"]["message"]
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("127.0.0.1:{P}", "http://127.0.0.1:{P}"),
        ("127.0.0.1:{P}", "HTTP://127.0.0.1:{P}"),
        ("localhost:{P}", "http://localhost:{P}"),
        ("localhost:{P}", "http://LOCALHOST:{P}"),
        ("[::1]:{P}", "http://[::1]:{P}"),
    ],
)
def test_the_servers_own_pages_may_call_it(site: Site, host: str, origin: str) -> None:
    answer = accepted(site, ("Host", host), ("Origin", origin))
    assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_two_origins_are_refused_though_one_is_ours(site: Site) -> None:
    for pair in (("http://127.0.0.1:{P}", "http://evil.com"), ("http://evil.com", "http://127.0.0.1:{P}")):
        refused(site, 403, *[("Origin", origin) for origin in pair])


def test_a_rebound_page_is_stopped_by_its_host_whatever_its_origin(site: Site) -> None:
    """DNS rebinding: the page and the server have the same name by then, so only the name gives it away."""
    refused(site, 421, ("Host", "evil.com:{P}"), ("Origin", "http://evil.com:{P}"))


@pytest.mark.parametrize("where", ["cross-site", "same-site", "nonsense", ""])
@pytest.mark.parametrize(("method", "path"), [place for place in PLACES if place[0] == "GET"] + [("POST", "/mcp")])
def test_a_page_from_elsewhere_that_has_no_origin_is_known_by_where_it_is_fetched_from(
    site: Site, method: str, path: str, where: str
) -> None:
    """An image or a frame of another site comes without Origin. Another port of this machine is `same-site`."""
    headers = [*modern_headers(CALL), ("Sec-Fetch-Site", where), ("Accept", "*/*")]
    with site.untouched():
        answer = site.send(method, path, headers, BODY if method == "POST" else None).begin()
        assert answer.status == 403


@pytest.mark.parametrize("where", ["same-origin", "none"])
def test_our_own_page_and_the_address_bar_are_no_page_from_elsewhere(site: Site, where: str) -> None:
    accepted(site, ("Sec-Fetch-Site", where))
    assert site.send("GET", "/health", [("Sec-Fetch-Site", where)]).finish().status == 200


# -- a web page that asks nobody: forms and other "simple" requests


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
@pytest.mark.parametrize("path", ["/mcp", "/tools/danger", "/messages?sessionId=x"])
def test_a_form_of_another_page_has_nothing_done(site: Site, path: str, kind: str) -> None:
    with site.untouched():
        for body in (BODY, b"", b"=" + BODY):
            headers = [("Origin", "http://evil.com"), ("Content-Type", kind)]
            assert site.send("POST", path, headers, body).finish().status == 403
            headers = [("Origin", "null"), ("Content-Type", kind)]  # a sandboxed frame, or a page without referrer
            assert site.send("POST", path, headers, body).finish().status == 403


# -- the kind of body

KINDS = ["application/json", "Application/JSON", "application/json; charset=utf-8", 'application/json;charset="UTF-8"']
WRONG_KINDS = [
    ABSENT,
    "",
    "text/plain",
    "text/plain; charset=utf-8",
    "text/json",
    "text/plain, application/json",
    "application/json, text/plain",
    "application/json; charset=latin-1",
    "application/json; charset=utf-16",
    "application/json; charset=utf-8; charset=utf-7",
    "application/json; boundary=x",
    "application/json;",
    "application/jsonp",
    "application/json-seq",
    "application/vnd.api+json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=application/json",
    "application/ json",
    "*/*",
    "json",
]


@pytest.mark.parametrize("kind", KINDS)
def test_json_says_so(site: Site, kind: str) -> None:
    accepted(site, ("Content-Type", kind))


@pytest.mark.parametrize("kind", WRONG_KINDS)
def test_anything_else_is_not_read(site: Site, kind: str) -> None:
    refused(site, 415, ("Content-Type", kind))
    legacy = [("Content-Type", kind), ("MCP-Protocol-Version", LEGACY), ("Mcp-Session-Id", "x")]
    refused(site, 415, *legacy)
    with site.untouched():
        assert site.send("POST", "/tools/safe", [("Content-Type", kind)], b"{}").finish().status == 415


def test_two_kinds_are_none(site: Site) -> None:
    for kinds in (("application/json", "text/plain"), ("text/plain", "application/json"), ("application/json",) * 2):
        refused(site, 415, *[("Content-Type", kind) for kind in kinds])


@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "identity", "x", ""])
def test_compressed_bodies_are_not_taken(site: Site, coding: str) -> None:
    bomb = gzip.compress(b" " * 1_000_000)
    assert len(bomb) < MOST
    refused(site, 415, ("Content-Encoding", coding), body=bomb)
    with site.untouched():
        headers = [("Content-Encoding", coding)]
        assert site.send("POST", "/tools/safe", headers, bomb).finish().status == 415


# -- what is accepted as an answer


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (ABSENT, 200),
        ("", 200),
        ("*/*", 200),
        ("application/*", 200),
        ("application/json", 200),
        ("APPLICATION/JSON;q=0.1", 200),
        ("text/html, application/json", 200),
        ("text/html", 406),
        ("application/json;q=0", 406),
        ("*/*;q=0", 406),
        ("application/xml, image/*", 406),
        ("json", 406),
    ],
)
def test_an_answer_is_of_a_kind_that_the_client_takes(site: Site, accept: str, status: int) -> None:
    if status == 200:
        accepted(site, ("Accept", accept))
    else:
        refused(site, status, ("Accept", accept))


# -- methods


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "TRACE", "QUERY", "PROPFIND", "LINK"])
def test_mcp_has_three_methods(site: Site, method: str) -> None:
    with site.untouched():
        answer = site.send(method, "/mcp", modern_headers(CALL), BODY).begin()
        assert (answer.status, answer.headers["allow"]) == (405, "POST, GET, DELETE")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("headers", [[], [("MCP-Protocol-Version", MODERN), ("Mcp-Session-Id", "x")]])
def test_without_a_session_there_is_only_post(site: Site, method: str, headers: Pairs) -> None:
    with site.untouched():
        answer = site.send(method, "/mcp", headers).finish()
        assert (answer.status, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
@pytest.mark.parametrize("id", ["x", "", "../../etc/passwd", "%00", "a" * 5000, "0", "null", "*", "\xff"])
def test_a_session_that_nobody_opened_is_not_found(site: Site, method: str, id: str) -> None:
    headers = [("Mcp-Session-Id", id), ("MCP-Protocol-Version", LEGACY)]
    body = encode(request("tools/list")) if method == "POST" else None
    with site.untouched():
        assert site.send(method, "/mcp", headers, body).finish().status == 404


@pytest.mark.parametrize("method", ["BREW", "post", "P\xd6ST", "POST\t", ""])
def test_what_is_no_method_is_no_request(site: Site, method: str) -> None:
    with site.untouched():
        answer = site.write(request_head(site.port, method, "/mcp", modern_headers(CALL), BODY) + BODY)
        assert answer.begin().status == 400
        wait_cut_off(answer)


def test_options_without_a_named_origin_learns_nothing(site: Site) -> None:
    wanted = [("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "content-type")]
    for origin in ([], [("Origin", f"http://127.0.0.1:{site.port}")]):
        for path in ("/mcp", "/tools/safe", "/health", "*"):
            with site.untouched():
                answer = site.send("OPTIONS", path, [*wanted, *origin]).finish()
                assert answer.status == 405
                assert not [name for name in answer.headers if name.startswith("access-control-")]


# -- targets


@pytest.mark.parametrize(
    "path",
    [
        *("/MCP", "//mcp", "/mcp//", "/mcp/x", "/mcpx", "/./mcp", "/x/../mcp", "/mcp/..", "/mcp%00", "/mcp;a=b"),
        *("/mcp%20", "/%2fmcp", "/mcp%252f", "/mcp/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%c0%af", "/tool"),
        *("/.well-known", "/.env", "/messages/x", "/sse/", "/health/", "/x" * 5000),
    ],
)
def test_there_is_nothing_at_any_other_path(site: Site, path: str) -> None:
    answer = refused(site, 404, path=path)
    assert "/mcp" in answer.json["error"]["message"]


@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/", "/%6dcp", "/mcp?a=b&access_token=x", "/mcp#x", "/mcp?"])
def test_mcp_is_where_it_should_be(site: Site, path: str) -> None:
    accepted(site, path=path)


def line(site: Site, text: str, *headers: tuple[str, str]) -> Exchange:
    """A good call, but for its first line."""
    given = [(name, filled(value, site)) for name, value in headers]
    head = request_head(site.port, "POST", "/mcp", [*modern_headers(CALL), *given], BODY)
    rest = head.split(b"\r\n", 1)[1]
    return site.write(filled(text, site).encode("latin-1") + b"\r\n" + rest + BODY)


@pytest.mark.parametrize(
    "text",
    [
        "POST mcp HTTP/1.1",
        "POST  HTTP/1.1",
        "POST / mcp HTTP/1.1",
        "POST /mc\xe9 HTTP/1.1",
        "POST /mcp\x00 HTTP/1.1",
        "POST /mcp HTTP/1.2",
        "POST /mcp HTTP/3.0",
        "POST /mcp HTTPS/1.1",
        "POST /mcp http/1.1",
        "CONNECT 127.0.0.1:{P} HTTP/1.1",
        "PRI * HTTP/2.0",
        "\x16\x03\x01\x02\x00\x01\x00",  # TLS where none is spoken
        "SSH-2.0-OpenSSH_9.6",
    ],
)
def test_what_is_no_request_is_refused_and_cut_off(site: Site, text: str) -> None:
    with site.untouched():
        answer = line(site, text).begin()
        assert answer.status == 400
        wait_cut_off(answer)


def test_http_of_1996_is_still_answered_and_the_connection_closed(site: Site) -> None:
    before = site.premises.ran["safe"]
    answer = line(site, "POST /mcp HTTP/1.0").finish()
    assert (answer.status, answer.headers["connection"]) == (200, "close")
    wait_cut_off(answer)
    assert site.premises.ran["safe"] == before + 1
    with site.untouched():
        nameless = request_head(site.port, "POST", "/mcp", [*modern_headers(CALL), ("Host", ABSENT)], BODY)
        answer = site.write(nameless.replace(b"HTTP/1.1", b"HTTP/1.0") + BODY).finish()
        assert answer.status == 421


@pytest.mark.parametrize("site", ["own"], indirect=True)  # uvicorn takes these for 1.x
@pytest.mark.parametrize("text", ["POST /mcp HTTP/2.0", "GET /mcp"])
def test_other_versions_of_http_are_not_spoken(site: Site, text: str) -> None:
    with site.untouched():
        answer = site.write(text.encode() + b"\r\n\r\n") if text.startswith("GET") else line(site, text)
        assert answer.begin().status == 505
        wait_cut_off(answer)


def test_a_target_may_name_the_host_too(site: Site) -> None:
    before = site.premises.ran["safe"]
    assert line(site, "POST http://127.0.0.1:{P}/mcp HTTP/1.1").finish().status == 200
    assert site.premises.ran["safe"] == before + 1


@pytest.mark.parametrize("site", ["own"], indirect=True)  # uvicorn drops that host, so behind it the header counts
@pytest.mark.parametrize("host", ["evil.com", "evil.com:{P}", "127.0.0.1:{P}@evil.com", "localhost.:{P}"])
def test_the_host_in_a_target_is_looked_at_like_the_header(site: Site, host: str) -> None:
    with site.untouched():
        assert line(site, f"POST http://{host}/mcp HTTP/1.1").begin().status in (400, 421)


# -- other protocols on the same connection

WEBSOCKET = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "AAAAAAAAAAAAAAAAAAAAAA=="),
]


@pytest.mark.parametrize("path", ["/mcp", "/", "/sse", "/health"])
def test_a_websocket_of_another_page_is_refused_before_it_is_one(site: Site, path: str) -> None:
    with site.untouched():
        answer = site.send("GET", path, [*WEBSOCKET, ("Origin", "http://evil.com")]).finish()
        assert answer.status == 403
        assert not {"upgrade", "sec-websocket-accept"} & answer.headers.keys()


def test_a_websocket_of_our_own_page_is_just_a_get(site: Site) -> None:
    with site.untouched():
        answer = site.send("GET", "/mcp", [*WEBSOCKET, ("Origin", f"http://127.0.0.1:{site.port}")]).finish()
        assert answer.status == 405
        assert not {"upgrade", "sec-websocket-accept"} & answer.headers.keys()


def test_a_server_that_speaks_websockets_is_told_not_to(site: Site) -> None:
    """Other ASGI servers do; then the app is asked, and closes before it has accepted."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/mcp", "headers": [], "scheme": "ws", "root_path": ""}
    with site.untouched():
        site.server.do(lambda: site.premises.app(scope, receive, send))
    assert [message["type"] for message in sent] == ["websocket.close"]


# -- bodies: how long they are, and what they say


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


CHUNKED: Pairs = [*modern_headers(CALL), ("Transfer-Encoding", "chunked")]


@pytest.mark.parametrize(("over", "status"), [(-1, 200), (0, 200), (1, 413), (MOST, 413)])
def test_a_body_has_a_limit_however_it_comes(site: Site, over: int, status: int) -> None:
    body = BODY + b" " * (MOST + over - len(BODY))
    parts = [body[at : at + 5000] for at in range(0, len(body), 5000)]
    head = request_head(site.port, "POST", "/mcp", CHUNKED, b"")
    before = site.traces()
    for answer in (post(site, body=body), site.write(head + chunked(*parts)).finish()):
        assert answer.status == status
        assert status == 200 or answer.headers["connection"] == "close"
    after = site.traces()
    assert after["calls"] - before["calls"] == (2 if status == 200 else 0)


@pytest.mark.parametrize("path", ["/mcp", "/tools/safe"])
def test_a_body_is_refused_by_the_length_that_it_announces(site: Site, path: str) -> None:
    with site.untouched():
        head = request_head(site.port, "POST", path, [*modern_headers(CALL), ("Content-Length", str(1 << 40))], b"")
        answer = site.write(head).begin()
        assert (answer.status, answer.headers["connection"]) == (413, "close")


def test_what_follows_a_refused_body_is_no_request(site: Site) -> None:
    body = BODY + b" " * MOST
    with site.untouched():
        head = request_head(site.port, "POST", "/mcp", modern_headers(CALL), body)
        again = request_head(site.port, "POST", "/mcp", modern_headers(CALL), BODY) + BODY
        answer = site.write(head + body + again).begin()
        assert answer.status == 413


def test_a_body_that_is_longer_than_it_says_ends_where_it_says(site: Site) -> None:
    with site.untouched():
        head = request_head(site.port, "POST", "/mcp", [*modern_headers(CALL), ("Content-Length", "10")], b"")
        answer = site.write(head + BODY).begin()
        assert answer.status == 400  # ten bytes of it are no JSON, and the rest is no request


@pytest.mark.parametrize(
    "headers",
    [
        [("Content-Length", "5"), ("Transfer-Encoding", "chunked")],
        [("Content-Length", "5"), ("Content-Length", "6")],
        [("Content-Length", "-1")],
        [("Content-Length", "+5")],
        [("Content-Length", "5, 5")],
        [("Content-Length", "0x5")],
        [("Content-Length", "9" * 30)],
        [("Content-Length", "")],
        [("Transfer-Encoding", "xchunked")],
        [("Transfer-Encoding", "chunked, identity")],
    ],
)
def test_lengths_that_can_be_read_in_two_ways_are_refused(site: Site, headers: Pairs) -> None:
    with site.untouched():
        head = request_head(site.port, "POST", "/mcp", [*modern_headers(CALL), *headers], b"")
        answer = site.write(head + chunked(BODY)).begin()
        assert answer.status == 400, answer
        wait_cut_off(answer)


@pytest.mark.parametrize("length", ["x", "-1", "1_0", "", "9" * 5000, str(MOST + 1)])
@pytest.mark.parametrize("path", ["/mcp", "/tools/safe"])
def test_a_server_in_front_may_check_less_than_ours(site: Site, path: str, length: str) -> None:
    """Any ASGI server may run the app. A length that no parser should have let through must not be our fault."""
    headers = {"host": f"127.0.0.1:{PORT}", "content-type": "application/json", "content-length": length}
    answer = site.server.do(lambda: in_process(site.premises.app, "POST", path, headers, b"{"))
    assert answer.status in (400, 413)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"\0", 400),
        (BODY.decode().encode("utf-16"), 400),
        (b"[" + BODY + b"]", 400),
        (BODY + BODY, 400),
        (BODY + b"\n" + BODY, 400),
        (BODY[:-1], 400),
        (b'"text"', 400),
        (b"[" * 5000, 400),
        (b'{"a":' * 5000, 400),
        (encode(notice("notifications/initialized")), 202),
        (encode(modern(notice("notifications/cancelled", {"requestId": 1}))), 202),
    ],
)
def test_a_body_is_one_message(site: Site, body: bytes, status: int) -> None:
    with site.untouched():
        assert post(site, body=body).status == status


def test_a_byte_order_mark_before_the_message_is_skipped(site: Site) -> None:
    accepted(site, body=b"\xef\xbb\xbf" + BODY)


def test_half_an_emoji_in_a_body_is_read_as_the_replacement_character(site: Site) -> None:
    body = BODY.replace(b'"arguments":', rb'"note":"\ud83d","arguments":')
    assert body != BODY
    answer = accepted(site, body=body)
    assert "U+FFFD" in json.loads(answer.body)["result"]["_meta"]["longshore/notes"][0]


@pytest.mark.parametrize("body", [BODY[:-1], BODY[:-1] + b',"x":NaN}', BODY[:-1] + b',"x":"\xff"}'])
def test_a_body_that_is_not_json_is_refused_under_its_id(site: Site, body: bytes) -> None:
    with site.untouched():
        answer = post(site, body=body)
    assert answer.status == 400
    assert json.loads(answer.body)["id"] == CALL["id"]


# -- who is asked first


def test_the_gate_asks_in_order(site: Site) -> None:
    """Host, Origin, path and method, Accept, kind, length: the first that is wrong decides."""
    wrong = [
        (421, ("Host", "evil.com")),
        (403, ("Origin", "http://evil.com")),
        (406, ("Accept", "text/html")),
        (415, ("Content-Type", "text/plain")),
        (415, ("Content-Encoding", "gzip")),
        (413, ("Content-Length", str(MOST + 1))),
    ]
    for at, (status, _) in enumerate(wrong):
        with site.untouched():
            headers = [*modern_headers(CALL), *[header for _, header in wrong[at:]]]
            head = request_head(site.port, "POST", "/mcp", headers, BODY)
            assert site.write(head + BODY).begin().status == status
    with site.untouched():
        headers = [("Accept", "text/html"), ("Content-Type", "text/plain")]
        assert site.send("PUT", "/mcp", headers, BODY).finish().status == 405
        assert site.send("POST", "/nothing", headers, BODY).finish().status == 404
