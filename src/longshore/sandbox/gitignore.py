"""Ignored entries of a folder, by the .gitignore files of every level and globs in the same syntax.

Each entry is matched by itself, as git does while it walks: entries in an ignored folder are never reached. pathspec
turns the patterns into regular expressions.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, NamedTuple, cast

from longshore.sandbox.file_errors import FileError

NAME: Final = ".gitignore"
MOST_BYTES: Final = 512 * 1024
"""The most that is read of a .gitignore. The largest known have some ten kilobytes."""
MOST_ALTERNATIVES: Final = 64
"""How many globs `{a,b}` may stand for: more is a mistake or an attack."""
_FOLDER_MARK: Final = "ps_d"
"""pathspec's group for the slash after what a pattern names: something within it, if more follows."""

Above = tuple[tuple[str, str], ...]
"""The .gitignore files above a folder: the path from each to the folder, ending in a slash, and its text."""


class _Rule(NamedTuple):
    regex: re.Pattern[str]
    ignored: bool
    by_name: bool
    """Whether the pattern names entries. Else it names all that a folder holds (`a/**`)."""


class Rules:
    """The patterns of one .gitignore file. The last match decides."""

    def __init__(self, text: str) -> None:
        compiled = [_compile(line) for line in text.removeprefix("\ufeff").splitlines()]
        self._rules = [rule for rule in reversed(compiled) if rule is not None]

    def __bool__(self) -> bool:
        return bool(self._rules)

    def decide(self, path: str, is_folder: bool) -> bool | None:
        """Whether an entry is ignored; None if no pattern matches. The path is relative to the folder of the file."""
        marked = f"{path}/" if is_folder else path
        for regex, ignored, by_name in self._rules:
            found = regex.match(marked if by_name else path)
            if found is not None and (not by_name or found.start(_FOLDER_MARK) in (-1, len(marked) - 1)):
                return ignored
        return None


class Ignores:
    """The .gitignore files that apply in a folder: its own and those above it."""

    def __init__(self, levels: tuple[tuple[Rules, str, int], ...] = ()) -> None:
        self._levels = levels
        """Deepest first: rules, what to put before a path and how much of it to leave out."""

    @classmethod
    def from_above(cls, above: Above) -> Ignores:
        return cls(tuple((Rules(text), lead, 0) for lead, text in reversed(above)))

    def __bool__(self) -> bool:
        return bool(self._levels)

    def enter(self, folder: int, path: str) -> Ignores:
        """The ignores with those of an open folder.

        Its path is relative to the top and ends in a slash, or is empty.
        """
        text = read_rules(folder)
        rules = Rules(text) if text else None
        return Ignores(((rules, "", len(path)), *self._levels)) if rules else self

    def ignores(self, path: str, is_folder: bool) -> bool:
        for rules, lead, skip in self._levels:
            decision = rules.decide(lead + path[skip:], is_folder)
            if decision is not None:
                return decision
        return False

    def ignores_within(self, path: str) -> bool:
        """Whether a file or one of the folders on its path is ignored."""
        parts = path.split("/")
        folders = ("/".join(parts[:end]) for end in range(1, len(parts)))
        return any(self.ignores(folder, True) for folder in folders) or self.ignores(path, False)


class Globs:
    """Globs in .gitignore's syntax with `{a,b}`: `*.py` at any depth, `src/**/*.py` from the top, `!*.min.js` not.

    A glob whose last part has a star matches files by that name; another one also the content of a folder of the name.
    """

    def __init__(self, globs: Sequence[str]) -> None:
        """Raises FileError for an invalid or too expensive glob."""
        if any(not glob.strip() for glob in globs):
            raise FileError("", "invalid", "a glob is empty", "leave it out or give one such as *.py")
        expanded = [one for glob in globs for one in expand_braces(glob)]
        self._rules = [(_compile_glob(one), "*" in _last_part(one)) for one in reversed(expanded)]
        self._otherwise = bool(globs) and not any(rule.ignored for rule, _ in self._rules)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def match(self, path: str) -> bool:
        """Whether the globs include a path. If all of them exclude, every path that none matches is included."""
        for rule, by_file in self._rules:
            found = rule.regex.match(path)
            if found is not None and not (by_file and rule.by_name and found.start(_FOLDER_MARK) >= 0):
                return rule.ignored
        return self._otherwise


def _compile_glob(glob: str) -> _Rule:
    rule = _compile(re.sub(r"^#", r"\\#", glob))
    if rule is None:  # git ignores such a pattern; here it would match every file
        fix = "give one such as *.py or src/**, and write \\[ for a bracket"
        raise FileError("", "invalid", f"the glob {glob!r} can't be read", fix)
    return rule


def rules_above(root: int, path: str) -> Above:
    """The .gitignore files from an open root down to the folder `path` beneath it, without the folder's own."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    found = list[tuple[str, str]]()
    folder = os.dup(root)
    try:
        for index, part in enumerate(parts):
            if text := read_rules(folder):
                found.append(("/".join(parts[index:]) + "/", text))
            below = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            os.close(folder)
            folder = below
    except OSError:
        pass  # it was moved meanwhile: the rules found so far apply
    finally:
        os.close(folder)
    return tuple(found)


def read_rules(folder: int) -> str:
    """The text of the .gitignore in an open folder; empty if there is none that git would read."""
    try:
        descriptor = os.open(NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return os.read(descriptor, MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(descriptor)


def expand_braces(glob: str) -> list[str]:
    """The globs that `{a,b}` expands to."""
    done, todo = list[str](), [glob]
    while todo:
        text = todo.pop(0)
        found = re.search(r"\{([^{}]*,[^{}]*)\}", text)
        if found is None:
            done.append(text)
        else:
            todo += [text[: found.start()] + part + text[found.end() :] for part in found[1].split(",")]
        if len(done) + len(todo) > MOST_ALTERNATIVES:
            what = f"the glob {glob!r} stands for more than {MOST_ALTERNATIVES}"
            raise FileError("", "invalid", what, "give fewer alternatives")
    return done


@cache
def _compile(line: str) -> _Rule | None:
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    try:
        pattern = GitIgnoreSpecPattern(line)
    except (ValueError, re.error):
        return None  # as git does
    regex = cast("re.Pattern[str] | None", pattern.regex)  # pyright: ignore[reportUnknownMemberType]
    if regex is None or pattern.include is None:
        return None
    return _Rule(regex, pattern.include, _FOLDER_MARK in regex.groupindex)


def last_names(globs: Iterable[str]) -> list[str]:
    """Name patterns of `*` and plain characters, one of which matches every included file; none if unknown."""
    names = list[str]()
    for glob in globs:
        for one in expand_braces(glob):
            name = _last_part(one)
            if one.startswith("!"):
                continue
            if "*" not in name or "**" in name or not re.fullmatch(r"[\w.*-]*", name, re.ASCII):
                return []
            names.append(name)
    return names


def _last_part(glob: str) -> str:
    """The part of a glob that matches the name; empty if it matches folders only."""
    return glob.rpartition("/")[2]
