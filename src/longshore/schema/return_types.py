"""Return types that are more than a plain class, and the check of a result that did not decode as declared."""

from __future__ import annotations

import sys
import typing
from typing import Any, NoReturn

import msgspec
from msgspec import Struct

from longshore.schema import types
from longshore.schema.annotations import is_record
from longshore.schema.custom_type import CustomType, decode_special, is_model
from longshore.schema.kinds import is_array, is_class, is_object
from longshore.schema.output import Output, OutputMismatch, encode_special
from longshore.schema.parameter import SignatureProblem
from longshore.schema.phrase import plain

_TEXTUAL = (str, type(None), None, Any, typing.NoReturn, typing.Never)
_VOUCHED = "\0model"
_INFINITIES = (float("inf"), float("-inf"))


def read_returned(returns: Any, passthrough: tuple[type, ...]) -> Output:
    """Decide how values of a declared type are sent. Raises `SignatureProblem`."""
    reader = types.TypeReader()
    try:
        returns = types.expand(returns)
        if _is_content(returns, passthrough):
            return Output(structured=False)
        ready = reader.read(returns)
    except SignatureProblem as problem:
        what = f"its return type: {problem.what.replace('come from JSON', 'be written as JSON')}"
        raise SignatureProblem(what, problem.fix) from None
    except RecursionError:
        raise SignatureProblem(f"its return type: {types.ENDLESS[0]}", types.ENDLESS[1]) from None
    decoder = msgspec.json.Decoder(ready, dec_hook=decode_special)
    return Output(True, not _is_object(returns), None, ready, decoder.decode, reader.authored)


def check_again(value: Any, returns: Any, error: Exception) -> None:
    """Raise `OutputMismatch` for a result that did not decode, unless it did so only because of pydantic.

    A model may write itself in a form that it would not read (a serializer, a computed field beside `extra="forbid"`).
    An instance was validated when it was made, so here a token replaces each one, which only its own class accepts.
    """
    if "pydantic" not in sys.modules:
        _mismatch(error, returns)
    instances: list[Any] = []

    def write(item: Any) -> Any:
        if not is_model(type(item)):
            return encode_special(item)
        instances.append(item)
        return {_VOUCHED: len(instances) - 1}

    def accept(tp: Any, item: Any) -> Any:
        if isinstance(tp, CustomType):
            return tp.decode(item, accept)
        if is_model(tp) and is_object(item) and _VOUCHED in item:
            return convert_instance(tp, instances[item[_VOUCHED]])
        return decode_special(tp, item)

    try:
        msgspec.json.decode(msgspec.json.encode(value, enc_hook=write), type=returns, dec_hook=accept)
    except Exception as second:
        _mismatch(error if not instances else second, returns)


def convert_instance(model: type, instance: Any) -> Any:
    """The instance, if it is one of the model."""
    if isinstance(instance, model):
        return instance
    raise ValueError(f"Expected `{model.__name__}`, got `{type(instance).__name__}`")


def refuse_non_finite(value: Any, path: str = "") -> None:
    """Raise `OutputMismatch` where plain data holds NaN or an infinity."""
    if isinstance(value, float):
        if value != value or value in _INFINITIES:
            where = f" at {path}" if path else ""
            raise OutputMismatch(
                f"the result holds {value}{where}, which JSON can't carry; return None or text instead"
            )
    elif is_object(value):
        for key, item in value.items():
            refuse_non_finite(item, f"{path}.{key}" if path else str(key))
    elif is_array(value):
        for index, item in enumerate(value):
            refuse_non_finite(item, f"{path}[{index}]")


def _mismatch(error: Exception, returns: Any) -> NoReturn:
    name = types.type_name(getattr(returns, "origin", returns))
    raise OutputMismatch(f"the result is not the declared {name}: {plain(error)}") from None


def _is_content(tp: Any, passthrough: tuple[type, ...]) -> bool:
    """Text, or anything that mentions one of our content classes."""
    if tp in _TEXTUAL or _mentions(tp, passthrough):
        return True
    if typing.get_origin(tp) is typing.Annotated:
        return _is_content(types.expand(tp.__origin__), passthrough)
    return types.is_union(tp) and all(_is_content(m, passthrough) for m in typing.get_args(tp))


def _mentions(tp: Any, passthrough: tuple[type, ...]) -> bool:
    if is_class(tp) and not typing.get_args(tp):
        return issubclass(tp, passthrough)
    if typing.get_origin(tp) is typing.Annotated:
        return _mentions(tp.__origin__, passthrough)
    return any(_mentions(types.expand(a), passthrough) for a in typing.get_args(tp))


def _is_object(tp: Any) -> bool:
    """Every value of the type is a JSON object."""
    tp = types.expand(tp)
    if typing.get_origin(tp) is typing.Annotated:
        return _is_object(tp.__origin__)
    origin = typing.get_origin(tp) or tp
    if origin in types.MAPPINGS:
        return True
    if is_model(origin):
        return not getattr(origin, "__pydantic_root_model__", False)
    if not is_record(origin):
        return False
    return not (issubclass(origin, Struct) and origin.__struct_config__.array_like) and not issubclass(origin, tuple)
