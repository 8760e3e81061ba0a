"""A JSON Schema put into another document, with its references pointing where they pointed.

A tool's schema refers to its own parts from its own root, `#/$defs/Point`, by anchors or by `$id`s. Inside a larger
document the root is another, and two tools may use the same names. So each reference becomes a pointer that begins
where the schema now stands, and the names go. What points out of the schema stays as it is. A `$dynamicRef` becomes
what it means without a schema around it: the anchor of its own document.
"""

from __future__ import annotations

from typing import Any, Final, cast, final
from urllib.parse import quote, urljoin

Json = dict[str, Any]

_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
"""What OpenAPI 3.1 takes every schema for, unless it says otherwise."""
_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ANCHORS: Final = ("$anchor", "$dynamicAnchor")
_NAMES: Final = ("$id", "$recursiveAnchor", *_ANCHORS)
_DATA: Final = ("const", "enum", "default", "example", "examples")
"""Values, not schemas: a `$ref` in them is a word."""
_BY_NAME: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")


def embed(schema: Json, where: str) -> Json:
    """A copy of the schema for the place that the URI `where` points to."""
    copied: Json = _Move(schema, where).copy(schema, "")
    if str(copied.get("$schema")).rstrip("#") == _DIALECT:
        del copied["$schema"]
    return copied


@final
class _Move:
    """One schema on its way. First it is seen which name stands for which place, then it is copied."""

    def __init__(self, schema: Json, where: str) -> None:
        self._places = {"": where}
        self._find(schema, "", where)

    def _find(self, schema: Any, base: str, here: str) -> None:
        if not isinstance(schema, dict):
            return
        found = cast("Json", schema)
        id = found.get("$id")
        if isinstance(id, str):
            self._places[_join(base, id).rstrip("#")] = here
            base = _base(found, base)
        for key, value in found.items():
            if key in _ANCHORS:
                self._places[f"{base}#{value}"] = here
            elif key in _BY_NAME and isinstance(value, dict):
                for name, part in cast("Json", value).items():
                    self._find(part, base, f"{here}/{key}/{_step(name)}")
            elif isinstance(value, list) and key not in _DATA:
                for at, part in enumerate(value):  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
                    self._find(part, base, f"{here}/{key}/{at}")
            elif key not in _DATA:
                self._find(value, base, f"{here}/{_step(key)}")

    def copy(self, schema: Any, base: str) -> Any:
        """A schema with its references moved; anything else as it is."""
        if not isinstance(schema, dict):
            return schema
        base = _base(cast("Json", schema), base)
        return {
            key: self._moved(base, value)
            if key in _REFERENCES and isinstance(value, str)
            else self._copy_member(key, value, base)
            for key, value in cast("Json", schema).items()
            if not (key in _NAMES and isinstance(value, (str, bool)))
        }

    def _copy_member(self, key: str, value: Any, base: str) -> Any:
        if key in _DATA:
            return value
        if isinstance(value, list):
            return [self.copy(part, base) for part in value]  # pyright: ignore[reportUnknownVariableType]
        if key in _BY_NAME and isinstance(value, dict):
            return {name: self.copy(part, base) for name, part in cast("Json", value).items()}
        return self.copy(value, base)

    def _moved(self, base: str, reference: str) -> str:
        uri, _, fragment = _join(base, reference).partition("#")
        if fragment and not fragment.startswith("/"):
            return self._places.get(f"{uri}#{fragment}", reference)
        return self._places[uri] + fragment if uri in self._places else reference


def _base(schema: Json, base: str) -> str:
    """What the references in a schema are relative to."""
    id = schema.get("$id")
    return _join(base, id).partition("#")[0] if isinstance(id, str) else base


def _join(base: str, reference: str) -> str:
    return base + reference if reference.startswith("#") else urljoin(base, reference)


def _step(name: str) -> str:
    return quote(name.replace("~", "~0").replace("/", "~1"), safe="~$")
