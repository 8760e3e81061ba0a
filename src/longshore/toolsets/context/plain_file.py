"""Any text as a file: one part if it is short, else blocks of paragraphs with their lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from longshore.toolsets.context.file_parts import FILE, NAME_CHARACTERS, TEXT, ParsedFile, Part

PARSER: Final = "text/1"
BLOCK_CHARACTERS: Final = 2_000
"""Paragraphs are put together up to this: about what answers one question."""
_TITLE_CHARACTERS: Final = 80


def parse_plain(text: str, path: str, problem: str = "") -> ParsedFile:
    """The file, and its blocks if it has more than one. They are named after their first lines."""
    lines = text.split("\n")
    if len(text) <= BLOCK_CHARACTERS:
        return ParsedFile(PARSER, (Part(FILE, path, text, 1, len(lines)),), problem=problem)
    parts, names = [Part(FILE, path, "", 1, len(lines))], Names()
    for first, last, block in divide(lines, 1):
        parts.append(Part(TEXT, names.unique(title_of(block)), block, first, last, 0))
    return ParsedFile(PARSER, tuple(parts), problem=problem)


def divide(lines: list[str], first: int) -> Iterator[tuple[int, int, str]]:
    """Lines in blocks of at most BLOCK_CHARACTERS, with their numbers; they end with a paragraph where possible."""
    start, size, gap = 0, 0, 0
    for at, line in enumerate(lines):
        if size and size + len(line) + 1 > BLOCK_CHARACTERS:
            end = gap if gap > start else at
            yield from _block(lines, start, end, first)
            size = sum(len(passed) + 1 for passed in lines[end:at])
            start = end
        size += len(line) + 1
        if not line.strip():
            gap = at + 1
    yield from _block(lines, start, len(lines), first)


def _block(lines: list[str], start: int, end: int, first: int) -> Iterator[tuple[int, int, str]]:
    """One block, without empty lines around it. A line longer than a block is divided."""
    while start < end and not lines[start].strip():
        start += 1
    while start < end and not lines[end - 1].strip():
        end -= 1
    if start < end:
        block = "\n".join(lines[start:end])
        for at in range(0, len(block), BLOCK_CHARACTERS * 2):
            yield first + start, first + end - 1, block[at : at + BLOCK_CHARACTERS * 2]


def title_of(block: str) -> str:
    """The first line of a block that has a letter or digit, shortened."""
    lines = (line.strip() for line in block.split("\n"))
    found = next((line for line in lines if any(map(str.isalnum, line[:_TITLE_CHARACTERS]))), block.strip())
    return found[:_TITLE_CHARACTERS].strip() or "text"


class Names:
    """Unique names of the parts of one file."""

    def __init__(self) -> None:
        self._given = dict[str, int]()

    def unique(self, name: str) -> str:
        """The name, with a number if an equal one was given before. Spaces are ignored, as in the store."""
        name = " ".join(name.split())[:NAME_CHARACTERS]
        count = self._given[name] = self._given.get(name, 0) + 1
        return name if count == 1 else self.unique(f"{name} ({count})")
