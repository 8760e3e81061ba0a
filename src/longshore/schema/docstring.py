"""The description of a tool and of its parameters, read from a docstring.

Four styles are read: Google (`Args:`), NumPy (`Parameters` over a rule), reST (`:param x:`) and plain, a block of
`name: text` lines. Sections on results and exceptions are dropped: a model doesn't need them to choose a tool.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import groupby
from typing import NamedTuple

from msgspec import Struct

_PARAMETERS = frozenset(
    ("args", "arguments", "params", "parameters", "keyword args", "keyword arguments", "other parameters")
)
_DROPPED = frozenset(("returns", "return", "yields", "yield", "raises", "raise", "except", "exceptions", "warns"))

_GOOGLE = re.compile(r"([A-Z][A-Za-z ]*):[ \t]*$")
_RULE = re.compile(r"-{3,}$|={3,}$")
_FIELD = re.compile(r":([a-z]+)(?:[ \t]+([^:]*?))?:(?:[ \t]+|$)(.*)")
_REST_PARAMETERS = frozenset(("param", "parameter", "arg", "argument", "key", "keyword"))
_REST_DROPPED = frozenset(("return", "returns", "rtype", "raise", "raises", "except", "exception", "type", "yields"))
# `- **name** (type, optional): text`, with or without each ornament.
_ITEM = re.compile(r"(?:[-*+][ \t]+)?[*`]{0,2}(\w+)[*`]{0,2}[ \t]*(?:\([^)]*\))?[ \t]*:(?:[ \t]+(.*)|$)")
# `name (Callable[[int], str] (or None)): text`, with brackets inside the type.
_TYPED = re.compile(r"(\w+)[ \t]*\(.*?\)[ \t]*:[ \t]+(.*)")


class Docstring(Struct, frozen=True):
    """The descriptions of a function and of its parameters."""

    summary: str
    parameters: dict[str, str]


def parse(doc: str | None, names: Collection[str]) -> Docstring:
    """Read a docstring. Only the given names count as parameters."""
    lines = _clean(doc or "")
    kept: list[str] = []
    found: dict[str, str] = {}
    index = 0
    while index < len(lines):
        block = _read_section(lines, index, names) or _read_field(lines, index, names)
        if block is None:
            kept.append(lines[index])
        else:
            found |= block.parameters
        index = index + 1 if block is None else block.end
    paragraphs: list[str] = []
    for filled, group in groupby(kept, bool):
        if filled:
            rest, more = _read_plain(list(group), names)
            paragraphs += ["\n".join(rest)] if rest else []
            found = more | found
    return Docstring("\n\n".join(paragraphs).strip(), {name: found[name] for name in names if found.get(name)})


class _Block(NamedTuple):
    """A section or field: where it ends, and the parameters that it describes."""

    end: int
    parameters: dict[str, str]


def _clean(doc: str) -> list[str]:
    """Lines without the common indentation. The first line has none, as it follows the quotes."""
    lines = [line.rstrip() for line in doc.expandtabs(4).replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    margin = min((_indent(line) for line in lines[1:] if line), default=0)
    return [lines[0].lstrip(), *(line[margin:] for line in lines[1:])]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(first: str | None, rest: list[str]) -> str:
    return " ".join(part for part in [(first or "").strip(), *(line.strip() for line in rest)] if part)


def _take_block(lines: list[str], head: int) -> int:
    """The end of the lines after a head that are blank or indented deeper than it."""
    end = head + 1
    while end < len(lines) and (not lines[end] or _indent(lines[end]) > _indent(lines[head])):
        end += 1
    return end


def _read_section(lines: list[str], index: int, names: Collection[str]) -> _Block | None:
    """The section that starts here, in Google's or NumPy's style, if it is one of parameters or to be dropped."""
    if ruled := _is_ruled(lines, index):
        title, start = lines[index].strip(), index + 2
        end = next((i for i in range(start, len(lines)) if _is_ruled(lines, i)), len(lines))
    elif header := _GOOGLE.fullmatch(lines[index].strip()):
        title, start, end = header[1], index + 1, _take_block(lines, index)
    else:
        return None
    if title.lower() in _PARAMETERS and (ruled or any(lines[start:end])):
        return _Block(end, _read_items(lines[start:end], names, ruled=ruled))
    return _Block(end, {}) if title.lower() in _DROPPED and (ruled or any(lines[start:end])) else None


def _is_ruled(lines: list[str], index: int) -> bool:
    return bool(lines[index]) and index + 1 < len(lines) and bool(_RULE.fullmatch(lines[index + 1].strip()))


def _read_items(block: list[str], names: Collection[str], *, ruled: bool) -> dict[str, str]:
    margin = min((_indent(line) for line in block if line), default=0)
    heads = [i for i, line in enumerate(block) if line and _indent(line) == margin]
    found: dict[str, str] = {}
    for head, end in zip(heads, [*heads[1:], len(block)], strict=True):
        line, rest = block[head].strip(), block[head + 1 : end]
        if ruled:  # `a, b : int`
            named = [name.strip("* `") for name in line.partition(":")[0].split(",")]
            found |= {name: _joined("", rest) for name in named if name in names}
        elif (item := _ITEM.fullmatch(line.replace("\\_", "_")) or _TYPED.fullmatch(line)) and item[1] in names:
            found[item[1]] = _joined(item[2], rest)
    return found


def _read_field(lines: list[str], index: int, names: Collection[str]) -> _Block | None:
    """The field of reST that starts here. It continues after blank lines only if indented ones follow."""
    field = _FIELD.fullmatch(lines[index].strip())
    if field is None or field[1] not in _REST_PARAMETERS | _REST_DROPPED:
        return None
    end = _take_block(lines, index)
    while not lines[end - 1]:
        end -= 1
    name = (field[2] or "").rpartition(" ")[2].strip("*")
    known = field[1] in _REST_PARAMETERS and name in names
    return _Block(end, {name: _joined(field[3], lines[index + 1 : end])} if known else {})


def _read_plain(paragraph: list[str], names: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """A paragraph without the items `name: text` at its end, and those items."""
    items = [_ITEM.fullmatch(line.strip()) for line in paragraph]
    known = [item[1] if item and item[1] in names else "" for item in items]
    start = len(paragraph)
    for index in reversed(range(len(paragraph))):
        if known[index]:
            start = index
        elif index == 0 or _indent(paragraph[index]) <= _indent(paragraph[0]):
            break
    found: dict[str, str] = {}
    name = ""
    for index in range(start, len(paragraph)):
        item = items[index]
        if item and known[index] and known[index] not in found:
            name = known[index]
            found[name] = (item[2] or "").strip()
        else:
            found[name] = _joined(found[name], [paragraph[index]])
    return paragraph[:start], found
