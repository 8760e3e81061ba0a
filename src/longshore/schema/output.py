"""The output of a function: whether it is structured, its JSON text, and the check that the text has the declared type.

On the cold-start path like `signature`: it imports msgspec and what msgspec loads, and the rest when it is needed.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping, Set
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from longshore.schema.kinds import is_array, is_object

_NoneType = type(None)


class OutputMismatch(Exception):
    """A returned value has no JSON form, or not the declared one."""


class Output(Struct, frozen=True):
    """How one function's results are sent.

    * `structured`: the value goes out as structured content, with a schema; otherwise as content blocks or text.
    * `wrap`: its JSON is no object, so it is carried as `{"result": value}`.
    * `exact`: a value of exactly this class needs no check.
    """

    structured: bool
    wrap: bool = False
    exact: type | None = None
    returns: Any = UNSET
    """The declared type, ready for msgspec."""
    decode: Callable[[bytes], Any] | None = None
    authored: bool = False
    """Whether a part of the schema is the author's own: keywords, or keys that are no plain names."""

    def enforce(self, value: Any) -> bytes:
        """The value as compact JSON of the declared type. Raises `OutputMismatch`."""
        text = encode(value)
        if self.decode is None:
            return text
        try:
            self.decode(text)
        except Exception as error:
            _check_again(value, self.returns, error)
        return text

    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the structured content, whose root is always an object; None if there is none."""
        if not self.structured:
            return None
        from longshore.schema.infer import output_schema

        return output_schema(self.returns, wrap=self.wrap)


_TEXT = Output(structured=False)
_SIMPLE: dict[Any, Output] = {
    UNSET: _TEXT,
    Any: _TEXT,
    None: _TEXT,
    _NoneType: _TEXT,
    str: Output(structured=False, exact=str, returns=str, decode=msgspec.json.Decoder(str).decode),
    bool: Output(True, True, bool, bool, msgspec.json.Decoder(bool).decode),
    int: Output(True, True, int, int, msgspec.json.Decoder(int).decode),
    # A float may be NaN, which JSON can't carry, so it is always checked.
    float: Output(True, True, None, float, msgspec.json.Decoder(float).decode),
}


def read_output(returns: Any, *, passthrough: tuple[type, ...]) -> Output:
    """Decide how a declared return type is sent. `SignatureProblem` if its values have no JSON form."""
    if returns is None or returns is Any or returns is UNSET or returns.__class__ is type:
        found = _SIMPLE.get(returns)
        if found is not None:
            return found
    if returns in passthrough:
        return _TEXT
    from longshore.schema.types import read_returned

    return read_returned(returns, passthrough)


def encode(value: Any) -> bytes:
    """Any value as compact JSON. Raises `OutputMismatch` with the reason if it has none. Never calls `str()` on it."""
    try:
        text = _encoder.encode(value)
        # msgspec writes NaN and the infinities as null; only then the value itself is checked.
        if b"null" in text:
            _refuse_non_finite(msgspec.to_builtins(value, enc_hook=encode_special, str_keys=True))
        return text
    except OutputMismatch:
        raise
    except RecursionError:
        raise OutputMismatch("the result contains itself or is nested too deeply for JSON") from None
    except Exception as error:
        raise OutputMismatch(f"the result can't be written as JSON: {_reason(error)}") from None


def encode_special(value: Any) -> Any:
    """msgspec's hook: turns a value that msgspec can't encode into one that it can."""
    cls: Any = value.__class__
    if hasattr(cls, "__pydantic_serializer__") and hasattr(cls, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    if hasattr(cls, "__fspath__"):
        return cls.__fspath__(value)
    if issubclass(cls, Mapping):
        return dict(value)
    if issubclass(cls, (Set, deque)):
        return list(value)
    if hasattr(cls, "__get_pydantic_core_schema__"):
        return sys.modules["pydantic_core"].to_jsonable_python(value)
    raise OutputMismatch(f"the result holds a {cls.__name__}, which has no JSON form; return plain data or a dataclass")


_encoder = msgspec.json.Encoder(enc_hook=encode_special)


def _reason(error: Exception) -> str:
    try:
        return str(error).replace("`", "").splitlines()[0]
    except Exception:
        return type(error).__name__


_VOUCHED = "\0model"


def _check_again(value: Any, returns: Any, error: Exception) -> None:
    """Raise `OutputMismatch` for a result that did not decode, unless it did so only because of pydantic.

    A model may write itself in a form that it would not read (a serializer, a computed field beside `extra="forbid"`).
    An instance was validated when it was made, so here a token replaces each one, which only its own class accepts.
    """
    from longshore.schema.custom_type import CustomType, decode_special, is_model
    from longshore.schema.phrase import plain
    from longshore.schema.types import type_name

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
            instance = instances[item[_VOUCHED]]
            if not isinstance(instance, tp):
                raise ValueError(f"Expected `{tp.__name__}`, got `{type(instance).__name__}`")
            return instance
        return decode_special(tp, item)

    try:
        msgspec.json.decode(msgspec.json.encode(value, enc_hook=write), type=returns, dec_hook=accept)
    except Exception as second:
        name, reason = type_name(getattr(returns, "origin", returns)), plain(second if instances else error)
        raise OutputMismatch(f"the result is not the declared {name}: {reason}") from None


def _refuse_non_finite(value: Any, path: str = "") -> None:
    """Raise `OutputMismatch` where plain data holds NaN or an infinity."""
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            where = f" at {path}" if path else ""
            raise OutputMismatch(
                f"the result holds {value}{where}, which JSON can't carry; return None or text instead"
            )
    elif is_object(value):
        for key, item in value.items():
            _refuse_non_finite(item, f"{path}.{key}" if path else str(key))
    elif is_array(value):
        for index, item in enumerate(value):
            _refuse_non_finite(item, f"{path}[{index}]")


# -- tokens

TOKEN_CHARACTERS = 4
"""Characters of a token, wherever one of our figures counts tokens. Each model has its own; this is near enough."""


def count_tokens(value: Any) -> int:
    """The approximate number of tokens of a value's JSON for a model. A value without a JSON form costs nothing."""
    try:
        return -(-len(_encoder.encode(value).decode()) // TOKEN_CHARACTERS) if value else 0
    except Exception:
        return 0
