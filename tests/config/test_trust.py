"""Configuration files that tools can write count only with the text that the user has trusted."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from longshore import Server, config
from longshore.config import Config, ForeignConfig
from longshore.config.trust import change_record, read_record
from longshore.errors import ConfigError
from longshore.runtime import INDEX
from longshore.sandbox.roots import is_in_roots
from longshore.toolsets.filesystem.tools import Filesystem
from longshore.toolsets.terminal.options import TerminalOptions
from longshore.toolsets.terminal.tools import Terminal

from .conftest import Place

LOOSE = "[server]\ntimeout = 7\n[toolsets.terminal]\nlevel = 'none'\n[tokens.mallory]\ntoken = 'm'\n"
STRICT = "[server]\ntimeout = 9\n[toolsets.terminal]\nenabled = false\n"


class Site(Place):
    """A server whose tools write in its roots: the project's folder, unless others are configured."""

    @property
    def record(self) -> Path:
        return self.home / ".local/state/longshore/trust.json"

    def load(self, flags: dict[str, Any] | None = None, **options: Any) -> Config:  # type: ignore[override]
        environ = {**self.environ, **options.pop("environ", {})}
        cwd = str(options.pop("cwd", self.project))
        return config.load(flags, environ=environ, cwd=cwd, is_writable=self._writable(cwd), **options)

    def _writable(self, cwd: str) -> Callable[[str, Sequence[str]], bool]:
        return lambda path, roots: is_in_roots(path, roots or [cwd])

    def trust(self, path: Path, text: str | None = None) -> None:
        change_record(str(self.record), str(path), path.read_text() if text is None else text)

    def refused(self, **options: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(**options)
        return str(caught.value)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path.resolve())


def test_a_file_that_nobody_trusted_is_not_read(site: Site) -> None:
    site.write(LOOSE)
    found = site.load({"server.eof_grace": 2})
    assert (found.server.timeout, found.toolsets, found.tokens, found.files) == (
        config.DEFAULT.server.timeout,
        {},
        {},
        (),
    )
    assert found.server.eof_grace == 2, "the rest of the configuration holds"
    [(path, why)] = found.untrusted.items()
    assert path == str(site.file)
    assert "tools of this server can write it" in why and f"longshore trust {site.file}" in why


def test_a_file_that_is_no_configuration_does_not_stop_the_start(site: Site) -> None:
    for text in (b"\xff\xfe", b"[server", b"[server]\nno_such_key = 1\n"):
        site.write(text)
        assert list(site.load().untrusted) == [str(site.file)]


def test_a_trusted_file_counts_and_nothing_is_said(site: Site) -> None:
    site.trust(site.write(LOOSE))
    found = site.load()
    assert (found.server.timeout, found.untrusted, found.files) == (7, {}, (str(site.file),))
    assert config.origin(found, "server.timeout").where == "longshore.toml:2"


@pytest.mark.parametrize("change", ["written", "deleted", "unreadable", "a folder", "a link"])
def test_what_was_trusted_holds_whatever_becomes_of_the_file(site: Site, change: str) -> None:
    """Else a model would switch on again what the file has switched off."""
    site.trust(site.write(STRICT))
    site.file.unlink()
    match change:
        case "written":
            site.write(LOOSE)
        case "unreadable":
            site.write(b"\xff")
        case "a folder":
            site.file.mkdir()
        case "a link":
            site.file.symlink_to("/nonexistent")
        case _:
            pass
    found = site.load()
    assert (found.server.timeout, found.toolsets["terminal"].enabled, found.tokens) == (9, False, {})
    [why] = found.untrusted.values()
    assert ("deleted since you trusted it" in why) is (change in ("deleted", "a link"))
    assert ("changed since you trusted it" in why) is (change not in ("deleted", "a link"))


def test_what_is_trusted_again_counts(site: Site) -> None:
    site.trust(site.write(STRICT))
    site.trust(site.write(LOOSE))
    found = site.load()
    assert (found.server.timeout, found.untrusted) == (7, {})


def test_a_file_outside_of_the_roots_needs_no_trust(site: Site) -> None:
    site.write_user(LOOSE)
    assert site.load().server.timeout == 7
    above = site.project / "longshore.toml"
    above.write_text(STRICT)
    (site.project / "deep").mkdir()
    assert site.load(cwd=site.project / "deep").server.timeout == 9
    assert list(site.load().untrusted) == [str(above)]


def test_roots_of_a_flag_or_a_variable_are_those_that_count(site: Site) -> None:
    site.write(LOOSE)
    other = site.project.parent / "other"
    other.mkdir()
    assert site.load({"server.roots": [str(other)]}).server.timeout == 7
    assert site.load(environ={"LONGSHORE_SERVER_ROOTS": str(other)}).server.timeout == 7
    assert site.load({"server.roots": [str(site.project)]}).untrusted
    site.write_user(STRICT)
    assert list(site.load({"server.roots": [str(site.home)]}).untrusted) == [str(site.user_file)]


def test_a_file_that_makes_itself_writable_needs_trust(site: Site) -> None:
    """Without it the root is the folder below, so tools could not have written it."""
    deep = site.project / "deep"
    deep.mkdir()
    site.write("[server]\nroots = ['.']\n")
    found = site.load(cwd=deep)
    assert (found.server.roots, list(found.untrusted)) == ([], [str(site.file)])
    site.trust(site.file)
    assert site.load(cwd=deep).server.roots == [str(site.project)]
    site.write("[toolsets.terminal]\nlevel = 'none'\n")  # by a tool, when the root was the project
    found = site.load(cwd=deep)
    assert (found.server.roots, found.toolsets) == ([str(site.project)], {})
    assert "changed since" in found.untrusted[str(site.file)]


def test_a_file_that_makes_another_one_writable(site: Site) -> None:
    """Only the roots of files that count do so: the text of any other may be a model's."""
    site.write_user(STRICT)
    wide = site.write(f"[server]\nroots = ['{site.home / '.config'}', '.']\n")
    assert site.load().files == (str(site.user_file),)
    site.trust(wide)
    found = site.load()
    assert (found.files, list(found.untrusted)) == ((str(wide),), [str(site.user_file)])
    site.trust(site.user_file)
    assert site.load().untrusted == {}


def test_a_nearer_file_does_not_hide_one_that_counts(site: Site) -> None:
    deep = site.project / "deep"
    deep.mkdir()
    site.write(STRICT)
    (deep / "longshore.toml").write_text(LOOSE)
    found = site.load(cwd=deep)
    assert (found.server.timeout, list(found.untrusted)) == (9, [str(deep / "longshore.toml")])


def test_a_named_file_in_the_roots_is_refused_until_it_is_trusted(site: Site) -> None:
    """A user who names a file wants what it says; without it the server would be another one."""
    named = site.project / "named.toml"
    named.write_text(LOOSE)
    for options in ({"path": "named.toml"}, {"environ": {"LONGSHORE_CONFIG": "named.toml"}}):
        assert site.refused(**options).startswith(f"{named}: not read, because tools of this server can write it")
    site.trust(named)
    assert site.load(path="named.toml").server.timeout == 7
    named.write_text(STRICT)
    assert site.load(path="named.toml").server.timeout == 7
    outside = site.home / "named.toml"
    outside.write_text(STRICT)
    assert site.load(path=str(outside)).server.timeout == 9
    assert site.load(path=os.devnull).files == (os.devnull,)
    outside.write_text(f"[server]\nroots = ['{site.home}']\n")
    assert site.refused(path=str(outside)).startswith(f"{outside}: not read")


def test_links_do_not_hide_that_a_file_can_be_replaced(site: Site) -> None:
    outside = site.home / "real.toml"
    outside.write_text(LOOSE)
    site.file.symlink_to(outside)
    assert list(site.load().untrusted) == [str(site.file)], "the link is in the root"
    site.file.unlink()
    within = site.write(LOOSE).rename(site.project / "real.toml")
    link = site.home / "link.toml"
    link.symlink_to(within)
    assert "not read" in site.refused(path=str(link)), "the file is in the root"
    folder = site.home / "folder"
    folder.symlink_to(site.project)
    assert "not read" in site.refused(path=str(folder / "real.toml"))
    assert "not read" in site.refused(path=str(site.home / "sub" / ".." / "folder" / "real.toml"))


def test_a_link_does_not_lead_to_the_trust_in_another_file(site: Site) -> None:
    other = site.home / "other" / "longshore.toml"
    other.parent.mkdir()
    other.write_text(LOOSE)
    site.trust(other)
    site.file.symlink_to(other)
    assert list(site.load().untrusted) == [str(site.file)]


def test_the_file_of_another_program_needs_trust_too(site: Site) -> None:
    path = site.project / "theirs.json"
    foreign = ForeignConfig(keys={"timeout": "server.timeout"}, path=str(path))
    path.write_text('{"timeout": 7}')
    found = site.load(foreign=foreign)
    assert (found.server.timeout, list(found.untrusted)) == (config.DEFAULT.server.timeout, [str(path)])
    site.trust(path)
    path.write_text('{"timeout": 8}')
    assert site.load(foreign=foreign).server.timeout == 7


# -- the record


def test_a_record_in_the_roots_is_not_believed(site: Site) -> None:
    site.trust(site.write(LOOSE))
    found = site.load({"server.roots": [str(site.home.parent)]})
    assert found.server.timeout != 7
    assert f"the record of trust too: {site.record}" in found.untrusted[str(site.file)]
    wide = site.write(f"[server]\nroots = ['{site.home}', '.']\n")
    site.trust(wide)
    assert site.load().server.roots == [], "a file can't bring the record into the roots"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"/x": 1}', b"\xff"])
def test_a_corrupt_record_is_an_error_that_names_it(site: Site, content: bytes) -> None:
    site.trust(site.write(LOOSE))
    site.record.write_bytes(content)
    said = site.refused()
    assert said.startswith(f"{site.record}, the record of the files that you have trusted, can't be read: ")
    assert "delete it, and trust your files again" in said


def test_an_unreadable_record_is_an_error_that_names_it(site: Site) -> None:
    said = f"{site.record}, the record of the files that you have trusted, can't be read: "
    site.record.mkdir(parents=True)
    assert site.refused().startswith(said)
    site.record.rmdir()
    os.mkfifo(site.record)
    assert site.refused().startswith(said)


def test_without_a_home_nothing_is_trusted(site: Site) -> None:
    site.write(LOOSE)
    assert list(site.load(environ={"HOME": ""}).untrusted) == [str(site.file)]


def test_the_record_is_the_users_alone_and_holds_several_files(site: Site) -> None:
    site.trust(site.write(LOOSE))
    site.trust(site.file.with_name("b.toml"), STRICT)
    assert read_record(str(site.record)) == {str(site.file): LOOSE, str(site.file.with_name("b.toml")): STRICT}
    change_record(str(site.record), str(site.file), None)
    assert list(read_record(str(site.record))) == [str(site.file.with_name("b.toml"))]
    assert site.record.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in site.record.parent.iterdir()] == ["trust.json"]


def test_a_path_that_is_not_utf8_is_refused_and_the_record_stays(site: Site) -> None:
    site.trust(site.write(LOOSE))
    with pytest.raises(ConfigError, match="not UTF-8"):
        change_record(str(site.record), os.fsdecode(b"/\xff.toml"), LOOSE)
    assert list(read_record(str(site.record))) == [str(site.file)]


def test_the_record_and_the_files_are_watched(site: Site) -> None:
    site.write(LOOSE)
    found = site.load()
    assert {str(site.file), str(site.record)} <= set(found.watch)
    before = config.fingerprint(found)
    site.trust(site.file)
    assert config.fingerprint(found) != before


def test_a_server_whose_tools_write_nothing_reads_every_file(site: Site) -> None:
    site.trust(site.write(STRICT))
    site.write(LOOSE)
    found = config.load(environ=site.environ, cwd=str(site.project))
    assert (found.server.timeout, found.untrusted) == (7, {})


class OwnFilesystem(Filesystem):
    """An author's."""


@pytest.mark.parametrize("add", ["none", "indexed", "class", "subclass", "instance", "mounted"])
def test_an_authors_server_needs_trust_with_toolsets_of_ours(
    site: Site, monkeypatch: pytest.MonkeyPatch, add: str
) -> None:
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(site.home))
    monkeypatch.chdir(site.project)
    site.write("[server]\ntimeout = 7\n")
    app = Server("mine")
    match add:
        case "indexed":
            app.add_indexed(INDEX, "terminal")
        case "class":
            app.add_toolset(Filesystem)
        case "mounted":
            inner = Server("inner")
            inner.add_toolset(Filesystem)
            app.mount(inner, prefix="inner")
            inner.mount(app, prefix="outer")
        case "subclass":
            app.add_toolset(OwnFilesystem)
        case "instance":
            app.add_toolset(Terminal(TerminalOptions()))
        case _:
            pass
    assert list(app.load_config().untrusted) == ([] if add == "none" else [str(site.file)])
    assert (app.load_config().server.timeout == 7) is (add == "none")
