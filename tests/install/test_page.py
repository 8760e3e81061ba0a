"""docs/install.md: its table is the clients', and its lines are run. `python -m tests.install.test_page` writes it."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from longshore.client.config_places import user_folders
from longshore.install.clients import CLIENTS, ClientRecord
from longshore.install.server_entry import Address

PAGE = Path(__file__).parents[2] / "docs" / "install.md"
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
