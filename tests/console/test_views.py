"""Views of what tools have open: a command's screen and a browser's page, which are looked at and not used."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.site import TOKEN, VIEWER, Site, eventually, owned
from longshore import Server
from longshore.builtin import make
from longshore.toolsets.code.options import CodeOptions
from longshore.toolsets.code.tools import Code
from trusting import Trusting

CONFIG = f"""
[tokens.viewer]
token = "{VIEWER}"
scopes = ["console:read"]
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trust: Trusting) -> Iterator[Site]:
    """The built-in server."""
    monkeypatch.setenv("LONGSHORE_AUTH_TOKEN", TOKEN)
    monkeypatch.setenv("LONGSHORE_SERVER_ROOTS", str(tmp_path))
    (tmp_path / "longshore.toml").write_text(CONFIG)
    trust(tmp_path / "longshore.toml")
    author = make()
    app = author.asgi(config_path=str(tmp_path / "longshore.toml"), console=True)
    with owned(app) as server:
        yield Site(server, app, author, tmp_path)


def test_nothing_is_open_at_first_and_looking_opens_nothing(site: Site) -> None:
    assert site.get("views").json == []
    assert not site.server.look(lambda: any(each.ready and each.toolset.stateful for each in handles(site)))


def handles(site: Site) -> list[object]:
    return list(site.author.catalog.toolsets.values())


def test_a_command_is_shown_with_its_output(site: Site) -> None:
    secret = "ghp_" + "a8Kd93mZqLw02XvBn47RtYuIo56PsDfGhJkl"
    assert site.call("terminal_run", command=f"echo out; echo {secret}").finish().status == 200
    [view] = site.get("views", VIEWER).json
    assert (view["kind"], view["toolset"], view["owner"]) == ("text", "terminal", "token")
    assert view["title"].startswith("echo out")
    assert "exit code 0" in view["subtitle"]
    assert secret not in str(view)
    shown = site.get(f"views/{view['key']}", VIEWER)
    assert shown.type == "text/plain; charset=utf-8"
    assert shown.body.startswith(b"out\n")
    assert secret.encode() not in shown.body


def test_the_screen_of_a_program_is_shown_as_it_is_drawn(site: Site) -> None:
    draw = r"printf '\033[2J\033[3;5HHERE'; sleep 60"
    site.call("terminal_run", command=draw, pty=True, background=True).finish()
    [view] = site.get("views").json

    def screen() -> bool:
        return b"    HERE" in site.get(f"views/{view['key']}").body

    eventually(screen, "the screen")
    assert "running" in view["subtitle"]


def test_a_browser_is_shown_as_a_picture(site: Site) -> None:
    assert site.call("browser_tabs", action="new", url="about:blank").finish().status == 200
    [view] = site.get("views").json
    assert (view["kind"], view["toolset"]) == ("image", "browser")
    shown = site.get(f"views/{view['key']}")
    assert shown.type == "image/webp"
    assert shown.body[:4] == b"RIFF"
    assert site.call("browser_close").finish().status == 200
    assert site.get("views").json == []
    assert site.get(f"views/{view['key']}").status == 404


def test_the_key_of_a_view_is_no_handle(site: Site) -> None:
    """HT-8."""
    site.call("terminal_run", command="echo mine").finish()
    [view] = site.get("views").json
    answer = site.call("terminal_read", id=view["key"]).finish()
    assert b"no command" in answer.body


def test_a_code_session_is_shown_with_what_it_has_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHORE_SERVER_ROOTS", str(tmp_path))
    author = Server("coder", auth=TOKEN, catalog="code")
    author.add_toolset(Code(CodeOptions(), author))
    app = author.asgi(config_path="/dev/null", console=True)
    with owned(app) as server:
        site = Site(server, app, author, tmp_path)
        answer = site.call("run_code", code="print('from the code')", session="work").finish()
        assert b"from the code" in answer.body
        [view] = site.get("views").json
        assert (view["toolset"], view["title"]) == ("code", "code session work")
        assert b"from the code" in site.get(f"views/{view['key']}").body
