"""The keys of `longshore.toml`: what each takes, derived once from the Structs of `sections`.

Not imported when nothing is configured.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeAlias, cast, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from longshore.config.sections import MOVED, Sections, quote
from longshore.nearest import nearest

Kind: TypeAlias = Literal["switch", "count", "seconds", "timeout", "text", "list", "choice", "table"]

YES = ("true", "1", "yes", "on")
NO = ("false", "0", "no", "off")

MOST_COUNT = 1 << 40
"""A tebibyte. A larger count is a typing error."""

MOST_SECONDS = 366 * 86_400
"""A year. Clocks and waits of the operating system overflow not far beyond."""

LEAST_SECONDS = 0.1
"""The period of a loop. Zero would make it spin."""

RANGES: dict[str, tuple[float, float]] = {"count": (1, MOST_COUNT), "seconds": (LEAST_SECONDS, MOST_SECONDS)}
BOUNDS: dict[str, tuple[float, float]] = {
    "limits.depth": (1, 512),  # the parser overflows small stacks at about 1,000
    "http.port": (0, 65_535),
    "http.workers": (1, 256),
    # Zero means "none" for these; for the other counts it would stop the server.
    **dict.fromkeys(
        (
            "limits.parked",
            "limits.held_bytes",
            "limits.notes",
            "limits.abandoned",
            "limits.listens",
            "limits.subscriptions",
            "limits.questions",
            "http.rate",
        ),
        (0, MOST_COUNT),
    ),
    # Zero means "at once" for these.
    **dict.fromkeys(
        (
            "server.eof_grace",
            "http.grace",
            "limits.term_grace_seconds",
            "limits.stop_seconds",
            "limits.stream_after_seconds",
        ),
        (0, MOST_SECONDS),
    ),
}
"""Where a key's range differs from that of its kind."""

SECRETS = frozenset({"http.state_key", "auth.token", "auth.introspection_secret", "tokens.token"})
"""Keys whose values are shown nowhere; of a section with named tables, the key in each."""

HIDDEN = "…"
"""Stands for a secret wherever values are shown."""

SHOWN_CHARACTERS = 40
"""How much an error shows of a value: enough to recognise it."""

_EXPECTED: dict[Kind, str] = {
    "switch": "true or false",
    "count": "a whole number",
    "seconds": "seconds (a number)",
    "timeout": "seconds (a number) or false",
    "text": "a string",
    "list": "a list of strings",
    "table": "a table",
}
_TYPES: dict[Kind, type] = {"switch": bool, "text": str, "table": dict, "choice": str}
_SCHEMAS: dict[Kind, dict[str, Any]] = {
    "switch": {"type": "boolean"},
    "text": {"type": "string"},
    "list": {"type": "array", "items": {"type": "string"}},
    "table": {"type": "object"},
}


class Key(Struct, frozen=True):
    """One key. `check` and `read` return the value to store or raise a ValueError that says what is expected."""

    name: str
    kind: Kind
    default: Any = None
    low: float = 0
    high: float = 0
    words: tuple[str, ...] = ()
    """The values of a choice."""
    secret: bool = False

    @property
    def expected(self) -> str:
        return " or ".join((", ".join(self.words[:-1]), self.words[-1])) if self.words else _EXPECTED[self.kind]

    def check(self, value: Any) -> Any:
        """Check a value of TOML."""
        if self.kind in ("count", "seconds", "timeout"):
            return self._check_number(value)
        if self.kind == "list":
            return self._check_list(value)
        if not isinstance(value, _TYPES[self.kind]) or (self.words and value not in self.words):
            raise self._refusal(value)
        return value

    def read(self, text: str) -> Any:
        """Read the text of a variable or a flag."""
        word = text.strip().lower()
        match self.kind:
            case "switch":
                return self.check(word in YES if word in YES + NO else text)
            case "count" | "seconds" | "timeout":
                if self.kind == "timeout" and word in NO:
                    return False
                try:
                    number = int(text) if self.kind == "count" else float(text)
                except ValueError:
                    raise self._refusal(text) from None
                return self.check(number)
            case "choice":
                return self.check(word)
            case "table":
                raise ValueError("a table can only be set in a file")
            case "text" | "list":
                try:
                    text.encode()
                except UnicodeEncodeError:  # bytes of the environment that are no UTF-8 would break the JSON we send
                    raise ValueError("expected UTF-8 text") from None
                return text if self.kind == "text" else text.replace(",", " ").split()

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the key's values."""
        if self.words:
            return {"enum": list(self.words)}
        if self.kind in _SCHEMAS:
            return {**_SCHEMAS[self.kind], **({"writeOnly": True} if self.secret else {})}
        number = {"type": "integer" if self.kind == "count" else "number", "minimum": self.low, "maximum": self.high}
        return {"anyOf": [number, {"const": False}]} if self.kind == "timeout" else number

    def _check_number(self, value: Any) -> Any:
        if self.kind == "timeout" and value is False:
            return False
        if isinstance(value, bool) or not isinstance(value, int if self.kind == "count" else (int, float)):
            raise self._refusal(value)
        if not self.low <= value <= self.high:  # NaN is in no range
            raise ValueError(f"expected {self.expected} from {self.low} to {self.high}, got {show(value)}")
        if self.kind == "count":
            return value
        return float(value) if value or self.kind == "seconds" else False

    def _check_list(self, value: Any) -> list[str]:
        if not isinstance(value, list):
            raise self._refusal(value)
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        for item in items:
            if not isinstance(item, str):
                raise ValueError(f"expected {self.expected}, got {show(item)} in it")
        return items

    def _refusal(self, value: Any) -> ValueError:
        near = nearest(value, self.words) if self.words and isinstance(value, str) else None
        shown = HIDDEN if self.secret else show(value)
        return ValueError(f"expected {self.expected}, got {shown}" + (f"; did you mean {near}?" if near else ""))


class Section(Struct, frozen=True):
    """One section; `named` if it holds tables that the user names."""

    name: str
    record: type[Struct]
    named: bool
    keys: dict[str, Key]

    def show(self, value: Any) -> str:
        """A value that stands in the section's place: `[tokens] alice = "the token itself"` is a likely slip."""
        return HIDDEN if any(key.secret for key in self.keys.values()) else show(value)

    def unknown(self, name: str) -> str:
        """The error text for a key that the section does not have."""
        moved = MOVED.get(f"{self.name}.{name}")
        if moved:
            return f"no such key; use {moved}"
        near = nearest(name, self.keys) or _elsewhere(name)
        return "no such key" + (f"; did you mean {near}?" if near else f"; {self.name} has {', '.join(self.keys)}")


@cache
def sections() -> dict[str, Section]:
    """Every section by its name, in the order of the record."""
    return {name: make_section(name, hint) for name, hint in get_type_hints(Sections).items()}


def make_section(name: str, hint: Any) -> Section:
    """A section from the type of its field in `Sections`."""
    named = get_origin(hint) is dict
    record = cast("type[Struct]", get_args(hint)[1] if named else hint)
    hints = get_type_hints(record)
    found = [field for field in fields(record) if f"{name}.{field.name}" not in MOVED]
    return Section(name, record, named, {field.name: make_key(name, field, hints[field.name]) for field in found})


def make_key(section: str, field: FieldInfo, hint: Any) -> Key:
    """A key from a field. Raises TypeError for a type that has no kind: a mistake in `sections`."""
    kind, words = _kind_of(hint)
    place = f"{section}.{field.name}"
    low, high = BOUNDS.get(place) or RANGES.get(kind, (0, MOST_SECONDS))
    return Key(field.name, kind, _default(field), low, high, words, place in SECRETS)


def _kind_of(hint: Any) -> tuple[Kind, tuple[str, ...]]:
    if get_origin(hint) is dict:
        return "table", ()
    options = (hint,) if get_origin(hint) in (list, Literal) else get_args(hint) or (hint,)
    parts = [part for part in options if part is not type(None)]
    if parts == [float, Literal[False]]:
        return "timeout", ()
    if len(parts) == 1 and get_origin(parts[0]) is Literal:
        return "choice", get_args(parts[0])
    kinds: dict[Any, Kind] = {bool: "switch", str: "text", int: "count", float: "seconds", list[str]: "list"}
    if len(parts) == 1 and parts[0] in kinds:
        return kinds[parts[0]], ()
    raise TypeError(f"no kind of configuration value for {hint!r}")


def _default(field: FieldInfo) -> Any:
    if field.default is NODEFAULT:
        return None if field.default_factory is NODEFAULT else field.default_factory()
    return field.default


def unknown_section(name: str) -> str:
    """The error text for a top-level name that is no section."""
    near = nearest(name, sections()) or _elsewhere(name)
    return "no such section" + (f"; did you mean {near}?" if near else f"; there are {', '.join(sections())}")


def _elsewhere(name: str) -> str | None:
    """The dotted key of the first section with fixed keys that has this very name."""
    return next((f"{s.name}.{name}" for s in sections().values() if not s.named and name in s.keys), None)


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
