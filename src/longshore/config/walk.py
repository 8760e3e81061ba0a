"""Walk: one pass over a parsed file, key by key → settings and problems, each with its line."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast

from longshore.config.files import Document, read
from longshore.config.keys import Key, Section, sections, unknown_key, unknown_section
from longshore.config.kinds import HIDDEN, Free, show
from longshore.config.names import ENV_MARK, dotted
from longshore.config.record import Origin
from longshore.config.setting import Path, Setting
from longshore.errors import ConfigError

FileKind: TypeAlias = Literal["user", "project"]

KEY_CHARACTERS = 120
"""What an error shows of a key."""


def settings(kind: FileKind, path: str, cwd: str, problems: list[str]) -> list[Setting]:
    """What a file sets; what is wrong with it is added to `problems`, in the order of its lines."""
    try:
        document = read(path, cwd)
    except ConfigError as error:
        problems.append(str(error))
        return []
    walk = Walk(kind, document)
    walk.sections()
    problems.extend(text for _, text in sorted(walk.problems))
    return walk.settings


class Walk:
    """One pass over a document: settings that hold, problems with their lines."""

    def __init__(self, kind: FileKind, document: Document) -> None:
        self.kind: FileKind = kind
        self.document = document
        self.settings: list[Setting] = []
        self.problems: list[tuple[int, str]] = []

    def sections(self) -> None:
        for name, table in self.document.tables.items():
            section = sections().get(name)
            if section is None:
                self.problem((name,), unknown_section(name))
            elif section.named:
                self.named(section, table)
            else:
                self.keys(section, (name,), table)

    def named(self, section: Section, tables: Any) -> None:
        """The tables under a section whose names the user chose."""
        if not isinstance(tables, dict):
            self.problem((section.name,), f"expected a table, got {_show(section, tables)}")
            return
        for name, table in cast("dict[str, Any]", tables).items():
            path = (section.name, name)
            if not name or name.startswith(ENV_MARK):
                self.problem(path, f"a name can't be empty or begin with {ENV_MARK}")
            elif not isinstance(table, dict):
                self.problem(path, f"expected a table, [{section.name}.NAME], got {_show(section, table)}")
            else:
                self.keys(section, path, table)

    def keys(self, section: Section, path: Path, table: Any) -> None:
        if not isinstance(table, dict):
            self.problem(path, f"expected a table, got {_show(section, table)}")
            return
        for name, value in cast("dict[str, Any]", table).items():
            key = section.keys.get(name)
            if key is None:
                self.problem((*path, name), unknown_key(section, name))
            else:
                self.key(key, (*path, name), value)

    def key(self, key: Key, path: Path, value: Any) -> None:
        try:
            checked = key.kind.check(value)
        except ValueError as error:
            self.problem(path, str(error))
            return
        if isinstance(key.kind, Free):
            # Each option has an origin of its own, and a nearer file changes only what it names.
            for name, option in checked.items():
                self.add((*path, name), option)
        else:
            self.add(path, checked)

    def add(self, path: Path, value: Any) -> None:
        self.settings.append(Setting(path, value, Origin(self.kind, self.document.where(path))))

    def problem(self, path: Path, text: str) -> None:
        where = self.document.where(path)
        self.problems.append((int(where.rpartition(":")[2]), f"{where}: {_short(path)}: {text}"))


def _show(section: Section, value: Any) -> str:
    """`[tokens] alice = "the token itself"` is a likely slip; a log must not learn it from our error."""
    return HIDDEN if section.secret else show(value)


def _short(path: Path) -> str:
    key = dotted(path)
    return key if len(key) <= KEY_CHARACTERS else key[: KEY_CHARACTERS - 1] + "…"
