"""Classes with named fields: dataclasses, TypedDicts, NamedTuples, attrs classes and msgspec Structs."""

from __future__ import annotations

import typing
from collections.abc import Iterator
from typing import Any, ClassVar

import msgspec
from msgspec import NODEFAULT, Struct

from longshore.schema.kinds import is_class
from longshore.schema.signature import SignatureProblem
from longshore.schema.standin import Slot

_MARKS = ("__dataclass_fields__", "__attrs_attrs__", "__required_keys__")


def is_record(tp: Any) -> bool:
    """The class has named fields that JSON can carry."""
    if not is_class(tp):
        return False
    if issubclass(tp, Struct) or any(hasattr(tp, mark) for mark in _MARKS):
        return True
    return tuple in tp.__mro__ and hasattr(tp, "_fields")


def shape(tp: Any) -> tuple[bool, dict[str, Any]]:
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


def slots(tp: Any) -> Iterator[Slot]:
    """The fields that JSON carries, with their annotations as written."""
    hints = _hints(tp)
    if issubclass(class_of(tp), Struct):
        return _of_struct(tp, hints)
    tp = class_of(tp)
    if hasattr(tp, "__dataclass_fields__"):
        return _of_dataclass(tp, hints)
    if hasattr(tp, "__attrs_attrs__"):
        return _of_attrs(tp, hints)
    if hasattr(tp, "__required_keys__"):
        return (_key(n, t, n in tp.__required_keys__) for n, t in hints.items())
    defaults: dict[str, Any] = getattr(tp, "_field_defaults", {})
    return (Slot(n, n, hints.get(n, Any), n not in defaults, defaults.get(n, NODEFAULT)) for n in tp._fields)


def _hints(tp: Any) -> dict[str, Any]:
    cls = class_of(tp)
    try:
        if issubclass(cls, Struct):
            return {field.name: field.type for field in msgspec.structs.fields(tp)}
        known = dict(zip(getattr(cls, "__parameters__", ()), typing.get_args(tp), strict=False))
        return {name: fill(hint, known) for name, hint in typing.get_type_hints(cls, include_extras=True).items()}
    except NameError as error:
        fix = f"define {error.name} at module level, not inside a function or under TYPE_CHECKING"
        raise SignatureProblem(f"{tp.__name__} has a field of type {error.name!r}, which is not defined", fix) from None


def fill(tp: Any, known: dict[Any, Any]) -> Any:
    """A type whose type variables are replaced by what is known of them."""
    if isinstance(tp, typing.TypeVar):
        return known.get(tp, tp)
    wanted = getattr(tp, "__parameters__", ()) if known else ()
    return tp[tuple(known.get(each, each) for each in wanted)] if wanted else tp


def _key(name: str, hint: Any, required: bool) -> Slot:
    """A key of a TypedDict. The class has not read `NotRequired` where annotations are quoted."""
    while (qualifier := typing.get_origin(hint)) in (typing.Required, typing.NotRequired):
        required = qualifier is typing.Required
        (hint,) = typing.get_args(hint)
    return Slot(name, name, hint, required, NODEFAULT)


def _of_struct(tp: Any, hints: dict[str, Any]) -> Iterator[Slot]:
    for field in msgspec.structs.fields(tp):
        yield Slot(field.name, field.encode_name, hints.get(field.name, Any), field.required, field.default)


def _of_dataclass(tp: Any, hints: dict[str, Any]) -> Iterator[Slot]:
    import dataclasses

    for field in dataclasses.fields(tp):
        if field.init and typing.get_origin(hints.get(field.name)) is not ClassVar:
            required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
            default = NODEFAULT if field.default is dataclasses.MISSING else field.default
            yield Slot(field.name, field.name, hints.get(field.name, Any), required, default)


def _of_attrs(tp: Any, hints: dict[str, Any]) -> Iterator[Slot]:
    for field in tp.__attrs_attrs__:
        missing = repr(field.default) == "NOTHING"
        plain = NODEFAULT if missing or hasattr(field.default, "factory") else field.default
        yield Slot(field.name, field.alias, hints.get(field.name, Any), missing, plain)
