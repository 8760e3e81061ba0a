"""Arguments that callers knew before: under an old name, or of an earlier form of the tool.

All of it is looked at only after today's input was refused, so that it costs right arguments nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import msgspec
from msgspec import Raw, Struct

from longshore.protocol.questions import Ask
from longshore.registry.where import place, refuse
from longshore.schema.reading import Reading
from longshore.schema.signature import Parameter, Signature, SignatureProblem, read

_TRANSLATED = "the arguments are those of an earlier version; the list of tools has today's"


class Migration(Struct, frozen=True):
    """One earlier form of the input, and the function that makes today's of it."""

    function: Callable[..., Any]
    signature: Signature


@final
class Earlier:
    """The second look of a tool that has a past.

    A migration's own exceptions are not caught: they are masked as the tool's would be. What it returns must be
    today's input; if it is not, the next one is tried, and at last the caller is told what today's input is.
    """

    def __init__(
        self,
        explain: Callable[[Any, Exception], Reading],
        decode: Callable[[Any], Any],
        renames: dict[str, str],
        migrations: tuple[Migration, ...],
    ) -> None:
        self._explain, self._decode = explain, decode
        self.renames, self._migrations = renames, migrations
        """Old names of parameters → those of today."""

    def __call__(self, raw: Any, problem: Exception) -> Reading:
        reading = self._rename(raw, problem)
        for migration in self._migrations if reading.faults else ():
            migrated = self._migrate(migration, raw)
            if migrated is not None:
                return migrated
        return reading

    def _rename(self, raw: Any, problem: Exception) -> Reading:
        """The second look at the arguments under today's names."""
        given = _members(raw) if self.renames else None
        if given is None or self.renames.keys().isdisjoint(given):
            return self._explain(raw, problem)
        renamed, notes, both = self._sorted(given)
        reading = self._explain(msgspec.json.encode(renamed), problem)
        if both:
            return Reading(faults=(*both, *reading.faults))
        return Reading(reading.arguments, reading.faults, (*notes, *reading.notes))

    def _sorted(self, given: dict[str, Raw]) -> tuple[dict[str, Raw], list[str], list[str]]:
        """The arguments by today's names, what is noted of that, and what is there twice."""
        renamed = {name: value for name, value in given.items() if name not in self.renames}
        notes: list[str] = []
        both: list[str] = []
        for old in (name for name in given if name in self.renames):
            new = self.renames[old]
            if new in renamed:
                both.append(f"{old}: this is now {new}, which is given too; send {new} only")
            else:
                renamed[new] = given[old]
                notes.append(f"{old} is now {new}")
        return renamed, notes, both

    def _migrate(self, migration: Migration, raw: Any) -> Reading | None:
        """Today's arguments, if these are of that earlier form and can be made today's."""
        from longshore.schema.output import encode

        try:
            arguments = migration.signature.decode(raw)
        except Exception:  # an author's validator may raise anything
            return None
        made = encode(migration.function(**migration.signature.keywords(arguments)))
        try:
            return Reading(self._decode(made), notes=(_TRANSLATED,))
        except Exception:
            return None


def _members(raw: Any) -> dict[str, Raw] | None:
    try:
        return msgspec.json.decode(raw, type=dict[str, Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def read_renames(fn: Callable[..., Any], parameters: Sequence[Parameter]) -> dict[str, str]:
    """Old name → new name. An old name that another parameter has, or had, can't be told apart."""
    taken = {parameter.name: parameter.name for parameter in parameters}
    renames: dict[str, str] = {}
    for parameter in parameters:
        for old in parameter.was:
            given: Any = old
            if parameter.marker is not None:
                what = f"parameter {parameter.name!r} is asked of a person, so nobody sends it under another name"
                refuse(fn, what, "take Was(…) out")
            if not isinstance(given, str) or not given:
                refuse(fn, f"parameter {parameter.name!r}: Was({old!r}) is no name", 'Was("old_name")')
            owner = taken.setdefault(old, f"{parameter.name} (before)")
            if owner != f"{parameter.name} (before)" or old in renames:
                what = f"parameter {parameter.name!r} was {old!r}, and so is or was {owner.removesuffix(' (before)')!r}"
                refuse(fn, what, f"take {old!r} out of one Was(…)")
            renames[old] = parameter.name
    return renames


class _NoContext:
    """What a migration takes in the place of a context: nothing."""


def read_migrations(fn: Callable[..., Any], earlier: Sequence[Callable[..., Any]]) -> tuple[Migration, ...]:
    """The migrations in their order, each with what it takes."""
    return tuple(_read_migration(fn, each) for each in earlier)


def _read_migration(fn: Callable[..., Any], migration: Any) -> Migration:
    if not callable(migration):
        refuse(fn, f"earlier=[{migration!r}] is no function", "def from_v1(…): return {…}")
    try:
        signature = read(migration, context_type=_NoContext, marker_type=Ask)
    except SignatureProblem as problem:
        refuse(migration, f"as a migration of {place(fn)}: {problem.what}", problem.fix)
    if signature.is_async:
        refuse(migration, "a migration can't be async: it only makes one dict of another", "make it a def")
    if signature.asked:
        refuse(migration, f"a migration asks nobody, and {signature.asked[0].name!r} does", "take it out")
    return Migration(migration, signature)
