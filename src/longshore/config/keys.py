"""The keys of `longshore.toml`: what each takes, derived once from the Structs of `sections`.

Not imported when nothing is configured.
"""

from __future__ import annotations

from functools import cache
from types import NoneType
from typing import Any, Literal, TypeAlias, cast, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from longshore.config.sections import MOVED, PREFIX, Sections, quote
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

RANGES: dict[str, tuple[float, float]] = {
    "count": (1, MOST_COUNT),
    "seconds": (LEAST_SECONDS, MOST_SECONDS),
    "timeout": (0, MOST_SECONDS),
}
NONE: tuple[float, float] = (0, MOST_COUNT)
"""For counts of which zero means none; for others it would stop the server."""
AT_ONCE: tuple[float, float] = (0, MOST_SECONDS)
"""For seconds of which zero means at once."""
BOUNDS: dict[str, tuple[float, float]] = {
    "limits.depth": (1, 512),  # the parser overflows small stacks at about 1,000
    "limits.parked": NONE,
    "limits.held_bytes": NONE,
    "limits.notes": NONE,
    "limits.abandoned": NONE,
    "limits.listens": NONE,
    "limits.subscriptions": NONE,
    "limits.questions": NONE,
    "limits.term_grace_seconds": AT_ONCE,
    "limits.stop_seconds": AT_ONCE,
    "limits.stream_after_seconds": AT_ONCE,
    "server.eof_grace": AT_ONCE,
    "http.grace": AT_ONCE,
    "http.port": (0, 65_535),
    "http.workers": (1, 256),
    "http.rate": NONE,
}
"""Where a key's range differs from that of its kind."""

SECRETS = frozenset({"http.state_key", "auth.token", "auth.introspection_secret", "tokens.token"})
"""Keys whose values are shown nowhere; of a section with named tables, the key in each."""

HIDDEN = "…"
"""Stands for a secret wherever values are shown."""

SHOWN_CHARACTERS = 40
"""How much an error shows of a value: enough to recognise it."""

_KINDS: dict[Kind, tuple[str, Any, dict[str, Any]]] = {
    "switch": ("true or false", bool, {"type": "boolean"}),
    "count": ("a whole number", int, {"type": "integer"}),
    "seconds": ("seconds (a number)", (int, float), {"type": "number"}),
    "timeout": ("seconds (a number) or false", (int, float), {"type": "number"}),
    "text": ("a string", str, {"type": "string"}),
    "choice": ("", str, {}),
    "list": ("a list of strings", list, {"type": "array", "items": {"type": "string"}}),
    "table": ("a table", dict, {"type": "object"}),
}
"""What each kind takes: in words, as a Python type, as a JSON Schema."""


class Key(Struct, frozen=True):
    """One key. `check` and `read` return the value to store or raise a ValueError that says what is expected."""

    name: str
    kind: Kind
    default: Any = None
    range: tuple[float, float] | None = None
    words: tuple[str, ...] = ()
    """The values of a choice."""
    secret: bool = False

    @property
    def expected(self) -> str:
        return " or ".join((", ".join(self.words[:-1]), self.words[-1])) if self.words else _KINDS[self.kind][0]

    def check(self, value: Any) -> Any:
        """Check a value of TOML."""
        if self.kind == "timeout" and value is False:
            return False
        is_type = isinstance(value, _KINDS[self.kind][1]) and isinstance(value, bool) is (self.kind == "switch")
        if not is_type or (self.words and value not in self.words):
            near = nearest(value, self.words) if self.words and isinstance(value, str) else None
            shown = HIDDEN if self.secret else show(value)
            raise ValueError(f"expected {self.expected}, got {shown}" + (f"; did you mean {near}?" if near else ""))
        if self.range is not None and not self.range[0] <= value <= self.range[1]:  # NaN is in no range
            raise ValueError(f"expected {self.expected} from {self.range[0]} to {self.range[1]}, got {show(value)}")
        if self.kind == "list" and (wrong := [item for item in value if not isinstance(item, str)]):
            raise ValueError(f"expected {self.expected}, got {show(wrong[0])} in it")
        if self.kind == "timeout" and not value:
            return False
        return float(value) if self.kind in ("seconds", "timeout") else value

    def read(self, text: str) -> Any:
        """Read the text of a variable or a flag."""
        word = text.strip().lower()
        match self.kind:
            case "switch" | "timeout" if word in NO:
                return False
            case "switch":
                return self.check(word in YES or text)
            case "count" | "seconds" | "timeout":
                try:
                    number = int(text) if self.kind == "count" else float(text)
                except ValueError:
                    return self.check(text)
                return self.check(number)
            case "choice":
                return self.check(word)
            case "table":
                raise ValueError("a table can only be set in a file")
            case _:
                try:
                    text.encode()
                except UnicodeEncodeError:  # bytes of the environment that are no UTF-8 would break the JSON we send
                    raise ValueError("expected UTF-8 text") from None
                return text if self.kind == "text" else text.replace(",", " ").split()

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the key's values."""
        if self.words:
            return {"enum": list(self.words)}
        made = dict(_KINDS[self.kind][2])
        if self.range is not None:
            made |= {"minimum": self.range[0], "maximum": self.range[1]}
        if self.secret:
            made["writeOnly"] = True
        return {"anyOf": [made, {"const": False}]} if self.kind == "timeout" else made


class Section(Struct, frozen=True):
    """One section; `named` if it holds tables that the user names."""

    name: str
    record: type[Struct]
    named: bool
    keys: dict[str, Key]

    def show(self, value: Any) -> str:
        """A value that stands in the section's place: `[tokens] alice = "the token itself"` is a likely slip."""
        return HIDDEN if any(key.secret for key in self.keys.values()) else show(value)

    def variable(self, key: str, name: str = "") -> str:
        """The variable of a key; `name` is that of the user's table."""
        middle = f"{name}_" if self.named else ""
        return f"{PREFIX}{self.name}_{middle}{key}".upper()

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
    """A section from the type of its field in `Sections`. Raises TypeError for a type that no key has."""
    named = get_origin(hint) is dict
    record = cast("type[Struct]", get_args(hint)[1] if named else hint)
    hints = get_type_hints(record)
    found = [field for field in fields(record) if f"{name}.{field.name}" not in MOVED]
    return Section(name, record, named, {field.name: _make_key(name, field, hints[field.name]) for field in found})


def _make_key(section: str, field: FieldInfo, hint: Any) -> Key:
    options = (hint,) if get_origin(hint) in (list, dict, Literal) else get_args(hint) or (hint,)
    kinds: dict[Any, Kind] = {
        (bool,): "switch",
        (str,): "text",
        (int,): "count",
        (float,): "seconds",
        (float, Literal[False]): "timeout",
        (list[str],): "list",
        (dict[str, Any],): "table",
    }
    parts = tuple(part for part in options if part is not NoneType)
    is_choice = len(parts) == 1 and get_origin(parts[0]) is Literal
    kind: Kind | None = "choice" if is_choice else kinds.get(parts)
    if kind is None:
        raise TypeError(f"no kind of configuration value for {hint!r}")
    place = f"{section}.{field.name}"
    default: Any = None if field.default is NODEFAULT else field.default
    if field.default_factory is not NODEFAULT:
        default = field.default_factory()
    words = get_args(parts[0]) if is_choice else ()
    return Key(field.name, kind, default, BOUNDS.get(place) or RANGES.get(kind), words, place in SECRETS)


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
