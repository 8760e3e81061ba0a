"""flag > env > project > user > default, key by key, and each value knows who set it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from longshore import Server, config
from longshore.config import DEFAULT, Origin
from longshore.limits import DEFAULT_LIMITS, FOREVER, Limits

from .conftest import Place

LEVELS = ["user", "project", "env", "flag"]


@pytest.mark.parametrize("top", range(len(LEVELS) + 1))
def test_the_highest_source_wins(place: Place, top: int) -> None:
    levels = LEVELS[:top]
    if "user" in levels:
        place.write_user("[server]\n\ntimeout = 1\n")
    if "project" in levels:
        place.write("[server]\ntimeout = 2\n")
    variables = {"LONGSHORE_SERVER_TIMEOUT": "3"} if "env" in levels else {}
    found = place.load({"server.timeout": "4"} if "flag" in levels else None, **variables)
    origins = [
        Origin("default"),
        Origin("user", f"{place.user_file}:3"),
        Origin("project", "longshore.toml:2"),
        Origin("env", "LONGSHORE_SERVER_TIMEOUT"),
        Origin("flag", "--timeout"),
    ]
    assert found.server.timeout == [30.0, 1.0, 2.0, 3.0, 4.0][top]
    assert config.origin(found, "server.timeout") == origins[top]


def test_sources_are_merged_key_by_key(place: Place) -> None:
    place.write_user("[tools.add]\nenabled = false\ntimeout = 1\n[toolsets.x]\na = 1\nb = 1\n")
    place.write("[tools.add]\ntimeout = 2\n[toolsets.x]\nb = 2\nc = [1, {d = 2}]\n")
    found = place.load(LONGSHORE_TOOLS_ADD_RESULT_BYTES="9")
    assert found.tools["add"] == config.ToolConfig(enabled=False, timeout=2.0, result_bytes=9)
    assert found.toolsets["x"].options == {"a": 1, "b": 2, "c": [1, {"d": 2}]}
    assert config.origin(found, "toolsets.x.a").kind == "user"
    assert config.origin(found, "toolsets.x.b") == Origin("project", "longshore.toml:4")


def test_nothing_configured_is_the_default(place: Place) -> None:
    found = place.load()
    assert found.server == DEFAULT.server
    assert found.limits == DEFAULT_LIMITS
    assert found.files == ()
    assert found.origins == {}


def test_files_lists_what_was_read(place: Place) -> None:
    place.write_user("")
    place.write("")
    assert place.load().files == (str(place.user_file), str(place.file))


# One value, one key: the engine reads limits, people write server.*


def test_the_defaults_of_server_and_limits_agree() -> None:
    assert DEFAULT.server.timeout == DEFAULT.limits.timeout_seconds
    assert DEFAULT.server.eof_grace == DEFAULT.limits.eof_grace_seconds


@pytest.mark.parametrize(
    ("text", "seconds"), [("5", 5.0), ("0.5", 0.5), ("false", FOREVER), ("0", FOREVER), ("0.0", FOREVER)]
)
def test_the_server_timeout_reaches_the_limits(place: Place, text: str, seconds: float) -> None:
    place.write(f"[server]\ntimeout = {text}\neof_grace = 0\n")
    found = place.load()
    assert found.limits.timeout_seconds == seconds
    assert found.limits.eof_grace_seconds == 0
    assert found.server.timeout == (False if seconds == FOREVER else seconds)


def test_a_limit_is_set_by_its_own_name(place: Place) -> None:
    place.write("[limits]\nrunning = 8\nstate_seconds = 1\n")
    found = place.load(LONGSHORE_LIMITS_PARKED="0")
    assert (found.limits.running, found.limits.state_seconds, found.limits.parked) == (8, 1.0, 0)


@pytest.mark.parametrize("value", [8, DEFAULT_LIMITS.running])
def test_the_operator_overrides_the_author_even_with_the_default(place: Place, value: int) -> None:
    place.write(f"[limits]\nrunning = {value}\n")
    authors = Limits(running=3, parked=5, timeout_seconds=7.0)
    found = config.limits_of(place.load(), authors)
    assert found == Limits(running=value, parked=5, timeout_seconds=7.0)


@pytest.mark.parametrize(("text", "seconds"), [("30", 30.0), ("4", 4.0), ("false", FOREVER)])
def test_the_servers_timeout_wins_over_the_authors_limit(place: Place, text: str, seconds: float) -> None:
    authors = Limits(timeout_seconds=7.0, eof_grace_seconds=8.0)
    found = config.limits_of(place.load({"server.timeout": text}), authors)
    assert found == Limits(timeout_seconds=seconds, eof_grace_seconds=8.0)


def test_without_the_authors_limits_the_operators_apply_and_vice_versa(place: Place) -> None:
    assert config.limits_of(place.load(), Limits(running=3)) == Limits(running=3)
    place.write("[limits]\nrunning = 8\n")
    assert config.limits_of(place.load(), None) == Limits(running=8)


def test_a_server_merges_the_limits_of_author_and_operator(place: Place) -> None:
    place.write(f"[limits]\nrunning = {DEFAULT_LIMITS.running}\n")
    app = Server("t", limits=Limits(running=3, parked=5))
    app.asgi(config_path=str(place.file))
    assert (app.engine.limits.running, app.engine.limits.parked) == (DEFAULT_LIMITS.running, 5)


# Finding the files


def test_the_nearest_project_file_upward_is_read(place: Place) -> None:
    deep = place.project / "a" / "b"
    deep.mkdir(parents=True)
    place.write("[limits]\nrunning = 1\n")
    assert place.load(cwd=deep).limits.running == 1
    (place.project / "a" / "longshore.toml").write_text("[limits]\nrunning = 2\n")
    assert place.load(cwd=deep).limits.running == 2


def test_the_search_ends_at_a_git_folder(place: Place) -> None:
    (place.project.parent / "longshore.toml").write_text("[limits]\nrunning = 1\n")
    assert place.load().limits.running == 64
    (place.project / ".git").rmdir()
    assert place.load().limits.running == 1
    (place.project / ".git").write_text("gitdir: elsewhere")  # a worktree
    assert place.load().limits.running == 64


STRANGER = 12345


@pytest.fixture
def above(place: Place) -> Path:
    """A file in a folder above that in which `place` now starts, as one in /tmp is."""
    (place.project / ".git").rmdir()
    above = place.project.parent / "longshore.toml"
    above.write_text("[limits]\nrunning = 1\n")
    return above


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away; run as root to see this test")
class TestAFileOfAnotherUser:
    def test_another_users_file_above_is_refused_with_the_fix(self, place: Place, above: Path) -> None:
        os.chown(above, STRANGER, STRANGER)
        text = place.error()
        assert text.startswith(
            f"{above}: it belongs to another user (uid {STRANGER}), so it is not read; --config PATH"
        )
        assert place.load(path=str(above)).limits.running == 1
        assert place.load(LONGSHORE_CONFIG=str(above)).limits.running == 1
        assert place.load(path="/dev/null").limits.running == 64

    @pytest.mark.parametrize("whose", ["link", "target"])
    def test_the_owners_of_a_link_and_of_its_target_are_checked(self, place: Place, above: Path, whose: str) -> None:
        target = above.rename(above.with_name("other.toml"))
        above.symlink_to(target)
        assert place.load().limits.running == 1
        os.chown(above if whose == "link" else target, STRANGER, STRANGER, follow_symlinks=False)
        assert f"{above}: it belongs to another user" in place.error()

    def test_another_users_file_in_the_start_folder_is_read(self, place: Place) -> None:
        os.chown(place.write("[limits]\nrunning = 2\n"), STRANGER, STRANGER)
        assert place.load().limits.running == 2

    def test_a_nearer_file_of_the_user_takes_precedence(self, place: Place, above: Path) -> None:
        os.chown(above, STRANGER, STRANGER)
        place.write("[limits]\nrunning = 2\n")
        assert place.load().limits.running == 2

    def test_a_file_above_is_read_if_it_belongs_to_the_user_or_root(
        self, place: Place, above: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
        assert place.load().limits.running == 1
        os.chown(above, STRANGER, STRANGER)
        assert place.load().limits.running == 1
        os.chown(above, STRANGER + 1, STRANGER)
        assert f"uid {STRANGER + 1}" in place.error()


@pytest.mark.parametrize("by", ["path", "variable"])
def test_a_given_path_replaces_the_project_file(place: Place, by: str) -> None:
    place.write("[limits]\nrunning = 1\n")
    place.write_user("[limits]\nparked = 3\n")
    (place.project / "other.toml").write_text("[limits]\nbatch = 2\n")
    if by == "path":
        found = place.load(path="other.toml", LONGSHORE_CONFIG="missing.toml")
    else:
        found = place.load(LONGSHORE_CONFIG="other.toml")
    assert (found.limits.running, found.limits.batch, found.limits.parked) == (64, 2, 3)
    assert found.origins["limits.batch"] == Origin("project", "other.toml:2")
    assert found.watch == (str(place.user_file), str(place.project / "other.toml"))


def test_dev_null_means_no_project_file(place: Place) -> None:
    place.write("[limits]\nrunning = 1\n")
    assert place.load(path="/dev/null").limits.running == 64


def test_xdg_config_home_moves_the_user_file_unless_it_is_relative(place: Place, tmp_path: Path) -> None:
    (tmp_path / "xdg/longshore").mkdir(parents=True)
    (tmp_path / "xdg/longshore/longshore.toml").write_text("[limits]\nrunning = 5\n")
    assert place.load(XDG_CONFIG_HOME=str(tmp_path / "xdg")).limits.running == 5
    place.write_user("[limits]\nrunning = 6\n")
    assert place.load(XDG_CONFIG_HOME="xdg").limits.running == 6
    assert place.load(XDG_CONFIG_HOME="").limits.running == 6


def test_without_a_home_there_is_no_user_file(place: Place) -> None:
    place.write_user("[limits]\nrunning = 6\n")
    assert place.load(HOME="").limits.running == 64


def test_a_user_file_that_is_also_the_nearest_one_is_read_once(place: Place) -> None:
    place.write_user("[limits]\nrunning = 6\n")
    found = place.load(cwd=place.user_file.parent)
    assert found.files == (str(place.user_file),)
    assert len(set(found.watch)) == len(found.watch)


def test_a_deleted_folder_has_no_project_file(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert config.load(environ=place.environ).watch == (str(place.user_file),)


def test_flags_that_were_not_given_are_none(place: Place) -> None:
    assert place.load({"server.timeout": None}).origins == {}


def test_flags_may_hold_values_and_reach_tools(place: Place) -> None:
    found = place.load({"server.timeout": False, "tools.a.b.timeout": 3, "tools.a.b.enabled": "no"})
    assert found.server.timeout is False
    assert found.tools == {"a.b": config.ToolConfig(enabled=False, timeout=3.0)}
    assert found.origins['tools."a.b".timeout'] == Origin("flag", "tools.a.b.timeout")


# Watching


def test_the_fingerprint_changes_with_each_watched_file(place: Place) -> None:
    deep = place.project / "a"
    deep.mkdir()
    found = place.load(cwd=deep)
    assert found.watch == (str(place.user_file), str(deep / "longshore.toml"), str(place.file))
    seen = [config.fingerprint(found)]
    place.write("")
    seen.append(config.fingerprint(found))
    place.write("[server]\n")
    seen.append(config.fingerprint(found))
    (deep / "longshore.toml").write_text("")
    seen.append(config.fingerprint(found))
    place.write_user("")
    seen.append(config.fingerprint(found))
    assert len(set(seen)) == len(seen)
    assert seen[0] == (None, None, None)
    assert config.fingerprint(found) == seen[-1]


def test_a_nearer_file_that_appears_is_watched(place: Place) -> None:
    deep = place.project / "a"
    deep.mkdir()
    place.write("")
    assert str(deep / "longshore.toml") in place.load(cwd=deep).watch
