"""The context graph and the linter of the built-in server in the console, and the settings of BrowserOS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from console.site import TOKEN, Site, owned
from longshore import Server
from longshore.builtin import make
from trusting import Trusting


@contextmanager
def _opened(author: Server, folder: Path, **settings: object) -> Iterator[Site]:
    app = author.asgi(console=True, **settings)
    with owned(app) as server:
        yield Site(server, app, author, folder)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home and project."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    monkeypatch.setenv("LONGSHORE_AUTH_TOKEN", TOKEN)
    return tmp_path / "home"


@pytest.fixture
def site(home: Path) -> Iterator[Site]:
    with _opened(make(), home.parent / "project") as found:
        yield found


def test_the_graph_is_searched_and_shown_with_its_history(site: Site) -> None:
    items = [
        {
            "name": "Token format",
            "text": "Tokens are JWTs.",
            "links": [{"to": "auth service", "relation": "decided_for"}],
        }
    ]
    site.call("add_context", items=items).finish()
    site.call("update_context", id="o1", text="Tokens are opaque.", reason="<b>simpler</b>").finish()
    [hit, *_] = site.get("context/search?q=tokens").json["hits"]
    assert (hit["id"], hit["name"], hit["texts"]) == ("n1", "Token format", ["Tokens are opaque."])
    node = site.get("context/node?id=n1").json
    assert [each["text"] for each in node["observations"]] == ["Tokens are opaque."]
    assert node["edges"][0]["relation"] == "decided_for"
    assert node["neighbours"]["n2"]["name"] == "auth service"
    past = site.get("context/history?id=n1").json["observations"]
    assert {each["text"]: each["current"] for each in past} == {"Tokens are JWTs.": False, "Tokens are opaque.": True}
    assert next(each for each in past if not each["current"])["reason"] == "<b>simpler</b>"
    assert site.get("context/search").json["recent"] is True


def test_the_picture_is_svg_in_which_names_are_text(site: Site) -> None:
    """HT-6."""
    name = "<script>alert(1)</script>"
    site.call("add_context", items=[{"name": name, "text": "x"}]).finish()
    picture = site.get("context/picture?id=n1&depth=2")
    assert picture.type == "image/svg+xml"
    assert b"<svg" in picture.body
    assert b"<script" not in picture.body
    assert picture.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("context/node?id=n99", 404),
        ("context/node?id=o1", 400),
        ("context/node", 400),
        ("context/picture?id=n1&depth=4", 400),
        ("context/picture?id=n1&depth=-1", 400),
        ("context/nothing", 404),
        ("context", 404),
        ("context/search?q=" + "x" * 5000, 400),
    ],
)
def test_what_is_not_in_the_graph_is_refused(site: Site, path: str, status: int) -> None:
    answer = site.get(path)
    assert answer.status == status
    assert answer.json["text"]


def test_without_the_context_toolset_the_graph_says_how_to_switch_it_on(home: Path, trust: Trusting) -> None:
    (home.parent / "project" / "longshore.toml").write_text("[toolsets.context]\nenabled = false\n")
    trust(home.parent / "project" / "longshore.toml")
    with _opened(make(), home) as site:
        answer = site.get("context/search?q=x")
        assert answer.status == 404
        assert "[toolsets.context]" in answer.json["text"]


def test_findings_and_views_of_clients_are_those_of_the_linter(home: Path) -> None:
    author = Server("shop", auth=TOKEN)

    @author.tool(effects="read")
    def get(x: str) -> str:
        return x

    with _opened(author, home) as site:
        lint = site.get("lint").json
        assert {each["tool"] for each in lint["findings"]} >= {"get"}
        assert all(each["text"] and each["level"] in ("error", "warning", "info") for each in lint["findings"])
        assert lint["views"]["claude"]["renamed"] == {"get": "mcp__shop__get"}
        assert lint["views"]["claude"]["tokens"] > 0


def test_the_built_in_server_has_no_findings(site: Site) -> None:
    lint = site.get("lint").json
    assert lint["findings"] == []
    assert lint["tools"] == 40


# -- BrowserOS


def test_settings_of_the_browseros_profile_go_into_its_own_file(home: Path) -> None:
    """S-58 to S-62: transport, debug logging and timeout of the settings page, and a tool's own timeout."""
    place = home / ".config" / "browseros" / "mcp_config.json"
    place.parent.mkdir(parents=True)
    place.write_text('{\n  "transport": "http",\n  "tools": {"terminal": {"timeout": 5}}\n}\n')
    with _opened(make("browseros"), home) as site:
        settings = site.get("settings").json
        assert settings["other_file"] == str(place)
        changes = {
            "server.transport": "stdio",
            "server.log_level": "debug",
            "server.timeout": 45,
            "toolsets.browser.timeout": 90,
            "http.lines": False,
        }
        answer = site.post("settings", {"changes": changes, "version": settings["version"]})
        assert answer.status == 200, answer.json
        assert json.loads(place.read_text()) == {
            "transport": "stdio",
            "tools": {"terminal": {"timeout": 5}, "browser": {"timeout": 90}},
            "debug": True,
            "timeout": 45,
        }
        project = home.parent / "project" / "longshore.toml"
        assert project.read_text() == "[http]\nlines = false\n"
        assert sorted(answer.json["waiting"]) == ["http.lines", "server.log_level", "server.transport"]
        assert sorted(answer.json["applied"]) == ["server.timeout", "toolsets.browser.timeout"]
        assert site.server.look(lambda: site.app.engine.policy.config.server.timeout) == 45


def test_a_value_that_browseros_has_no_word_for_goes_into_our_file(home: Path) -> None:
    with _opened(make("browseros"), home) as site:
        assert site.post("settings", {"changes": {"server.log_level": "error"}}).status == 200
        assert not (home / ".config" / "browseros" / "mcp_config.json").exists()
        assert (home.parent / "project" / "longshore.toml").read_text() == '[server]\nlog_level = "error"\n'
