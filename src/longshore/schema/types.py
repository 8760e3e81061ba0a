"""Annotations made ready for msgspec, and the parameters whose annotation or default is more than a plain class.

`TypeReader.read` returns the very same object where msgspec takes an annotation as it is, so that "did anything change"
is an identity test. Everything else is rebuilt around the classes of `custom_type`.
"""

from __future__ import annotations

import sys
import types
import typing
from collections import abc
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec
from msgspec import NODEFAULT

from longshore.schema import custom_type
from longshore.schema.annotations import (
    Notes,
    class_of,
    fill,
    is_field,
    is_record,
    read_notes,
    record_options,
    record_slots,
)
from longshore.schema.custom_type import CustomType, decode_special, is_model
from longshore.schema.header_params import ANNOTATION
from longshore.schema.kinds import is_class, is_plain_key
from longshore.schema.output import Output, OutputMismatch, encode
from longshore.schema.signature import Parameter, Patterns, SignatureProblem

_NoneType = type(None)
_MIGRATE = "mark the parameter, or write a migration: migrations=[…]"

_SCALARS: frozenset[Any] = frozenset(
    (Any, str, int, float, bool, _NoneType, bytes, bytearray, datetime, date, time, timedelta, UUID, Decimal)
)
MAPPINGS: frozenset[Any] = frozenset((dict, abc.Mapping, abc.MutableMapping))
_SETS: frozenset[Any] = frozenset((set, frozenset, abc.Set, abc.MutableSet))
_LISTS: frozenset[Any] = frozenset((list, tuple, abc.Sequence, abc.MutableSequence, abc.Collection, abc.Iterable))
_COLLECTIONS: frozenset[Any] = MAPPINGS | _SETS | _LISTS
_HASHABLE = str | int | float | bool | None
# Annotations that are other names of a type.
_SAME_AS: tuple[tuple[Any, Any], ...] = ((None, _NoneType), (object, Any), (typing.LiteralString, str))
# Qualifiers of a field, not of its value; ReadOnly is new in 3.13.
_QUALIFIERS = (typing.Final, typing.Required, typing.NotRequired, getattr(typing, "ReadOnly", typing.Final))

ANYTHING = "use str, int, float, bool, list, dict, an Enum, a dataclass, a TypedDict or a msgspec.Struct"
ENDLESS = ("its type holds itself by way of a `type` alias", "use a dataclass or a Struct that holds itself, or Any")
_REMEDIES = {
    "complex": "take two floats",
    "range": "take two ints",
    "deque": "use list",
    "OrderedDict": "use dict",
    "defaultdict": "use dict",
    "Counter": "use dict[str, int]",
    "Callable": "take a name and look the function up",
    "type": "take a name and look the class up",
}


def read_type(annotation: Any) -> Any:
    """An annotation as msgspec can decode it with `decode_special`, or a SignatureProblem."""
    return TypeReader().read(annotation)


def read_type_cached(annotation: Any) -> Any:
    """The same with a cache, for callers on the path of a call."""
    try:
        return _read_cached(annotation)
    except TypeError:  # it can't be hashed
        return read_type(annotation)


_read_cached = lru_cache(maxsize=64)(read_type)


def refusal(tp: Any) -> str | None:
    """The reason why msgspec can't decode a type; None if it can."""
    try:
        msgspec.json.Decoder(tp, dec_hook=decode_special)
    except (TypeError, ValueError, NameError) as error:
        return str(error).split(" - type ")[0].replace("`", "").splitlines()[0]
    return None


def type_name(tp: Any) -> str:
    """A type approximately as its author wrote it."""
    if isinstance(tp, type) and not typing.get_args(tp):
        return tp.__name__
    return str(tp).replace("typing.", "")


class TypeReader:
    """Reads one annotation. Holds the state of recursive records while their fields are read."""

    def __init__(self, patterns: Patterns = "linear") -> None:
        self.patterns: Patterns = patterns
        self.walking: set[Any] = set()
        self.awaited: set[Any] = set()
        """Records that occur inside themselves, found before it was known whether they must be replaced."""
        self.native: set[Any] = set()
        self.replaced: dict[Any, Any] = {}
        self.slots: dict[Any, list[custom_type.RecordSlot]] = {}
        self.in_header = False
        """Whether something inside is marked with a header's name; possibly so, if only pydantic knows the inside."""
        self.authored = False
        """Whether a part of the schema is the author's own: keywords, or keys that are no plain names."""

    def read(self, tp: Any) -> Any:
        """The annotation itself where msgspec takes it, else one rebuilt around custom types."""
        tp = expand(tp)
        if isinstance(tp, (str, typing.ForwardRef)):
            raise SignatureProblem(f"the annotation {tp!r} is quoted inside another", "quote the whole annotation")
        origin = typing.get_origin(tp)
        if origin is typing.Annotated:
            return self._annotated(tp)
        if is_union(tp):
            members = typing.get_args(tp)
            ready = tuple(self.read(m) for m in members)
            changed = any(r is not m for r, m in zip(ready, members, strict=True))
            return self._joined(tp, _union_of(ready) if changed else tp)
        if origin is typing.Literal:
            return self._accepted(tp)
        if origin in _COLLECTIONS:
            return self._collection(tp, origin)
        return self._class(tp) if origin is None else self._generic(tp, origin)

    def constrained(self, base: Any, notes: Notes, *, described: bool) -> Any:
        """A type with the constraints of its metadata; union members get those that apply to them."""
        if notes.needs_pydantic:
            self.in_header = True
            return self._adapter(typing.Annotated[(base, *notes.originals)])
        inner = self.read(base)
        try:
            meta = notes.meta(described=described)
        except (ValueError, TypeError) as error:
            raise SignatureProblem(f"its constraints can't be used ({error})", "correct the constraints") from None
        if meta is None:
            return inner
        rebuilt: Any = typing.Annotated[inner, meta]
        if not notes.constraints or ("pattern" not in notes.constraints and refusal(rebuilt) is None):
            return rebuilt
        distributed = self._distribute(base, inner, notes)
        words = Notes(notes.description, extra=notes.extra).meta(described=described)
        return distributed if words is None else typing.Annotated[distributed, words]

    def _annotated(self, tp: Any) -> Any:
        notes = read_notes(tp.__metadata__)
        self.in_header |= ANNOTATION in notes.extra
        self.authored |= bool(notes.extra)
        if notes.old_names:
            raise SignatureProblem("Alias(…) is for a parameter, not for what is inside of one", _MIGRATE)
        if notes.hidden:
            raise SignatureProblem("Hidden() is for a parameter, not for what is inside of one", "mark the parameter")
        native = all(isinstance(m, msgspec.Meta) for m in tp.__metadata__) and "pattern" not in notes.constraints
        if native and self.read(tp.__origin__) is tp.__origin__ and refusal(tp) is None:
            return tp
        return self.constrained(tp.__origin__, notes, described=True)

    def _joined(self, origin: Any, union: Any) -> Any:
        """A union of ready types, or a custom type for one that msgspec refuses."""
        if self.walking and _holds(union, self.walking):
            return union  # checked as a whole with the record that it is part of
        if not is_union(union) or refusal(union) is None:
            return union
        members = typing.get_args(union)
        if _NoneType in members and len(members) > 2:
            return custom_type.choice(origin, tuple(m for m in members if m is not _NoneType)) | None
        return custom_type.choice(origin, members)

    def _collection(self, tp: Any, origin: Any) -> Any:
        args = typing.get_args(tp)
        ready = tuple(a if a is Ellipsis else self.read(a) for a in args)
        if origin in _SETS:
            return self._set(tp, origin, ready[0])
        if origin in MAPPINGS and not _is_key(ready[0]):
            what = f"the keys of {type_name(tp)} can't come from JSON, where keys are strings"
            raise SignatureProblem(what, "use str keys")
        if all(r is a for r, a in zip(ready, args, strict=True)):
            return self._accepted(tp)
        if origin in MAPPINGS and isinstance(key := custom_type.undescribed(ready[0]), CustomType):
            return custom_type.mapping(self._accepted(origin[str, ready[1]]), key)
        return self._accepted(origin[ready])

    def _set(self, tp: Any, origin: Any, item: Any) -> Any:
        if item is Any:
            return origin[_HASHABLE]  # arrays and objects would only fail when the set is built
        if _is_unhashable(item):
            what = f"{type_name(tp)} can't be built, because its items are not hashable"
            raise SignatureProblem(what, f"use list[{type_name(item)}]")
        return tp if item is expand(typing.get_args(tp)[0]) else origin[item]

    def _generic(self, tp: Any, origin: Any) -> Any:
        if not is_record(origin) and not is_model(tp):
            raise _unsupported(tp, getattr(origin, "__name__", ""))
        self.in_header = True
        return self._record(tp) if is_record(origin) else self._accepted(tp)

    def _class(self, tp: Any) -> Any:
        if tp in _SETS:
            return tp[_HASHABLE]
        if tp in _SCALARS or tp in _COLLECTIONS or isinstance(tp, CustomType) or custom_type.is_path(tp):
            return tp
        if not is_class(tp):
            raise _unsupported(tp, str(tp))
        if issubclass(tp, Enum):
            return tp if refusal(tp) is None else custom_type.members(tp)
        if hasattr(tp, "__pydantic_validator__") or hasattr(tp, "__get_pydantic_core_schema__"):
            self.in_header = True
            if not is_model(tp):
                return self._adapter(tp)
            self._refuse_re(tp, tp.__pydantic_core_schema__)
            return tp
        if is_record(tp):
            return self._record(tp)
        raise _unsupported(tp, tp.__name__)

    def _record(self, tp: Any) -> Any:
        if tp in self.replaced:
            return self.replaced[tp]
        if tp in self.walking:
            self.awaited.add(tp)
            return tp
        if tp in self.native:
            return tp
        known = set(self.replaced)
        self.walking.add(tp)
        try:
            changed = any(slot.type is not hint for slot, hint in self._slots(tp)) or refusal(tp) is not None
        finally:
            self.walking.discard(tp)
        if changed:
            return self._replace(tp, known)
        self.native.add(tp)
        return tp

    def _replace(self, tp: Any, known: set[Any]) -> Any:
        if tp in self.awaited:
            # Records inside it were read as if it were native, and are read again.
            self.native.clear()
            self.replaced = {k: v for k, v in self.replaced.items() if k in known}
        array, options = record_options(tp)
        slots = self.slots[tp] = []
        # Entered before its slots are read, so that a recursive field finds the custom type.
        self.replaced[tp] = custom_type.record(class_of(tp), slots, array=array, options=options)
        slots.extend(slot for slot, _ in self._slots(tp))
        if not self.walking:  # only now: a field may hold a record that was still being read
            for record in self.replaced:
                for slot in self.slots[record]:
                    if (reason := refusal(slot.type)) is not None:
                        what = f"{record.__name__}.{slot.name} can't come from JSON ({reason})"
                        raise SignatureProblem(what, ANYTHING)
        return self.replaced[tp]

    def _slots(self, tp: Any) -> list[tuple[custom_type.RecordSlot, Any]]:
        found: list[tuple[custom_type.RecordSlot, Any]] = []
        for slot in record_slots(tp):
            self.authored |= not is_plain_key(slot.key)
            try:
                ready = self.read(slot.type)
            except SignatureProblem as problem:
                raise SignatureProblem(f"{tp.__name__}.{slot.name}: {problem.what}", problem.fix) from None
            found.append((msgspec.structs.replace(slot, type=ready), expand(slot.type)))
        return found

    def _distribute(self, base: Any, inner: Any, notes: Notes) -> Any:
        """Give each member of a union the constraints that apply to it: msgspec wants them on the member."""
        members = typing.get_args(inner) if is_union(inner) else (inner,)
        unused = set(notes.constraints)
        rebuilt: list[Any] = []
        for member in members:
            fitting = {k: v for k, v in notes.constraints.items() if _fits(member, k, v)}
            unused -= fitting.keys()
            rebuilt.append(self._constrain(member, **fitting))
        if not unused:
            return self._joined(base, _union_of(tuple(rebuilt)))
        if "pydantic" in sys.modules and "msgspec" not in {type(m).__module__ for m in notes.originals}:
            return self._adapter(typing.Annotated[(base, *notes.originals)])
        what = f"the constraint {sorted(unused)[0]} can't be set on {type_name(base)}"
        raise SignatureProblem(what, "remove the constraint and check the value in the function")

    def _constrain(self, tp: Any, *, pattern: str | None = None, **others: Any) -> Any:
        """A type with constraints, and with its pattern matched by a linear engine."""
        plain = custom_type.constrain(tp, msgspec.Meta(**others)) if others else tp
        if pattern is None:
            return plain
        from longshore.schema.patterns import read_pattern

        return custom_type.text(plain, pattern, read_pattern(pattern, self.patterns))

    def _adapter(self, annotation: Any) -> Any:
        adapted = custom_type.adapter(annotation)
        self._refuse_re(annotation, adapted.core_schema)
        return adapted

    def _refuse_re(self, tp: Any, core_schema: Any) -> None:
        if self.patterns != "any" and custom_type.runs_re(core_schema):
            from longshore.schema.patterns import unbounded

            fix = 'leave out re.compile(…) and regex_engine="python-re", so that pydantic matches in linear time'
            raise unbounded(f"{type_name(tp)} has its patterns matched by `re`", fix, self.patterns)

    def _accepted(self, tp: Any) -> Any:
        if not self.walking and (reason := refusal(tp)) is not None:
            raise SignatureProblem(f"{type_name(tp)} can't come from JSON ({reason})", ANYTHING)
        return tp


def is_union(tp: Any) -> bool:
    """`A | B` in either spelling."""
    origin = typing.get_origin(tp)
    return origin is typing.Union or origin is types.UnionType


def _is_key(tp: Any) -> bool:
    """JSON keys, which are strings, can be read as this type."""
    return not is_record(tp) and (typing.get_origin(tp) or tp) not in _COLLECTIONS | {bool, _NoneType}


def _is_unhashable(tp: Any) -> bool:
    origin = typing.get_origin(tp) or tp
    if origin is tuple:
        return any(_is_unhashable(a) for a in typing.get_args(tp))
    return (origin in _COLLECTIONS and origin is not frozenset) or getattr(origin, "__hash__", None) is None


def _union_of(members: tuple[Any, ...]) -> Any:
    return typing.Union[members]  # noqa: UP007  (members are known at run time only)


def _holds(tp: Any, classes: set[Any]) -> bool:
    """The type mentions one of the classes, in its arguments at any depth."""
    return tp in classes or any(_holds(a, classes) for a in typing.get_args(tp) if not isinstance(a, (str, list)))


def expand(tp: Any) -> Any:
    """Replace aliases, NewTypes and type variables by the types that they name."""
    for _ in range(100):  # `type A = A` has no end
        if hasattr(tp, "__supertype__"):
            tp = tp.__supertype__
        elif type(tp).__name__ == "TypeAliasType":
            tp = _value(tp)
        elif type(typing.get_origin(tp)).__name__ == "TypeAliasType":
            tp = _filled(typing.get_origin(tp), typing.get_args(tp))
        elif isinstance(tp, typing.TypeVar):
            tp = tp.__bound__ or (_union_of(tp.__constraints__) if tp.__constraints__ else Any)
        elif typing.get_origin(tp) in _QUALIFIERS:
            tp = typing.get_args(tp)[0]
        else:
            return next((same for other, same in _SAME_AS if tp is other), tp)
    raise SignatureProblem("its type alias has no end", "break the loop")


def _value(alias: Any) -> Any:
    """The value of an alias, which Python evaluates only now."""
    try:
        return alias.__value__
    except NameError as error:
        what = f"the alias {alias} names {error.name!r}, which is not defined in its module"
        raise SignatureProblem(what, f"import {error.name} at module level, not under TYPE_CHECKING") from None


def _filled(alias: Any, given: tuple[Any, ...]) -> Any:
    """The value of an alias with arguments, in any order: `type Swapped[A, B] = dict[B, A]`."""
    value = _value(alias)
    if not all(isinstance(p, typing.TypeVar) for p in alias.__type_params__):
        return value[given]
    return fill(value, dict(zip(alias.__type_params__, given, strict=False)))  # the rest may have defaults


def _fits(member: Any, name: str, value: Any) -> bool:
    text = getattr(custom_type.undescribed(member), "origin", None) is str
    plain = str if text else member
    return refusal(custom_type.constrain(plain, msgspec.Meta(**{name: value}))) is None


def _unsupported(tp: Any, name: str) -> SignatureProblem:
    fix = _REMEDIES.get(name)
    if fix is None and isinstance(tp, type) and tp.__module__ not in ("builtins", "typing", "collections"):
        fix = f"make {name} a dataclass, a TypedDict or a msgspec.Struct, or take its fields as parameters"
    return SignatureProblem(f"{type_name(tp)} can't come from JSON", fix or ANYTHING)


# -- parameters


def read_parameter(
    name: str, annotation: Any, default: Any, keyword_only: bool, marker_type: type, patterns: Patterns
) -> Parameter:
    """Read one parameter whose annotation or default is more than a plain class."""
    try:
        base: Any = expand(annotation)
        metadata: tuple[Any, ...] = ()
        if typing.get_origin(base) is typing.Annotated:
            base, metadata = base.__origin__, base.__metadata__
        if is_field(default):  # `x: int = Field(3, ge=1)` gives metadata and perhaps the default itself
            metadata = (*metadata, default)
            default = NODEFAULT if default.is_required() else default.get_default(call_default_factory=True)
        notes = read_notes(metadata, marker_type)
        reader = TypeReader(patterns)
        ready = reader.constrained(base, notes, described=False)
    except SignatureProblem as problem:
        raise SignatureProblem(f"parameter {name!r}: {problem.what}", problem.fix) from None
    except RecursionError:  # `type Tree = dict[str, Tree]`: nothing but its own depth ends it
        raise SignatureProblem(f"parameter {name!r}: {ENDLESS[0]}", ENDLESS[1]) from None
    if notes.hidden:
        _check_hidden(name, notes, default)
    if default is not NODEFAULT and ready is not Any:
        _check_default(name, annotation, ready, default)
    return Parameter(
        name,
        ready,
        default is NODEFAULT,
        default,
        notes.description,
        keyword_only,
        notes.marker,
        notes.extra or None,
        reader.in_header or ANNOTATION in notes.extra,
        reader.authored or reader.in_header or bool(notes.extra),
        notes.old_names,
        notes.hidden,
    )


def is_context(annotation: Any, context_type: type) -> bool:
    """The annotation is the context type, or an Optional of it."""
    if annotation is context_type:
        return True
    if is_union(annotation):
        return context_type in typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Annotated:
        return is_context(annotation.__origin__, context_type)
    return isinstance(annotation, type) and issubclass(annotation, context_type)


def resolve(function: types.FunctionType, context_type: type) -> dict[str, Any]:
    """Evaluate a function's quoted annotations. The context type is known even if it was imported for typing only."""
    name = context_type.__name__
    names = {} if name in function.__globals__ else {name: context_type}
    try:
        return typing.get_type_hints(function, localns=names, include_extras=True)
    except NameError as error:
        where = next((p for p, a in function.__annotations__.items() if str(error.name) in str(a)), "?")
        what = f"parameter {where!r}: the annotation names {error.name!r}, which is not defined in its module"
        fix = f"import {error.name} at module level, not inside a function or under TYPE_CHECKING"
        raise SignatureProblem(what, fix) from None
    except Exception as error:
        what = f"its quoted annotations can't be evaluated ({type(error).__name__}: {error})"
        raise SignatureProblem(what, "write annotations that Python can evaluate") from None


def fresh(default: Any) -> abc.Callable[[], Any]:
    """A factory of copies, so that calls don't share a mutable default. Sentinels stay themselves."""
    cls: Any = default.__class__
    if not issubclass(cls, (list, dict, set, bytearray, tuple)) and not is_record(cls) and not is_model(cls):
        return lambda: default

    def factory() -> Any:
        from copy import deepcopy

        return deepcopy(default)

    return factory


def find_refused(parameters: list[Parameter]) -> SignatureProblem:
    """The problem with the parameter that msgspec refuses, after it refused all together."""
    for p in parameters:
        if (reason := refusal(p.type)) is not None:
            return SignatureProblem(f"parameter {p.name!r}: {reason}", ANYTHING)
    return SignatureProblem("its parameters can't be decoded together", ANYTHING)


def _check_hidden(name: str, notes: Notes, default: Any) -> None:
    """Refuse a hidden parameter that a client would have to know of."""
    if default is NODEFAULT:
        what = f"parameter {name!r} is Hidden(), so no client knows that it has to send it"
        raise SignatureProblem(what, "give it a default, or take Hidden() out")
    if ANNOTATION in notes.extra:
        what = f"parameter {name!r} is Hidden(), so no client knows that a header has to repeat it"
        raise SignatureProblem(what, "take Hidden() or Header(…) out")


def _check_default(name: str, annotation: Any, ready: Any, default: Any) -> None:
    from longshore.schema.phrase import plain

    try:
        msgspec.json.decode(encode(default), type=ready, dec_hook=decode_special)
    except (OutputMismatch, msgspec.MsgspecError, ValueError, TypeError) as error:
        if default is None:
            what = f"parameter {name!r}: its default None is not a valid {type_name(annotation)}"
            raise SignatureProblem(what, f"write `{name}: {type_name(annotation)} | None = None`") from None
        shown = ascii(default) if len(ascii(default)) <= 40 else type(default).__name__
        what = f"parameter {name!r}: its default {shown} does not fit its type ({plain(error)})"
        raise SignatureProblem(what, "correct the default or the annotation") from None


# -- return types

_TEXTUAL = (str, _NoneType, None, Any, typing.NoReturn, typing.Never)


def read_returned(returns: Any, passthrough: tuple[type, ...]) -> Output:
    """Decide how values of a declared type are sent. Raises `SignatureProblem`."""
    reader = TypeReader()
    try:
        if _is_content(returns, passthrough):
            return Output(structured=False)
        ready = reader.read(returns)
    except SignatureProblem as problem:
        what = f"its return type: {problem.what.replace('come from JSON', 'be written as JSON')}"
        raise SignatureProblem(what, problem.fix) from None
    except RecursionError:
        raise SignatureProblem(f"its return type: {ENDLESS[0]}", ENDLESS[1]) from None
    decoder = msgspec.json.Decoder(ready, dec_hook=decode_special)
    return Output(True, not _is_object(returns), None, ready, decoder.decode, reader.authored)


def _is_content(tp: Any, passthrough: tuple[type, ...]) -> bool:
    """Text, or anything that mentions one of our content classes."""
    tp = _bare(tp)
    alternatives = typing.get_args(tp) if is_union(tp) else ()
    texts = bool(alternatives) and all(_is_content(m, passthrough) for m in alternatives)
    return tp in _TEXTUAL or texts or _mentions(tp, passthrough)


def _mentions(tp: Any, classes: tuple[type, ...]) -> bool:
    tp = _bare(tp)
    if is_class(tp) and not typing.get_args(tp):
        return issubclass(tp, classes)
    return any(_mentions(each, classes) for each in typing.get_args(tp))


def _is_object(tp: Any) -> bool:
    """Every value of the type is a JSON object."""
    origin = class_of(_bare(tp))
    if is_model(origin):
        return not getattr(origin, "__pydantic_root_model__", False)
    return origin in MAPPINGS or (is_record(origin) and not record_options(origin)[0])


def _bare(tp: Any) -> Any:
    """A type without aliases and metadata around it."""
    tp = expand(tp)
    return _bare(tp.__origin__) if typing.get_origin(tp) is typing.Annotated else tp
