"""Reads a parameter whose annotation or default is more than a plain class."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import NODEFAULT

from longshore.schema.annotations import Notes, is_field, is_record, read_notes
from longshore.schema.custom_type import decode_special, is_model
from longshore.schema.header_params import ANNOTATION
from longshore.schema.parameter import Parameter, Patterns, SignatureProblem
from longshore.schema.types import ANYTHING, ENDLESS, TypeReader, expand, is_union, refusal, type_name

_MUTABLE = (list, dict, set, bytearray, tuple)


def read_parameter(
    name: str, annotation: Any, default: Any, keyword_only: bool, marker_type: type, patterns: Patterns
) -> Parameter:
    """Read one parameter whose annotation or default is more than a plain class."""
    try:
        base, notes = _peel(annotation, marker_type)
        if is_field(default):
            notes, default = _from_field(default, notes, marker_type)
        reader = TypeReader(patterns)
        ready = reader.constrained(base, notes, described=False)
    except SignatureProblem as problem:
        raise SignatureProblem(f"parameter {name!r}: {problem.what}", problem.fix) from None
    except RecursionError:  # `type Tree = dict[str, Tree]`: nothing but its own depth ends it
        raise SignatureProblem(f"parameter {name!r}: {ENDLESS[0]}", ENDLESS[1]) from None
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
    known = {context_type.__name__: context_type}
    names = {name: value for name, value in known.items() if name not in function.__globals__}
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


def fresh(default: Any) -> Callable[[], Any]:
    """A factory of copies, so that calls don't share a mutable default. Sentinels stay themselves."""
    cls: Any = default.__class__
    if not issubclass(cls, _MUTABLE) and not is_record(cls) and not is_model(cls):
        return lambda: default

    def factory() -> Any:
        from copy import deepcopy

        return deepcopy(default)

    return factory


def culprit(parameters: list[Parameter]) -> SignatureProblem:
    """The problem with the parameter that msgspec refuses, after it refused all together."""
    for p in parameters:
        if (reason := refusal(p.type)) is not None:
            return SignatureProblem(f"parameter {p.name!r}: {reason}", ANYTHING)
    return SignatureProblem("its parameters can't be decoded together", ANYTHING)


def _peel(annotation: Any, marker_type: type) -> tuple[Any, Notes]:
    """An annotation without its outermost metadata, and that metadata."""
    annotation = expand(annotation)
    if typing.get_origin(annotation) is typing.Annotated:
        return annotation.__origin__, read_notes(annotation.__metadata__, marker_type)
    return annotation, read_notes((), marker_type)


def _from_field(field: Any, notes: Notes, marker_type: type) -> tuple[Notes, Any]:
    """`x: int = Field(3, ge=1)`: pydantic's Field as a default gives metadata and perhaps the default itself."""
    given = read_notes((field,), marker_type)
    given.description = notes.description or given.description
    given.constraints = {**notes.constraints, **given.constraints}
    given.extra = {**notes.extra, **given.extra}
    given.marker, given.old_names, given.originals = notes.marker, notes.old_names, (*notes.originals, field)
    if field.is_required():
        return given, NODEFAULT
    return given, field.get_default(call_default_factory=True)


def _check_default(name: str, annotation: Any, ready: Any, default: Any) -> None:
    from longshore.schema.output import OutputMismatch, encode
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
