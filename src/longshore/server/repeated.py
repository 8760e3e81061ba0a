"""Arguments that headers repeat, where they do not stand as today's tool has them: under an old name, in an earlier
form, inside of a text. What the tool will get must be what the headers say, or a call gets past a proxy with the one
and to the tool with the other."""

from __future__ import annotations

from typing import Any

import msgspec

from longshore.protocol.headers import Headers
from longshore.registry.tool import Entry
from longshore.schema.kinds import is_object
from longshore.schema.output import encode


def with_todays_names(entry: Entry, arguments: Any) -> Any:
    """The arguments as they came, with the names that parameters have now."""
    renames: dict[str, str] = getattr(entry.explain, "renames", {})
    if not is_object(arguments) or renames.keys().isdisjoint(arguments):
        return arguments
    old = {new: arguments[name] for name, new in renames.items() if name in arguments}
    return {**old, **arguments}


def check_read(entry: Entry, headers: Headers, arguments: Any) -> None:
    """Compare the headers with arguments that were understood at the second look."""
    names = {param.path[0] for param in entry.headers}
    given = arguments if is_object(arguments) else _given(arguments)
    headers.check_params(entry.headers, msgspec.json.decode(encode({n: given[n] for n in names if n in given})))


def _given(arguments: Any) -> dict[str, Any]:
    """The typed arguments without those that are as if they were left out, which no header repeats."""
    found = ((field, getattr(arguments, field.name)) for field in msgspec.structs.fields(arguments))
    return {field.encode_name: value for field, value in found if value is not field.default}
