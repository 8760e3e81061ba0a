"""Where schemas stand inside a JSON Schema, in any of its dialects."""

from __future__ import annotations

from typing import Any, Final, cast

BY_NAME: Final = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
IN_LISTS: Final = ("anyOf", "allOf", "oneOf", "prefixItems", "items")
ALONE: Final = (
    *("items", "additionalItems", "unevaluatedItems", "contains", "contentSchema"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames"),
    *("not", "if", "then", "else"),
)


def subschemas(keyword: str, value: Any) -> list[Any]:
    """What stands under a keyword in the place of schemas. It may be anything: an author wrote it."""
    if keyword in BY_NAME and isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    if keyword in IN_LISTS and isinstance(value, (list, tuple)):
        return list(cast("list[Any]", value))
    return [value] if keyword in ALONE else []
