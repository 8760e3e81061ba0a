"""Writes an index of toolsets, from which a server declares them without importing them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import fields

from longshore.app import Server
from longshore.errors import RegistrationError
from longshore.registry.options import second_variables
from longshore.registry.toolset import Toolset
from longshore.registry.toolset_index import IndexedToolset, import_name, index_entries, index_flags


def write_index(app: Server, factories: Mapping[str, str]) -> bytes:
    """The index of the toolsets that `app`, which lints them, makes from these factories. The values are extras."""
    return b"[\n" + b",\n".join(_write(app, factory, extra) for factory, extra in factories.items()) + b"\n]\n"


def _write(app: Server, factory: str, extra: str) -> bytes:
    app.add_toolset(import_name(factory))  # the class: an index needs no options
    handle = list(app.catalog.toolsets.values())[-1]
    entries = list(index_entries([entry for entry in app.catalog.entries() if entry.toolset is handle]))
    options, available = type(handle.toolset).Options, type(handle.toolset).available
    head = msgspec.json.encode(
        IndexedToolset(
            name=handle.name,
            factory=factory,
            options="" if options is None else _path(options, factory),
            needs_options=options is not None and any(field.required for field in fields(options)),
            variables={} if options is None else second_variables(options),
            extra=extra,
            available="" if available is Toolset.available else _path(available, factory),
            watches=handle.is_told_of_watches,
            flags=index_flags(handle.toolset),
            entries=[],
        )
    )
    lines = b",\n".join(msgspec.json.encode(entry) for entry in entries)  # one a line, for readable diffs
    return head.removesuffix(b"]}") + b"\n" + lines + b"\n]}"


def _path(found: Any, factory: str) -> str:
    """Where a start finds something of a toolset without its module. Raises RegistrationError if it is in that."""
    if found.__module__ == factory.partition(":")[0]:
        what = f"{found.__qualname__} is in the toolset's module, so a start would import all that is behind it"
        raise RegistrationError(factory, what, "move it to a module of its own; a function serves as `available`")
    return f"{found.__module__}:{found.__qualname__}"
