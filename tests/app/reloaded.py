"""A toolset in a module of its own, so that it can be imported again."""

from __future__ import annotations

from longshore import Toolset, tool

LOADED: list[str] = []


class Reloaded(Toolset):
    async def stop(self) -> None:
        LOADED.append("stopped")

    @tool
    def which(self) -> str:
        return str(id(type(self)))
