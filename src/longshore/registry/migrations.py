"""Arguments of earlier versions of a tool: under an old name, or in an old form.

They are tried only after the decoder refused the arguments, so that correct arguments cost nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import msgspec
from msgspec import Raw, Struct

from longshore.protocol.questions import Ask
from longshore.registry.source_location import locate, refuse
from longshore.schema.repair import RepairResult, repair_typed
from longshore.schema.signature import Parameter, Signature, SignatureProblem, read

_TRANSLATED = "the arguments are those of an earlier version; the list of tools has today's"


class Migration(Struct, frozen=True):
    """An earlier form of the arguments, and the function that turns them into the current form."""

    function: Callable[..., Any]
    signature: Signature

    def run(self, arguments: Any) -> bytes:
        """Today's arguments as JSON, made of decoded ones of the earlier form."""
        from longshore.schema.output import encode

        return encode(self.function(**self.signature.keywords(arguments)))

    def translate(self, alias: str, raw: Any) -> RepairResult:
        """Today's arguments, as raw JSON, made of those of an alias; or the faults of the latter."""
        try:
            reading = RepairResult(self.signature.decode(raw))
        except Exception:  # an author's validator may raise anything
            reading = repair_typed(alias, self.signature, bytes(raw))
        return reading if reading.faults else RepairResult(Raw(self.run(reading.arguments)), notes=reading.notes)

    def describe(self) -> dict[str, Any]:
        """The description and the input schema of an alias."""
        from longshore.schema.docstring import parse
        from longshore.schema.infer import input_schema

        doc = parse(self.function.__doc__, [parameter.name for parameter in self.signature.parameters])
        return {"description": doc.summary, "inputSchema": input_schema(self.signature, doc.parameters)}


@final
class Migrations:
    """The `explain` of a tool that accepts arguments of earlier versions.

    A migration's own exceptions are not caught: they are masked as the tool's would be. A migration must return valid
    arguments; otherwise the next one is tried, and in the end the error describes the current arguments.
    """

    def __init__(
        self,
        explain: Callable[[Any, Exception], RepairResult],
        decode: Callable[[Any], Any],
        renames: dict[str, str],
        migrations: tuple[Migration, ...],
    ) -> None:
        self._explain, self._decode = explain, decode
        self.renames, self._migrations = renames, migrations
        """Old names of parameters → current names."""

    def __call__(self, raw: Any, problem: Exception) -> RepairResult:
        reading = self._rename(raw, problem)
        for migration in self._migrations if reading.faults else ():
            migrated = self._migrate(migration, raw)
            if migrated is not None:
                return migrated
        return reading

    def _rename(self, raw: Any, problem: Exception) -> RepairResult:
        """Explain the arguments under their current names. An argument given under both names is an error."""
        given = _members(raw) if self.renames else None
        if given is None or self.renames.keys().isdisjoint(given):
            return self._explain(raw, problem)
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
        reading = self._explain(msgspec.json.encode(renamed), problem)
        if both:
            return RepairResult(faults=(*both, *reading.faults))
        return RepairResult(reading.arguments, reading.faults, (*notes, *reading.notes))

    def _migrate(self, migration: Migration, raw: Any) -> RepairResult | None:
        """The current arguments, if these are of that earlier form and the migration makes valid ones of them."""
        try:
            arguments = migration.signature.decode(raw)
        except Exception:  # an author's validator may raise anything
            return None
        made = migration.run(arguments)
        try:
            return RepairResult(self._decode(made), notes=(_TRANSLATED,))
        except Exception:
            return None


def _members(raw: Any) -> dict[str, Raw] | None:
    try:
        return msgspec.json.decode(raw, type=dict[str, Raw])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def read_renames(fn: Callable[..., Any], parameters: Sequence[Parameter]) -> dict[str, str]:
    """Old name → new name. Refuses an old name that another parameter has or had."""
    taken = {parameter.name: parameter.name for parameter in parameters}
    renames: dict[str, str] = {}
    for parameter in parameters:
        for old in parameter.old_names:
            given: Any = old
            if parameter.marker is not None:
                what = f"parameter {parameter.name!r} is asked of a person, so no caller sends it under another name"
                refuse(fn, what, "take Alias(…) out")
            if not isinstance(given, str) or not given:
                refuse(fn, f"parameter {parameter.name!r}: Alias({old!r}) is no name", 'Alias("old_name")')
            owner = taken.setdefault(old, f"{parameter.name} (before)")
            if owner != f"{parameter.name} (before)" or old in renames:
                what = f"parameter {parameter.name!r} was {old!r}, and so is or was {owner.removesuffix(' (before)')!r}"
                refuse(fn, what, f"take {old!r} out of one Alias(…)")
            renames[old] = parameter.name
    return renames


class _NoContext:
    """The context type of migrations, which get no context."""


def read_migrations(fn: Callable[..., Any], earlier: Sequence[Any]) -> tuple[Migration, ...]:
    """The migrations in their order, each with its signature."""
    return tuple(read_migration(fn, migration, f"migrations=[{migration!r}]") for migration in earlier)


def read_migration(fn: Callable[..., Any], migration: Any, option: str) -> Migration:
    """A migration with its signature. `option` shows where the author gave it."""
    if not callable(migration):
        refuse(fn, f"{option} is no function", "def from_v1(…): return {…}")
    try:
        signature = read(migration, context_type=_NoContext, marker_type=Ask)
    except SignatureProblem as problem:
        refuse(migration, f"as a migration of {locate(fn)}: {problem.what}", problem.fix)
    if signature.is_async:
        refuse(migration, "a migration can't be async: it only makes one dict of another", "make it a def")
    if signature.asked:
        refuse(migration, f"a migration can't ask the client, and {signature.asked[0].name!r} does", "take it out")
    return Migration(migration, signature)
