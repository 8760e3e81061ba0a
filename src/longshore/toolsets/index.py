"""Writes an index of toolsets, from which a server declares them without importing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from longshore.app import Server
from longshore.registry.options import second_variables
from longshore.registry.toolset import Toolset
from longshore.registry.toolset_index import IndexedToolset, import_name, index_entries, index_flags


def write_index(app: Server, factories: Mapping[str, str]) -> bytes:
    """The index of the toolsets that `app`, which lints them, makes from these factories. The values are extras."""
    return b"[\n" + b",\n".join(_write(app, factory, extra) for factory, extra in factories.items()) + b"\n]\n"


def _write(app: Server, factory: str, extra: str) -> bytes:
    cls = import_name(factory)
    app.add_toolset(cls(app if cls.Options is None else cls.Options()))
    handle = list(app.catalog.toolsets.values())[-1]
    entries = list(index_entries([entry for entry in app.catalog.entries() if entry.toolset is handle]))
    options, available = type(handle.toolset).Options, type(handle.toolset).available
    head = msgspec.json.encode(
        IndexedToolset(
            name=handle.name,
            factory=factory,
            options="" if options is None else _path(options),
            variables={} if options is None else second_variables(options),
            extra=extra,
            available="" if available is Toolset.available else _path(available),
            watches=handle.is_told_of_watches,
            flags=index_flags(handle.toolset),
            entries=[],
        )
    )
    lines = b",\n".join(msgspec.json.encode(entry) for entry in entries)  # one a line, for readable diffs
    return head.removesuffix(b"]}") + b"\n" + lines + b"\n]}"


def _path(found: Any) -> str:
    return f"{found.__module__}:{found.__qualname__}"
