"""The failure of an operation on a file, in words for a model."""

from __future__ import annotations

from typing import Any, Literal, Self

from longshore.errors import ToolError

Problem = Literal[
    "ambiguous",  # `lines` and `count`: where the text to replace was found
    "beyond_end",  # `size`, and for lines `total_lines`
    "binary",  # `mime`, `size`
    "changed",  # `expected` and `actual`: hashes
    "encoding",  # `encoding`, `character`
    "invalid",  # the request makes no sense for any file
    "no_match",  # `line`: where the nearest place begins, or None
    "overlapping",  # `lines`: where the first two matches that overlap begin
    "too_large",  # `size`, `most`
]


class FileError(ToolError):
    """An operation on a file failed: which problem, what was found, and the fix. `facts` has the figures."""

    def __init__(self, problem: Problem, what: str, fix: str, **facts: Any) -> None:
        super().__init__(what)
        self.problem: Problem = problem
        self.what, self.fix, self.facts = what, fix, facts
        self.name = ""

    def at(self, name: str) -> Self:
        """The same error, with the name of the file."""
        self.name = name
        return self

    def __str__(self) -> str:
        """The text for a model."""
        text = f"{self.what}; {self.fix}" if self.fix else self.what
        return f"{self.name}: {text}" if self.name else text
