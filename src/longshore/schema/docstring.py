"""A docstring -> the tool's description and those of its parameters.

Four styles are read: Google (`Args:`), NumPy (`Parameters` over a rule), reST (`:param x:`) and plain, a block of
`name: text` lines. Sections on results and exceptions are dropped: a model doesn't need them to choose a tool.
"""

from __future__ import annotations

import re
from collections.abc import Collection

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


class Docstring(Struct, frozen=True):
    """The descriptions of a function and of its parameters."""

    summary: str
    parameters: dict[str, str]


def parse(doc: str | None, names: Collection[str]) -> Docstring:
    """Read a docstring. Only the names given are taken for parameters."""
    lines = _clean(doc or "")
    found: dict[str, str] = {}
    for read in (_read_sections, _read_fields, _read_plain):
        lines, more = read(lines, names)
        found = more | found
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return Docstring(text, {name: found[name] for name in names if found.get(name)})


def _clean(doc: str) -> list[str]:
    """Lines without the common indentation. The first line has none, as it follows the quotes."""
    lines = [line.rstrip() for line in doc.expandtabs(4).replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    margin = min((_indent(line) for line in lines[1:] if line), default=0)
    return [lines[0].lstrip(), *(line[margin:] for line in lines[1:])]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _take_block(lines: list[str], start: int, margin: int) -> int:
    """The end of the lines that are blank or indented deeper than the margin."""
    end = start
    while end < len(lines) and (not lines[end] or _indent(lines[end]) > margin):
        end += 1
    return end


# Google and NumPy


def _read_sections(lines: list[str], names: Collection[str]) -> tuple[list[str], dict[str, str]]:
    kept: list[str] = []
    found: dict[str, str] = {}
    index = 0
    while index < len(lines):
        title, end = _section(lines, index)
        if title in _PARAMETERS and _is_ruled(lines, index):
            found |= _numpy_items(lines[index + 2 : end], names)
        elif title in _PARAMETERS:
            found |= _google_items(lines[index + 1 : end], names)
        elif title not in _DROPPED:
            end = index + 1
            kept.append(lines[index])
        index = end
    return kept, found


def _section(lines: list[str], index: int) -> tuple[str, int]:
    """The title of the section that starts here, in lower case, and where it ends; no title if none starts here."""
    line = lines[index]
    if _is_ruled(lines, index):
        return line.strip().lower(), _numpy_end(lines, index + 2)
    header = _GOOGLE.fullmatch(line.strip())
    if header and index + 1 < len(lines):
        end = _take_block(lines, index + 1, _indent(line))
        if any(lines[index + 1 : end]):
            return header[1].lower(), end
    return "", index + 1


def _is_ruled(lines: list[str], index: int) -> bool:
    return bool(lines[index]) and index + 1 < len(lines) and bool(_RULE.fullmatch(lines[index + 1].strip()))


def _numpy_end(lines: list[str], start: int) -> int:
    return next((i for i in range(start, len(lines)) if _is_ruled(lines, i)), len(lines))


def _google_items(block: list[str], names: Collection[str]) -> dict[str, str]:
    margin = min((_indent(line) for line in block if line), default=0)
    heads = [i for i, line in enumerate(block) if line and _indent(line) == margin]
    found: dict[str, str] = {}
    for head, end in zip(heads, [*heads[1:], len(block)], strict=True):
        item = _ITEM.fullmatch(block[head].strip().replace("\\_", "_")) or _with_type(block[head].strip())
        if item and item[1] in names:
            found[item[1]] = _joined(item[2], block[head + 1 : end])
    return found


def _with_type(line: str) -> re.Match[str] | None:
    """`name (Callable[[int], str] (or None)): text`: brackets inside the type."""
    return re.fullmatch(r"(\w+)[ \t]*\(.*?\)[ \t]*:[ \t]+(.*)", line)


def _numpy_items(block: list[str], names: Collection[str]) -> dict[str, str]:
    heads = [i for i, line in enumerate(block) if line and _indent(line) == 0]
    found: dict[str, str] = {}
    for head, end in zip(heads, [*heads[1:], len(block)], strict=True):
        text = _joined("", block[head + 1 : end])
        for name in block[head].partition(":")[0].split(","):
            if name.strip("* `") in names:
                found[name.strip("* `")] = text
    return found


def _joined(first: str | None, rest: list[str]) -> str:
    return " ".join(part for part in [(first or "").strip(), *(line.strip() for line in rest)] if part)


# reST


def _read_fields(lines: list[str], names: Collection[str]) -> tuple[list[str], dict[str, str]]:
    kept: list[str] = []
    found: dict[str, str] = {}
    index = 0
    while index < len(lines):
        line = lines[index]
        field = _FIELD.fullmatch(line.strip())
        if field is None or field[1] not in _REST_PARAMETERS | _REST_DROPPED:
            kept.append(line)
            index += 1
            continue
        end = _field_end(lines, index + 1, _indent(line))
        name = (field[2] or "").split()[-1:] or [""]
        if field[1] in _REST_PARAMETERS and name[0].strip("*") in names:
            found[name[0].strip("*")] = _joined(field[3], lines[index + 1 : end])
        index = end
    return kept, found


def _field_end(lines: list[str], start: int, margin: int) -> int:
    """A field goes on over indented lines, and over blank ones only if indented lines follow."""
    end = _take_block(lines, start, margin)
    while end > start and not lines[end - 1]:
        end -= 1
    return end


# Plain


def _read_plain(lines: list[str], names: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """Blocks of `name: text` that end a paragraph."""
    kept: list[str] = []
    found: dict[str, str] = {}
    for paragraph in _paragraphs(lines):
        start = _plain_start(paragraph, names)
        kept += [*paragraph[:start], ""]
        found |= _plain_items(paragraph[start:], names)
    return kept, found


def _paragraphs(lines: list[str]) -> list[list[str]]:
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line:
            paragraphs[-1].append(line)
        else:
            paragraphs.append([])
    return paragraphs


def _plain_start(paragraph: list[str], names: Collection[str]) -> int:
    """The start of the items at the end of a paragraph."""
    start = len(paragraph)
    for index in range(len(paragraph) - 1, -1, -1):
        item = _ITEM.fullmatch(paragraph[index].strip())
        if item and item[1] in names:
            start = index
        elif index == 0 or _indent(paragraph[index]) <= _indent(paragraph[0]):
            break
    return start


def _plain_items(block: list[str], names: Collection[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in block:
        item = _ITEM.fullmatch(line.strip())
        if item and item[1] in names and item[1] not in found:
            name = item[1]
            found[name] = (item[2] or "").strip()
        elif name:
            found[name] = _joined(found[name], [line])
    return found
