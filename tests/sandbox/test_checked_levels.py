"""The levels that are remembered as enforceable, so that a start need not try them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from longshore.sandbox import checked_levels
from longshore.sandbox.checked_levels import MOST_REMEMBERED, remember, was_checked

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/ns/user"), reason="only Linux tells what decides it")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "longshore" / "sandbox-levels"


def test_only_a_level_that_was_remembered_was_checked() -> None:
    assert not was_checked("workspace")
    remember("workspace")
    assert was_checked("workspace")
    assert not was_checked("read-only")


def test_another_boot_or_bubblewrap_or_user_is_checked_again(cache: Path) -> None:
    remember("workspace")
    parts = cache.read_text().split(" ")
    for index in range(len(parts)):
        cache.write_text(" ".join([*parts[:index], parts[index] + "0", *parts[index + 1 :]]))
        assert not was_checked("workspace"), parts[index]
    cache.write_text(" ".join(parts))
    assert was_checked("workspace")


def test_a_program_of_another_version_is_checked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bwrap"
    program.write_text("1")
    monkeypatch.setattr(checked_levels, "_PROGRAMS", [str(program)])
    remember("workspace")
    assert was_checked("workspace")
    program.write_text("22")
    assert not was_checked("workspace")


@pytest.mark.parametrize("count", [MOST_REMEMBERED - 1, MOST_REMEMBERED, MOST_REMEMBERED + 1])
def test_the_oldest_of_too_many_levels_is_forgotten(count: int) -> None:
    for number in range(count):
        remember(f"level-{number}")
    assert was_checked("level-0") == (count <= MOST_REMEMBERED)
    assert was_checked(f"level-{count - 1}")


def test_a_cache_that_can_not_be_read_or_written_is_no_problem(cache: Path) -> None:
    cache.mkdir(parents=True)
    remember("workspace")
    assert not was_checked("workspace")
    cache.rmdir()
    cache.write_bytes(b"\xff\0" * 100_000)
    assert not was_checked("workspace")
    remember("workspace")
    assert was_checked("workspace")
