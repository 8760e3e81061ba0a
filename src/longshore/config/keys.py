"""The keys of `longshore.toml`: what each takes, derived once from the Structs of `sections` and of toolsets' options.

Not imported when nothing is configured.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import Any, Literal, TypeAlias, cast, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import FieldInfo, fields, replace

from longshore.config.sections import MOVED, NO_KEYS, PREFIX, Sections, env_form, quote
from longshore.errors import RegistrationError
from longshore.nearest import nearest
from longshore.registry.options import Folder, read_hint

Kind: TypeAlias = Literal[
    "switch", "count", "size", "seconds", "timeout", "text", "folder", "list", "folders", "choice", "table"
]

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
    "size": (1, MOST_COUNT),
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
OPTION_RANGES: dict[str, tuple[float, float]] = {
    "count": (-MOST_COUNT, MOST_COUNT),
    "size": (0, MOST_COUNT),
    "seconds": AT_ONCE,
    "timeout": AT_ONCE,
}
"""For the options of toolsets; `Meta(ge=…, le=…)` gives an option a range of its own."""

SECRETS = frozenset({"http.state_key", "auth.token", "auth.introspection_secret", "tokens.token"})
"""Keys whose values are shown nowhere; of a section with named tables, the key in each."""

SECRET_NAME = re.compile(r"password|secret|token|key", re.IGNORECASE)
"""Names of options that may be secrets. A toolset does not declare which are, so some are hidden for nothing."""

HIDDEN = "…"
"""Stands for a secret wherever values are shown."""

SHOWN_CHARACTERS = 40
"""How much an error shows of a value: enough to recognise it."""

_KINDS: dict[Kind, tuple[str, Any, dict[str, Any]]] = {
    "switch": ("true or false", bool, {"type": "boolean"}),
    "count": ("a whole number", int, {"type": "integer"}),
    "size": ('bytes (a number, or a text such as "10MB" or "10MiB")', int, {"type": "integer"}),
    "seconds": ("seconds (a number)", (int, float), {"type": "number"}),
    "timeout": ("seconds (a number) or false", (int, float), {"type": "number"}),
    "text": ("a string", str, {"type": "string"}),
    "choice": ("", str, {}),
    "folder": ("a path", str, {"type": "string", "minLength": 1}),
    "list": ("a list of strings", list, {"type": "array", "items": {"type": "string"}}),
    "folders": ("a list of paths", list, {"type": "array", "items": {"type": "string", "minLength": 1}}),
    "table": ("a table", dict, {"type": "object"}),
}
"""What each kind takes: in words, as a Python type, as a JSON Schema."""

_SIZE = r"^\s*([0-9]+(?:\.[0-9]+)?)\s*([kKmMgGtT]?)(i?)[bB]\s*$"
"""A size with its unit; `i` makes it a power of 1,024."""


class Key(Struct, frozen=True):
    """One key. `check` and `read` return the value to store or raise a ValueError that says what is expected.

    `base` is the folder that relative paths start from.
    """

    name: str
    kind: Kind
    default: Any = None
    range: tuple[float, float] | None = None
    words: tuple[str, ...] = ()
    """The values of a choice, or of the items of a list."""
    secret: bool = False

    @property
    def expected(self) -> str:
        if not self.words:
            return _KINDS[self.kind][0]
        *others, last = self.words
        words = f"{', '.join(others)} or {last}" if others else last
        return f"a list of {words}" if self.kind == "list" else words

    def check(self, value: Any, base: str = "") -> Any:
        """Check a value of TOML."""
        if self.kind == "timeout" and value is False:
            return False
        if self.kind == "size" and isinstance(value, str):
            value = _read_size(value)
        is_type = isinstance(value, _KINDS[self.kind][1]) and isinstance(value, bool) is (self.kind == "switch")
        if not is_type or (self.kind in ("choice", "folder") and not self._takes(value)):
            raise ValueError(f"expected {self.expected}, got {self._shown(value)}")
        if self.range is not None and not self.range[0] <= value <= self.range[1]:  # NaN is in no range
            raise ValueError(f"expected {self.expected} from {self.range[0]} to {self.range[1]}, got {show(value)}")
        match self.kind:
            case "list" | "folders":
                wrong = [item for item in value if not (isinstance(item, str) and self._takes(item))]
                if wrong:
                    raise ValueError(f"expected {self.expected}, got {self._shown(wrong[0], ' in it')}")
                return value if self.kind == "list" else [_absolute(item, base) for item in value]
            case "folder":
                return _absolute(value, base)
            case "seconds" | "timeout":
                return float(value) if value or self.kind == "seconds" else False
            case _:
                return value

    def _takes(self, value: str) -> bool:
        """Whether a string is one of the words, or can be a path."""
        return value in self.words if self.words else bool(value) or self.kind == "list"

    def _shown(self, value: Any, place: str = "") -> str:
        near = nearest(value, self.words) if self.words and isinstance(value, str) else None
        return (HIDDEN if self.secret else show(value)) + place + (f"; did you mean {near}?" if near else "")

    def read(self, text: str, base: str = "") -> Any:
        """Read the text of a variable or a flag."""
        word = text.strip().lower()
        match self.kind:
            case "switch" | "timeout" if word in NO:
                return False
            case "switch":
                return self.check(word in YES or text)
            case "count" | "size" | "seconds" | "timeout":
                try:
                    number = float(text) if self.kind in ("seconds", "timeout") else int(text)
                except ValueError:
                    return self.check(text)
                return self.check(number)
            case "choice":
                return self.check(next((each for each in self.words if each.lower() == word), word))
            case "table":
                raise ValueError("a table can only be set in a file")
            case _:
                try:
                    text.encode()
                except UnicodeEncodeError:  # bytes of the environment that are no UTF-8 would break the JSON we send
                    raise ValueError("expected UTF-8 text") from None
                parts = text.replace(",", " ").split() if self.kind == "list" else text.split(os.pathsep)
                return self.check(parts if self.kind in ("list", "folders") else text, base)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the key's values."""
        if self.words:
            items = {"enum": list(self.words)}
            return {"type": "array", "items": items} if self.kind == "list" else items
        made = dict(_KINDS[self.kind][2])
        if self.range is not None:
            made |= {"minimum": self.range[0], "maximum": self.range[1]}
        if self.secret:
            made["writeOnly"] = True
        other = {"timeout": {"const": False}, "size": {"type": "string", "pattern": _SIZE}}.get(self.kind)
        return made if other is None else {"anyOf": [made, other]}


def _read_size(text: str) -> int | str:
    """The bytes; the text itself if it is no size."""
    found = re.match(_SIZE, text)
    if found is None:
        return text
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index(unit.lower() or " "))


def _absolute(path: str, base: str) -> str:
    path = os.path.expanduser(path)
    if not base and not os.path.isabs(path):
        raise ValueError("a relative path, and the working directory was deleted; write an absolute one")
    return os.path.normpath(os.path.join(base, path))


class Section(Struct, frozen=True):
    """One section; `named` if it holds tables that the user names. `path` is where a table of it stands."""

    path: tuple[str, ...]
    record: type[Struct]
    named: bool
    keys: dict[str, Key]
    open: bool = False
    """Whether it takes any other key too: the table of a toolset that the server does not have."""

    @property
    def name(self) -> str:
        return self.path[0]

    def show(self, value: Any) -> str:
        """A value that stands in the section's place: `[tokens] alice = "the token itself"` is a likely slip."""
        return HIDDEN if any(key.secret for key in self.keys.values()) else show(value)

    def variable(self, key: str, name: str = "") -> str:
        """The variable of a key; `name` is that of the user's table."""
        return PREFIX + "_".join((*map(env_form, self.path), *([name] if self.named else ()), key)).upper()

    def unknown(self, name: str) -> str:
        """The error text for a key that the section does not have."""
        moved = MOVED.get(f"{self.name}.{name}")
        if moved:
            return f"no such key; use {moved}"
        near = nearest(name, self.keys) or _elsewhere(name)
        return "no such key" + (f"; did you mean {near}?" if near else f"; {self.path[-1]} has {', '.join(self.keys)}")


@cache
def sections() -> dict[str, Section]:
    """Every section by its name, in the order of the record."""
    return {name: make_section(name, hint) for name, hint in get_type_hints(Sections).items()}


def make_section(name: str, hint: Any) -> Section:
    """A section from the type of its field in `Sections`. Raises TypeError for a type that no key has."""
    named = get_origin(hint) is dict
    record = cast("type[Struct]", get_args(hint)[1] if named else hint)
    keys: dict[str, Key] = {}
    for field in fields(record):
        place = f"{name}.{field.name}"
        if place not in NO_KEYS:
            key = _make_key(field, RANGES)
            keys[key.name] = replace(key, range=BOUNDS.get(place, key.range), secret=place in SECRETS)
    return Section((name,), record, named, keys)


def toolset_section(name: str, options: type[Struct] | None) -> Section:
    """The table of one toolset, with its own options. Raises RegistrationError for a type that no option has."""
    common = sections()["toolsets"]
    keys = dict(common.keys)
    if options is None:
        return Section(("toolsets", name), common.record, False, keys)
    for field in fields(options):
        try:
            key = _make_key(field, OPTION_RANGES)
        except TypeError as problem:
            where = f"{options.__module__}.{options.__qualname__}.{field.name}"
            fix = "take bool, int, float (seconds), str, Literal of strings, list[str], Size, Folder or list[Folder]"
            raise RegistrationError(where, str(problem), fix) from None
        secret = key.kind in ("text", "list") and SECRET_NAME.search(field.name) is not None
        keys[key.name] = replace(key, secret=secret)
    return Section(("toolsets", name), options, False, keys)


_TYPES: dict[Any, Kind] = {
    (bool,): "switch",
    (str,): "text",
    (int,): "count",
    (float,): "seconds",
    (float, Literal[False]): "timeout",
    (list[str],): "list",
    (list[Folder],): "folders",
    (dict[str, Any],): "table",
}


_UNCHECKED = ("gt", "lt", "multiple_of", "pattern", "min_length", "max_length")


def _make_key(field: FieldInfo, ranges: dict[str, tuple[float, float]]) -> Key:
    parts, notes = read_hint(field.type)
    words = get_args(parts[0]) if len(parts) == 1 and get_origin(parts[0]) is Literal else ()
    is_choice = bool(words) and all(isinstance(word, str) for word in words)
    metas = [note for note in notes if isinstance(note, Meta)]
    if any(getattr(meta, name) is not None for meta in metas for name in _UNCHECKED):
        raise TypeError(f"only ge and le of Meta are checked, and this has others: {field.type!r}")
    marked = next((meta.extra["kind"] for meta in metas if meta.extra and "kind" in meta.extra), None)
    kind: Kind | None = marked or ("choice" if is_choice else _TYPES.get(parts))
    if kind == "count" and field.name.endswith("_bytes"):
        kind = "size"
    if kind is None:
        raise TypeError(f"no kind of configuration value for {field.type!r}")
    least, most = ranges.get(kind, (0, 0))
    for meta in metas:
        least, most = least if meta.ge is None else meta.ge, most if meta.le is None else meta.le
    default: Any = None if field.default is NODEFAULT else field.default
    if field.default_factory is not NODEFAULT:
        default = field.default_factory()
    return Key(field.name, kind, default, (least, most) if kind in ranges else None, words)


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
