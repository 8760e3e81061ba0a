"""Pages of other origins: none by default, those that are named, and what a browser lets them see."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from premises import Site, opened

from longshore.errors import ConfigError
from posting import Session, call, encode, modern, modern_headers, request
from serving import Exchange

ANN = "token-of-ann-0123456789abcdef"
TOKENS = f'[tokens.ann]\ntoken = "{ANN}"\nscopes = []\n'
PAGE = "https://app.example.com"
OTHER = "http://localhost:3000"
SAFE = modern(call("safe"))
BEARER = ("Authorization", f"Bearer {ANN}")


@pytest.fixture(scope="module", params=["uvicorn", "own"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("cors")
    with opened(folder, TOKENS, own=request.param == "own", origins=[PAGE, OTHER]) as found:
        yield found


def allowed(answer: Exchange) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


def ask(site: Site, message: Any, *headers: tuple[str, str]) -> Exchange:
    return site.send("POST", "/mcp", [*modern_headers(message), *headers], encode(message)).finish()


def test_no_page_is_named_by_default(tmp_path: Path) -> None:
    with opened(tmp_path) as site, site.untouched():
        wanted = [("Origin", PAGE), ("Access-Control-Request-Method", "POST")]
        for path in ("/mcp", "/tools/safe", "/health", "/nothing"):
            answer = site.send("OPTIONS", path, wanted).finish()
            assert (answer.status, allowed(answer)) == (403, {})
        answer = ask(site, SAFE, ("Origin", PAGE))
        assert (answer.status, allowed(answer)) == (403, {})
    with opened(tmp_path) as site:
        answer = ask(site, SAFE)
        assert answer.status == 200
        assert allowed(answer) == {}
        assert "vary" not in answer.headers


PATHS = ["/mcp", "/", "/tools", "/tools/safe", "/health", "/auth/cookie", "/messages", "/sse", "/openapi.json"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("origin", [PAGE, OTHER])
def test_a_browser_asks_first_and_is_told_what_a_named_page_may(site: Site, origin: str, path: str) -> None:
    """Without a credential: a browser never sends one along with the question."""
    wanted = [
        ("Origin", origin),
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "content-type,mcp-method,mcp-param-region,x-other, Mcp-Param-Size"),
    ]
    with site.untouched():
        answer = site.send("OPTIONS", path, wanted).finish()
        assert answer.status == 204
        assert answer.body == b""
        assert answer.headers["vary"] == "origin"
        assert allowed(answer) == {
            "access-control-allow-origin": origin,
            "access-control-allow-methods": "POST, GET, DELETE",
            "access-control-allow-headers": (
                "authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, "
                "last-event-id, x-api-key, mcp-param-region, mcp-param-size"
            ),
            "access-control-expose-headers": "mcp-session-id, www-authenticate, retry-after",
            "access-control-max-age": "600",
        }


@pytest.mark.parametrize(
    "origin",
    [
        "https://app.example.com.evil.com",
        "https://app.example.com:8443",
        "http://app.example.com",
        "https://evil.com",
        "https://x.app.example.com",
        "https://app.example.com/",
        "http://localhost",
        "http://localhost:30000",
        "http://127.0.0.1:3000",
        "null",
        "*",
    ],
)
def test_a_page_that_is_not_named_learns_nothing(site: Site, origin: str) -> None:
    with site.untouched():
        preflight = [("Origin", origin), ("Access-Control-Request-Method", "POST")]
        for answer in (
            site.send("OPTIONS", "/mcp", preflight).finish(),
            site.send("GET", "/health", [("Origin", origin)]).finish(),
            ask(site, SAFE, BEARER, ("Origin", origin)),
        ):
            assert (answer.status, allowed(answer)) == (403, {})
            assert answer.headers.get("vary") is None


READS = {
    "access-control-allow-origin": PAGE,
    "access-control-expose-headers": "mcp-session-id, www-authenticate, retry-after",
}


def test_a_named_page_may_read_answers(site: Site) -> None:
    page = ("Origin", PAGE)
    answers = [
        ask(site, SAFE, BEARER, page),
        ask(site, modern(request("tools/list")), BEARER, page, ("Accept", "text/event-stream")),
        ask(site, modern(call("look")), BEARER, page),
        ask(site, modern(call("burst")), BEARER, page),
        site.send("GET", "/tools", [BEARER, page]).finish(),
        site.send("POST", "/tools/safe", [BEARER, page], b"{}").finish(),
        site.send("GET", "/openapi.json", [BEARER, page]).finish(),
        site.send("GET", "/metrics", [BEARER, page]).finish(),
        site.send("GET", "/health", [page]).finish(),
        site.send("POST", "/auth/cookie", [BEARER, page], b"").finish(),
    ]
    assert [answer.status for answer in answers] == [200] * 9 + [204]
    for answer in answers:
        assert allowed(answer) == READS
        assert answer.headers["vary"] == "origin"


def test_a_named_page_may_read_refusals(site: Site) -> None:
    """Or a client in it would see a network error where it should sign in, wait or say what is wrong."""
    page = ("Origin", PAGE)
    refusals = {
        401: [ask(site, SAFE, page), ask(site, SAFE, page, ("Authorization", "Bearer wrong-wrong-wrong"))],
        403: [
            ask(site, modern(call("amend")), BEARER, page),
            site.send("POST", "/tools/amend", [BEARER, page], b"{}").finish(),
        ],
        400: [ask(site, SAFE, BEARER, page, ("Mcp-Method", "tools/list"))],
        404: [
            ask(site, modern(request("no/such")), BEARER, page),
            site.send("GET", "/nothing", [BEARER, page]).finish(),
            site.send("POST", "/tools/none", [BEARER, page], b"{}").finish(),
        ],
        405: [site.send("PUT", "/mcp", [BEARER, page]).finish(), site.send("GET", "/mcp", [BEARER, page]).finish()],
        406: [ask(site, SAFE, BEARER, page, ("Accept", "text/html"))],
        415: [ask(site, SAFE, BEARER, page, ("Content-Type", "text/plain"))],
        421: [ask(site, SAFE, BEARER, page, ("Host", "evil.com"))],
    }
    for status, answers in refusals.items():
        for answer in answers:
            assert answer.status == status, answer
            assert allowed(answer) == READS
            assert answer.headers["vary"] == "origin"
    for answer in refusals[401] + refusals[403]:
        assert "www-authenticate" in answer.headers


def test_a_failure_of_ours_can_be_read_too(tmp_path: Path) -> None:
    """A store that is gone: 503, and the page is told to come back."""
    with opened(tmp_path, TOKENS, origins=[PAGE], store=f"sqlite:///{tmp_path}/sessions.db") as site:
        session = Session(site.server, headers=[BEARER, ("Origin", PAGE)]).open()
        site.server.do(site.premises.app.store.close)
        answer = session.get().finish()
        assert answer.status == 503
        assert allowed(answer) == READS
        assert answer.headers["retry-after"] == "1"
        site.server.take_problem("a request failed because the store did")


def test_a_session_of_a_named_page(site: Site) -> None:
    session = Session(site.server, headers=[BEARER, ("Origin", PAGE)])
    answer = session.initialize().finish()
    session.id = answer.headers["mcp-session-id"]
    assert allowed(answer) == READS
    assert allowed(session.post(request("ping")).finish()) == READS
    stream = session.get().begin()
    assert (stream.status, stream.type) == (200, "text/event-stream")
    assert allowed(stream) == READS
    stream.close()
    assert allowed(session.delete().finish()) == READS
    assert allowed(session.post(request("ping")).finish()) == READS  # 404


def test_a_name_is_compared_as_browsers_write_it(tmp_path: Path) -> None:
    with opened(tmp_path, origins=["HTTPS://App.Example.com:443"]) as site:
        answer = ask(site, SAFE, ("Origin", PAGE))
        assert answer.status == 200
        assert allowed(answer)["access-control-allow-origin"] == PAGE


def test_cookies_are_never_for_other_pages(site: Site) -> None:
    page = ("Origin", PAGE)
    for answer in (
        site.send("OPTIONS", "/mcp", [page, ("Access-Control-Request-Method", "POST")]).finish(),
        ask(site, SAFE, BEARER, page),
        ask(site, SAFE, page, ("Cookie", f"longshore={ANN}")),
    ):
        assert "access-control-allow-credentials" not in answer.headers
    assert answer.status == 401


@pytest.mark.parametrize(
    "origin", ["*", "null", "app.example.com", "https://app.example.com/x", "https://*.example.com"]
)
def test_a_name_that_could_never_match_is_refused_at_the_start(tmp_path: Path, origin: str) -> None:
    with pytest.raises(ConfigError, match=r"http\.origins"), opened(tmp_path, origins=[origin]):
        pass
