"""The corpus of the context graph's figures, and how they are counted."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.context_corpus import (
    Function,
    _sentence,
    counting,
    fill_store,
    full_text,
    longshore,
    more_functions,
    read_functions,
    resolve_calls,
)
from benchmarks.context_peer import MemoryServer
from benchmarks.context_quality import OURS, _changing_facts, recall
from benchmarks.load import Session


def test_each_contestant_finds_a_function_by_its_own_words(tmp_path: Path) -> None:
    functions = [f for f in read_functions(20_000) if f.path in ("textwrap.py", "shlex.py", "bisect.py")]
    number = next(n for n, f in enumerate(functions) if f.path == "textwrap.py" and f.name == "dedent")
    store, numbers = fill_store(str(tmp_path / "context.db"), functions)
    any_word, all_words = full_text(str(tmp_path / "fts.db"), functions)
    for search in (longshore(store, numbers), any_word, all_words, counting(functions)):
        assert search("textwrap dedent margin lines")[0] == number
    assert store.status().edges > 10
    assert '"""' not in functions[number].source
    store.close()


def test_a_larger_graph_has_as_many_edges_a_function() -> None:
    functions = [Function("a.py", name, f"def {name}()", "", frozenset(calls)) for name, calls in ("ab", "bc", "ca")]
    small, large = resolve_calls(functions), resolve_calls(more_functions(functions, 30))
    assert small == [{1}, {2}, {0}]
    assert large == [{3 * copy + other for other in called} for copy in range(10) for called in small]


@pytest.mark.parametrize(
    ("docstring", "query"),
    [
        ("Return the names of all open files. And more.", "Return the names of all open files."),
        ("Return the names\n    of all open files\n\nMore.", "Return the names of all open files"),
        ("Return five words or less.", ""),
        ("Each call of find returns one more name.", ""),
    ],
)
def test_a_query_has_six_words_and_not_the_name(docstring: str, query: str) -> None:
    assert _sentence(docstring, "find") == query


def test_recall_counts_queries_that_were_answered_in_time() -> None:
    assert recall({1: 1, 2: 5, 3: 6, 4: 0}, 5) == 0.5


def test_facts_that_change_are_answered_exactly(tmp_path: Path) -> None:
    exact, stale = _changing_facts(Session(quick=True), tmp_path / "facts.db")
    assert (exact.figures[OURS].median, stale.figures[OURS].median) == (100, 0)


def test_the_memory_server_finds_whole_queries_and_rarest_words(tmp_path: Path) -> None:
    functions = [
        Function("a.py", "first", "def first(): return needle", "", frozenset()),
        Function("b.py", "second", "def second(): return pin", "", frozenset()),
    ]
    with MemoryServer(tmp_path) as server:
        server.add(functions)
        assert server.search("return") == [0, 1]
        assert server.search("return the needle") == []
        assert server.search_rarest("Return the NEEDLE of the haystack") == [0]
        results = server.call_at_once("search_nodes", [{"query": "needle"}, {"query": "pin"}])
    found = [[entity["name"] for entity in result["structuredContent"]["entities"]] for result in results]
    assert found == [["0 a.py:first"], ["1 b.py:second"]]


def test_more_functions_are_made_of_the_same_lines() -> None:
    functions = read_functions(50)
    more = more_functions(functions, 120)
    assert more[:50] == functions
    assert len({(f.path, f.name) for f in more}) == 120
    assert more == more_functions(functions, 120)
