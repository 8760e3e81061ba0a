"""Which tools a server offers, and for how long each may run: what authors say, and the configuration over that."""

from __future__ import annotations

from math import inf
from typing import Literal

from longshore import config as configuration
from longshore.config import Config
from longshore.registry.catalog import Catalog
from longshore.registry.tool import Entry


def offer(catalog: Catalog, config: Config, default: float) -> dict[str, Entry]:
    """The tools to offer. Every entry learns what holds for it; `default` is the time of one that names none."""
    offered: dict[str, Entry] = {}
    for entry in catalog.entries():
        toolset = entry.toolset.name if entry.toolset is not None else None
        entry.limit = limit(config, entry.name, toolset, default if entry.timeout is None else entry.timeout)
        entry.result_bytes = configuration.tool_config(config, entry.name).result_bytes or 0
        entry.guarded = bool(entry.scopes or entry.headers)
        entry.plain = entry.typed_result and not entry.result_bytes
        entry.direct = entry.plain and entry.run == "inline" and not entry.keeps_frame and _always_open(entry)
        if entry.kind == "tool" and configuration.tool_enabled(config, entry.name, toolset):
            offered[entry.name] = entry
    return offered


def limit(config: Config, name: str, toolset: str | None, declared: float | Literal[False]) -> float:
    """The seconds that a tool may run."""
    return configuration.tool_timeout(config, name, toolset, declared) or inf


def _always_open(entry: Entry) -> bool:
    return entry.toolset is None or entry.toolset.stateless
