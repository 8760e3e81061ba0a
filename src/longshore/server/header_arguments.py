"""Compares headers with arguments that are sent in another form than the tool's: an old name, an earlier version, JSON
inside a string.

The headers must equal the arguments that the tool receives, or a call passes a proxy by the one and reaches the tool
with the other.
"""

from __future__ import annotations

from typing import Any

import msgspec

from longshore.protocol.http_headers import Headers
from longshore.registry.tool import Entry
from longshore.schema.kinds import is_object
from longshore.schema.output import encode


def with_current_names(entry: Entry, arguments: Any) -> Any:
    """The arguments as sent, under the current names of their parameters."""
    renames: dict[str, str] = getattr(entry.explain, "renames", {})
    if not is_object(arguments) or renames.keys().isdisjoint(arguments):
        return arguments
    old = {new: arguments[name] for name, new in renames.items() if name in arguments}
    return {**old, **arguments}


def check_repaired(entry: Entry, headers: Headers, arguments: Any) -> None:
    """Compare the headers with repaired arguments."""
    names = {param.path[0] for param in entry.headers}
    given = arguments if is_object(arguments) else _given(arguments)
    headers.check_params(entry.headers, msgspec.json.decode(encode({n: given[n] for n in names if n in given})))


def _given(arguments: Any) -> dict[str, Any]:
    """The typed arguments without those equal to their default, which no header repeats."""
    found = ((field, getattr(arguments, field.name)) for field in msgspec.structs.fields(arguments))
    return {field.encode_name: value for field, value in found if value is not field.default}
