"""Markdown by its sections: each is a part, named after the headings above it, with links to files and sections."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

from longshore.toolsets.context.file_parts import FILE, PART_CHARACTERS, SECTION, Mention, ParsedFile, Part
from longshore.toolsets.context.plain_file import Names, divide

PARSER: Final = "markdown/1"
ENDINGS: Final = (".md", ".markdown", ".mdx")
BETWEEN: Final = " > "
"""Stands between the headings in a section's name."""
_MOST_LINKS: Final = 500
"""Of one section."""
_HEADING_CHARACTERS: Final = 500
"""Longer lines are no headings."""

_HEADING: Final = re.compile(r" {0,3}(#{1,6})(?:[ \t]+(.*?))?(?:[ \t]+#+)?[ \t]*$")
_UNDERLINE: Final = re.compile(r" {0,3}(=+|-+)[ \t]*$")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_TITLE: Final = re.compile(r"""title\s*:\s*(["']?)(.+?)\1\s*$""", re.IGNORECASE)
_LINK: Final = re.compile(
    r"\]\(\s{0,9}<?([^()\s<>]{1,1000})|^ {0,3}\[[^\]\n]{1,200}\]:\s{0,9}<?(\S{1,1000})>?", re.MULTILINE
)
_WORDS: Final = re.compile(rb"[\w\x80-\xff]+")
_FILE_OR_ANCHOR: Final = re.compile(rb"[\w\x80-\xff.-]+")
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)
_MARKUP: Final = re.compile(r"[*_`]|!?\[([^\]]*)\]\([^)]*\)")


def parse_markdown(text: str, path: str) -> ParsedFile:
    """The file with the text before its first heading, and its sections."""
    lines = text.split("\n")
    title, start = _front_matter(lines)
    headings = list(_headings(lines, start))
    end = headings[0][0] if headings else len(lines)
    preamble = "\n".join([title, *lines[start:end]] if title else lines[start:end]).strip()
    parts, mentions, names = [Part(FILE, path, preamble[:PART_CHARACTERS], 1, len(lines))], list[Mention](), Names()
    if len(preamble) > PART_CHARACTERS:  # a document without headings
        parts[0] = Part(FILE, path, title, 1, len(lines))
        parts += [
            Part(SECTION, names.unique(_first_words(block)), block, first, last, 0)
            for first, last, block in divide(lines[start:end], start + 1)
        ]
    mentions += _mentions(preamble, 0, path)
    above = list[tuple[int, int, str]]()
    """The sections that the present one is in: level, part and heading."""
    for number, (begin, body, level, heading) in enumerate(headings):
        end = headings[number + 1][0] if number + 1 < len(headings) else len(lines)
        while above and above[-1][0] >= level:
            above.pop()
        name = names.unique(BETWEEN.join([*(entry[2] for entry in above), heading]))
        part = len(parts)
        parent = above[-1][1] if above else 0
        parts += _section(lines, begin, body, end, name, part, parent, names)
        mentions += _mentions("\n".join(lines[body:end]), part, path)
        above.append((level, part, heading))
    return ParsedFile(PARSER, tuple(parts), tuple(mentions))


def referring_words(data: bytes) -> Iterator[bytes]:
    """The words of a document that may name a file or the anchor of a section."""
    yield from _FILE_OR_ANCHOR.findall(data)
    yield from _WORDS.findall(data)


def anchor_of(name: str) -> str:
    """The anchor of a section, as code hosts make it of the last heading."""
    heading = _MARKUP.sub(lambda found: found[1] or "", name.rpartition(BETWEEN)[2])
    return re.sub(r"[^\w\- ]", "", heading.casefold()).strip().replace(" ", "-")


def _section(
    lines: list[str], begin: int, body: int, end: int, name: str, part: int, parent: int, names: Names
) -> Iterator[Part]:
    """One part; the blocks of a long section are its parts."""
    while end > body and not lines[end - 1].strip():
        end -= 1
    text = "\n".join(lines[begin:end])
    if len(text) <= PART_CHARACTERS:
        yield Part(SECTION, name, text, begin + 1, max(end, begin + 1), parent)
        return
    blocks = list(divide(lines[begin:end], begin + 1))
    yield Part(SECTION, name, blocks[0][2], begin + 1, end, parent)
    for first, last, block in blocks[1:]:
        yield Part(SECTION, names.unique(f"{name}{BETWEEN}{_first_words(block)}"), block, first, last, part)


def _front_matter(lines: list[str]) -> tuple[str, int]:
    """The title in the front matter, and the line after it."""
    if lines[0].rstrip() not in ("---", "+++"):
        return "", 0
    for at in range(1, min(len(lines), 200)):
        if lines[at].rstrip() == lines[0].rstrip():
            found = (_TITLE.match(line[:_HEADING_CHARACTERS].replace("=", ":", 1)) for line in lines[1:at])
            return next((match[2] for match in found if match), ""), at + 1
    return "", 0


def _headings(lines: list[str], start: int) -> Iterator[tuple[int, int, int, str]]:
    """Each heading outside of code: its line, the line after it, its level and its text."""
    fence = ""
    for at in range(start, len(lines)):
        line = lines[at]
        if found := _FENCE.match(line):
            mark = found[1]
            if not fence:
                fence = mark
            elif mark.startswith(fence) and not line.strip().strip(mark[0]):
                fence = ""
        elif fence or len(line) > _HEADING_CHARACTERS:
            continue
        elif match := _HEADING.match(line):
            yield at, at + 1, len(match[1]), (match[2] or "").strip() or "(no heading)"
        elif at > start and (match := _UNDERLINE.match(line)) and _is_text(lines, at - 1, start):
            yield at - 1, at + 1, 1 if match[1][0] == "=" else 2, lines[at - 1].strip()


def _is_text(lines: list[str], at: int, start: int) -> bool:
    """Whether a line can be an underlined heading: a paragraph of one line."""
    line = lines[at].strip()
    alone = at == start or not lines[at - 1].strip()
    return alone and bool(line) and line[0] not in "#>|-*+`=" and len(line) < 200


def _mentions(text: str, part: int, path: str) -> Iterator[Mention]:
    """The links of a text to files beside it."""
    seen = set[str]()
    for found in _LINK.finditer(text):
        target = found[1] or found[2]
        if target in seen or _SCHEME.match(target) or len(seen) >= _MOST_LINKS:
            continue
        seen.add(target)
        file, _, anchor = target.partition("#")
        file = unquote(file.partition("?")[0])
        if file.startswith("/"):
            file = os.path.normpath(file.lstrip("/") or ".")
        elif file:
            file = os.path.normpath(os.path.join(os.path.dirname(path), file))
        if (file or anchor) and "\0" not in file and not file.startswith("../"):
            yield Mention(part, "" if file == path else file, unquote(anchor).casefold())


def _first_words(block: str) -> str:
    return " ".join(block.split()[:8])[:80]
