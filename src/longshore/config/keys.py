"""The keys of `longshore.toml`: what each takes, derived once from the Structs of `sections` and of toolsets' options.

Not imported when nothing is configured.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Meta, Struct, ValidationError, convert, json
from msgspec.structs import FieldInfo, fields, replace

from longshore.config.sections import MOVED, NO_KEYS, Sections, quote
from longshore.errors import RegistrationError
from longshore.nearest import did_you_mean, nearest
from longshore.registry.options import Folder, read_hint

YES = ("true", "1", "yes", "on")
NO = ("false", "0", "no", "off")

MOST_COUNT = 1 << 40
"""A tebibyte. A larger count is a typing error."""

MOST_SECONDS = 366 * 86_400
"""A year. Clocks and waits of the operating system overflow not far beyond."""

LEAST_SECONDS = 0.1
"""The period of a loop. Zero would make it spin."""

MOST: dict[str, float] = {"count": MOST_COUNT, "size": MOST_COUNT, "seconds": MOST_SECONDS, "timeout": MOST_SECONDS}
LEAST: dict[str, float] = {"count": 1, "size": 1, "seconds": LEAST_SECONDS, "timeout": 0}
OPTION_LEAST: dict[str, float] = {"count": -MOST_COUNT, "size": 0, "seconds": 0, "timeout": 0}
"""For the options of toolsets. `Meta(ge=…, le=…)` gives a key or an option a range of its own."""

SECRETS = frozenset({"http.state_key", "auth.token", "auth.introspection_secret", "tokens.token"})
"""Keys whose values are shown nowhere; of a section with named tables, the key in each."""

SECRET_NAME = re.compile(r"password|secret|token|key", re.IGNORECASE)
"""Names of options that may be secrets. A toolset does not declare which are, so some are hidden for nothing."""

HIDDEN = "…"
"""Stands for a secret wherever values are shown."""

SHOWN_CHARACTERS = 40
"""How much an error shows of a value: enough to recognise it."""

_KINDS: dict[str, tuple[str, Any]] = {
    "switch": ("true or false", bool),
    "count": ("a whole number", int),
    "size": ('bytes (a number, or a text such as "10MB" or "10MiB")', int),
    "seconds": ("seconds (a number)", float),
    "timeout": ("seconds (a number) or false", float),
    "text": ("a string", str),
    "folder": ("a path", Folder),
    "list": ("a list of strings", list[str]),
    "folders": ("a list of paths", list[Folder]),
    "table": ("a table", dict[str, Any]),
}
"""What each kind takes: in words, and as the type that msgspec checks. Beside these there is `choice`."""
_BY_TYPE = {type: kind for kind, (_, type) in _KINDS.items() if kind not in ("size", "timeout")}

_SIZE = r"^\s*([0-9]+(?:\.[0-9]+)?)\s*([kKmMgGtT]?)(i?)[bB]\s*$"
"""A size with its unit; `i` makes it a power of 1,024."""


class Key(Struct, frozen=True):
    """One key. `check` and `read` return the value to store or raise a ValueError that says what is expected.

    `base` is the folder that relative paths start from.
    """

    name: str
    kind: str
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

    @property
    def type(self) -> Any:
        """The type that msgspec checks a value by."""
        choice: Any = Literal
        if self.words:
            return list[choice[self.words]] if self.kind == "list" else choice[self.words]
        plain = _KINDS[self.kind][1]
        return Annotated[plain, Meta(ge=self.range[0], le=self.range[1])] if self.range else plain

    def check(self, value: Any, base: str = "", *, strict: bool = True) -> Any:
        """Check a value of TOML; if not strict, a number may be a text."""
        if self.kind == "timeout" and value is False:
            return False
        if self.kind == "size" and isinstance(value, str):
            value = _read_size(value)
        try:
            found = convert(value, self.type, strict=strict)
        except ValidationError:
            raise ValueError(f"expected {self._describe(value, strict)}") from None
        if self.kind == "folders":
            return [_absolute(item, base) for item in found]
        if self.kind == "folder":
            return _absolute(found, base)
        return found or False if self.kind == "timeout" else found

    def _describe(self, value: Any, strict: bool) -> str:
        """The expected value, with the range if only that is wrong; then the value, or its first wrong item."""
        range, place = "", ""
        if self.range and _fits(value, _KINDS[self.kind][1], strict):
            range = f" from {self.range[0]} to {self.range[1]}"
        if self.kind in ("list", "folders") and _fits(value, list[Any]):
            value, place = next(item for item in value if not _fits(item, get_args(self.type)[0])), " in it"
        near = did_you_mean(value, self.words) if isinstance(value, str) else ""
        return f"{self.expected}{range}, got {HIDDEN if self.secret else show(value)}{place}{near}"

    def read(self, text: str, base: str = "") -> Any:
        """Read the text of a variable or a flag."""
        try:
            text.encode()
        except UnicodeEncodeError:  # bytes of the environment that are no UTF-8 would break the JSON we send
            raise ValueError("expected UTF-8 text") from None
        word = text.strip().lower()
        value: Any
        match self.kind:
            case "switch" | "timeout" if word in NO:
                value = False
            case "switch" if word in YES:
                value = True
            case "count" | "size" | "seconds" | "timeout":
                value = re.sub(r"(?<=\d)_(?=\d)", "", text.strip())  # 10_000, as in TOML
            case "choice":
                value = next((each for each in self.words if each.lower() == word), word)
            case "list" | "folders" if word == "[]":
                value = []
            case "list":
                value = text.replace(",", " ").split()
            case "folders":
                value = text.split(os.pathsep)
            case "table":
                raise ValueError("a table can only be set in a file")
            case _:
                value = text
        return self.check(value, base, strict=False)

    def schema(self) -> dict[str, Any]:
        """The JSON Schema of the key's values."""
        made = json.schema(self.type) | ({"writeOnly": True} if self.secret else {})
        other = {"timeout": {"const": False}, "size": {"type": "string", "pattern": _SIZE}}.get(self.kind)
        return made if other is None else {"anyOf": [made, other]}


def _fits(value: Any, type: Any, strict: bool = True) -> bool:
    try:
        convert(value, type, strict=strict)
    except ValidationError:
        return False
    return True


def _read_size(text: str) -> int | str:
    """The bytes; the text itself if it has no unit."""
    found = re.match(_SIZE, text)
    if found is None:
        return text
    number, unit, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index(unit.lower() or " "))


def _absolute(path: str, base: str) -> str:
    if "://" in path:
        return path  # the address of a server
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

    @property
    def key_length(self) -> int:
        """Parts of the path of a key, such as `tools.NAME.timeout`."""
        return 3 if self.named else 2

    def show(self, value: Any) -> str:
        """A value that stands in the section's place: `[tokens] alice = "the token itself"` is a likely slip."""
        return HIDDEN if any(key.secret for key in self.keys.values()) else show(value)

    def unknown(self, name: str) -> str:
        """The error text for a key that the section does not have."""
        moved = MOVED.get(f"{self.name}.{name}")
        hint = f"; use {moved}" if moved else hint_name(name, self.keys, f"{self.path[-1]} has")
        return f"no such key{hint}"


@cache
def sections() -> dict[str, Section]:
    """Every section by its name, in the order of the record."""
    return {name: make_section(name, hint) for name, hint in get_type_hints(Sections).items()}


def make_section(name: str, hint: Any) -> Section:
    """A section from the type of its field in `Sections`. Raises TypeError for a type that no key has."""
    named = get_origin(hint) is dict
    record = cast("type[Struct]", get_args(hint)[1] if named else hint)
    own = [field for field in fields(record) if f"{name}.{field.name}" not in NO_KEYS]
    keys = {field.name: _make_key(field, LEAST, f"{name}.{field.name}" in SECRETS) for field in own}
    return Section((name,), record, named, keys)


def toolset_section(name: str, options: type[Struct] | None) -> Section:
    """The table of one toolset, with its own options. Raises RegistrationError for a type that no option has."""
    common = sections()["toolsets"]
    record, keys = options or common.record, dict(common.keys)
    for field in fields(record) if options else ():
        try:
            key = _make_key(field, OPTION_LEAST)
        except TypeError as problem:
            where = f"{record.__module__}.{record.__qualname__}.{field.name}"
            fix = "take bool, int, float (seconds), str, Literal of strings, list[str], Size, Folder or list[Folder]"
            raise RegistrationError(where, str(problem), fix) from None
        secret = key.kind in ("text", "list") and SECRET_NAME.search(field.name) is not None
        keys[key.name] = replace(key, secret=secret)
    return Section(("toolsets", name), record, False, keys)


_UNCHECKED = ("gt", "lt", "multiple_of", "pattern", "min_length", "max_length")


def _make_key(field: FieldInfo, ranges: dict[str, float], secret: bool = False) -> Key:
    parts, notes = read_hint(field.type)
    words = get_args(parts[0]) if len(parts) == 1 and get_origin(parts[0]) is Literal else ()
    metas = [note for note in notes if isinstance(note, Meta)]
    ours = [meta for meta in metas if meta.extra and "kind" in meta.extra]
    kind = ours[0].extra["kind"] if ours and ours[0].extra else None
    if any(getattr(meta, name) is not None for meta in metas if meta not in ours for name in _UNCHECKED):
        raise TypeError(f"only ge and le of Meta are checked, and this has others: {field.type!r}")
    if words and all(isinstance(word, str) for word in words):
        kind = "choice"
    elif kind is None and len(parts) == 1:
        kind = _BY_TYPE.get(parts[0])
    if kind == "count" and field.name.endswith("_bytes"):
        kind = "size"
    if kind is None:
        raise TypeError(f"no kind of configuration value for {field.type!r}")
    default = field.default if field.default_factory is NODEFAULT or kind == "table" else field.default_factory()
    least = next((meta.ge for meta in metas if meta.ge is not None), ranges.get(kind))
    most = next((meta.le for meta in metas if meta.le is not None), MOST.get(kind))
    range = None if least is None or most is None else (least, most)
    return Key(field.name, kind, None if default is NODEFAULT else default, range, words, secret)


def hint_name(name: str, known: Iterable[str], introduction: str) -> str:
    """The name that may be meant, here or as a key of another section with fixed keys; else all known ones."""
    elsewhere = (f"{s.name}.{name}" for s in sections().values() if not s.named and name in s.keys)
    near = nearest(name, known) or next(elsewhere, None)
    return f"; did you mean {near}?" if near else f"; {introduction} {', '.join(known)}"


def show(value: Any) -> str:
    """A value as an error shows it: in TOML's spelling, short, and safe to print."""
    if isinstance(value, str):
        return quote(value if len(value) <= SHOWN_CHARACTERS else value[: SHOWN_CHARACTERS - 1] + "…")
    if isinstance(value, int) and abs(value) > 10**SHOWN_CHARACTERS:  # str() of a huge int raises
        return "a number far too large"
    if isinstance(value, (int, float)):
        return str(value).lower()
    if value is None:  # which JSON has
        return "null"
    return "an array" if isinstance(value, list) else "a table" if isinstance(value, dict) else "a date or time"
