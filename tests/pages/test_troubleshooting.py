"""docs/troubleshooting.md: each message that it quotes is a text of the source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()
MESSAGE = re.compile(r"^\| `([^`\n]+)` \|", re.MULTILINE)
LEAST_LETTERS = 9
"""Of a message without its placeholders: less would be found anywhere."""


def texts(tree: ast.AST) -> Iterator[str]:
    """The string literals of a module, `…` standing for what an f-string puts in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(each.value if isinstance(each, ast.Constant) else "…" for each in node.values)  # type: ignore[misc]


@cache
def source() -> str:
    files = sorted((ROOT / "src" / "longshore").rglob("*.py"))
    return "\n".join(text for file in files for text in texts(ast.parse(file.read_text(encoding="utf-8"))))


def stands_in_source(message: str) -> bool:
    """Whether one literal has this message, without the placeholders at its ends."""
    core = message.strip("… ")
    return len(re.findall(r"\w", core)) >= LEAST_LETTERS and core in source()


def test_there_are_messages_of_each_kind() -> None:
    assert len(MESSAGE.findall(PAGE)) > 50


@pytest.mark.parametrize("message", MESSAGE.findall(PAGE))
def test_a_quoted_message_stands_in_the_source(message: str) -> None:
    assert stands_in_source(message)


def test_a_message_that_was_changed_is_found() -> None:
    assert not stands_in_source("http.port: …:… is taken: …")
    assert not stands_in_source("… off; …")
