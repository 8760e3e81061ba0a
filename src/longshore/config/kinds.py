"""Kinds of value: each checks a TOML value, reads a text (variable, flag) and states its JSON Schema."""

from __future__ import annotations

from typing import Any, Literal, Protocol, cast, get_args, get_origin

from msgspec import Struct

from longshore.config.names import quote
from longshore.nearest import nearest

YES = ("true", "1", "yes", "on")
NO = ("false", "0", "no", "off")

MOST_COUNT = 1 << 40
"""A tebibyte. A larger count is a slip of the pen."""

MOST_SECONDS = 366 * 86_400
"""A year. Clocks and waits of the operating system overflow not far beyond."""

LEAST_SECONDS = 0.1
"""What is done again and again after so many seconds must let something else be done in between: zero would spin."""

HIDDEN = "…"
"""Stands for a secret wherever values are shown."""

SHOWN_CHARACTERS = 40
"""What an error shows of a value: enough to recognise it."""


class Kind(Protocol):
    """`check` and `read` return the value to hold or raise a ValueError that says what was expected."""

    @property
    def expected(self) -> str: ...
    def check(self, value: Any) -> Any: ...
    def read(self, text: str) -> Any: ...
    def schema(self) -> dict[str, Any]: ...


class Switch(Struct, frozen=True):
    """A bool."""

    expected: str = "true or false"

    def check(self, value: Any) -> bool:
        if isinstance(value, bool):
            return value
        raise mismatch(self, value)

    def read(self, text: str) -> bool:
        word = text.strip().lower()
        if word in YES or word in NO:
            return word in YES
        raise mismatch(self, text)

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


class Number(Struct, frozen=True):
    """A count (`whole`) or seconds; with `off`, false and 0 mean no limit."""

    whole: bool
    low: float
    high: float
    off: bool = False

    @property
    def expected(self) -> str:
        return ("a whole number" if self.whole else "seconds (a number)") + (" or false" if self.off else "")

    def check(self, value: Any) -> int | float | Literal[False]:
        if value is False and self.off:
            return False
        if isinstance(value, bool) or not isinstance(value, int if self.whole else (int, float)):
            raise mismatch(self, value)
        if not self.low <= value <= self.high:  # NaN is in no range
            raise ValueError(f"expected {self.expected} from {self.low} to {self.high}, got {show(value)}")
        if self.whole:
            return value
        return float(value) if value or not self.off else False

    def read(self, text: str) -> int | float | Literal[False]:
        if self.off and text.strip().lower() in NO:
            return False
        try:
            value = int(text) if self.whole else float(text)
        except ValueError:
            raise mismatch(self, text) from None
        return self.check(value)

    def schema(self) -> dict[str, Any]:
        number = {"type": "integer" if self.whole else "number", "minimum": self.low, "maximum": self.high}
        return {"anyOf": [number, {"const": False}]} if self.off else number


class Words(Struct, frozen=True):
    """A string."""

    expected: str = "a string"

    def check(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        raise mismatch(self, value)

    def read(self, text: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:  # bytes of the environment that are no UTF-8; they would break the JSON we send
            raise ValueError("expected UTF-8 text") from None
        return text

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


class Secret(Struct, frozen=True):
    """A string that is shown nowhere: not in errors, not by `longshore config show`."""

    expected: str = "a string"

    def check(self, value: Any) -> str:
        if isinstance(value, str):
            return value
        raise ValueError(f"expected {self.expected}, got {HIDDEN}")

    def read(self, text: str) -> str:
        return Words().read(text)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "writeOnly": True}


class Several(Struct, frozen=True):
    """A list of strings; as text, separated by commas or blanks."""

    expected: str = "a list of strings"

    def check(self, value: Any) -> list[str]:
        if not isinstance(value, list):
            raise mismatch(self, value)
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        for item in items:
            if not isinstance(item, str):
                raise ValueError(f"expected {self.expected}, got {show(item)} in it")
        return items

    def read(self, text: str) -> list[str]:
        return Words().read(text).replace(",", " ").split()

    def schema(self) -> dict[str, Any]:
        return {"type": "array", "items": {"type": "string"}}


class Choice(Struct, frozen=True):
    """One word of a few."""

    words: tuple[str, ...]

    @property
    def expected(self) -> str:
        return " or ".join((", ".join(self.words[:-1]), self.words[-1]))

    def check(self, value: Any) -> str:
        if isinstance(value, str) and value in self.words:
            return value
        raise ValueError(str(mismatch(self, value)) + self._nearest(value))

    def read(self, text: str) -> str:
        return self.check(text.strip().lower())

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.words)}

    def _nearest(self, value: Any) -> str:
        near = nearest(value.lower(), self.words) if isinstance(value, str) else None
        return f"; did you mean {near}?" if near else ""


class Free(Struct, frozen=True):
    """A table whose keys someone else knows."""

    expected: str = "a table"

    def check(self, value: Any) -> dict[str, Any]:
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
        raise mismatch(self, value)

    def read(self, text: str) -> dict[str, Any]:  # noqa: ARG002  (a Kind)
        raise ValueError("a table can only be set in a file")

    def schema(self) -> dict[str, Any]:
        return {"type": "object"}


def kind_of(hint: Any, bounds: tuple[float, float] | None) -> Kind:
    """The kind that a field's type asks for. A type that nobody foresaw is our own mistake, so it raises TypeError."""
    if get_origin(hint) is Literal:
        return Choice(get_args(hint))
    parts = [part for part in get_args(hint) or (hint,) if part is not type(None)]
    if get_origin(hint) is dict:
        return Free()
    if list[str] in (hint, *parts):
        return Several()
    if parts == [float, Literal[False]]:
        return _number(False, bounds or (0, MOST_SECONDS), off=True)
    simple: dict[Any, Kind] = {
        bool: Switch(),
        str: Words(),
        int: _number(True, bounds or (1, MOST_COUNT)),
        float: _number(False, bounds or (LEAST_SECONDS, MOST_SECONDS)),
    }
    if len(parts) == 1 and parts[0] in simple:
        return simple[parts[0]]
    if len(parts) == 1 and get_origin(parts[0]) is Literal:
        return Choice(get_args(parts[0]))
    raise TypeError(f"no kind of configuration value for {hint!r}")


def _number(whole: bool, bounds: tuple[float, float], off: bool = False) -> Number:
    return Number(whole, bounds[0], bounds[1], off)


def mismatch(kind: Kind, value: Any) -> ValueError:
    return ValueError(f"expected {kind.expected}, got {show(value)}")


def show(value: Any) -> str:
    """A value as an error shows it: in TOML's spelling, short, and safe to print."""
    match value:
        case str():
            return quote(value if len(value) <= SHOWN_CHARACTERS else value[: SHOWN_CHARACTERS - 1] + "…")
        case bool():
            return "true" if value else "false"
        case int() if abs(value) > 10**SHOWN_CHARACTERS:  # str() of a huge int raises
            return "a number far too large"
        case int() | float():
            return str(value)
        case list():
            return "an array"
        case dict():
            return "a table"
        case _:
            return "a date or time"
