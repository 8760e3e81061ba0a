"""Static tokens: where they come from, how they are compared, what is wrong with some."""

from __future__ import annotations

import hmac
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from longshore import config
from longshore.auth import Guard
from longshore.config.sections import TokenConfig
from longshore.protocol.peer import Principal

from .conftest import RESOURCE, bearer, error, guard, principal, refusal

TOKEN = "s3cret-s3cret-s3cret"
OTHER = "0ther-0ther-0ther-0th"
MAKE = "make one with: openssl rand -hex 32"


def _file(path: Path, text: str, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_the_owners_token_opens_everything() -> None:
    found = guard(token=TOKEN).check(bearer(TOKEN), False)
    assert found == Principal("token", None)


def test_the_token_of_this_start_has_all_scopes() -> None:
    assert guard(extra_token=TOKEN).check(bearer(TOKEN), False) == Principal("token", None)
    both = guard(token=OTHER, extra_token=TOKEN)
    assert both.check(bearer(TOKEN), False) == both.check(bearer(OTHER), False) == Principal("token", None)


def test_a_wrong_token_is_refused() -> None:
    found = guard(token=TOKEN)
    for wrong in (OTHER, TOKEN[:-1], TOKEN + "x", TOKEN.upper(), sha256(TOKEN.encode()).hexdigest()):
        refused = refusal(found.check(bearer(wrong), False))
        assert (refused.status, refused.text) == (401, "the token is not one that this server knows")


@pytest.mark.parametrize("end", ["", "\n", "\r\n", "\n\n"])
def test_a_token_may_come_from_a_file(tmp_path: Path, end: str) -> None:
    found = guard(token_file=_file(tmp_path / "t", TOKEN + end))
    assert found.check(bearer(TOKEN), False) == Principal("token", None)
    assert found.warnings == []


def test_a_file_that_everyone_can_read_is_warned_about(tmp_path: Path) -> None:
    path = _file(tmp_path / "t", TOKEN, 0o644)
    found = guard({"bob": TokenConfig(token_file=path)})
    assert found.warnings == [f"tokens.bob.token_file: everyone on this machine can read '{path}'; chmod 600 it"]
    assert found.check(bearer(TOKEN), False) == Principal("bob", None)


def test_a_path_may_begin_with_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    _file(tmp_path / "t", TOKEN)
    assert guard(token_file="~/t").required


def test_named_tokens_have_their_scopes() -> None:
    found = guard(
        {
            "alice": TokenConfig(token=TOKEN, scopes=["read", "write"]),
            "b.o-b@x": TokenConfig(sha256=sha256(OTHER.encode()).hexdigest().upper(), scopes=[]),
        }
    )
    assert found.check(bearer(TOKEN), False) == Principal("alice", frozenset({"read", "write"}))
    assert found.check(bearer(OTHER), False) == Principal("b.o-b@x", frozenset())


def test_a_variable_sets_the_owners_token(tmp_path: Path) -> None:
    found = config.load(environ={"LONGSHORE_AUTH_TOKEN": TOKEN}, cwd=str(tmp_path))
    assert Guard(found.auth, found.tokens, resource=RESOURCE).check(bearer(TOKEN), False) == Principal("token", None)


def test_a_variable_names_a_caller_in_small_letters(tmp_path: Path) -> None:
    found = config.load(environ={"LONGSHORE_TOKENS_CI_BOT_TOKEN": TOKEN}, cwd=str(tmp_path))
    assert Guard(found.auth, found.tokens, resource=RESOURCE).check(bearer(TOKEN), False) == Principal("ci_bot", None)


def test_a_variables_token_keeps_the_scopes_that_the_file_gives(tmp_path: Path) -> None:
    (tmp_path / "longshore.toml").write_text("[tokens.ci-bot]\nscopes = ['read']\n")
    found = config.load(environ={"LONGSHORE_TOKENS_CI_BOT_TOKEN": TOKEN}, cwd=str(tmp_path))
    outcome = Guard(found.auth, found.tokens, resource=RESOURCE).check(bearer(TOKEN), False)
    assert outcome == Principal("ci-bot", frozenset({"read"}))


def test_every_token_is_compared_whatever_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"caller{number}" for number in range(7)]
    found = guard({name: TokenConfig(token=f"{name}-{TOKEN}") for name in names}, token=TOKEN)
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def counted(a: Any, b: Any) -> bool:
        compared.append((a, b))
        return real(a, b)

    monkeypatch.setattr(hmac, "compare_digest", counted)
    for token in (TOKEN, f"caller0-{TOKEN}", f"caller6-{TOKEN}", OTHER):
        compared.clear()
        found.check(bearer(token), False)
        assert len(compared) == 8
        assert {len(part) for pair in compared for part in pair} == {32}
    compared.clear()
    assert principal(found.check(bearer(TOKEN), False)).name == "token"
    assert compared == [], "a known digest is looked up, not compared again"


@pytest.mark.parametrize(
    ("token", "why"),
    [
        ("", f"shorter than 16 characters; {MAKE}"),
        ("x" * 15, f"shorter than 16 characters; {MAKE}"),
        ("x" * 8193, f"longer than 8192 bytes; {MAKE}"),
        ("s3cret s3cret s3cret", f"a token has letters, digits and any of - . _ ~ + /; {MAKE}"),
        ("sécret-sécret-sécret", f"a token has letters, digits and any of - . _ ~ + /; {MAKE}"),
        ("s3cret-s3cret-s3cret\n", f"a token has letters, digits and any of - . _ ~ + /; {MAKE}"),
    ],
)
def test_an_unusable_token_is_refused(tmp_path: Path, token: str, why: str) -> None:
    assert error(token=token) == f"auth.token: {why}"
    assert error({"bob": TokenConfig(token=token)}) == f"tokens.bob.token: {why}"
    assert error(extra_token=token) == f"the token of this start: {why}"


@pytest.mark.parametrize("length", [16, 8192])
def test_token_lengths_are_checked_at_their_bounds(length: int) -> None:
    assert guard(token="x" * length).check(bearer("x" * length), False) == Principal("token", None)


def test_unusable_token_files_are_refused(tmp_path: Path) -> None:
    missing, empty, short = (str(tmp_path / name) for name in ("missing", "empty", "short"))
    _file(tmp_path / "empty", "\n")
    _file(tmp_path / "short", "x" * 15 + "\n")
    _file(tmp_path / "binary", "\u00e9" * 20)
    _file(tmp_path / "long", "x" * 9000)
    os.mkfifo(tmp_path / "fifo")
    assert error(token_file=missing) == f"auth.token_file: '{missing}' can't be read: no such file or directory"
    assert error(token_file=empty) == f"auth.token_file: '{empty}' is empty; {MAKE}"
    assert error({"bob": TokenConfig(token_file=short)}) == (
        f"tokens.bob.token_file: '{short}': shorter than 16 characters; {MAKE}"
    )
    assert "a token has letters" in error(token_file=str(tmp_path / "binary"))
    assert error(token_file=str(tmp_path / "long")).endswith("is larger than 8194 bytes")
    assert error(token_file=str(tmp_path)) == f"auth.token_file: '{tmp_path}' is not a file"
    assert error(token_file=str(tmp_path / "fifo")).endswith("is not a file")
    assert error(token_file="a\0b") == "auth.token_file: 'a\\x00b' can't be read: not a path"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"auth": {"token": TOKEN, "token_file": "f"}}, "auth.token and auth.token_file are both set; keep one"),
        ({"bob": {}}, "tokens.bob: no token; set token_file, sha256 or token"),
        ({"bob": {"scopes": ["a"]}}, "tokens.bob: no token; set token_file, sha256 or token"),
        ({"bob": {"token": TOKEN, "sha256": "x"}}, "tokens.bob: token and sha256 are set; keep one"),
        (
            {"bob": {"sha256": "abc"}},
            "tokens.bob.sha256: expected 64 hex digits; make them with: printf %s TOKEN | sha256sum",
        ),
        (
            {"b:ob": {"token": TOKEN}},
            'tokens."b:ob": a caller\'s name has up to 64 letters, digits and any of _ . @ + -',
        ),
        (
            {"b\nob": {"token": TOKEN}},
            'tokens."b\\nob": a caller\'s name has up to 64 letters, digits and any of _ . @ + -',
        ),
        ({"token": {"token": TOKEN}}, "tokens.token: the name is taken; choose another"),
        ({"$LOCAL": {"token": TOKEN}}, "tokens.$LOCAL: the name is taken; choose another"),
        (
            {"ann": {"token": TOKEN}, "bob": {"token": TOKEN}},
            "tokens.bob.token: the same token as tokens.ann.token; each caller needs one of their own",
        ),
        (
            {"auth": {"token": TOKEN}, "bob": {"sha256": sha256(TOKEN.encode()).hexdigest()}},
            "tokens.bob.sha256: the same token as auth.token; each caller needs one of their own",
        ),
    ],
)
def test_contradictory_settings_are_refused(settings: dict[str, dict[str, Any]], why: str) -> None:
    auth = settings.get("auth", {})
    tokens = {name: TokenConfig(**fields) for name, fields in settings.items() if name != "auth"}
    said = error(tokens, **auth)
    assert said == why
    assert TOKEN not in said
