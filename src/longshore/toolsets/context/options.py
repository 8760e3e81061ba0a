"""The options of the context tools, without the libraries behind them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from longshore.registry.options import Folder, Size, Variable


class ContextOptions(Struct, frozen=True, kw_only=True):
    """A project memory."""

    database: Annotated[Folder, Variable("CONTEXTGRAPH_DB")] = ""
    """The SQLite file, or a postgresql:// address. Empty: .contextgraph/context.db of the project."""

    format: Literal["text", "json"] = "text"
    """The form of query_context's answers where a call does not say it."""

    allow_purge: bool = False
    """Whether forget_context may erase for good. Retracting is always allowed."""

    max_bytes: Size = 4 << 30
    """A store that has as much takes no additions."""

    history_days: Annotated[int, Meta(ge=0, le=36_500)] = 0
    """How many days superseded facts are kept. 0: for ever."""
