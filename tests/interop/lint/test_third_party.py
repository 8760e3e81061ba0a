"""The linter on the tools of third-party servers: each finding is recorded and explained.

After a new version of one of them, or of a rule: `python -m tests.interop.lint.refresh`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from interop.client.peers import command
from longshore.schema.lint.rule import PROFILES
from waiting import PATIENCE

from .third_party import HERE, SERVERS, ask, count, find, recorded

REFRESH = "run `python -m tests.interop.lint.refresh`, look at the difference, and explain what is new"


@pytest.mark.parametrize("peer", SERVERS)
def test_a_server_lists_the_recorded_tools(peer: str, tmp_path: Path) -> None:
    assert ask(peer, tmp_path) == recorded("lists", peer), REFRESH


@pytest.mark.parametrize("peer", SERVERS)
def test_the_findings_are_the_recorded_ones(peer: str) -> None:
    assert find(recorded("lists", peer)) == recorded("findings", peer), REFRESH


def test_servers_that_are_used_every_day_break_no_rule_at_error_level() -> None:
    assert [each for peer in SERVERS for each in recorded("findings", peer) if each["level"] == "error"] == []


@pytest.mark.parametrize("peer", SERVERS)
def test_every_finding_is_explained(peer: str) -> None:
    """A line for each rule that finds something: `- **W22** (3): why`."""
    [chapter] = re.findall(rf"^## {peer}\b.*?\n(.*?)(?=^## |\Z)", (HERE / "README.md").read_text(), re.M | re.S)
    told = re.findall(r"^- \*\*([A-Z]\d+)\*\* \((\d+)\): (\S.*)$", chapter, re.M)
    assert {rule: int(many) for rule, many, _ in told} == count(recorded("findings", peer))
    assert len(told) == len({rule for rule, _, _ in told})


@pytest.mark.parametrize("peer", ["memory"])
def test_the_command_finds_the_same(peer: str, tmp_path: Path) -> None:
    profiles = [word for profile in PROFILES for word in ("--profile", profile)]
    env = ["--env", f"MEMORY_FILE_PATH={tmp_path / 'memory.jsonl'}"]
    argv = [sys.executable, "-m", "longshore", "lint", "--format", "json", *profiles, *env, "--", *command(peer)]
    done = subprocess.run(argv, capture_output=True, timeout=PATIENCE, cwd=tmp_path, check=False)
    told, expected = json.loads(done.stdout)["findings"], recorded("findings", peer)
    assert [(each["tool"], each["rule"], each["message"]) for each in told] == [
        (each["tool"], each["rule"], each["message"]) for each in expected
    ]
    assert done.returncode == any(each["level"] == "error" for each in expected), done.stderr
