"""Custom types: classes that replace the types that msgspec can't decode by itself.

msgspec passes a class that it doesn't know to a hook, together with the plain JSON value. So where an annotation holds
something that msgspec refuses (a union of two dataclasses, a field with a pydantic constraint) or must not do itself (a
pattern, which it would match with `re`), a class made here takes its place: it can decode the value and describe itself
as a schema.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Literal, Protocol, cast, get_origin

import msgspec
from msgspec import UNSET, Struct

from longshore.schema.kinds import is_array, is_class, is_object
from longshore.schema.output import encode_special

Schema = dict[str, Any]
Mode = Literal["validation", "serialization"]
Hook = Callable[[Any, Any], Any]


class Describer(Protocol):
    """The part of the schema builder that a custom type needs."""

    mode: Mode

    def of(self, tp: Any) -> Schema: ...
    def foreign(self, schema: Schema) -> Schema: ...
    def record(self, origin: Any, slots: list[RecordSlot], *, array: bool, options: dict[str, Any]) -> Schema: ...


class CustomType(type):
    """The class of all custom types. Each is a type of its own, because msgspec dispatches on types."""

    decode: Callable[[Any, Hook], Any]
    describe: Callable[[Describer], Schema]
    origin: Any
    constrain: Callable[[msgspec.Meta], CustomType] | None
    """Returns the same type with more constraints; None where it can have none."""
    core_schema: Any
    """pydantic's own description, where pydantic decodes."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return True  # msgspec asks this of what the hook returned; `decode` has already checked it


def make_custom_type(
    origin: Any,
    decode: Callable[[Any, Hook], Any],
    describe: Callable[[Describer], Schema],
    constrain: Callable[[msgspec.Meta], CustomType] | None = None,
) -> CustomType:
    """Make a custom type that replaces `origin`. `describe` gets the schema builder."""
    name = getattr(origin, "__name__", "CustomType")
    parts = {"decode": staticmethod(decode), "describe": staticmethod(describe), "origin": origin}
    module = getattr(origin, "__module__", __name__)  # so that messages name the origin
    return CustomType(name, (), {**parts, "constrain": constrain and staticmethod(constrain), "__module__": module})


def decode_special(tp: Any, value: Any) -> Any:
    """msgspec's hook: decode a type unknown to it. ValueError and TypeError become ValidationErrors with a path."""
    if isinstance(tp, CustomType):
        return tp.decode(value, decode_special)
    if is_model(tp):
        return _model_validator(tp)(value)
    if is_path(tp):
        if isinstance(value, str):
            return tp(value)
        raise ValueError("Expected `str`, got another type")
    raise TypeError(f"{tp!r} can't be decoded")


def decode_leniently(tp: Any, value: Any) -> Any:
    """The hook of a conversion with `strict=False`: parts of custom types are converted so, too."""
    return tp.decode(value, decode_leniently) if isinstance(tp, CustomType) else decode_special(tp, value)


def convert(value: Any, tp: Any, hook: Hook = decode_special) -> Any:
    """A plain JSON value as a typed one, as strictly as msgspec's decoder does it."""
    return msgspec.convert(value, tp, strict=hook is not decode_leniently, str_keys=True, dec_hook=hook)


def _convert_part(value: Any, tp: Any, hook: Hook) -> Any:
    """The same inside a hook. msgspec puts the path to the whole on a ValueError, but not on an error of its own."""
    try:
        return convert(value, tp, hook)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error.__cause__


def is_model(tp: Any) -> bool:
    """A pydantic model, recognised by its attributes: pydantic itself is never imported."""
    return is_class(tp) and hasattr(tp, "__pydantic_validator__") and hasattr(tp, "model_validate")


def runs_re(core_schema: Any) -> bool:
    """Whether pydantic matches a pattern with `re`: a compiled one, or all of a model that asks for it."""
    from re import Pattern

    seen: set[int] = set()
    try:
        waiting: list[Any] = [dict(core_schema)]  # builds a model that had put it off
    except sys.modules["pydantic"].PydanticUserError:
        return False  # it names a class that is not defined yet; its validator is built when that is
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if is_object(part):
            if part.get("regex_engine") == "python-re" or isinstance(part.get("pattern"), Pattern):
                return True
            waiting.extend(part.values())
        elif isinstance(part, (list, tuple)):
            waiting.extend(cast("Iterable[Any]", part))
    return False


@lru_cache(maxsize=256)
def _model_validator(model: Any) -> Callable[[Any], Any]:
    return _interruptible_if_re(model.model_validate, model.__pydantic_core_schema__)


def _interruptible_if_re(validate: Callable[[Any], Any], core_schema: Any) -> Callable[[Any], Any]:
    if not runs_re(core_schema):
        return validate
    from longshore.schema.validate import interruptible

    return interruptible(validate)


def is_path(tp: Any) -> bool:
    """A path class. Without an import of pathlib, no annotation can name one."""
    pathlib = sys.modules.get("pathlib")
    return pathlib is not None and is_class(tp) and issubclass(tp, pathlib.PurePath)


# Patterns, which msgspec would match with `re`


def text(plain: Any, pattern: str, matches: Callable[[str], bool]) -> CustomType:
    """A string with a pattern. `plain` is its type without one."""

    def decode(value: Any, hook: Hook) -> Any:
        found = _convert_part(value, plain, hook)
        if not matches(found):
            raise ValueError(f"Expected `str` matching regex {pattern!r}")
        return found

    def describe(schemas: Describer) -> Schema:
        from longshore.schema.infer import readable

        return schemas.of(plain) | readable({"pattern": pattern})

    return make_custom_type(str, decode, describe, lambda meta: text(constrain(plain, meta), pattern, matches))


def mapping(plain: Any, key: CustomType) -> CustomType:
    """A dict whose keys have a custom type: `msgspec.convert` has no hook for keys. `plain` has str for them."""

    def decode(value: Any, hook: Hook) -> Any:
        found = _convert_part(value, plain, hook)
        try:
            return {key.decode(name, hook): each for name, each in found.items()}
        except ValueError as error:
            raise ValueError(f"{error} - at `key` in `$`") from None

    def describe(schemas: Describer) -> Schema:
        described = key.describe(schemas) if key.origin is str else {}
        names = {keyword: value for keyword, value in described.items() if keyword != "type"}
        return schemas.of(plain) | ({"propertyNames": names} if names else {})

    return make_custom_type(plain, decode, describe, lambda meta: mapping(constrain(plain, meta), key))


def constrain(tp: Any, meta: msgspec.Meta) -> Any:
    """A type with constraints other than a pattern."""
    inner = undescribed(tp)
    if not isinstance(inner, CustomType) or inner.constrain is None:
        return Annotated[tp, meta]
    return inner.constrain(meta) if inner is tp else Annotated[(inner.constrain(meta), *tp.__metadata__)]


def undescribed(tp: Any) -> Any:
    """A type without its metadata, which for a custom type can't be a constraint."""
    return tp.__origin__ if get_origin(tp) is Annotated else tp


# Unions that msgspec refuses


def choice(origin: Any, members: tuple[Any, ...]) -> CustomType:
    """A union whose members are tried in turn; of several that fit, the first that loses the fewest keys."""

    def decode(value: Any, hook: Hook) -> Any:
        fits = [fit for m in members if not _lacks_tag(m, value) for fit in _attempt(m, value, hook)]
        if not fits:
            names = ", ".join(getattr(getattr(m, "origin", m), "__name__", str(m)) for m in members)
            raise ValueError(f"Expected one of {names}, got something else ({type(value).__name__})")
        return fits[0] if len(fits) == 1 else min(fits, key=lambda fit: _lost(value, fit))

    def describe(schemas: Describer) -> Schema:
        return {"anyOf": [schemas.of(m) for m in members]}

    return make_custom_type(origin, decode, describe)


def _attempt(member: Any, value: Any, hook: Hook) -> Iterable[Any]:
    try:
        return (convert(value, member, hook),)
    except (msgspec.ValidationError, RecursionError):
        return ()


def _lacks_tag(member: Any, value: Any) -> bool:
    """Whether a value lacks its Struct's tag.

    By itself a Struct is decoded without its tag, too; in a union it is not.
    """
    config: Any = getattr(getattr(member, "origin", member), "__struct_config__", None)
    return config is not None and config.tag is not None and is_object(value) and config.tag_field not in value


def _lost(value: Any, decoded: Any) -> int:
    """Count the keys of a value that its decoded form has dropped, at any depth: records ignore unknown keys."""
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


def members(enum: type[Enum]) -> CustomType:
    """An enum by its values, of whatever types."""

    def decode(value: Any, _: Hook) -> Any:
        for member in enum:
            if type(member.value) is type(value) and member.value == value:
                return member
        raise ValueError(f"Invalid enum value {value!r}")

    return make_custom_type(enum, decode, lambda _: {"enum": [m.value for m in enum]})


# Records with a field that msgspec refuses


class RecordSlot(Struct, frozen=True):
    """One field of a record: its Python name, its JSON name, its ready type and its default."""

    name: str
    key: str
    type: Any
    required: bool
    default: Any


def record(origin: Any, slots: list[RecordSlot], *, array: bool, options: dict[str, Any]) -> CustomType:
    """A dataclass, TypedDict, NamedTuple, attrs class or Struct, decoded through a Struct with the same fields."""
    twin: list[type[Struct]] = []  # made at the first use: a recursive record's slots hold the custom type itself

    def decode(value: Any, hook: Hook) -> Any:
        if not twin:
            fields: list[Any] = [(s.name, s.type) if s.required else (s.name, s.type, UNSET) for s in slots]
            shape: dict[str, Any] = {
                "array_like": array,
                "kw_only": not array,
                "rename": {s.name: s.key for s in slots},
            }
            twin.append(msgspec.defstruct(origin.__name__, fields, **shape, **options))
        decoded = _convert_part(value, twin[0], hook)
        found = {s.name: getattr(decoded, s.name) for s in slots}
        return origin(**{name: v for name, v in found.items() if v is not UNSET})

    def describe(schemas: Describer) -> Schema:
        return schemas.record(origin, slots, array=array, options=options)

    return make_custom_type(origin, decode, describe)


# Types that only pydantic understands: its networks, secrets and functional validators


def adapter(annotation: Any) -> CustomType:
    """An annotation that pydantic reads. Only called where the author's own code has imported pydantic."""
    adapted = sys.modules["pydantic"].TypeAdapter(annotation)
    validate = _interruptible_if_re(adapted.validate_python, adapted.core_schema)

    def describe(schemas: Describer) -> Schema:
        return schemas.foreign(adapted.json_schema(mode=schemas.mode))

    made = make_custom_type(annotation, lambda value, _: validate(value), describe)
    made.core_schema = adapted.core_schema
    return made
