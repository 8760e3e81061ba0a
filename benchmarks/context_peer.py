"""The context tools against the official memory server, both over stdio: recall, kept writes, and tokens of answers.

The memory server gets the same functions as entities, by its own `create_entities`. It looks for the whole query as one
substring; it is also given the rarest word of each query, which is the best that a caller who knew all texts could do.
It ranks nothing: its first ten entities count.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.claim import Claim, Target
from benchmarks.context_corpus import SEED, Function, Search
from benchmarks.environment import SetupFailed, node_server, python
from benchmarks.load import LoadFailed, Session, progress
from benchmarks.stdio_server import StdioServer, count_tokens
from longshore.text_search.tokenizer import STOP_WORDS

OURS, OFFICIAL, RAREST = "longshore", "server-memory", "server-memory, rarest word"
PACKAGE = "@modelcontextprotocol/server-memory"
ADDED_AT_ONCE = 500
PIPELINED = 100
BROAD = "return"
"""Most functions have it."""
ANSWER_TOKENS = 2_000
LISTING_SHARE = 0.4
_WORD = re.compile(r"\w+")


class MemoryServer(StdioServer):
    """The official memory server with functions as its entities."""

    def __init__(self, folder: Path) -> None:
        variables = {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}
        super().__init__(node_server(PACKAGE), folder=folder, home=folder, variables=variables)
        self._texts = list[str]()

    def add(self, functions: Sequence[Function]) -> None:
        for start in range(0, len(functions), ADDED_AT_ONCE):
            progress(f"{OFFICIAL}: {start:,} of {len(functions):,} entities")
            self.call("create_entities", entities=[
                {"name": f"{start + n} {f.path}:{f.name}", "entityType": "symbol", "observations": [f.source]}
                for n, f in enumerate(functions[start : start + ADDED_AT_ONCE])
            ])  # fmt: skip
        self._texts = [f"{n} {f.path}:{f.name} {f.source}".lower() for n, f in enumerate(functions)]

    def search(self, text: str) -> list[int]:
        found = self.call("search_nodes", query=text).result["structuredContent"]["entities"]
        return [int(entity["name"].split()[0]) for entity in found[:10]]

    def search_rarest(self, text: str) -> list[int]:
        """Search for the word of the text that the fewest entities have."""
        words = {
            word: sum(word in each for each in self._texts) for word in set(_WORD.findall(text.lower())) - STOP_WORDS
        }
        having = [word for word, count in words.items() if count]
        return self.search(min(having, key=lambda word: (words[word], word))) if having else []


def measure_peer(
    session: Session, folder: Path, functions: Sequence[Function], database: str, others: Mapping[str, Search]
) -> list[Claim]:
    """The claims; `others` search the same functions, and `database` has them as a context graph."""
    try:
        with ExitStack() as stack:
            home = folder / "home"
            home.mkdir()
            command = [str(python("longshore")), "-m", "longshore", "serve", "--root", str(home)]

            def ours(path: str) -> StdioServer:
                variables = {"CONTEXTGRAPH_DB": path}
                return stack.enter_context(StdioServer(command, folder=home, home=home, variables=variables))

            (folder / "few").mkdir()
            few = stack.enter_context(MemoryServer(folder / "few"))
            kept = _kept(ours(str(folder / "few.db")), few)
            official, full = stack.enter_context(MemoryServer(folder)), ours(database)
            official.add(functions)
            found = others | {OFFICIAL: official.search, RAREST: official.search_rarest}
            return [_recall(session, functions, found), kept, _broad(full, official), _listing(full, official)]
    except (LoadFailed, SetupFailed, OSError) as failure:
        return [Claim("context_peer", "The official memory server", "share", errors=[str(failure)])]


def _recall(session: Session, functions: Sequence[Function], searches: Mapping[str, Search]) -> Claim:
    numbers = [number for number, function in enumerate(functions) if function.sentence]
    count = min(len(numbers), session.pick(full=300, quick=20))
    claim = Claim("context_peer_recall", f"Recall at 10 of {count} of these queries, asked over stdio too", "share")
    claim.base = OFFICIAL
    chosen = random.Random(SEED).sample(numbers, count)
    for name, search in searches.items():
        found = 0
        for done, number in enumerate(chosen):
            progress(f"{name}: {done} of {count} queries")
            found += number in search(functions[number].sentence)
        claim.add(name, [found / max(1, count)])
    progress("")
    return claim


def _kept(ours: StdioServer, official: StdioServer) -> Claim:
    names = [f"pipelined {number:03}" for number in range(PIPELINED)]
    added = ours.call_at_once("add_context", [{"items": [{"kind": "note", "name": n, "text": "x"}]} for n in names])
    entities = [{"name": name, "entityType": "note", "observations": ["x"]} for name in names]
    created = official.call_at_once("create_entities", [{"entities": [entity]} for entity in entities])
    claim = Claim("context_kept", f"{PIPELINED} pipelined writes: kept, of those reported as done", "%")
    claim.targets = [Target(OURS, 100, at_most=False)]
    claim.add(OURS, [_share(added, lambda: sum(_has(ours, name) for name in names))])
    claim.add(OFFICIAL, [_share(created, lambda: _opened(official, names))])
    return claim


def _share(results: Sequence[dict[str, Any]], kept: Callable[[], int]) -> float:
    return 100 * kept() / max(1, sum(not result.get("isError") for result in results))


def _has(ours: StdioServer, name: str) -> bool:
    return f"note: “{name}”" in ours.call("get_context", ids=[name]).text


def _opened(official: StdioServer, names: list[str]) -> int:
    return len(official.call("open_nodes", names=names).result["structuredContent"]["entities"])


def _broad(ours: StdioServer, official: StdioServer) -> Claim:
    claim = Claim("context_broad", f"The answer to a broad query, {BROAD!r}", "tokens", base=OFFICIAL)
    claim.targets = [Target(OURS, ANSWER_TOKENS)]
    claim.add(OURS, [count_tokens(ours.call("query_context", query=BROAD).text)])
    claim.add(OFFICIAL, [count_tokens(official.call("search_nodes", query=BROAD).text)])
    claim.notes.append(f"{OFFICIAL} sends the same again as structured content, which is not counted.")
    return claim


def _listing(ours: StdioServer, official: StdioServer) -> Claim:
    claim = Claim("context_listing", "What tools/list says of the tools", "tokens")
    claim.targets = [Target(OURS, LISTING_SHARE, against=OFFICIAL)]
    listed = [tool for tool in ours.ask("tools/list").result["tools"] if _is_of_context(tool["name"])]
    theirs = official.ask("tools/list").result["tools"]
    claim.notes.append(f"{len(listed)} tools and {len(theirs)}.")
    claim.add(OURS, [count_tokens(listed)])
    claim.add(OFFICIAL, [count_tokens(theirs)])
    return claim


def _is_of_context(name: str) -> bool:
    return name.endswith("_context") or name in ("ingest_path", "context_status")
