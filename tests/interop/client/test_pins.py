"""What the servers of others are installed from, and what happens where they are not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from . import peers

PINS = peers.HERE.parent / "node"
ROOT = peers.INSTALLED.parent


def test_the_servers_are_pinned_and_name_no_registry() -> None:
    wanted = json.loads((PINS / "package.json").read_text())
    lock = json.loads((PINS / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}
    for name, version in {**wanted["dependencies"], **wanted["optionalDependencies"]}.items():
        assert packages[f"node_modules/{name}"]["version"] == version
    assert all("resolved" not in package and package["integrity"] for package in packages.values())


def test_the_conformance_suite_runs_on_the_same_node() -> None:
    other = json.loads((ROOT / "tests" / "conformance" / "package.json").read_text())
    assert other["optionalDependencies"] == json.loads((PINS / "package.json").read_text())["optionalDependencies"]


@pytest.mark.parametrize("peer", ["fast", "everything", "memory", "playwright"])
def test_a_missing_server_is_a_failure_only_where_everything_must_be_shown(
    peer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "INSTALLED", tmp_path / ".interop")
    monkeypatch.setattr(peers, "NODE", tmp_path / ".interop" / "node")
    monkeypatch.setattr(peers, "FASTMCP", tmp_path / ".interop" / "python")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="scripts/interop"):
        peers.command(peer)
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="is missing"):
        peers.command(peer)
