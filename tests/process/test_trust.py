"""A model that writes the configuration of its own server gains nothing: neither at once nor after a restart."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import longshore
from waiting import eventually

from .peer import LONGSHORE, Peer, failed, request, text_of

KEY = "open sesame"
STATE = ".local/state/longshore"
STRICT = '[toolsets.terminal]\nlevel = "read-only"\n[tools.fs_info]\nenabled = false\n'


class Site:
    """A project folder with servers in it, a home folder, and a folder that the servers may not read."""

    def __init__(self, folder: Path) -> None:
        self.project, self.home, self.outside = folder / "project", folder / "home", folder / "outside"
        for each in (self.project / ".git", self.home, self.outside):
            each.mkdir(parents=True)
        (self.outside / "key.txt").write_text(KEY)
        self.file = self.project / "longshore.toml"
        self.record = self.home / STATE / "trust.json"
        unset = ("XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("LONGSHORE_") and k not in unset}
        self.env |= {"HOME": str(self.home), "PWD": str(self.project)}
        roots = json.dumps([str(self.project), str(self.outside)])
        self.loose = f'[server]\nroots = {roots}\n[toolsets.terminal]\nlevel = "none"\n[tokens.mallory]\ntoken = "m"\n'
        self.peers: list[Peer] = []

    def serve(self, *options: str) -> Peer:
        errors = self.home / f"stderr-{len(self.peers)}.txt"
        peer = Peer([*LONGSHORE, "serve", *options], self.project, self.env, stderr=errors)
        self.peers.append(peer)
        peer.start()
        return peer

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*LONGSHORE, *argv], cwd=self.project, env=self.env, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    def trust(self, text: str) -> None:
        self.file.write_text(text)
        done = self.run("trust")
        assert done.returncode == 0, done.stderr

    def escapes(self, peer: Peer) -> bool:
        """Whether a server reads outside of the project by its file tools or by commands, or has a new token."""
        look(peer)
        key = self.outside / "key.txt"
        read = not failed(peer.call("fs_read", path=str(key)))
        ran = KEY in text_of(peer.call("terminal_run", command=f"cat {key}"))
        shown = json.loads(self.run("config", "show", "--json").stdout)
        assert read == ran == ("mallory" in shown.get("tokens", {})) == bool(shown["server"]["roots"])
        return read

    def end(self) -> None:
        for peer in self.peers:
            peer.kill()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path.resolve())
    yield made
    made.end()


def done(answer: dict[str, Any]) -> str:
    assert not failed(answer), text_of(answer)
    return text_of(answer)


def look(peer: Peer) -> list[str]:
    """Have a server look at its configuration, which it does before a list once a command has run; the tools."""
    done(peer.call("terminal_run", command="true"))
    return [each["name"] for each in peer.ask(request("list", "tools/list"))["result"]["tools"]]


def says(peer: Peer, text: str) -> None:
    eventually(text, lambda: text in peer.stderr)


def write(peer: Peer, text: str) -> None:
    done(peer.call("fs_write", path="longshore.toml", content=text))


def move(peer: Peer, text: str) -> None:
    done(peer.call("fs_write", path="notes/prepared.txt", content=text))
    done(peer.call("fs_move", path="notes/prepared.txt", to="longshore.toml", overwrite=True))


def run_command(peer: Peer, text: str) -> None:
    (script := "cat > longshore.toml <<'END'\n" + text + "END")
    assert "exit code 0" in done(peer.call("terminal_run", command=script))


Writer = Callable[[Peer, str], None]
WRITERS = pytest.mark.parametrize("change", [write, move, run_command])


@WRITERS
def test_a_file_that_a_model_makes_changes_nothing(site: Site, change: Writer) -> None:
    peer = site.serve()
    change(peer, site.loose)
    assert not site.escapes(peer)
    says(peer, f"{site.file}: not read, because tools of this server can write it")
    assert not site.escapes(site.serve())


@WRITERS
def test_a_trusted_file_that_a_model_changes_holds_as_it_was(site: Site, change: Writer) -> None:
    """What it has switched off stays off, too."""
    site.trust(STRICT.replace("read-only", "workspace"))
    peer = site.serve()
    change(peer, site.loose)
    assert not site.escapes(peer)
    assert peer.call("fs_info", path=".")["error"]
    says(peer, f"{site.file}: changed since you trusted it, so what you trusted still holds")
    again = site.serve()
    assert not site.escapes(again)
    assert again.call("fs_info", path=".")["error"]


def test_a_trusted_file_that_a_model_deletes_holds_as_it_was(site: Site) -> None:
    site.trust(STRICT)
    peer = site.serve()
    done(peer.call("fs_delete", path="longshore.toml"))
    for each in (peer, site.serve()):
        look(each)
        assert each.call("fs_info", path=".")["error"]
        assert "exit code 0" not in text_of(each.call("terminal_run", command="touch new"))
        says(each, f"longshore trust --remove {site.file}")


def test_servers_that_run_apply_what_is_trusted(site: Site) -> None:
    """Two of them, in the same folder."""
    first, second = site.serve(), site.serve()
    write(first, "[tools.fs_info]\nenabled = false\n")
    assert "fs_info" in look(first) and "fs_info" in look(second)
    said = site.run("trust")
    assert (said.returncode, said.stderr) == (0, "")
    assert "tools.fs_info.enabled  false" in said.stdout
    for peer in (first, second):
        assert "fs_info" not in look(peer)
    assert site.run("trust", "--remove").returncode == 0
    for peer in (first, second):
        assert "fs_info" in look(peer)


@pytest.mark.parametrize(("level", "reaches"), [("workspace", False), ("none", True)])
def test_a_command_in_the_sandbox_can_not_trust_a_file(site: Site, level: str, reaches: bool) -> None:
    """At the level none it can do anything, this too."""
    packages = [str(Path(longshore.__file__).parents[1]), sys.prefix]
    options = {"toolsets.terminal.level": level, "toolsets.terminal.read_paths": os.pathsep.join(packages)}
    peer = site.serve(*(part for key, value in options.items() for part in ("--set", f"{key}={value}")))
    write(peer, site.loose)
    said = done(peer.call("terminal_run", command=f"{' '.join(LONGSHORE)} trust {site.file} 2>&1"))
    assert "server.roots" in said, "the command itself can run there"
    forged = json.dumps({str(site.file): site.loose})
    peer.call("terminal_run", command=f"mkdir -p {site.record.parent}; echo '{forged}' >{site.record}")
    assert site.record.exists() is reaches
    read = not failed(site.serve().call("fs_read", path=str(site.outside / "key.txt")))
    assert read is reaches


def test_file_tools_do_not_write_what_the_user_has_trusted(site: Site) -> None:
    site.trust(STRICT)
    before = site.record.read_text()
    peer = site.serve("--root", str(site.home))
    for answer in (
        peer.call("fs_write", path=str(site.record), content="{}"),
        peer.call("fs_delete", path=str(site.record)),
        peer.call("fs_move", path=str(site.home / ".local"), to=str(site.home / "elsewhere")),
    ):
        assert "read-only" in text_of(answer)
    assert site.record.read_text() == before


def test_modules_that_a_model_writes_are_not_imported(site: Site) -> None:
    """`python -m` puts the working folder first on the path of modules."""
    imported = site.outside / "imported"
    peer = site.serve()
    for name in ("msgspec", "asyncio", "sqlite3", "pathspec"):
        done(peer.call("fs_write", path=f"{name}.py", content=f"open({str(imported)!r}, 'w')\n"))
    for each in (peer, site.serve()):
        done(each.call("fs_list"))
        look(each)
    assert site.run("config", "show").returncode == 0
    assert not imported.exists()


def test_programs_that_a_model_puts_on_path_are_not_run(site: Site) -> None:
    """As in an active virtual environment of the working folder."""
    ran = site.outside / "ran"
    site.env["PATH"] = f"{site.project / '.venv/bin'}:{site.env['PATH']}"
    peer = site.serve()
    names = ("google-chrome-stable", "chromium", "rg", "git", "bwrap", "unshare")
    script = f"mkdir -p .venv/bin; cd .venv/bin; printf '#!/bin/sh\\necho $0 >{ran}' >rg; chmod +x rg"
    command = script + "".join(f"; cp rg {name}" for name in names if name != "rg")
    assert "exit code 0" in done(peer.call("terminal_run", command=command))
    for each in (peer, site.serve()):
        assert "#!/bin/sh" in done(each.call("fs_search", pattern="bin/sh"))
        each.call("browser_navigate", url="about:blank")
        look(each)
    assert not ran.exists()


def test_a_folder_in_a_root_that_a_model_replaces_by_a_link_is_no_root(site: Site) -> None:
    roots = ("--root", str(site.project), "--root", str(site.project / "data"))
    (site.project / "data").mkdir()
    peer = site.serve(*roots)
    assert "exit code 0" in done(peer.call("terminal_run", command=f"rmdir data; ln -s {site.outside} data"))
    assert failed(peer.call("fs_read", path="data/key.txt"))
    refused = site.run("serve", *roots)
    assert refused.returncode == 2
    assert f"leads to {site.outside} by a link in another root" in refused.stderr


def test_a_named_file_in_the_roots_is_refused_until_it_is_trusted(site: Site) -> None:
    named = site.project / "named.toml"
    named.write_text(site.loose)
    refused = site.run("serve", "--config", "named.toml")
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"{named}: not read, because tools of this server can write it")
    assert site.run("trust", "named.toml").returncode == 0
    assert not failed(site.serve("--config", "named.toml").call("fs_read", path=str(site.outside / "key.txt")))


def test_a_corrupt_record_stops_the_start(site: Site) -> None:
    site.record.parent.mkdir(parents=True)
    site.record.write_text("{")
    refused = site.run("serve")
    assert refused.returncode == 2
    assert f"{site.record}, the record of the files that you have trusted, can't be read" in refused.stderr
