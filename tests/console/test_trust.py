"""Settings of a server whose tools could write its file: what the console writes is trusted, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from console.site import TOKEN, Site, owned
from longshore.builtin import make
from longshore.config import trust_file
from longshore.config.trust import read_record
from trusting import Trusting

CHANGE = {"changes": {"server.timeout": 45}}
TEXT = "# mine\n[server]\ntimeout = 9\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project's file, in the working folder, which is the root."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    project = tmp_path.resolve() / "project"
    (project / ".git").mkdir(parents=True)
    monkeypatch.chdir(project)
    monkeypatch.setenv("LONGSHORE_AUTH_TOKEN", TOKEN)
    return project / "longshore.toml"


@pytest.fixture
def site(file: Path) -> Iterator[Site]:
    author = make()
    app = author.asgi(console=True)
    with owned(app) as server:
        yield Site(server, app, author, file.parent)


def trusted() -> dict[str, str]:
    record = trust_file()
    assert record is not None
    return read_record(record)


def timeout_of(site: Site) -> float | None:
    found: float | None = site.server.look(lambda: site.app.engine.policy.config.server.timeout or None)
    return found


def test_a_file_that_the_console_makes_is_trusted(site: Site, file: Path) -> None:
    assert site.post("settings", CHANGE).status == 200
    assert trusted() == {str(file): file.read_text()} == {str(file): "[server]\ntimeout = 45\n"}
    assert timeout_of(site) == 45
    assert site.post("settings", {"changes": {"server.timeout": 46}}).status == 200
    assert trusted() == {str(file): "[server]\ntimeout = 46\n"}
    assert timeout_of(site) == 46
    assert site.get("settings").json["writable"] is True


def test_a_trusted_file_stays_trusted(file: Path, trust: Trusting, request: pytest.FixtureRequest) -> None:
    file.write_text(TEXT)
    trust(file)
    site: Site = request.getfixturevalue("site")
    assert site.post("settings", CHANGE).status == 200
    assert trusted() == {str(file): TEXT.replace("9", "45")}
    assert timeout_of(site) == 45


@pytest.mark.parametrize("was_trusted", [False, True])
def test_a_file_that_does_not_count_is_not_changed(
    file: Path, trust: Trusting, request: pytest.FixtureRequest, was_trusted: bool
) -> None:
    file.write_text(TEXT)
    if was_trusted:
        trust(file)
        file.write_text(TEXT.replace("9", "8"))
    before, records = file.read_text(), trusted()
    site: Site = request.getfixturevalue("site")
    settings = site.get("settings").json
    assert settings["writable"] is False
    assert f"longshore trust {file}" in settings["why_not"]
    answer = site.post("settings", CHANGE)
    assert answer.status == 403
    assert f"longshore trust {file}" in answer.json["text"]
    assert (file.read_text(), trusted()) == (before, records)


def test_a_file_that_appears_meanwhile_is_not_trusted_with_the_change(site: Site, file: Path) -> None:
    settings = site.get("settings").json
    file.write_text("[toolsets.terminal]\nlevel = 'none'\n")  # by a tool
    for version in ({}, {"version": settings["version"]}):
        answer = site.post("settings", {**CHANGE, **version})
        assert answer.status == 409
    assert trusted() == {}
    assert file.read_text() == "[toolsets.terminal]\nlevel = 'none'\n"
