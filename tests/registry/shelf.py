"""A toolset behind an index, in a module of its own for each test: `write` makes both."""

from __future__ import annotations

import itertools
import sys
import textwrap
from pathlib import Path

from longshore import Server
from longshore.toolsets.index import write_index

SOURCE = """
    from typing import Annotated, Literal

    from longshore import Ask, Context, Toolset, prompt, resource, tool

    MADE = []

    def from_text(sum: str) -> dict[str, int]:
        a, b = sum.split("+")
        return {"a": int(a), "b": int(b)}

    class Shelf(Toolset):
        name = "shelf"

        def __init__(self, app) -> None:
            self.app, self.log = app, []
            MADE.append(self)

        @tool(run="inline", effects="read", aliases=["double"], tags=["sum"], help="Twice as much.", timeout=7)
        def twice(self, number: int) -> int:
            \"\"\"Double a number.\"\"\"
            return number * 2

        @tool(run="inline", effects="read", aliases={"add_text": from_text}, listed=False)
        def add(self, a: int, b: int) -> int:
            \"\"\"Add two numbers.\"\"\"
            return a + b

        @tool(scopes=["shelf:write"], examples=[{"text": "x"}], errors={"full": "take one out"})
        def put(self, text: str) -> str:
            \"\"\"Put a text on the shelf.\"\"\"
            return text

        @tool(category="other", idempotent=True)
        async def wait(self, ctx: Context, text: str = "done") -> str:
            \"\"\"Wait for a while.\"\"\"
            ctx.progress(1)
            return text

        @tool(effects="read")
        async def choose(self, ok: Annotated[bool, Ask("Really?")]) -> str:
            \"\"\"Do what the person says.\"\"\"
            return f"chose {ok}"

        @resource("shelf://all", mime_type="text/plain")
        def all(self) -> str:
            return "books"

        @resource("shelf://{name}/page")
        def page(self, name: str) -> str:
            return f"page of {name}"

        @prompt
        def tidy(self, order: Literal["size", "colour"]) -> str:
            \"\"\"Tidy the shelf.\"\"\"
            return f"tidy by {order}"
"""

_numbers = itertools.count()


def write(folder: Path, source: str = SOURCE, extra: str = "") -> tuple[str, str]:
    """Write a module and its index. Returns the module's name, which is not imported any more, and the index."""
    name = f"shelf_{next(_numbers)}"
    (folder / f"{name}.py").write_text(textwrap.dedent(source))
    path = folder / f"{name}.json"
    path.write_bytes(write_index(Server("indexer"), {f"{name}:Shelf": extra}))
    del sys.modules[name]
    return name, str(path)
