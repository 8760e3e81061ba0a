"""What a mounted server offers at one moment: its lists, read and made into entries."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeVar

from msgspec import Struct

from longshore.client.client import Client
from longshore.errors import BadAnswer, ClientError, ServerError
from longshore.mounting.parts import Parts, Passing
from longshore.registry.catalog import Part
from longshore.registry.tool import Entry
from longshore.registry.toolset import ToolsetHandle

T = TypeVar("T")
REFUSED = (ServerError, BadAnswer)
"""How a list fails at a server that is there. All else is a lost connection."""
Timeout = float | Literal[False] | None


class Surface(Struct):
    """One list. `definitions` are those that were used, as the server wrote them: to tell whether they change."""

    part: Part
    made: dict[str, Any]
    definitions: dict[str, Any]
    left_out: list[str]
    completions: dict[tuple[str, str], Entry] = {}


class Reader(Struct):
    """Reads the lists of one server."""

    prefix: str
    holder: ToolsetHandle
    passing: Passing
    timeout: Timeout
    aliases: Callable[[str], tuple[str, ...]]

    async def read(self, client: Client, part: str) -> Surface:
        match part:
            case "tools":
                return await self._tools(client)
            case "prompts":
                return await self._prompts(client)
            case _:
                return await self._resources(client)

    def _parts(self) -> Parts:
        return Parts(self.prefix, self.holder, self.passing, self.timeout, self.aliases)

    async def _tools(self, client: Client) -> Surface:
        parts, found = self._parts(), await client.list_tools(fresh=True)
        return Surface("tools", dict(parts.tools(found)), {each.name: each.record for each in found}, parts.left_out)

    async def _prompts(self, client: Client) -> Surface:
        parts, found = self._parts(), await client.list_prompts(fresh=True)
        made = dict(parts.prompts(found))
        completions: dict[tuple[str, str], Entry] = {}
        if client.server.can("completions"):
            for own, entry in made.items():
                ref = {"type": "ref/prompt", "name": parts.theirs[own]}
                completions |= parts.completions(ref, own, list(entry.parameters))
        return Surface("prompts", made, {each.name: each.record for each in found}, parts.left_out, completions)

    async def _resources(self, client: Client) -> Surface:
        """Resources and templates are two lists there and one here. Many a server has only one of them."""
        parts = self._parts()
        fixed, no_fixed = await _try(client.list_resources(fresh=True))
        templates, no_templates = await _try(client.list_templates(fresh=True))
        if no_fixed is not None and no_templates is not None:
            raise no_fixed
        made = {**dict(parts.resources(fixed)), **dict(parts.templates(templates))}
        completions: dict[tuple[str, str], Entry] = {}
        if client.server.can("completions"):
            for own, resource in made.items():
                ref = {"type": "ref/resource", "uri": own}
                completions |= parts.completions(ref, own, resource.template.names)
        definitions = {each.uri: each.record for each in fixed}
        definitions |= {each.uri_template: each.record for each in templates}
        for kind, problem in (("resources", no_fixed), ("templates", no_templates)):
            if problem is not None:
                parts.left_out.append(unlisted(kind, problem))
        return Surface("resources", made, definitions, parts.left_out, completions)


def unlisted(kind: str, problem: ClientError) -> str:
    return f"all {kind}: {problem.what[:200]}"


async def _try(listing: Awaitable[list[T]]) -> tuple[list[T], ClientError | None]:
    """A list, or nothing and why: a server that is there may have no such list, or a bad one."""
    try:
        return await listing, None
    except REFUSED as problem:
        return [], problem
