"""What is remembered of a server for completion, and for how long."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from longshore.cli import memory
from longshore.cli.memory import FAILED, keep, recall
from longshore.cli.table import WIDEST, aligned
from longshore.client.records import ResourceInfo, ToolInfo


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "longshore" / "offers"


def tool(name: str) -> Any:
    return ToolInfo(name=name, record={}, input_schema={})


def resource(uri: str) -> Any:
    return ResourceInfo(uri=uri, name="", record={})


def test_each_list_has_a_time_of_its_own(folder: Path) -> None:
    keep("x", tools=[tool("a")])
    [file] = folder.iterdir()
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "at": {"tools": time.time() - memory.FRESH_SECONDS - 1}}))
    keep("x", resources=[resource("r")])
    found = recall("x")
    assert found is not None and found.tools is not None
    assert (found.tools[0].name, found.resources) == ("a", ["r"])
    assert found.is_fresh("resources") and not found.is_fresh("tools"), "it was not listed anew"


def test_a_failure_is_remembered_until_the_next_success() -> None:
    keep("x", failed=True)
    found = recall("x")
    assert found is not None and found.is_fresh(FAILED) and not found.is_fresh("tools")
    keep("x", tools=[])
    found = recall("x")
    assert found is not None and not found.is_fresh(FAILED) and found.is_fresh("tools")


def test_a_visit_is_remembered_though_nothing_was_listed() -> None:
    assert recall("x") is None
    keep("x")
    assert recall("x") is not None


def test_so_much_is_kept_of_a_server(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    keep("x", tools=[tool("a" * 100)])
    [file] = folder.iterdir()
    size = len(file.read_bytes())
    for most, whole in ((size + 20, True), (size - 20, False)):
        monkeypatch.setattr(memory, "FILE_BYTES", most)
        file.unlink()
        keep("x", tools=[tool("a" * 100)])
        found = recall("x")
        assert found is not None
        assert (found.tools is not None) == whole
        assert found.is_fresh("tools" if whole else FAILED), "it is not asked at every Tab"


def test_so_many_servers_are_kept(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr(memory, "MOST_FILES", 3)
    for n in range(3):
        keep(f"x{n}")
        assert len(list(folder.iterdir())) == n + 1
    keep("x3")
    assert len(list(folder.iterdir())) == 3 and recall("x3") is not None


def test_nothing_is_left_beside_and_nobody_else_reads(folder: Path) -> None:
    keep("x", tools=[tool("a")])
    keep("x", tools=[tool("b")])
    [file] = folder.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600 and folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("width", "gap"), [(WIDEST - 1, WIDEST - 2), (WIDEST, WIDEST - 1), (WIDEST + 1, WIDEST - 1)])
def test_columns_are_so_wide_at_most(width: int, gap: int) -> None:
    assert aligned([["a", "b"], ["x" * width, "c"]]) == f"a{' ' * (gap + 2)}b\n{'x' * width}  c"
