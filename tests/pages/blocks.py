"""The blocks of code of README.md and docs/, and the commands in them with what they print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = {"README": ROOT / "README.md"} | {path.stem: path for path in sorted((ROOT / "docs").glob("[!R]*.md"))}
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)((?:    \S.*\n)(?:    .*\n)*)")


class Block(NamedTuple):
    """A block, of a kind: the language behind its fence, `plain` for none, `indented` for one without a fence."""

    page: str
    kind: str
    text: str

    @property
    def first(self) -> str:
        return self.text.strip().partition("\n")[0]


def blocks() -> list[Block]:
    found: list[Block] = []
    for page, path in PAGES.items():
        text = path.read_text(encoding="utf-8")
        found += [Block(page, kind or "plain", code) for kind, code in FENCE.findall(text)]
        found += [
            Block(page, "indented", re.sub("^    ", "", code, flags=re.M))
            for code in INDENTED.findall(FENCE.sub("", text))
        ]
    return found


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a session (`$ …`), each with the lines below it."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = part.partition("\n")
        yield command.strip(), shown.strip()


def matches(shown: str, printed: str) -> bool:
    """Whether this was printed, `…` standing for any text."""
    pattern = ".*".join(re.escape(part.strip("\n")) for part in shown.split("…"))
    return re.fullmatch(pattern, printed.strip(), re.DOTALL) is not None
