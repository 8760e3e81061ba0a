"""docs/install.md: its table is the clients', and its lines are run. `python -m tests.install.test_page` writes it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from longshore.client.config_places import user_folders
from longshore.client.configs import find_server
from longshore.install.clients import CLIENTS, ClientRecord
from longshore.install.server_entry import Address

PAGE = Path(__file__).parents[2] / "docs" / "install.md"
README = PAGE.parents[1] / "README.md"
BEGIN = "<!-- clients: generated from install/clients.py by `python -m tests.install.test_page`, checked by it -->"
END = "<!-- end of clients -->"


def row(client: ClientRecord) -> str:
    folders = user_folders({"HOME": "/~"}, "linux")
    assert folders is not None
    user = client.user_file(folders).path.removeprefix("/")
    project = f"`{client.place.project}`" if client.place.project else "none"
    address = "no"
    if client.http is not None:
        entry = client.http("x", Address("URL", {}, "TOKEN")) if client.variable else {}
        token = entry.get("headers", {}).get("Authorization") or entry.get("bearer_token_env_var", "")
        address = f"`{token}`" if token else "as a value"
    after = client.after + (f"; in a project, {client.after_project}" if client.after_project else "")
    cells = [f"`{client.name}`", f"`{user}`, `{client.place.key}`", project, address, after]
    return f"| {' | '.join(cells)} |"


def table() -> str:
    head = "| client | its file and key | in a project | a URL's token | afterwards |\n|---|---|---|---|---|"
    return "\n".join([head, *map(row, CLIENTS)])


def test_the_table_is_that_of_the_clients() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page.partition(BEGIN)[2].partition(END)[0].strip() == table()


def test_the_readme_has_a_line_for_each_client() -> None:
    rows = re.findall(r"^\| (.+?) \| `longshore install (\S+) --root ~/project` \|$", README.read_text(), re.MULTILINE)
    assert rows == [(client.title, client.name) for client in CLIENTS]


def by_hand() -> list[tuple[str, str]]:
    """The entries that the page has for a file: the name of a file of that form, and its text."""
    part = PAGE.read_text(encoding="utf-8").partition("## By hand")[2]
    tables = re.findall(r"`(\[mcp_servers\.longshore\])`, (.*) \|$", part, re.MULTILINE)
    found = [("config.toml", "\n".join([head, *re.findall(r"`([^`]+)`", rest)])) for head, rest in tables]
    return found + [("mcp.json", text) for text in re.findall(r"`(\{\"[^`]+\})` \|$", part, re.MULTILINE)]


@pytest.mark.parametrize(("name", "text"), by_hand(), ids=lambda value: value[:30])
def test_an_entry_by_hand_is_read(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    entry = find_server("longshore", str(tmp_path / name), environ={"LONGSHORE_AUTH_TOKEN": "TOKEN"})
    if "url" in entry:
        assert entry["url"] == "http://127.0.0.1:9100/mcp" and entry["headers"] == {"Authorization": "Bearer TOKEN"}
    else:
        assert [entry["command"], *entry["args"]] == ["longshore", "serve"]


def test_there_are_entries_by_hand() -> None:
    assert len(by_hand()) == 7


def lines() -> list[str]:
    [block] = re.findall(r"```sh\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return [line.partition(" #")[0].strip() for line in block.splitlines()]


@pytest.mark.parametrize("line", lines())
def test_its_lines_work(line: str, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "server.py").write_text('from longshore import Server\napp = Server("weather")\n')
    (tmp_path / "npx").symlink_to("/bin/true")
    words = shlex.split(line.replace("~", str(tmp_path)))[1:]
    env = {"HOME": str(tmp_path), "PATH": f"{tmp_path}:/usr/bin:/bin"}

    def run(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "longshore", *argv],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )

    if words[0] == "uninstall":
        assert run("install", "cursor", "--yes").returncode == 0
    if words[0] == "uninstall" or "vscode" in words:
        words.append("--yes")
    elif "--list" not in words:
        words.insert(2, "--dry-run")
    done = run(*words)
    assert done.returncode == 0, done.stderr
    assert done.stdout


if __name__ == "__main__":
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{rest.partition(END)[2]}", encoding="utf-8")
