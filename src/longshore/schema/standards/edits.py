"""How clients change a schema, and how they cut a name. An edit gives the changed schema, or None for no change."""

from __future__ import annotations

import re
from hashlib import sha1
from typing import Any, Final

from longshore.schema.kinds import is_object
from longshore.schema.standards.parameter import types_of
from longshore.schema.standards.stumbles import has_odd_type

PLAIN: Final = r"[^A-Za-z0-9_-]"
"""What is no plain character of a name."""
HASH: Final = 13
"""Characters that Codex appends: `_` and twelve digits of a hash."""
KEPT_BY_CODEX: Final = frozenset(
    (
        *("type", "description", "enum", "items", "properties", "required", "additionalProperties"),
        *("anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions"),
    )
)


def true_to_string(schema: Any) -> Any | None:
    return {"type": "string"} if isinstance(schema, bool) else None


def const_to_enum(schema: Any) -> Any | None:
    if not is_object(schema) or "const" not in schema:
        return None
    return {("enum" if key == "const" else key): value for key, value in schema.items()} | {"enum": [schema["const"]]}


def type_to_nothing(schema: Any) -> Any | None:
    return {} if has_odd_type(schema) else None


def invent_items(schema: Any) -> Any | None:
    return {**schema, "items": {"type": "string"}} if "array" in types_of(schema) and "items" not in schema else None


def drop_tuple(schema: Any) -> Any | None:
    if not is_object(schema) or "prefixItems" not in schema:
        return None
    return {"items": {"type": "string"}} | {key: value for key, value in schema.items() if key != "prefixItems"}


def drop_unknown(schema: Any) -> Any | None:
    if not is_object(schema) or KEPT_BY_CODEX.issuperset(schema):
        return None
    return {key: value for key, value in schema.items() if key in KEPT_BY_CODEX}


def drop_title(schema: Any) -> Any | None:
    if not is_object(schema) or not schema.keys() & {"title", "$schema"}:
        return None
    return {key: value for key, value in schema.items() if key not in ("title", "$schema")}


def add_properties(schema: Any) -> Any | None:
    if not is_object(schema) or "properties" in schema:
        return None
    return {**schema, "properties": {}} if "object" in types_of(schema) or "required" in schema else None


def null_to_nullable(schema: Any) -> Any | None:
    types = types_of(schema)
    if len(types) < 2 or "null" not in types:
        return None
    rest = [each for each in types if each != "null"]
    return {**schema, "type": rest[0] if len(rest) == 1 else rest, "nullable": True}


# -- names


def cut_with_hash(name: str, most: int, raw: str) -> str:
    """A stand-in of the same length, and another for each tool: what exactly is hashed was not found out."""
    digest = sha1(raw.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()
    return f"{name[: most - HASH]}_{digest[: HASH - 1]}"


def cut_middle(name: str, most: int, _: str) -> str:
    half = (most - 3) // 2
    return f"{name[:half]}...{name[-half:]}"


def shorten(server: str) -> str:
    return re.sub(r"[^a-z0-9_.-]+", "_", server.lower())[:13]
