"""What a rule looks at: a tool as it goes over the wire, the server that it is one of, and what its author declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from longshore.protocol.subschemas import subschemas
from longshore.schema.kinds import is_array, is_object
from longshore.schema.phrase import cut

Json = dict[str, Any]

MOST_NODES: Final = 20_000
"""Places of one schema that are looked at. No list that a client takes has as many."""
MOST_LEVELS: Final = 64
"""How deep they are looked for. What is deeper can't be compiled, which is told."""


class Facts(Struct, frozen=True, kw_only=True):
    """What an author declared that does not go over the wire. Of other people's servers nothing is known."""

    category: str | None = None
    examples: tuple[Any, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    waived: Mapping[str, str] = field(default_factory=dict[str, str])
    """Rule → why it does not hold for this tool."""
    where: str = ""
    """`server.py:12 add(a, b)`."""
    typed: bool = False
    """Whether the schema was written by us, from the author's types."""
    checks: bool = True
    """Whether the server checks arguments by it."""
    foreign: bool = False
    """Whether another server lists it, which is mounted here: then nothing else is known but where."""


class Surface(Struct, frozen=True, kw_only=True):
    """What a server lists, and what is known besides."""

    name: str = "example"
    tools: tuple[Any, ...] = ()
    """As in `tools/list`. They come from anybody, so each may be anything."""
    instructions: str | None = None
    facts: Mapping[str, Facts] = field(default_factory=dict[str, Facts])
    """Of each tool by name, where the server is one of ours."""
    categories: tuple[str, ...] | None = None
    """The categories that the server declares; None where it declares none."""


class Node(Struct, frozen=True):
    """One schema inside a tool's schemas."""

    path: str
    schema: Any
    """Anything: a boolean, or what should have been a schema."""
    name: str = ""
    """The property that it describes, where it does."""
    depth: int = 0
    """How many objects and arrays it is inside of."""
    inside: str = ""
    """The keyword of the parent under which it stands; empty for the root."""
    level: int = 0
    """How many schemas it is inside of."""


class Subject:
    """One tool under the eyes of the rules. What several rules want is worked out once."""

    def __init__(self, tool: Any, surface: Surface) -> None:
        self.tool: Json = tool if is_object(tool) else {}
        self.surface = surface
        name = self.tool.get("name")
        self.name: str = name if isinstance(name, str) else ""
        self.facts: Facts | None = surface.facts.get(self.name)
        self._nodes: list[Node] | None = None

    @property
    def description(self) -> str:
        text = self.tool.get("description")
        return text if isinstance(text, str) else ""

    @property
    def input(self) -> Json:
        """The input schema, or nothing where there is none worth the name."""
        schema = self.tool.get("inputSchema")
        return schema if is_object(schema) else {}

    @property
    def output(self) -> Json | None:
        schema = self.tool.get("outputSchema")
        return schema if is_object(schema) else None

    @property
    def properties(self) -> dict[str, Any]:
        """The parameters: name → schema."""
        found = self.input.get("properties")
        return found if is_object(found) else {}

    @property
    def required(self) -> list[str]:
        found = self.input.get("required")
        return [each for each in found if isinstance(each, str)] if is_array(found) else []

    @property
    def known(self) -> Facts | None:
        """What its author declared. Of tools of other servers nothing is known, even where they are mounted here."""
        return None if self.facts is None or self.facts.foreign else self.facts

    @property
    def category(self) -> str | None:
        if self.facts is not None and self.facts.category is not None:
            return self.facts.category
        meta = self.tool.get("_meta")
        found = meta.get("longshore/category") if is_object(meta) else None
        return found if isinstance(found, str) else None

    def nodes(self) -> list[Node]:
        """Every schema inside the input and the output schema, roots first, outer before inner."""
        if self._nodes is None:
            self._nodes = [
                node
                for key in ("inputSchema", "outputSchema")
                if key in self.tool
                for node in walk(self.tool[key], key)
            ]
        return self._nodes

    def inputs(self) -> list[Node]:
        """Those of the input schema."""
        return [node for node in self.nodes() if node.path.startswith("inputSchema")]


def walk(schema: Any, path: str) -> Iterator[Node]:
    """Every schema inside of one, itself first. Neither depth nor cycles nor size can exhaust anything."""
    waiting = [Node(path, schema)]
    for _ in range(MOST_NODES):
        if not waiting:
            return
        node = waiting.pop()
        yield node
        waiting.extend(reversed(_below(node)))


_DEEPER: Final = frozenset(
    ("properties", "patternProperties", "additionalProperties", "items", "prefixItems", "contains", "unevaluatedItems")
)


def _below(node: Node) -> list[Node]:
    if not is_object(node.schema) or node.level == MOST_LEVELS:
        return []
    found: list[Node] = []
    level = node.level + 1
    for keyword, value in node.schema.items():
        depth = node.depth + (keyword in _DEEPER)
        if is_object(value) and subschemas(keyword, {"": None}) == [None]:  # a mapping of names to schemas
            named = keyword in ("properties", "patternProperties")
            found += [
                Node(
                    f"{node.path}.{keyword}.{cut(str(name))}", inner, str(name) if named else "", depth, keyword, level
                )
                for name, inner in value.items()
            ]
        elif is_array(value):
            inner = subschemas(keyword, value)
            found += [
                Node(f"{node.path}.{keyword}[{i}]", each, "", depth, keyword, level) for i, each in enumerate(inner)
            ]
        elif inner := subschemas(keyword, value):
            found.append(Node(f"{node.path}.{keyword}", inner[0], "", depth, keyword, level))
    return found


def example(tool: Json, *, name: str = "example", facts: Facts | None = None, **more: Any) -> Surface:
    """A server with one tool, for a rule's examples."""
    filled: Json = {
        "name": "get_weather",
        "description": "Get the weather of a city",
        "inputSchema": {"type": "object", "properties": {}},
    }
    whole = {**filled, **tool}
    return Surface(name=name, tools=(whole,), facts={} if facts is None else {str(whole["name"]): facts}, **more)
