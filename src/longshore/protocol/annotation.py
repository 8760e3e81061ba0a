"""How an author says that a header repeats an argument."""

from __future__ import annotations

from typing import Any, Final

ANNOTATION: Final = "x-mcp-header"
"""The keyword of an input schema that tells clients; its value is the header's name without `Mcp-Param-`."""


class Header:
    """Marks a parameter that HTTP clients repeat as `Mcp-Param-NAME`: `region: Annotated[str, Header("Region")]`.

    Proxies can then route and limit calls by it without reading bodies. It is a text, an integer, a bool or a choice of
    those; where it may be None it needs a default. Never mark a secret: headers end up in logs.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Header({self.name!r})"

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        """What pydantic asks, where a field of a model is marked."""
        return {**handler(core_schema), ANNOTATION: self.name}
