"""Types that msgspec can't decode by itself, and the classes that stand in for them.

msgspec hands a class that it doesn't know to a hook, together with the plain JSON value. So where an annotation holds
something that msgspec refuses (a union of two dataclasses, a field with a pydantic constraint), a class made here takes
its place: it knows how to decode the value and how to describe itself as a schema.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, Literal, NoReturn, Protocol

import msgspec
from msgspec import UNSET, Struct

from longshore.schema.kinds import is_array, is_class, is_object
from longshore.schema.output import encode_special

Schema = dict[str, Any]
Mode = Literal["validation", "serialization"]
Hook = Callable[[Any, Any], Any]


class Describer(Protocol):
    """What a stand-in needs of the schema builder."""

    mode: Mode

    def of(self, tp: Any) -> Schema: ...
    def foreign(self, schema: Schema) -> Schema: ...
    def record(self, origin: Any, slots: list[Slot], *, array: bool, closed: bool) -> Schema: ...


class StandIn(type):
    """The class of all stand-ins. Each is a type of its own, because msgspec dispatches on types."""

    decode: Callable[[Any, Hook], Any]
    describe: Callable[[Describer], Schema]
    origin: Any

    def __instancecheck__(cls, instance: Any) -> bool:
        return True  # msgspec asks this of what the hook returned; `decode` has already checked it


def stand_in(origin: Any, decode: Callable[[Any, Hook], Any], describe: Callable[[Describer], Schema]) -> StandIn:
    """Make a stand-in for `origin`. `describe` gets the schema builder."""
    name = getattr(origin, "__name__", "StandIn")
    parts = {"decode": staticmethod(decode), "describe": staticmethod(describe), "origin": origin}
    return StandIn(name, (), parts)


def decode_special(tp: Any, value: Any) -> Any:
    """msgspec's hook: decode what it doesn't know. ValueError and TypeError become ValidationErrors with a path."""
    if isinstance(tp, StandIn):
        return tp.decode(value, decode_special)
    if is_model(tp):
        return tp.model_validate(value)
    if is_path(tp):
        if isinstance(value, str):
            return tp(value)
        raise ValueError("Expected `str`, got another type")
    raise TypeError(f"{tp!r} can't be decoded")


def convert(value: Any, tp: Any, hook: Hook = decode_special) -> Any:
    """A plain JSON value as a typed one, as strictly as msgspec's decoder does it."""
    return msgspec.convert(value, tp, strict=True, str_keys=True, dec_hook=hook)


def is_model(tp: Any) -> bool:
    """A pydantic model, told by its marks: pydantic itself is never imported."""
    return is_class(tp) and hasattr(tp, "__pydantic_validator__") and hasattr(tp, "model_validate")


def is_path(tp: Any) -> bool:
    """A path class. Where pathlib has not been imported, nobody can have named one."""
    pathlib = sys.modules.get("pathlib")
    return pathlib is not None and is_class(tp) and issubclass(tp, pathlib.PurePath)


# Unions that msgspec refuses


def choice(origin: Any, members: tuple[Any, ...]) -> StandIn:
    """A union whose members are tried in turn; of several that fit, the first that loses the fewest keys."""

    def decode(value: Any, hook: Hook) -> Any:
        fits = [fit for m in members for fit in _attempt(m, value, hook)]
        if not fits:
            _refuse(members, value)
        return fits[0] if len(fits) == 1 else min(fits, key=lambda fit: _lost(value, fit))

    def describe(schemas: Describer) -> Schema:
        return {"anyOf": [schemas.of(m) for m in members]}

    return stand_in(origin, decode, describe)


def _attempt(member: Any, value: Any, hook: Hook) -> Iterable[Any]:
    try:
        return (convert(value, member, hook),)
    except (msgspec.ValidationError, RecursionError):
        return ()


def _refuse(members: tuple[Any, ...], value: Any) -> NoReturn:
    names = ", ".join(getattr(getattr(m, "origin", m), "__name__", str(m)) for m in members)
    raise ValueError(f"Expected one of {names}, got something else ({type(value).__name__})")


def _lost(value: Any, decoded: Any) -> int:
    """How many keys of a value its decoded form has dropped, at any depth: records ignore keys that they don't know."""
    try:
        return _missing(value, msgspec.to_builtins(decoded, enc_hook=encode_special, str_keys=True))
    except Exception:
        return 0


def _missing(value: Any, kept: Any) -> int:
    if is_object(value) and is_object(kept):
        gone = value.keys() - kept.keys()
        return len(gone) + sum(_missing(value[key], kept[key]) for key in value.keys() - gone)
    if is_array(value) and is_array(kept):
        return sum(_missing(v, k) for v, k in zip(value, kept, strict=False))
    return 0


# Enums whose values msgspec refuses (floats, or a mix)


def members(enum: type[Enum]) -> StandIn:
    """An enum by its values, of whatever types."""

    def decode(value: Any, _: Hook) -> Any:
        for member in enum:
            if type(member.value) is type(value) and member.value == value:
                return member
        raise ValueError(f"Invalid enum value {value!r}")

    return stand_in(enum, decode, lambda _: {"enum": [m.value for m in enum]})


# Records with a field that msgspec refuses


class Slot(Struct, frozen=True):
    """One field of a record: its Python name, its JSON name, its ready type and its default."""

    name: str
    key: str
    type: Any
    required: bool
    default: Any


def record(origin: Any, slots: list[Slot], *, array: bool, options: dict[str, Any]) -> StandIn:
    """A dataclass, TypedDict, NamedTuple, attrs class or Struct, decoded through a Struct with the same fields."""
    twin: list[type[Struct]] = []  # made at the first use: a recursive record's slots hold the stand-in itself

    def decode(value: Any, hook: Hook) -> Any:
        if not twin:
            twin.append(_twin(origin, slots, array=array, options=options))
        decoded = convert(value, twin[0], hook)
        found = {s.name: getattr(decoded, s.name) for s in slots}
        return origin(**{name: v for name, v in found.items() if v is not UNSET})

    def describe(schemas: Describer) -> Schema:
        return schemas.record(origin, slots, array=array, closed=options.get("forbid_unknown_fields", False))

    return stand_in(origin, decode, describe)


def _twin(origin: Any, slots: list[Slot], *, array: bool, options: dict[str, Any]) -> type[Struct]:
    fields: list[Any] = [(s.name, s.type) if s.required else (s.name, s.type, UNSET) for s in slots]
    rename = {s.name: s.key for s in slots}
    return msgspec.defstruct(origin.__name__, fields, array_like=array, kw_only=not array, rename=rename, **options)


# What only pydantic understands: its networks, secrets and functional validators


def adapter(annotation: Any) -> StandIn:
    """An annotation that pydantic reads. Only called where the author's own code has imported pydantic."""
    adapted = sys.modules["pydantic"].TypeAdapter(annotation)

    def describe(schemas: Describer) -> Schema:
        return schemas.foreign(adapted.json_schema(mode=schemas.mode))

    return stand_in(annotation, lambda value, _: adapted.validate_python(value), describe)
