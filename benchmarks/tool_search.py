"""A catalogue of 300 tools in each form: what `tools/list` says of it, and whether requests in plain words find tools.

The catalogue and the requests are those of `catalog_corpus`; the server is the one that serves them, over stdio. A
request is answered if a right tool is among the first five that `search_tools` names. The first hundred requests were
written before there was a ranking, and their misses were looked at when it was tuned. The fresh hundred were written
afterwards, as users speak ("take the lamppost out of holiday.jpg"), not as a model searches: words find about half.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.catalog_corpus import Request, read_requests, read_tools
from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.environment import HERE
from benchmarks.load import Session
from benchmarks.stdio_server import StdioServer

FULL, SEARCH, CODE, FOUND = "form full", "form search", "form code", "longshore"
FORMS = {FULL: "full", SEARCH: "search", CODE: "code"}
HITS = 5


def measure(session: Session) -> list[Claim]:
    with TemporaryDirectory() as folder:
        place = Path(folder)
        listing = Claim("catalog_listing", f"What tools/list says of {len(read_tools())} tools", "tokens", base=FULL)
        for name in FORMS:
            listing.add(name, [_list(place, name)])
        listing.targets = [Target(form, 0.02, against=FULL) for form in (SEARCH, CODE)]
        tuned = _search(place, "catalog_search", "requests in plain words", read_requests())
        tuned.targets = [Target(FOUND, 0.95, at_most=False)]
        fresh = _search(
            place, "catalog_search_fresh", "requests after the tuning, as users speak", read_requests(fresh=True)
        )
        return [listing, tuned, fresh]


def _serve(folder: Path, name: str) -> StdioServer:
    server = str(HERE / "servers" / "catalog_server.py")
    command = [sys.executable, "-m", "longshore", "serve", server, "--catalog", FORMS[name]]
    return StdioServer(command, folder=folder, home=folder)


def _list(folder: Path, name: str) -> float:
    with _serve(folder, name) as server:
        return server.ask("tools/list").tokens


def _search(folder: Path, name: str, what: str, requests: Sequence[Request]) -> Claim:
    title = f"{len(requests)} {what}: a right tool among the first {HITS} of {len(read_tools())}"
    claim = Claim(name, title, "share")
    with _serve(folder, SEARCH) as server:
        answers = [server.call("search_tools", query=each.text, detail="name", limit=HITS) for each in requests]
    places = [_place(each, answer.text.splitlines()) for each, answer in zip(requests, answers, strict=True)]
    claim.add(FOUND, [sum(place > 0 for place in places) / len(places)])
    claim.notes.append(f"First of all: {sum(place == 1 for place in places)} of {len(places)}.")
    return claim


def _place(request: Request, names: Sequence[str]) -> int:
    """At which place the first right tool is, from 1 on; 0 if there is none."""
    return next((place for place, name in enumerate(names, 1) if name in request.tools), 0)


if __name__ == "__main__":
    sys.exit(main([measure]))
