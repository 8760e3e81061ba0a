"""The keys: what may stand in which section, derived once from the Structs. Not loaded when nothing is configured."""

from __future__ import annotations

from functools import cache
from typing import Any, cast, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields

from longshore.config.kinds import MOST_COUNT, MOST_SECONDS, Kind, Secret, kind_of
from longshore.config.record import MOVED
from longshore.config.sections import Sections
from longshore.nearest import nearest

BOUNDS: dict[str, tuple[float, float]] = {
    "limits.depth": (1, 512),  # the parser overflows small stacks at about 1,000
    # Zero says "none" for these; for the other counts it would stop the server.
    "limits.parked": (0, MOST_COUNT),
    "limits.held_bytes": (0, MOST_COUNT),
    "limits.notes": (0, MOST_COUNT),
    "limits.abandoned": (0, MOST_COUNT),
    "limits.listens": (0, MOST_COUNT),
    "limits.subscriptions": (0, MOST_COUNT),
    "limits.questions": (0, MOST_COUNT),
    # Zero says "at once" for these; for the other seconds it would make a loop that never rests, or refuse everything.
    "server.eof_grace": (0, MOST_SECONDS),
    "http.grace": (0, MOST_SECONDS),
    "limits.term_grace_seconds": (0, MOST_SECONDS),
    "limits.stop_seconds": (0, MOST_SECONDS),
    "limits.stream_after_seconds": (0, MOST_SECONDS),
    "http.port": (0, 65_535),
    "http.workers": (1, 256),
    "http.rate": (0, MOST_COUNT),
}

SECRETS = frozenset({"http.state_key", "auth.token", "auth.introspection_secret", "tokens.token"})
"""Keys whose values nobody is shown; of a section with named tables, the key in each."""


class Key(Struct, frozen=True):
    """One key of a section."""

    name: str
    kind: Kind
    default: Any


class Section(Struct, frozen=True):
    """One section; `named` if it holds tables that the user names."""

    name: str
    record: type[Struct]
    named: bool
    keys: dict[str, Key]

    @property
    def secret(self) -> bool:
        """Whether a value that stands in its place may be one of its secrets."""
        return any(isinstance(key.kind, Secret) for key in self.keys.values())


@cache
def sections() -> dict[str, Section]:
    """Every section by its name, in the order of the record."""
    hints = get_type_hints(Sections)
    return {name: _section(name, hint) for name, hint in hints.items()}


def _section(name: str, hint: Any) -> Section:
    named = get_origin(hint) is dict
    record = cast("type[Struct]", get_args(hint)[1] if named else hint)
    hints = get_type_hints(record)
    keys = {
        field.name: Key(
            field.name,
            _kind(f"{name}.{field.name}", hints[field.name]),
            _default(field),
        )
        for field in fields(record)
        if f"{name}.{field.name}" not in MOVED
    }
    return Section(name, record, named, keys)


def _kind(dotted_key: str, hint: Any) -> Kind:
    return Secret() if dotted_key in SECRETS else kind_of(hint, BOUNDS.get(dotted_key))


def _default(field: FieldInfo) -> Any:
    if field.default is NODEFAULT:
        return None if field.default_factory is NODEFAULT else field.default_factory()  # lists are made anew each time
    return field.default


def unknown_section(name: str) -> str:
    """What to say about a top-level name that is no section."""
    near = nearest(name, sections()) or _elsewhere(name)
    return "no such section" + (f"; did you mean {near}?" if near else f"; there are {', '.join(sections())}")


def unknown_key(section: Section, name: str) -> str:
    """What to say about a key that the section does not have."""
    moved = MOVED.get(f"{section.name}.{name}")
    if moved:
        return f"no such key; use {moved}"
    near = nearest(name, section.keys) or _elsewhere(name)
    return "no such key" + (f"; did you mean {near}?" if near else _known(section))


def _elsewhere(name: str) -> str | None:
    """The dotted key of the first section with fixed keys that has this very name."""
    return next((f"{s.name}.{name}" for s in sections().values() if not s.named and name in s.keys), None)


def _known(section: Section) -> str:
    return f"; {section.name} has {', '.join(section.keys)}"
