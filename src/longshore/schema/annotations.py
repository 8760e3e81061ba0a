"""Metadata in `Annotated[…]`, and the fields of records: dataclasses, TypedDicts, NamedTuples, attrs classes, Structs.

msgspec's `Meta`, annotated_types and pydantic's `Field` are understood. The latter two are recognised by their
attributes, so neither is imported.
"""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import msgspec
from msgspec import NODEFAULT, Meta, Struct

from longshore.schema.custom_type import RecordSlot
from longshore.schema.header_params import ANNOTATION, Header
from longshore.schema.kinds import is_class, is_object
from longshore.schema.signature import SignatureProblem

_TRANSFORMS = ("strip_whitespace", "to_upper", "to_lower")

CONSTRAINTS = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern")


class Alias:
    """Marks a parameter that had another name: `city: Annotated[str, Alias("town")]`.

    The old name is accepted, and the result mentions the new one. No schema shows it.
    """

    __slots__ = ("names",)

    def __init__(self, *names: str) -> None:
        self.names = names

    def __repr__(self) -> str:
        return f"Alias({', '.join(map(repr, self.names))})"


class Hidden:
    """Marks a parameter that no list shows: `mode: Annotated[str, Hidden()] = "fast"`. It is accepted and checked."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Hidden()"


class Notes(Struct):
    """All metadata of one annotation, by kind."""

    description: str | None = None
    marker: Any = None
    constraints: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    old_names: tuple[str, ...] = ()
    hidden: bool = False
    originals: tuple[Any, ...] = ()
    """The metadata as written, for pydantic to read."""
    needs_pydantic: bool = False
    """Some metadata is a validator that only pydantic can run."""

    def meta(self, *, described: bool) -> Meta | None:
        """The metadata as msgspec's own; None if there is none left.

        Raises ValueError for contradicting constraints.
        """
        given = dict(self.constraints)
        if described and self.description is not None:
            given["description"] = self.description
        if described and self.extra:
            given["extra_json_schema"] = self.extra
        return Meta(**given) if given else None


def read_notes(metadata: Iterable[Any], marker_type: type | None = None) -> Notes:
    """Read the metadata of one `Annotated`."""
    notes = Notes(originals=tuple(metadata))
    for item in notes.originals:
        _note(item, notes, marker_type)
    return notes


def is_field(value: Any) -> bool:
    """A pydantic `Field(…)`, which authors write as metadata or as a default."""
    return type(value).__name__ == "FieldInfo" and hasattr(value, "metadata")


def _note(item: Any, notes: Notes, marker_type: type | None) -> None:
    if marker_type is not None and isinstance(item, marker_type):
        notes.marker = item
    elif isinstance(item, (Header, Alias, Hidden)) or item is Hidden:
        _note_mark(item, notes)
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


def _note_mark(item: Any, notes: Notes) -> None:
    if isinstance(item, Header):
        notes.extra[ANNOTATION] = item.name
    elif isinstance(item, Alias):
        notes.old_names += item.names
    else:
        notes.hidden = True


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


# -- fields of records

_MARKS = ("__dataclass_fields__", "__attrs_attrs__", "__required_keys__")


def is_record(tp: Any) -> bool:
    """The class has named fields that JSON can carry."""
    if not is_class(tp):
        return False
    if issubclass(tp, Struct) or any(hasattr(tp, mark) for mark in _MARKS):
        return True
    return tuple in tp.__mro__ and hasattr(tp, "_fields")


def record_options(tp: Any) -> tuple[bool, dict[str, Any]]:
    """Whether the record is a JSON array, and the options of a Struct that decodes it."""
    tp = class_of(tp)
    if issubclass(tp, Struct):
        config = tp.__struct_config__
        options = {"forbid_unknown_fields": config.forbid_unknown_fields}
        if config.tag is not None:
            options |= {"tag": config.tag, "tag_field": config.tag_field}
        return config.array_like, options
    return issubclass(tp, tuple), {}


def class_of(tp: Any) -> Any:
    """The class of a record, which may be generic and have arguments."""
    return typing.get_origin(tp) or tp


def record_slots(tp: Any) -> Iterator[RecordSlot]:
    """The fields that JSON carries, with their annotations as written."""
    cls = class_of(tp)
    try:
        if issubclass(cls, Struct):
            fields = msgspec.structs.fields(tp)
            return (RecordSlot(f.name, f.encode_name, f.type, f.required, f.default) for f in fields)
        known = dict(zip(getattr(cls, "__parameters__", ()), typing.get_args(tp), strict=False))
        written = typing.get_type_hints(cls, include_extras=True)
    except NameError as error:
        fix = f"define {error.name} at module level, not inside a function or under TYPE_CHECKING"
        raise SignatureProblem(f"{tp.__name__} has a field of type {error.name!r}, which is not defined", fix) from None
    hints = {name: fill(hint, known) for name, hint in written.items()}
    if hasattr(cls, "__dataclass_fields__"):
        return _of_dataclass(cls, hints)
    if hasattr(cls, "__attrs_attrs__"):
        return _of_attrs(cls, hints)
    if hasattr(cls, "__required_keys__"):
        return (_key(n, t, n in cls.__required_keys__) for n, t in hints.items())
    defaults: dict[str, Any] = getattr(cls, "_field_defaults", {})
    return (RecordSlot(n, n, hints.get(n, Any), n not in defaults, defaults.get(n, NODEFAULT)) for n in cls._fields)


def fill(tp: Any, known: dict[Any, Any]) -> Any:
    """A type with its type variables replaced by the known types."""
    if isinstance(tp, typing.TypeVar):
        return known.get(tp, tp)
    wanted = getattr(tp, "__parameters__", ()) if known else ()
    return tp[tuple(known.get(each, each) for each in wanted)] if wanted else tp


def _key(name: str, hint: Any, required: bool) -> RecordSlot:
    """A key of a TypedDict. The class has not read `NotRequired` where annotations are quoted."""
    while (qualifier := typing.get_origin(hint)) in (typing.Required, typing.NotRequired):
        required = qualifier is typing.Required
        (hint,) = typing.get_args(hint)
    return RecordSlot(name, name, hint, required, NODEFAULT)


def _of_dataclass(cls: Any, hints: dict[str, Any]) -> Iterator[RecordSlot]:
    import dataclasses

    for field in dataclasses.fields(cls):
        if field.init and typing.get_origin(hints.get(field.name)) is not ClassVar:
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            default = NODEFAULT if field.default is dataclasses.MISSING else field.default
            yield RecordSlot(field.name, field.name, hints.get(field.name, Any), required, default)


def _of_attrs(cls: Any, hints: dict[str, Any]) -> Iterator[RecordSlot]:
    for field in cls.__attrs_attrs__:
        missing = repr(field.default) == "NOTHING"
        plain = NODEFAULT if missing or hasattr(field.default, "factory") else field.default
        yield RecordSlot(field.name, field.alias, hints.get(field.name, Any), missing, plain)
