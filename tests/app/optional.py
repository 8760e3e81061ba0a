"""A toolset with options in a module of its own, so that it can be imported again."""

from __future__ import annotations

from msgspec import Struct

from longshore import Toolset, tool


class OptionalOptions(Struct, frozen=True):
    word: str = "none"


class Optional(Toolset):
    Options = OptionalOptions

    def __init__(self, options: OptionalOptions) -> None:
        self.options = options

    @tool
    def word(self) -> str:
        return f"{self.options.word} {id(type(self.options))}"
