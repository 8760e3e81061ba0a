"""Lint results are cached between starts, and a missing or broken cache is harmless."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import longshore
from longshore.registry import lint_cache, tool_lint
from longshore.registry.lint_cache import FILE_BYTES, MOST_TOOLS, LintCache
from longshore.schema import validate
from longshore.schema.lint import run
from longshore.schema.lint.rules import naming


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "longshore" / "lint"


def never() -> tuple[list[str], bool]:
    raise AssertionError("looked at again")


def nothing() -> tuple[list[str], bool]:
    return [], True


def learn(subject: Any, found: list[str], server: str = "t") -> None:
    memory = LintCache(server)
    assert memory.recall(subject, lambda: (found, True)) == found
    memory.save()


def knows(subject: Any, server: str = "t") -> bool:
    try:
        LintCache(server).recall(subject, never)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("found", [[], ["E04: …", "E05: …"]])
def test_a_cached_result_is_returned_without_linting(folder: Path, found: list[str]) -> None:
    learn({"name": "a"}, found)
    assert LintCache("t").recall({"name": "a"}, never) == found


def test_a_different_tool_or_server_is_linted(folder: Path) -> None:
    learn({"name": "a"}, [])
    assert not knows({"name": "a", "title": "A"})
    assert not knows({"name": "a"}, "another server")


def test_another_version_lints_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learn({"name": "a"}, [])
    monkeypatch.setattr(lint_cache, "__version__", "99")
    assert not knows({"name": "a"})
    learn({"name": "a"}, [])
    assert knows({"name": "a"}) and len(os.listdir(folder)) == 1


def test_the_digest_follows_the_files_of_the_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in lint_cache._SOURCES:
        (tmp_path / folder).mkdir(parents=True, exist_ok=True)
    rules = tmp_path / "schema" / "lint" / "rules"
    monkeypatch.setattr(lint_cache, "__file__", str(tmp_path / "registry" / "lint_cache.py"))
    digests = {lint_cache._rules_digest()}
    for name, text in (("names.py", "1"), ("names.py", "22"), ("rules.json", "{}")):
        (rules / name).write_text(text)
        digests.add(lint_cache._rules_digest())
    assert len(digests) == 4


@pytest.mark.parametrize("module", [tool_lint, run, naming, validate])
def test_the_digest_covers_all_code_that_lints(module: ModuleType) -> None:
    folder = Path(module.__file__ or "").parent.relative_to(Path(longshore.__file__).parent)
    assert folder.as_posix() in lint_cache._SOURCES


def test_a_refusal_is_not_cached(folder: Path) -> None:
    memory = LintCache("t")
    with pytest.raises(ZeroDivisionError):
        memory.recall("a", lambda: ([str(1 // 0)], True))
    memory.save()
    assert not folder.exists() and not knows("a")


def test_only_the_user_can_read_the_cache(folder: Path) -> None:
    learn("a", [])
    (file,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and stat.S_IMODE(file.stat().st_mode) == 0o600


def _cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3])


def _other_shape(file: Path) -> None:
    file.write_text('{"rules":3,"found":[]}')


def _deep(file: Path) -> None:
    file.write_text('{"x":' + "[" * 100_000)


def _huge(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b" " * FILE_BYTES)


def _binary(file: Path) -> None:
    file.write_bytes(bytes(range(256)))


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize("spoil", [_cut, _other_shape, _deep, _huge, _binary, _folder, _pipe])
def test_a_broken_cache_file_is_ignored(folder: Path, spoil: Callable[[Path], None]) -> None:
    learn("a", [])
    (file,) = folder.iterdir()
    spoil(file)
    assert not knows("a")
    learn("a", [])  # and where it can't be written, nothing is said


@pytest.mark.parametrize("home", ["", "relative"])
def test_without_a_home_nothing_is_cached(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", home)
    monkeypatch.setenv("HOME", "relative")
    learn("a", [])
    assert not knows("a")


def test_a_cache_folder_that_cant_be_made_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "longshore").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    learn("a", [])
    assert not knows("a")


def test_without_new_results_no_file_is_written(folder: Path) -> None:
    learn("a", [])
    (file,) = folder.iterdir()
    file.unlink()
    memory = LintCache("t")
    memory._found = {lint_cache._digest("a"): []}
    memory.recall("a", never)
    memory.save()
    assert not file.exists()


def test_two_processes_that_start_at_once_save_the_results_of_both(folder: Path) -> None:
    one, other = LintCache("t"), LintCache("t")
    one.recall("a", nothing)
    other.recall("b", nothing)
    one.save()
    other.save()
    assert knows("a") and knows("b")


def test_the_newest_results_stay_if_there_are_too_many(folder: Path) -> None:
    memory = LintCache("t")
    for number in range(MOST_TOOLS + 5):
        memory.recall(number, nothing)
    memory.save()
    (file,) = folder.iterdir()
    assert len(msgspec.json.decode(file.read_bytes())["found"]) == MOST_TOOLS
    assert knows(MOST_TOOLS + 4) and knows(5) and not knows(4)


def test_used_results_stay_before_unused_ones(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint_cache, "MOST_TOOLS", 3)
    for subject in ("a", "b", "c"):
        learn(subject, [])
    memory = LintCache("t")
    memory.recall("a", never)
    memory.recall("d", nothing)
    memory.save()
    assert (knows("a"), knows("b"), knows("c"), knows("d")) == (True, False, True, True)


def test_a_file_that_is_too_large_is_not_written(folder: Path) -> None:
    memory = LintCache("t")
    for number in range(500):
        memory.recall(number, lambda: (["é" * 600], True))
    memory.save()
    assert not folder.exists()


def test_a_result_that_is_not_final_is_not_cached(folder: Path) -> None:
    memory = LintCache("t")
    assert memory.recall("a", lambda: (["a rule failed"], False)) == ["a rule failed"]
    memory.save()
    assert not folder.exists() and not knows("a")


def test_a_server_name_without_a_json_form_has_no_file(folder: Path) -> None:
    learn("a", [], "\ud800")
    assert not knows("a", "\ud800") and not folder.exists()


def test_the_oldest_files_are_deleted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint_cache, "MOST_FILES", 2)
    for number, server in enumerate(("a", "b", "c")):
        learn("x", [], server)
        os.utime(LintCache(server)._path or "", (number, number))
    learn("x", [], "d")
    assert (knows("x", "a"), knows("x", "c"), knows("x", "d")) == (False, True, True)


def test_a_subject_without_a_json_form_is_linted_each_time(folder: Path) -> None:
    looks: list[int] = []
    memory = LintCache("t")
    for _ in range(2):
        memory.recall({1, object()}, lambda: (looks.append(1) or [], True))  # type: ignore[func-returns-value]
    memory.save()
    assert len(looks) == 2 and not folder.exists()
