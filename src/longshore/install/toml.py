"""TOML, edited as text: the rest of the file keeps every character.

A server is a table `[mcp_servers.NAME]` with tables below it. Each is added and removed by whole lines, and comments
that follow it stay: a library that edits TOML counts these to the table before them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from longshore.install.plain_data import BrokenFile, look_up
from longshore.schema.kinds import is_array, is_object

_PLACE: Final = re.compile(r"\(at (?:line (\d+), column \d+|end of document)\)")
_HEADER: Final = re.compile(r"[ \t]*\[{1,2}(?P<key>[^\[\]#\n]+)\]{1,2}[ \t]*(?:#.*)?$")
_KEY: Final = re.compile(
    r"""[ \t]*(?:"(?P<text>(?:[^"\\]|\\.)*)"|'(?P<raw>[^']*)'|(?P<bare>[A-Za-z0-9_-]+))[ \t]*(?:\.|$)"""
)
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def read(text: str) -> dict[str, Any]:
    """The data of a file. Raises BrokenFile, with the line."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff"))
    except tomllib.TOMLDecodeError as problem:
        said = str(problem)
        found = _PLACE.search(said)
        line = int(found[1]) if found is not None and found[1] else text.count("\n") + 1
        raise BrokenFile(line, _PLACE.sub("", said).strip()) from None


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with a table at a path of keys."""
    data = read(text)
    eol = "\r\n" if "\r\n" in text else "\n"
    written = eol.join(_lines(path, value)) + eol
    if look_up(data, path) is None:
        gap = "" if not text.strip() else eol if text.endswith("\n") else eol + eol
        return f"{text}{gap}{written}"
    lines = text.splitlines(keepends=True)
    places = _places(lines, path)
    _check(data, lines, places, path)
    first = places[0][0]
    for start, end in reversed(places):
        del lines[start:end]
    return "".join([*lines[:first], written, *lines[first:]])


def remove(text: str, path: Sequence[str]) -> str:
    """The text without the table at a path, which must be there. Comments behind it stay."""
    lines = text.splitlines(keepends=True)
    places = _places(lines, path)
    _check(read(text), lines, places, path)
    for start, end in reversed(places):
        if start and not lines[start - 1].strip() and not "".join(lines[end : end + 1]).strip():
            start -= 1  # the blank line that was added before it
        del lines[start:end]
    return "".join(lines)


def _places(lines: list[str], path: Sequence[str]) -> list[tuple[int, int]]:
    """The beginning and end of the tables at and below a path, without the blank lines and comments after them."""
    headers = list(_headers(lines))
    found: list[tuple[int, int]] = []
    for number, (start, keys) in enumerate(headers):
        if keys[: len(path)] != list(path):
            continue
        end = headers[number + 1][0] if number + 1 < len(headers) else len(lines)
        while end > start + 1 and (not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#")):
            end -= 1
        if found and not "".join(lines[found[-1][1] : start]).strip():
            found[-1] = (found[-1][0], end)  # only blank lines between them
        else:
            found.append((start, end))
    return found


def _headers(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(lines):
        header = _HEADER.match(line.rstrip("\r\n"))
        keys = None if header is None else _keys(header["key"])
        if keys is not None:
            yield number, keys


def _keys(dotted: str) -> list[str] | None:
    """The keys of a header; None for another line."""
    keys: list[str] = []
    at = 0
    while at < len(dotted):
        found = _KEY.match(dotted, at)
        if found is None:
            return None
        text, raw = found["text"], found["raw"]
        keys.append(msgspec.json.decode(f'"{text}"') if text is not None else raw if raw is not None else found["bare"])
        at = found.end()
    return keys


def _check(data: dict[str, Any], lines: list[str], places: list[tuple[int, int]], path: Sequence[str]) -> None:
    """Raise BrokenFile unless a parser reads these lines as the whole table and nothing else."""
    chunk = "".join("".join(lines[start:end]) for start, end in places)
    wanted: Any = look_up(data, path)
    for key in reversed(path):
        wanted = {key: wanted}
    try:
        is_whole = bool(places) and tomllib.loads(chunk) == wanted
    except tomllib.TOMLDecodeError:
        is_whole = False
    if not is_whole:
        name = _dotted(path)
        raise BrokenFile(0, f"{name} does not stand in tables of its own, [{name}]; change it by hand")


# -- writing


def _lines(path: Sequence[str], table: Any) -> Iterator[str]:
    yield f"[{_dotted(path)}]"
    tables = {key: value for key, value in table.items() if is_object(value)}
    for key, value in table.items():
        if key not in tables:
            yield f"{_key(key)} = {_value(value)}"
    for key, value in tables.items():
        yield ""
        yield from _lines([*path, key], value)


def _dotted(path: Sequence[str]) -> str:
    return ".".join(map(_key, path))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: Any) -> str:
    """A text, number, boolean or list. Their JSON is valid TOML, except one control character."""
    if is_array(value):
        return f"[{', '.join(map(_value, value))}]"
    return msgspec.json.encode(value).decode().replace("\x7f", "\\u007F")
