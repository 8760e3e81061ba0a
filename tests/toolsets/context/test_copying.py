"""Copying a store to another place, each way: everything or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from longshore.cli.context_copy import context_copy
from longshore.errors import StoreError
from longshore.toolsets.context import copying
from longshore.toolsets.context.copying import copy_store
from longshore.toolsets.context.records import FileState, NewItem, NewLink, NewSource, NodeChange, Targets
from longshore.toolsets.context.store import Store

from .graphs import ME, Clock, fact, names, opened

TABLES = ("source", "node", "observation", "edge", "event", "file_state", "term", "posting", "totals")


@pytest.fixture(params=["sqlite to postgres", "postgres to sqlite", "sqlite to sqlite", "postgres to postgres"])
def places(request: pytest.FixtureRequest, tmp_path: Path, postgres_url: str) -> tuple[str, str]:
    engines = request.param.split(" to ")
    other = postgres_url.replace("?schema=test_", "?schema=test_x")
    files, addresses = iter((str(tmp_path / "a.db"), str(tmp_path / "b.db"))), iter((postgres_url, other))
    source, target = (next(files if engine == "sqlite" else addresses) for engine in engines)
    return source, target


@pytest.fixture(autouse=True)
def no_second_schema(postgres: Any, postgres_url: str) -> Any:
    yield
    other = postgres_url.partition("?schema=test_")[2]
    postgres.run(f"DROP SCHEMA IF EXISTS test_x{other} CASCADE")


def fill(store: Store) -> None:
    """Some of all that a store can hold."""
    state = FileState(path="a.py", size=1, modified_ns=2, hash="3", parser="python 1")
    symbol = NewItem(kind="symbol", name="parse", path="a.py", text="def parse(): ...")
    store.replace_file(state, [symbol], NewSource(type="file", uri="a.py"))
    for number in range(30):
        text = f"Größe {number}\t\\N 'quoted' \\ 🚀\nline {number}"
        store.add([fact(f"f{number}", text, links=(NewLink(to="hub"),), importance=0.1 * (number % 7))], ME)
    store.supersede(2, "changed", ME, reason="new")
    store.add([fact("f1", "for some time", valid_from=5, valid_to=9_000_000_000_000_000, contradicts=3)], ME)
    store.retract(Targets(nodes=(4,)), ME)
    store.change_node(5, NodeChange(attributes={"a": [1, None, "\0"]}, pinned=True), ME)
    store.end_edge(6, ME)
    [last] = store.add([fact("purged", "xyzzy")], ME)
    store.purge(Targets(nodes=(last.node,)), ME)


def everything(store: Store) -> dict[str, list[Any]]:
    with store.database.reading() as transaction:
        return {table: sorted(transaction.rows(f"SELECT * FROM {table}"), key=repr) for table in TABLES}


def test_a_copy_has_every_row_and_goes_on_after_it(places: tuple[str, str]) -> None:
    with opened(places[0], clock=Clock()) as source, opened(places[1], clock=Clock(10**6)) as target:
        fill(source)
        told: list[tuple[str, int, int]] = []
        counts = copy_store(source, target, lambda *progress: told.append(progress))
        assert everything(target) == everything(source)
        assert counts["node"] == 32 and counts["file_state"] == 1
        assert ("node", 32, 32) in told
        assert target.check() == []
        [next_here], [next_there] = (store.add([fact("new", "apple")], ME) for store in (source, target))
        assert target.status().nodes == source.status().nodes
        assert next_there.node >= next_here.node > 33  # the purged node's id is not given again
        assert names(target, "apple") == ["new"]
        assert target.check() == []


def test_a_store_that_is_not_empty_is_replaced_only_if_asked(places: tuple[str, str]) -> None:
    with opened(places[0]) as source, opened(places[1]) as target:
        fill(source)
        target.add([fact("mine", "banana")], ME)
        before = everything(target)
        with pytest.raises(StoreError, match="it is not empty; nothing was copied"):
            copy_store(source, target)
        assert everything(target) == before
        copy_store(source, target, replace=True)
        assert everything(target) == everything(source)


def test_an_interrupted_copy_leaves_nothing(places: tuple[str, str]) -> None:
    def stop(table: str, done: int, total: int) -> None:
        if table == "posting":
            raise KeyboardInterrupt

    with opened(places[0]) as source, opened(places[1]) as target:
        fill(source)
        with pytest.raises(KeyboardInterrupt):
            copy_store(source, target, stop)
        assert target.status().nodes == target.status().events == 0
        copy_store(source, target)
        assert everything(target) == everything(source)


def test_a_copy_that_differs_is_not_kept(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = copying._rows

    def lossy(old: Any, table: Any, *rest: Any) -> Any:
        rows = list(read(old, table, *rest))
        return rows[:-1] if table.name == "posting" else rows

    def altered(old: Any, table: Any, *rest: Any) -> Any:
        rows = list(read(old, table, *rest))
        return [(*row[:-1], "{}") for row in rows] if table.name == "event" else rows

    with opened(tmp_path / "source.db") as source, opened(place) as target:
        fill(source)
        for wrong, message in ((lossy, "rows of posting, and not"), (altered, "other rows of event")):
            monkeypatch.setattr(copying, "_rows", wrong)
            with pytest.raises(StoreError, match=f"{message}.*nothing was changed"):
                copy_store(source, target)
            assert target.status().nodes == 0


def test_what_can_not_be_copied_is_refused(place: str, tmp_path: Path) -> None:
    with opened(place) as store, opened(tmp_path / "other.db") as other:
        with pytest.raises(StoreError, match="nothing in it to copy"):
            copy_store(store, other)
        with pytest.raises(StoreError, match="can't be copied to itself"):
            copy_store(store, store, replace=True)


# The command


def copy(*argv: str) -> str:
    group = click.Group("context", commands=[context_copy])
    result = CliRunner().invoke(group, ["copy", *argv])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return str(result.exception)
    return result.output


def test_the_command_copies_and_says_what(path: Path, postgres_url: str, tmp_path: Path) -> None:
    address = postgres_url.replace("//postgres@", "//postgres:s3cr3t@")
    with opened(path) as store:
        store.add([fact("a", "apple", links=(NewLink(to="b"),))], ME)
    said = copy(str(path), address)
    assert said.startswith(f"copied 2 nodes, 1 observation, 1 edge, 4 events from {path} to postgresql://postgres@")
    assert "s3cr3t" not in said
    assert "not empty" in copy(str(path), address)
    assert "copied 2 nodes" in copy(str(path), address, "--replace")
    back = tmp_path / "back.db"
    assert "copied 2 nodes" in copy(address, str(back))
    with opened(back) as store:
        assert names(store, "apple") == ["a", "b"]
    assert "no such file" in copy(str(tmp_path / "absent.db"), address)
    assert not (tmp_path / "absent.db").exists()
