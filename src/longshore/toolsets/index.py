"""Writes an index of toolsets, from which a server declares them without importing them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping

import msgspec

from longshore.app import Server
from longshore.registry.options import second_variables
from longshore.registry.toolset_index import IndexedToolset, index_entries, index_flags


def write_index(app: Server, factories: Mapping[str, str]) -> bytes:
    """The index of the toolsets that `app`, which lints them, makes from these factories. The values are extras."""
    return b"[\n" + b",\n".join(_write(app, factory, extra) for factory, extra in factories.items()) + b"\n]\n"


def _write(app: Server, factory: str, extra: str) -> bytes:
    module, _, name = factory.partition(":")
    app.add_toolset(app.make_toolset(getattr(importlib.import_module(module), name), ""))
    handle = list(app.catalog.toolsets.values())[-1]
    entries = list(index_entries([entry for entry in app.catalog.entries() if entry.toolset is handle]))
    options = type(handle.toolset).Options
    head = msgspec.json.encode(
        IndexedToolset(
            name=handle.name,
            factory=factory,
            options="" if options is None else f"{options.__module__}:{options.__name__}",
            variables={} if options is None else second_variables(options),
            extra=extra,
            flags=index_flags(handle.toolset),
            entries=[],
        )
    )
    lines = b",\n".join(msgspec.json.encode(entry) for entry in entries)  # one a line, for readable diffs
    return head.removesuffix(b"]}") + b"\n" + lines + b"\n]}"
