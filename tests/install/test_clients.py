"""Each client's own file, with what people have in it: install, install again, uninstall."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from longshore.client.configs import ConfiguredServer
from longshore.errors import ConfigError
from longshore.install.change import BACKUP, Change, Slot, apply, diff, plan_install, plan_removal, read_entries
from longshore.install.clients import BY_NAME, CLIENTS
from longshore.install.formats import editor
from longshore.install.server_entry import Address, Program, ServerEntry
from longshore.install.written import WrittenEntries

from .samples import NAMES, folders, sample

PROGRAM = Program("/opt/py", ("-P", "server.py"), {"KEY": "v"})
COMMON = {"command": "/opt/py", "args": ["-P", "server.py"], "env": {"KEY": "v"}}
GOOSE = {"enabled": True, "name": "longshore", "description": "longshore", "env_keys": [], "timeout": 300}
PROGRAMS: dict[str, dict[str, Any]] = {
    **dict.fromkeys(NAMES, COMMON),
    "claude-code": {"type": "stdio", **COMMON},
    "vscode": {"type": "stdio", **COMMON},
    "zed": {"source": "custom", "enabled": True, **COMMON},
    "goose": {
        **GOOSE,
        "type": "stdio",
        "cmd": "/opt/py",
        "args": COMMON["args"],
        "envs": {"KEY": "v"},
        "bundled": None,
    },
}
URL = "https://mcp.example.com/mcp"
HELD = {"Authorization": "Bearer ${TOKEN}"}
NAMED = {"Authorization": "Bearer ${env:TOKEN}"}
ADDRESSES: dict[str, dict[str, Any]] = {
    "claude-code": {"type": "http", "url": URL, "headers": HELD},
    "cursor": {"url": URL, "headers": NAMED},
    "vscode": {"type": "http", "url": URL, "headers": NAMED},
    "windsurf": {"serverUrl": URL, "headers": NAMED},
    "gemini": {"url": URL, "type": "http", "headers": HELD},
    "codex": {"url": URL, "bearer_token_env_var": "TOKEN"},
}
"""Entries with a token in a variable, of the clients that read one."""


@pytest.fixture
def known(tmp_path: Path) -> WrittenEntries:
    return WrittenEntries(str(tmp_path / "state" / "installed.json"))


def slot_of(client: str, home: Path, name: str = "longshore") -> Slot:
    record = BY_NAME[client]
    return Slot(record, record.user_file(folders(home)), name)


def write_sample(slot: Slot) -> Path:
    path = Path(slot.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(sample(slot.client))
    return path


def install(slot: Slot, server: ServerEntry, known: WrittenEntries, *, force: bool = False) -> Change:
    change = plan_install(slot, slot.client.entry(slot.name, server), known, force=force)
    assert change is not None
    apply(change, slot, known)
    return change


def read(slot: Slot) -> dict[str, Any]:
    return editor(slot.client.form).read(Path(slot.path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("client", NAMES)
def test_a_file_comes_back_byte_for_byte(client: str, tmp_path: Path, known: WrittenEntries) -> None:
    slot = slot_of(client, tmp_path)
    path = write_sample(slot)
    path.chmod(0o640)
    before = read(slot)
    install(slot, PROGRAM, known)
    after = read(slot)
    servers = after[slot.keys[0]]
    assert servers["longshore"] == PROGRAMS[client]
    assert {**after, slot.keys[0]: {k: v for k, v in servers.items() if k != "longshore"}} == {
        slot.keys[0]: {},
        **before,
    }
    assert Path(f"{path}{BACKUP}").read_bytes() == sample(slot.client)
    assert path.stat().st_mode & 0o777 == 0o640
    rest = iter(path.read_bytes())
    assert all(byte in rest for byte in sample(slot.client)), "something was deleted"

    assert plan_install(slot, slot.client.entry("longshore", PROGRAM), known, force=False) is None
    apply(plan_removal(slot, known, force=False), slot, known)
    assert path.read_bytes() == sample(slot.client)
    assert known.read() == []


@pytest.mark.parametrize("client", NAMES)
def test_a_file_that_was_not_there_is_gone_afterwards(client: str, tmp_path: Path, known: WrittenEntries) -> None:
    slot = slot_of(client, tmp_path)
    install(slot, PROGRAM, known)
    assert read(slot) == {slot.keys[0]: {"longshore": PROGRAMS[client]}}
    apply(plan_removal(slot, known, force=False), slot, known)
    assert not Path(slot.path).exists()


@pytest.mark.parametrize("client", NAMES)
def test_an_entry_of_a_program_is_read_back_as_it_was_given(client: str, tmp_path: Path, known: WrittenEntries) -> None:
    slot = slot_of(client, tmp_path)
    install(slot, PROGRAM, known)
    raw = read_entries(slot.client, slot.file)["longshore"]
    entry = ConfiguredServer("longshore", slot.file, raw).entry({})
    assert {key: entry[key] for key in COMMON} == COMMON


@pytest.mark.parametrize("client", ADDRESSES)
def test_an_entry_of_a_url_names_the_variable_of_its_token(client: str, tmp_path: Path, known: WrittenEntries) -> None:
    slot = slot_of(client, tmp_path)
    write_sample(slot)
    install(slot, Address(URL, {}, "TOKEN"), known)
    raw = read_entries(slot.client, slot.file)["longshore"]
    assert raw == ADDRESSES[client]
    entry = ConfiguredServer("longshore", slot.file, raw).entry({"TOKEN": "secret"})
    assert entry["headers"] == {"Authorization": "Bearer secret"}


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ("codex", {"url": URL, "http_headers": {"X-Key": "k"}}),
        ("zed", {"url": URL, "headers": {"X-Key": "k"}}),
        (
            "goose",
            {**GOOSE, "type": "streamable_http", "uri": URL, "headers": {"X-Key": "k"}, "envs": {}, "bundled": None},
        ),
    ],
)
def test_headers_are_written_as_the_client_has_them(
    client: str, expected: dict[str, Any], tmp_path: Path, known: WrittenEntries
) -> None:
    slot = slot_of(client, tmp_path)
    install(slot, Address(URL, {"X-Key": "k"}), known)
    raw = read_entries(slot.client, slot.file)["longshore"]
    assert raw == expected
    assert ConfiguredServer("longshore", slot.file, raw).entry({})["headers"] == {"X-Key": "k"}
    assert Path(slot.path).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("client", "what"),
    [
        ("claude-desktop", "the file of Claude Desktop takes programs only"),
        ("zed", "Zed reads no variables in headers"),
        ("goose", "Goose reads no variables in headers"),
    ],
)
def test_what_a_client_can_not_have_is_refused(client: str, what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        BY_NAME[client].entry("longshore", Address(URL, {}, "TOKEN"))


@pytest.mark.parametrize("client", NAMES)
def test_an_entry_of_somebody_else_is_replaced_by_force_only(
    client: str, tmp_path: Path, known: WrittenEntries
) -> None:
    slot = slot_of(client, tmp_path)
    path = write_sample(slot)
    [name, *_] = read_entries(slot.client, slot.file) or ["theirs"]
    theirs = Slot(slot.client, slot.file, name)
    if client in ("windsurf", "zed"):  # their samples have no server
        install(theirs, Program("/theirs"), WrittenEntries(str(tmp_path / "other.json")))
    before = path.read_bytes()
    entry = slot.client.entry(name, PROGRAM)
    with pytest.raises(ConfigError, match="which Longshore did not write"):
        plan_install(theirs, entry, known, force=False)
    with pytest.raises(ConfigError, match="since Longshore did not write it"):
        plan_removal(theirs, known, force=False)
    assert path.read_bytes() == before
    install(theirs, PROGRAM, known, force=True)
    assert read_entries(slot.client, slot.file)[name] == slot.client.entry(name, PROGRAM)


@pytest.mark.parametrize("client", NAMES)
def test_an_entry_that_a_person_changed_is_left(client: str, tmp_path: Path, known: WrittenEntries) -> None:
    slot = slot_of(client, tmp_path)
    path = write_sample(slot)
    install(slot, PROGRAM, known)
    path.write_text(path.read_text(encoding="utf-8").replace("server.py", "other.py"), encoding="utf-8")
    with pytest.raises(ConfigError, match="'longshore' was left, since its args changed"):
        plan_removal(slot, known, force=False)
    with pytest.raises(ConfigError, match="its args changed since Longshore wrote it"):
        plan_install(slot, slot.client.entry("longshore", Program("/new")), known, force=False)
    apply(plan_removal(slot, known, force=True), slot, known)
    assert "longshore" not in read_entries(slot.client, slot.file)


@pytest.mark.parametrize("client", NAMES)
def test_our_own_entry_is_updated_in_place(client: str, tmp_path: Path, known: WrittenEntries) -> None:
    slot = slot_of(client, tmp_path)
    path = write_sample(slot)
    install(slot, PROGRAM, known)
    path.write_bytes(path.read_bytes() + b"\n")
    install(slot, Program("/opt/py", ("-P", "new.py"), {"KEY": "v"}), known)
    assert (
        slot.client.entry("longshore", Program("/opt/py", ("-P", "new.py"), {"KEY": "v"}))
        == read_entries(slot.client, slot.file)["longshore"]
    )
    apply(plan_removal(slot, known, force=False), slot, known)
    assert path.read_bytes() == sample(slot.client) + b"\n"


def test_the_places_are_those_of_the_system() -> None:
    from longshore.client.config_places import user_folders

    mac = user_folders({"HOME": "/Users/me"}, "darwin")
    linux = user_folders({"HOME": "/home/me", "CODEX_HOME": "/srv/codex", "CLAUDE_CONFIG_DIR": "/srv/c"}, "linux")
    assert mac is not None and linux is not None
    support = "/Users/me/Library/Application Support"
    assert [client.user_file(mac).path for client in CLIENTS] == [
        "/Users/me/.claude.json",
        f"{support}/Claude/claude_desktop_config.json",
        "/Users/me/.cursor/mcp.json",
        f"{support}/Code/User/mcp.json",
        "/Users/me/.codeium/windsurf/mcp_config.json",
        "/Users/me/.gemini/settings.json",
        "/Users/me/.codex/config.toml",
        "/Users/me/.config/zed/settings.json",
        "/Users/me/.config/goose/config.yaml",
    ]
    assert BY_NAME["vscode"].user_file(linux).path == "/home/me/.config/Code/User/mcp.json"
    assert BY_NAME["codex"].user_file(linux).path == "/srv/codex/config.toml"
    assert BY_NAME["claude-code"].user_file(linux).path == "/srv/c/.claude.json"
    projects = {client.name: client.place.project for client in CLIENTS if client.place.project}
    assert projects == {
        "claude-code": ".mcp.json",
        "cursor": ".cursor/mcp.json",
        "vscode": ".vscode/mcp.json",
        "gemini": ".gemini/settings.json",
        "codex": ".codex/config.toml",
        "zed": ".zed/settings.json",
    }


def test_windsurfs_file_is_the_one_that_is_there(tmp_path: Path) -> None:
    newer = tmp_path / ".codeium" / "mcp_config.json"
    newer.parent.mkdir()
    newer.write_text("{}")
    assert BY_NAME["windsurf"].user_file(folders(tmp_path)).path == str(newer)


def test_a_link_stays_a_link_to_the_changed_file(tmp_path: Path, known: WrittenEntries) -> None:
    real = tmp_path / "dotfiles" / "cursor.json"
    real.parent.mkdir()
    real.write_bytes(sample(BY_NAME["cursor"]))
    link = tmp_path / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    slot = slot_of("cursor", tmp_path)
    install(slot, PROGRAM, known)
    assert link.is_symlink() and "longshore" in real.read_text()
    assert (tmp_path / "dotfiles" / f"cursor.json{BACKUP}").exists()


def test_a_file_that_changed_meanwhile_is_left(tmp_path: Path, known: WrittenEntries) -> None:
    slot = slot_of("cursor", tmp_path)
    path = write_sample(slot)
    change = plan_install(slot, slot.client.entry("longshore", PROGRAM), known, force=False)
    assert change is not None
    path.write_text("{}")
    with pytest.raises(ConfigError, match="has changed meanwhile, so it was left"):
        apply(change, slot, known)
    assert path.read_text() == "{}" and known.read() == []


def test_a_read_only_file_is_left(tmp_path: Path, known: WrittenEntries) -> None:
    """A replaced file would need no right to write the old one."""
    slot = slot_of("cursor", tmp_path)
    path = write_sample(slot)
    install(slot, PROGRAM, known)
    path.chmod(0o444)
    before = path.read_bytes()
    for plan in (
        lambda: plan_install(slot, slot.client.entry("longshore", Program("/other")), known, force=False),
        lambda: plan_removal(slot, known, force=False),
    ):
        with pytest.raises(ConfigError, match=r"is read-only, so it was left; make it writable"):
            plan()
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("client", "text", "where"),
    [
        ("cursor", b'{\n  "mcpServers": {\n    "a": }\n}', "line 3, column 10: expected a value"),
        ("codex", b"a = 1\nb = [\n", "line 3, "),
        ("goose", b"a: 1\n b: 2\n", "line 2, mapping values are not allowed here"),
        ("zed", b'{\n"a": "\xff"}', "line 2 is no UTF-8"),
    ],
)
def test_a_broken_file_is_named_with_its_line_and_left(
    client: str, text: bytes, where: str, tmp_path: Path, known: WrittenEntries
) -> None:
    slot = slot_of(client, tmp_path)
    path = Path(slot.path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)
    with pytest.raises(ConfigError) as caught:
        plan_install(slot, slot.client.entry("longshore", PROGRAM), known, force=False)
    assert f"{path}: {where}" in str(caught.value) and str(caught.value).endswith("nothing was changed")
    assert path.read_bytes() == text
    assert [each.name for each in path.parent.iterdir()] == [path.name]


def test_the_diff_is_one_that_patch_applies(tmp_path: Path, known: WrittenEntries) -> None:
    slot = slot_of("gemini", tmp_path)
    path = write_sample(slot)
    change = plan_install(slot, slot.client.entry("longshore", PROGRAM), known, force=False)
    assert change is not None and change.after is not None
    patch = "\n".join(diff(change)) + "\n"
    argv = ["git", "apply", "--unsafe-paths", "-p0", "-"]
    patch = patch.replace(str(path), path.name)
    done = subprocess.run(argv, input=patch, text=True, cwd=path.parent, capture_output=True)
    assert done.returncode == 0, done.stderr + patch
    assert path.read_text() == change.after


def test_a_record_that_can_not_be_read_is_named(tmp_path: Path, known: WrittenEntries) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "installed.json").write_text("[")
    with pytest.raises(ConfigError, match=r"installed\.json, the record of what was installed, can't be read"):
        known.read()


def test_no_secret_is_in_the_record(tmp_path: Path, known: WrittenEntries) -> None:
    install(slot_of("cursor", tmp_path), Address(URL, {"Authorization": "Bearer hidden"}), known)
    record = tmp_path / "state" / "installed.json"
    assert "hidden" not in record.read_text() and record.stat().st_mode & 0o777 == 0o600
