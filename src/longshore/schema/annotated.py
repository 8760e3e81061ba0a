"""What stands in `Annotated[…]` beside the type: a description, markers, constraints and schema keywords.

msgspec's `Meta`, annotated_types and pydantic's `Field` are all understood. The latter two are told by their
attributes, so neither is imported.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Meta, Struct

from longshore.protocol.annotation import ANNOTATION, Header
from longshore.schema.kinds import is_class, is_object

_TRANSFORMS = ("strip_whitespace", "to_upper", "to_lower")

CONSTRAINTS = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern")


class Was:
    """Marks a parameter that had another name: `city: Annotated[str, Was("town")]`.

    Callers who still send the old name are understood, and told the new one. No schema shows it.
    """

    __slots__ = ("names",)

    def __init__(self, *names: str) -> None:
        self.names = names

    def __repr__(self) -> str:
        return f"Was({', '.join(map(repr, self.names))})"


class Notes(Struct):
    """All metadata of one annotation, sorted."""

    description: str | None = None
    marker: Any = None
    constraints: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    was: tuple[str, ...] = ()
    originals: tuple[Any, ...] = ()
    """The metadata as written, for pydantic to read."""
    needs_pydantic: bool = False
    """Some metadata is a validator that only pydantic can run."""

    def meta(self, *, described: bool) -> Meta | None:
        """The metadata as msgspec's own; None if nothing is left. ValueError where constraints contradict."""
        given = dict(self.constraints)
        if described and self.description is not None:
            given["description"] = self.description
        if described and self.extra:
            given["extra_json_schema"] = self.extra
        return Meta(**given) if given else None


def read_notes(metadata: Iterable[Any], marker_type: type) -> Notes:
    """Sort the metadata of one `Annotated`."""
    notes = Notes(originals=tuple(metadata))
    for item in notes.originals:
        _note(item, notes, marker_type)
    return notes


def is_field(value: Any) -> bool:
    """A pydantic `Field(…)`, which authors write as metadata or as a default."""
    return type(value).__name__ == "FieldInfo" and hasattr(value, "metadata")


def _note(item: Any, notes: Notes, marker_type: type) -> None:
    if isinstance(item, marker_type):
        notes.marker = item
    elif isinstance(item, Header):
        notes.extra[ANNOTATION] = item.name
    elif isinstance(item, Was):
        notes.was += item.names
    elif isinstance(item, str):
        notes.description = notes.description or item
    elif isinstance(item, Meta):
        _constrain(item, notes)
        _decorate(item, item.extra_json_schema, notes)
        if item.tz is not None:
            notes.constraints["tz"] = item.tz
    elif is_field(item):
        _decorate(item, item.json_schema_extra, notes)
        for inner in item.metadata:
            _note(inner, notes, marker_type)
    elif hasattr(item, "__get_pydantic_core_schema__"):
        notes.needs_pydantic = True
    elif not is_class(item):
        _constrain(item, notes)
        notes.needs_pydantic |= any(getattr(item, name, None) for name in _TRANSFORMS)
        documentation = getattr(item, "documentation", None)
        if isinstance(documentation, str):
            notes.description = notes.description or documentation


def _constrain(item: Any, notes: Notes) -> None:
    for name in CONSTRAINTS:
        value = getattr(item, name, None)
        if value is not None and not (name == "min_length" and value == 0):
            notes.constraints[name] = getattr(value, "pattern", value) if name == "pattern" else value


def _decorate(item: Any, keywords: Any, notes: Notes) -> None:
    notes.description = notes.description or item.description
    if item.title:
        notes.extra["title"] = item.title
    if item.examples:
        notes.extra["examples"] = list(item.examples)
    if is_object(keywords):
        notes.extra.update(keywords)
