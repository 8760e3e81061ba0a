"""The functions of the running Python's standard library, as a corpus for search: nothing is downloaded.

A query is the first sentence of a function's docstring, if it has six words or more and does not name the function.
What is searched is the functions' source without docstrings, with their names and files; edges are calls of functions
whose name at most three have. Where mixtures of functions are added, each function has one in each copy of the
library, and calls stay within a copy: so a larger graph has as many edges a node. Directories of tests are left out.
"""

from __future__ import annotations

import ast
import os
import random
import re
import sqlite3
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from longshore.text_search.tokenizer import STOP_WORDS
from longshore.toolsets.context.records import NewItem, NewLink, NewSource, Query
from longshore.toolsets.context.store import Store, open_store

SEED = 20_261_118
LEAST_WORDS = 6
MOST_NAMESAKES = 3
ADDED_AT_ONCE = 200
LEFT_OUT = ("site-packages", "__pycache__", "test", "tests", "idlelib", "lib2to3")
"""Folders of the standard library."""
_WORD = re.compile(r"\w+")

Search = Callable[[str], list[int]]
"""Gives the numbers of the ten best functions for a query."""


@dataclass(frozen=True)
class Function:
    path: str
    name: str
    source: str
    sentence: str  # the query; empty if the function is only searched
    calls: frozenset[str]
    copy: int = 0  # of the library: calls are of functions of the same one


def read_functions(count: int) -> list[Function]:
    """So many functions of the standard library, always the same ones of one version."""
    library = sysconfig.get_paths()["stdlib"]
    found = list[Function]()
    for folder, folders, files in os.walk(library):
        folders[:] = sorted(set(folders).difference(LEFT_OUT))
        for file in sorted(files):
            if file.endswith(".py"):
                found += _functions_of(Path(folder, file), library)
    random.Random(SEED).shuffle(found)
    return found[:count]


def more_functions(functions: Sequence[Function], count: int) -> list[Function]:
    """So many functions: the given ones, then mixtures of the lines of two of them."""
    chance = random.Random(SEED)
    found = list(functions)
    while len(found) < count:
        one, other = functions[len(found) % len(functions)], chance.choice(functions)
        lines = [line for line in one.source.split("\n") if chance.random() < 0.6]
        lines += [line for line in other.source.split("\n") if chance.random() < 0.3]
        number = len(found) // len(functions)
        found.append(Function(f"copy{number}/{one.path}", one.name, "\n".join(lines), "", one.calls, number))
    return found


def _functions_of(file: Path, library: str) -> Iterator[Function]:
    try:
        text = file.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    path, lines = os.path.relpath(file, library), text.split("\n")
    waiting: list[tuple[ast.AST, str]] = [(tree, "")]
    while waiting:
        parent, prefix = waiting.pop()
        for node in ast.iter_child_nodes(parent):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield _function(node, path, prefix + node.name, lines)
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            waiting.append((node, f"{prefix}{node.name}." if named else prefix))


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef, path: str, name: str, lines: list[str]) -> Function:
    docstring = ast.get_docstring(node)
    source = lines[node.lineno - 1 : node.end_lineno]
    if docstring is not None:
        first = node.body[0]
        source = lines[node.lineno - 1 : first.lineno - 1] + lines[first.end_lineno or 0 : node.end_lineno]
    called = [call.func for call in ast.walk(node) if isinstance(call, ast.Call)]
    calls = {f.id if isinstance(f, ast.Name) else f.attr for f in called if isinstance(f, ast.Name | ast.Attribute)}
    return Function(path, name, "\n".join(source), _sentence(docstring or "", node.name), frozenset(calls))


def _sentence(docstring: str, name: str) -> str:
    first = " ".join(re.split(r"(?<=[.!?])\s|\n\s*\n", docstring.strip())[0].split())
    is_query = len(first.split()) >= LEAST_WORDS and name.lower() not in first.lower()
    return first if is_query else ""


# The contestants


def fill_store(path: str, functions: Sequence[Function]) -> tuple[Store, dict[int, int]]:
    """A context graph of the functions and their calls; and for each node, the function's number."""
    store, source = open_store(path), NewSource(type="import", uri="the standard library")
    called = resolve_calls(functions)
    nodes, numbers = dict[int, int](), dict[int, int]()
    for start in range(0, len(functions), ADDED_AT_ONCE):
        some = functions[start : start + ADDED_AT_ONCE]
        items = [NewItem(kind="symbol", name=f.name, path=f.path, text=f.source[:100_000]) for f in some]
        for number, added in enumerate(store.add(items, source), start):
            nodes[number] = added.node
            numbers[added.node] = number
    for start in range(0, len(functions), ADDED_AT_ONCE):
        items = list[NewItem]()
        for number, function in enumerate(functions[start : start + ADDED_AT_ONCE], start):
            links = tuple(NewLink(to=f"n{nodes[n]}", relation="calls") for n in sorted(called[number]))
            if links:
                items.append(NewItem(kind="symbol", name=function.name, path=function.path, links=links))
        store.add(items, source)
    return store, numbers


def resolve_calls(functions: Sequence[Function]) -> list[set[int]]:
    """For each function, the numbers of those of its copy of the library that it calls."""
    by_name = dict[tuple[int, str], list[int]]()
    for number, function in enumerate(functions):
        by_name.setdefault((function.copy, function.name.rpartition(".")[2]), []).append(number)
    return [
        {n for name in function.calls for n in _few(by_name.get((function.copy, name), [])) if n != number}
        for number, function in enumerate(functions)
    ]


def _few(numbers: list[int]) -> list[int]:
    return numbers if len(numbers) <= MOST_NAMESAKES else []


def longshore(store: Store, numbers: dict[int, int]) -> Search:
    def search(text: str) -> list[int]:
        return [numbers[hit.node.id] for hit in store.query(Query(text=text)).hits]

    return search


def full_text(path: str, functions: Sequence[Function]) -> tuple[Search, Search]:
    """SQLite's FTS5 as it comes (unicode61), with any and with all of the words."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE VIRTUAL TABLE function USING fts5 (name, path, source)")
    rows = [(number, f.name, f.path, f.source) for number, f in enumerate(functions)]
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO function (rowid, name, path, source) VALUES (?, ?, ?, ?)", rows)
    connection.execute("COMMIT")

    def search(text: str, operator: str) -> list[int]:
        match = f" {operator} ".join(f'"{word}"' for word in _WORD.findall(text))
        sql = "SELECT rowid FROM function WHERE function MATCH ? ORDER BY rank LIMIT 10"
        return [row[0] for row in connection.execute(sql, (match,))]

    return lambda text: search(text, "OR"), lambda text: search(text, "AND")


def counting(functions: Sequence[Function]) -> Search:
    """What grep can do: the functions that have the most of the query's words, without stop words; short ones first."""
    bags = [set(_WORD.findall(f"{f.name} {f.path} {f.source}".lower())) for f in functions]
    lengths = [len(f.source) for f in functions]

    def search(text: str) -> list[int]:
        words = set(_WORD.findall(text.lower())) - STOP_WORDS
        return sorted(range(len(bags)), key=lambda n: (-len(words & bags[n]), lengths[n]))[:10]

    return search
