"""A catalogue of 300 tools, and two sets of 100 requests in plain language with the tools that answer them.

`catalog/` has a file for each source. Six are listings of real servers (`catalog_capture.py` writes them),
`brooklyn.json` has the tools of Brooklyn by their names and parameters, and `services.json` has what people mount
besides: calendar, mail, issues, payments and so on. The last two and the requests were written by hand. A request is
answered by each tool that would do what it says; several servers offer the same.

The search is held to `requests.json`, written before there was a search; its ranking was tuned afterwards.
`fresh_requests.json` was written after that and without a look at the search, to measure it on requests that it was
not tuned on: choose nothing of the ranking on them. They ask for nearly every fifth tool of the real servers and two in
three of the services, so that no tool was picked because it is easy to ask for. There, a tool that runs any code or
command is right only where running it is what is asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "catalog"
REQUESTS = FOLDER / "requests.json"
FRESH_REQUESTS = FOLDER / "fresh_requests.json"
# In the order in which a gateway would list them.
SOURCES = ("filesystem", "memory", "everything", "playwright", "devtools", "commander", "brooklyn", "services")


@dataclass(frozen=True)
class Request:
    text: str
    tools: frozenset[str]
    """Each of them is right."""


def read_tools() -> list[dict[str, Any]]:
    """The whole catalogue, as `tools/list` would have it."""
    return [tool for source in SOURCES for tool in json.loads((FOLDER / f"{source}.json").read_text())["tools"]]


def read_requests(*, fresh: bool = False) -> list[Request]:
    """The requests that search is held to, or the fresh ones, which nothing was tuned on."""
    path = FRESH_REQUESTS if fresh else REQUESTS
    return [Request(each["request"], frozenset(each["tools"])) for each in json.loads(path.read_text())]


def write_tools(path: Path, source: str, tools: Iterable[Mapping[str, Any]]) -> None:
    """Write a part of the catalogue, a tool a line."""
    lines = ",\n".join(json.dumps(tool, ensure_ascii=False, separators=(",", ":")) for tool in tools)
    path.write_text(f'{{"source":{json.dumps(source)},"tools":[\n{lines}\n]}}\n')
