"""Who may see the console's data and who may change something, against the attacks HT-1 to HT-4, HT-7 and HT-8."""

from __future__ import annotations

from pathlib import Path

import pytest

from console.site import OTHER, TOKEN, VIEWER, Site, opened, owned
from longshore import Server
from longshore.console.part import make_console
from longshore.errors import ConfigError
from longshore.transports.http.app import HttpApp
from posting import Session
from serving import ABSENT

DATA = ("overview", "usage", "history", "views", "settings", "lint", "context/search", "stream")
CHANGES = ("settings", "calls/c1/cancel")


@pytest.mark.parametrize("name", DATA)
def test_data_without_a_token_are_refused(site: Site, name: str) -> None:
    answer = site.get(name, None)
    assert answer.status == 401
    assert "credential" in answer.json["text"]
    assert site.server.look(lambda: site.console._live.pages) == 0


@pytest.mark.parametrize("name", DATA)
def test_data_with_a_wrong_token_are_refused(site: Site, name: str) -> None:
    assert site.get(name, TOKEN[:-1] + "x").status == 401


@pytest.mark.parametrize("name", CHANGES)
def test_changes_without_a_token_are_refused(site: Site, name: str) -> None:
    before = site.settings_file.read_text()
    assert site.post(name, {"changes": {"server.timeout": 7}}, None).status == 401
    assert site.settings_file.read_text() == before


def test_a_token_in_the_query_counts_as_none(site: Site) -> None:
    """HT-4."""
    assert site.get(f"overview?token={TOKEN}", None).status == 401
    assert site.get(f"overview?access_token={TOKEN}", None).status == 401


def test_a_viewer_sees_data_and_changes_nothing(site: Site) -> None:
    overview = site.get("overview", VIEWER)
    assert (overview.status, overview.json["read_only"]) == (200, True)
    for name in CHANGES:
        answer = site.post(name, {"changes": {"server.timeout": 7}}, VIEWER)
        assert answer.status == 403
        assert 'scope="console"' in answer.headers["www-authenticate"]


def test_a_viewer_gets_no_frames_of_the_wire(site: Site) -> None:
    assert site.get("stream?wire=1", VIEWER).status == 403


def test_a_caller_without_the_scope_sees_nothing(site: Site) -> None:
    answer = site.get("overview", OTHER)
    assert answer.status == 403
    assert "console:read" in answer.json["text"]


def test_the_owner_of_all_scopes_may_change(site: Site) -> None:
    assert site.get("overview").json["read_only"] is False


@pytest.mark.parametrize(
    "host",
    [
        "evil.com",
        "localhost.evil.com:{P}",
        "127.0.0.1:{P}evil",
        "127.0.0.1:{P}@evil",
        "",
        ABSENT,
        "127.0.0.1.:{P}",
        "127.0.0.1:1",
    ],
)
@pytest.mark.parametrize("path", ["/console", "/console/api/overview"])
def test_another_host_is_refused(site: Site, host: str, path: str) -> None:
    """HT-1."""
    answer = site.send("GET", path, TOKEN, None, ("Host", host.replace("{P}", str(site.server.port)))).finish()
    assert answer.status in (400, 421)
    assert b"shop" not in answer.body


@pytest.mark.parametrize("host", ["LOCALHOST:{P}", "[::1]:{P}"])
def test_other_spellings_of_this_machine_are_accepted(site: Site, host: str) -> None:
    """HT-1."""
    answer = site.get("overview", TOKEN, ("Host", host.replace("{P}", str(site.server.port))))
    assert answer.status == 200


def test_two_hosts_are_refused(site: Site) -> None:
    """HT-1."""
    good = f"127.0.0.1:{site.server.port}"
    answer = site.send("GET", "/console/api/overview", TOKEN, None, ("Host", good), ("Host", "evil.com")).finish()
    assert answer.status in (400, 421)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.com",
        "null",
        "http://localhost.evil.com",
        "http://localhost:1@evil.com",
        "https://127.0.0.1:{P}",
        "http://127.0.0.1:1",
    ],
)
def test_pages_of_other_origins_are_refused(site: Site, origin: str) -> None:
    """HT-2."""
    named = ("Origin", origin.replace("{P}", str(site.server.port)))
    answer = site.get("overview", TOKEN, named)
    assert answer.status == 403
    assert "access-control-allow-origin" not in answer.headers
    assert site.post("settings", {"changes": {"server.timeout": 7}}, TOKEN, named).status == 403


def test_a_fetch_from_another_site_is_refused(site: Site) -> None:
    """HT-2: images and frames come without Origin."""
    assert site.get("overview", TOKEN, ("Sec-Fetch-Site", "cross-site")).status == 403
    assert site.send("GET", "/console", None, None, ("Sec-Fetch-Site", "cross-site")).finish().status == 403


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_simple_request_changes_nothing(site: Site, kind: str) -> None:
    """HT-2: what a form of any page could send."""
    answer = site.post("settings", {"changes": {"server.timeout": 7}}, TOKEN, ("Content-Type", kind))
    assert answer.status == 415


def test_a_preflight_gets_no_headers(site: Site) -> None:
    """HT-2."""
    answer = site.send("OPTIONS", "/console/api/settings", None, None, ("Origin", "http://evil.com")).finish()
    assert answer.status in (403, 405)
    assert not any(name.startswith("access-control") for name in answer.headers)


def test_a_websocket_is_refused(site: Site) -> None:
    """HT-3."""
    upgrade = (("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Version", "13"))
    key = ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
    answer = site.send("GET", "/console/api/stream", None, None, *upgrade, key).finish()
    assert answer.status in (400, 401, 403, 404, 405)


def test_the_cookie_of_the_page_opens_the_data(site: Site) -> None:
    made = site.send("POST", "/auth/cookie", TOKEN, {}).finish()
    cookie = made.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Strict"} <= {part.strip() for part in cookie.split(";")}
    pair = ("Cookie", cookie.partition(";")[0])
    own = ("Origin", f"http://127.0.0.1:{site.server.port}")
    assert site.get("overview", None, pair, ("Sec-Fetch-Site", "same-origin")).status == 200
    assert site.get("overview", None, pair, own).status == 200
    assert site.get("overview", None, pair).status == 401, "another program on this machine, or an old browser"
    assert site.get("overview", None, pair, ("Origin", "http://evil.com")).status == 403


def test_the_shell_and_its_files_hold_no_token(site: Site) -> None:
    """HT-4: a page that anybody gets must not give the token away."""
    for name in sorted(site.console._files._paths):
        path = "/console" if name == "index.html" else f"/console/{name}"
        answer = site.send("GET", path, None).finish()
        assert answer.status == 200
        assert TOKEN.encode() not in answer.body


def test_the_page_of_a_configured_origin_may_use_mcp_but_not_the_console(tmp_path: Path) -> None:
    with opened(tmp_path, origins=["http://friend.example"]) as site:
        named = ("Origin", "http://friend.example")
        assert site.get("overview", TOKEN, named).status == 403


def test_where_mcp_asks_for_no_token_the_console_does() -> None:
    """HT-4: with default flags, a server without tools of ours."""

    author = Server("open")
    plain = author.asgi(console=False)
    app = HttpApp(
        plain.engine, plain.config, parts=[lambda host: make_console(author._runtime, host)], parts_token=TOKEN
    )
    with owned(app) as server:
        assert server.send("GET", "/tools").finish().status == 200
        assert server.send("GET", "/console/api/overview").finish().status == 401
        named = [("Authorization", f"Bearer {TOKEN}")]
        assert server.send("GET", "/console/api/overview", named).finish().status == 200
        made = server.send("POST", "/auth/cookie", named, b"{}").finish()
        assert made.status == 204


def test_a_console_without_any_token_is_refused_at_the_start() -> None:

    with pytest.raises(ConfigError, match=r"http\.console: it needs a token"):
        Server("open").asgi(console=True)


def test_with_authentication_off_only_this_machine_is_answered(tmp_path: Path) -> None:
    with opened(tmp_path, "", auth={"mode": "off"}) as site:
        assert site.get("overview", None).status == 200
        assert site.get("overview", None, ("X-Forwarded-For", "10.0.0.9")).status == 403


def test_a_key_of_a_view_or_call_of_others_does_not_exist(site: Site) -> None:
    """HT-8."""
    assert site.get("views/0123456789abcdef").status == 404
    assert site.post("calls/c999/cancel", {}).status == 404


def test_session_ids_are_not_shown(site: Site) -> None:
    """HT-7: a session's id is a credential; the console has a label."""
    session = Session(site.server, headers=[("Authorization", f"Bearer {TOKEN}")]).open()
    shown = site.console._live.state
    state = site.server.look(shown.take)
    assert [each["client"] for each in state["sessions"]] == ["tests"]
    assert session.id not in str(state)
