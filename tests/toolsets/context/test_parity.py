"""Both engines rank alike: equal data gives the same hits with the same scores, at any moment."""

from __future__ import annotations

import argparse
import ast
import email.message
import json.decoder
import logging
import random
import shutil
import tarfile
import textwrap
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from longshore.toolsets.context.copying import copy_store
from longshore.toolsets.context.records import FileState, Moment, NewItem, NewLink, NewSource, Query, Targets
from longshore.toolsets.context.store import Store

from .graphs import ME, Clock, fact, opened

MODULES = (argparse, email.message, json.decoder, logging, shutil, tarfile, textwrap, zipfile)
QUERIES = 200


def functions() -> dict[str, list[NewItem]]:
    """The functions of some modules with their calls, by file."""
    found: dict[str, list[NewItem]] = {}
    for module in MODULES:
        path = f"{module.__name__.replace('.', '/')}.py"
        tree = ast.parse(Path(str(module.__file__)).read_text())
        symbols = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for name, node in symbols.items():
            calls = {each.id for each in ast.walk(node) if isinstance(each, ast.Name) and each.id in symbols} - {name}
            links = tuple(NewLink(to=call, relation="calls", kind="symbol", path=path) for call in sorted(calls))
            text = f"{ast.get_docstring(node) or ''}\n{ast.unparse(node)}"
            item = NewItem(kind="symbol", name=name, path=path, text=text, links=links)
            found.setdefault(path, []).append(item)
    return found


def fill(store: Store) -> None:
    """Files, notes about them, and changes of all kinds; the same ones in each store."""
    files = functions()
    chance = random.Random(17)
    for path, items in files.items():
        state = FileState(path=path, size=1, modified_ns=1, hash="1", parser="python 1")
        store.replace_file(state, items, NewSource(type="file", uri=path))
    for number in range(60):
        path, items = chance.choice(sorted(files.items()))
        about = chance.choice(items)
        links = (NewLink(to=about.name, relation="about", kind="symbol", path=path),)
        text = f"{about.name} reads option {number} of the archive, Größe {number % 7}"
        [added] = store.add([fact(f"remark {number}", text, links=links, importance=number / 60)], ME)
        assert added.observation is not None
        if number % 2:
            store.supersede(added.observation, f"{about.name} writes option {number} of the message", ME)
        if number % 5 == 0:
            store.retract(Targets(nodes=(added.node,)), ME)
        if number % 10 == 0:
            store.restore(Targets(nodes=(added.node,)), ME)
        if number % 7 == 3:
            store.purge(Targets(nodes=(added.node,)), ME)
    for path, items in list(files.items())[:2]:  # a new version of some files
        state = FileState(path=path, size=2, modified_ns=2, hash="2", parser="python 1")
        changed = [
            NewItem(kind="symbol", name=i.name, path=path, text=i.text + "\n# new", links=i.links) for i in items
        ]
        store.replace_file(state, changed[::2], NewSource(type="file", uri=path))


def queries(last: int) -> list[Query]:
    """Sentences of docstrings, single words, typing errors and phrases, of the present and of the past."""
    chance = random.Random(18)
    items = [item for listed in functions().values() for item in listed]
    found = list[Query]()
    for number in range(QUERIES):
        item = chance.choice(items)
        words = item.text.split()
        sentence = " ".join(words[:12]) if number % 3 else " ".join(chance.sample(words, min(5, len(words))))
        match number % 10:
            case 0:
                sentence = item.name
            case 1:
                sentence = item.name[:-2] + item.name[-1:] + "q"  # a word that nothing has
            case 2:
                sentence = f'"{" ".join(words[:3])}" {sentence}'
            case 3:
                sentence = f"option {number} of the archive message Grosse"
        moment = Moment()
        if number % 4 == 1:
            moment = Moment(valid_at=chance.randrange(1_000, last))
        elif number % 4 == 3:
            moment = Moment(known_at=chance.randrange(1_000, last))
        found.append(Query(text=sentence, moment=moment, kinds=("fact",) if number % 20 == 13 else ()))
    return found


def answer(store: Store, query: Query) -> Any:
    result = store.query(query)
    hits = [
        (hit.node.kind, hit.node.name, hit.node.path, hit.found_by, [o.text for o in hit.observations])
        for hit in result.hits
    ]
    return hits, (result.total, result.more, result.filtered, result.unknown), [hit.score for hit in result.hits]


def assert_equal_answers(one: Store, other: Store, asked: list[Query]) -> None:
    found = 0
    for query in asked:
        hits, facts, scores = answer(one, query)
        other_hits, other_facts, other_scores = answer(other, query)
        assert (hits, facts) == (other_hits, other_facts), query
        assert scores == pytest.approx(other_scores, rel=1e-9, abs=1e-12), query
        found += len(hits)
    assert found > 5 * len(asked)  # else the queries would show little


def test_the_engines_give_equal_answers(path: Path, postgres_url: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        file, server = (stack.enter_context(opened(place, clock=Clock())) for place in (path, postgres_url))
        fill(file)
        fill(server)
        assert file.check() == server.check() == []
        last = file.events(newest_first=True, limit=1)[0].at
        assert last == server.events(newest_first=True, limit=1)[0].at
        asked = queries(last)
        # The clocks go on with each question, on both sides alike.
        assert_equal_answers(file, server, asked)
        back = stack.enter_context(opened(tmp_path / "back.db", clock=Clock(last + len(asked))))
        copy_store(server, back)
        assert_equal_answers(server, back, asked)
