"""`key=value …` on a command line, read as the arguments that a tool's input schema asks for."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Sequence
from typing import Any, final

import msgspec
from msgspec import Struct

from longshore.cli.argument_values import child, expected, keys_of, kinds, part, take_text
from longshore.files import read_bounded
from longshore.nearest import nearest
from longshore.schema.kinds import is_array, is_object
from longshore.schema.phrase import cut, quote

FILE_BYTES = 48 << 20
"""Most bytes of a file for an argument: more would not fit a message."""


class BadArguments(Exception):
    """The arguments can't be used; each line says which one and why."""

    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__("\n".join(lines))
        self.lines = list(lines)


class Word(Struct, frozen=True):
    """One `key=value`: `forced` where it was `key:=json`, `data` as bytes where they came from a file."""

    key: str
    data: str | bytes
    forced: bool = False


@final
class Files:
    """Reads the files that a command line names, pipes included."""

    def __init__(self) -> None:
        self._stdin_went_to = ""
        """The key that has read stdin: a second one would find it empty."""

    def read(self, path: str, key: str) -> bytes:
        """The bytes of the file for this key. Raises BadArguments."""
        try:
            self._check_stdin(path, key)
            data = sys.stdin.buffer.read(FILE_BYTES + 1) if path == "-" else read_bounded(path, FILE_BYTES)
        except (OSError, ValueError) as problem:
            why = getattr(problem, "strerror", None) or str(problem)
            raise BadArguments(
                [f"{key}: the file {cut(path)} can't be read ({why}); a text that begins with @: {key}:='\"@…\"'"]
            ) from None
        if len(data) > FILE_BYTES:
            raise BadArguments([f"{key}: the file {cut(path)} has more than {FILE_BYTES >> 20} MiB"])
        return data

    def _check_stdin(self, path: str, key: str) -> None:
        if path == "-" and sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
            raise BadArguments([f"{key}: the standard input is closed"])
        if path == "-" or _is_stdin(path):
            if self._stdin_went_to:
                raise BadArguments([f"{key}: {self._stdin_went_to} has read the standard input already"])
            self._stdin_went_to = key


def _is_stdin(path: str) -> bool:
    """Whether it is stdin by another name, such as /dev/stdin. A regular file can be read twice."""
    try:
        there, ours = os.stat(path), os.fstat(0)
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(there.st_mode) and os.path.samestat(there, ours)


def read_words(words: Sequence[str], files: Files | None = None) -> list[Word]:
    """Split the words, and read the files that they name. Raises BadArguments with everything that is wrong."""
    files = files or Files()
    found: list[Word] = []
    problems: list[str] = []
    for word in words:
        key, equals, text = word.partition("=")
        forced = key.endswith(":")
        key = key.removesuffix(":")
        if not equals or not key:
            hint = "JSON is given with --args" if word[:1] == "{" else "a command line as TARGET is one word, in quotes"
            problems.append(f"{cut(word)!r} is no key=value ({hint})")
            continue
        try:
            found.append(Word(key, files.read(text[1:], key) if text[:1] == "@" else text, forced))
        except BadArguments as wrong:
            problems += wrong.lines
    if problems:
        raise BadArguments(problems)
    return found


def read_base(given: str | None, files: Files | None = None) -> dict[str, Any]:
    """The object of `--args`: JSON, `@FILE`, or `-` for stdin. Raises BadArguments."""
    if given is None:
        return {}
    data: str | bytes = given
    if given == "-" or given[:1] == "@":
        data = (files or Files()).read(given.removeprefix("@"), "--args")
    try:
        record: Any = msgspec.json.decode(data)
    except (ValueError, RecursionError) as problem:
        raise BadArguments([f"--args: it is no JSON: {problem}"]) from None
    if not is_object(record):
        raise BadArguments(["--args: expected an object of arguments by name"])
    return record


def build(schema: dict[str, Any], words: Sequence[Word], base: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call. Raises BadArguments with everything that the schema refuses."""
    made = _Builder(schema, base)
    for word in words:
        made.take(word)
    made.check()
    if made.problems:
        raise BadArguments([line for lines in made.problems.values() for line in lines])
    return made.arguments


class _Builder:
    """Arguments under construction. `problems` has messages by the argument's name."""

    def __init__(self, schema: dict[str, Any], base: dict[str, Any]) -> None:
        self.schema = schema
        self.arguments: dict[str, Any] = dict(base)
        self.problems: dict[str, list[str]] = {}
        self._given: set[str] = set()

    def take(self, word: Word) -> None:
        path = self._path(word.key)
        schema: Any = self.schema
        for n, step in enumerate(path):
            inner = child(schema, self.schema, step)
            if inner is None:
                near = nearest(step, keys_of(schema, self.schema))
                known = ", ".join(keys_of(schema, self.schema)) or "none"
                where = ".".join(path[: n + 1])
                hint = f"did you mean {near!r}?" if near else f"there are {cut(known)}"
                self._report(path[0], f"{cut(where)}: there is no such argument; {hint}")
                return
            schema = inner
        try:
            value = self._value(word, schema)
            self._place(path, value, several="array" in kinds(schema, self.schema) and not word.forced)
        except ValueError as problem:
            self._report(path[0], f"{cut(word.key)}: {problem}")

    def _path(self, key: str) -> list[str]:
        """`a.b` names a property of an object, unless the schema has the name `a.b`."""
        whole = key in keys_of(self.schema, self.schema) or "." not in key
        return [key] if whole or not all(key.split(".")) else key.split(".")

    def _value(self, word: Word, schema: Any) -> Any:
        data = word.data
        if isinstance(data, bytes):
            encoded = is_object(schema) and part(schema, self.schema).get("contentEncoding") == "base64"
            data = _as_text(data, encoded=encoded and not word.forced)
        if not word.forced:
            return take_text(data, schema, self.schema)
        try:
            return msgspec.json.decode(data)
        except (ValueError, RecursionError) as problem:
            raise ValueError(f"expected JSON after :=, got {quote(data)} ({problem})") from None

    def _place(self, path: list[str], value: Any, *, several: bool) -> None:
        at: dict[str, Any] = self.arguments
        for step in path[:-1]:
            inner: Any = at.get(step, {})
            if not is_object(inner):
                raise ValueError(f"{step} was given as {quote(inner)}, so it has no parts")
            at[step] = at = dict(inner)
        key, last = ".".join(path), path[-1]
        before: Any = at.get(last)
        if key not in self._given:
            at[last] = value
        elif several and is_array(before) and is_array(value):
            at[last] = [*before, *value]
        else:
            raise ValueError("it was given twice")
        self._given.add(key)

    def _report(self, key: str, line: str) -> None:
        self.problems.setdefault(key, []).append(line)

    def check(self) -> None:
        """Validate the whole, without repeating problems of a key that are known."""
        self._check_missing()
        from longshore.schema.cost import compile_bounded

        validator = compile_bounded(self.schema)
        lines = [] if validator is None else validator.errors(self.arguments)  # the server decides
        known = set(self.problems)
        for line in lines:
            key = line.partition(":")[0].partition(".")[0].partition("[")[0]
            if key not in known:
                self._report(key, line)

    def _check_missing(self) -> None:
        required: Any = self.schema.get("required")
        for key in required if is_array(required) else ():
            if isinstance(key, str) and key not in self.arguments and key not in self.problems:
                wanted: Any = child(self.schema, self.schema, key)
                inner: dict[str, Any] = part(wanted, self.schema) if is_object(wanted) else {}
                text = " ".join(str(inner.get("description", "")).split())
                self._report(
                    key, f"{cut(key)}: missing, {expected(inner, self.schema)}{': ' if text else ''}{cut(text)}"
                )


def _as_text(data: bytes, *, encoded: bool) -> str:
    if encoded:
        from base64 import b64encode

        return b64encode(data).decode()
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError("the file holds no UTF-8 text") from None
