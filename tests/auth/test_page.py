"""docs/authorization.md is true: its configurations work, and its challenges are what a client gets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from longshore import config
from longshore.auth import Guard
from longshore.protocol.peer import Principal

from .conftest import guard, refusal

PAGE = (Path(__file__).parents[2] / "docs/authorization.md").read_text()
SNIPPETS = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
CHALLENGES = re.findall(r"^    WWW-Authenticate: (.*)$", PAGE, re.MULTILINE)


def _load(text: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Guard:
    monkeypatch.chdir(folder)
    for number, name in enumerate(("token", "alice.token")):
        (folder / name).write_text(f"s3cret-s3cret-s3cret-{number}\n")
        (folder / name).chmod(0o600)
    (folder / "longshore.toml").write_text(text)
    found = config.load(environ={}, cwd=str(folder))
    return Guard(found.auth, found.tokens, resource=(found.http.public_url or "http://127.0.0.1:9100") + "/mcp")


@pytest.mark.parametrize("text", SNIPPETS)
def test_the_configurations_on_the_page_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    found = _load(text, tmp_path, monkeypatch)
    assert found.required
    assert found.warnings == []


def test_the_challenges_are_as_on_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forbidding = guard(token="s3cret-s3cret-s3cret")
    reader = Principal("ci", frozenset({"notes:read"}))
    insufficient = forbidding.forbid(reader, frozenset({"notes:read", "notes:write"})).challenge
    issuing = _load(next(text for text in SNIPPETS if "jwks" in text), tmp_path, monkeypatch)
    assert [insufficient, refusal(issuing.check({}, False)).challenge] == CHALLENGES


def test_every_auth_key_is_on_the_page() -> None:
    named = {key for key in config.DEFAULT.auth.__struct_fields__ if key in PAGE}
    assert set(config.DEFAULT.auth.__struct_fields__) - named == set()
