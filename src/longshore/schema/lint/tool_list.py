"""The input of lint rules: a server's tools as they go over the wire, and their authors' declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from longshore.schema.kinds import is_array, is_object
from longshore.schema.phrase import cut
from longshore.schema.walk import BY_NAME, Node, walk

Json = dict[str, Any]

PATH_CHARS: Final = 70
"""Characters of a path in a message. A longer one loses its beginning."""
SCHEMAS: Final = ("inputSchema", "outputSchema")


class Declaration(Struct, frozen=True, kw_only=True):
    """The author's options that do not go over the wire. They are unknown for other servers' tools."""

    category: str | None = None
    examples: tuple[Any, ...] = ()
    errors: Mapping[str, str] = field(default_factory=dict[str, str])
    waived: Mapping[str, str] = field(default_factory=dict[str, str])
    """Rule → why it does not hold for this tool."""
    where: str = ""
    """`server.py:12 add(a, b)`."""
    typed: bool = False
    """Whether the schema was inferred from the author's types."""
    checks: bool = True
    """Whether the server validates arguments against the schema."""
    foreign: bool = False
    """Whether a mounted server lists it. Then only `where` is known."""


class ToolList(Struct, frozen=True, kw_only=True):
    """The tools that a server lists. `name` and `instructions` are the server's."""

    name: str = "example"
    tools: tuple[Any, ...] = ()
    """As in `tools/list`. They come from any server, so each may be any JSON value."""
    instructions: str | None = None
    declared: Mapping[str, Declaration] = field(default_factory=dict[str, Declaration])
    """Tool → declaration, if the server is one of ours."""
    categories: tuple[str, ...] | None = None
    """The categories that the server declares; None: it declares none."""


class SchemaNode(Struct, frozen=True):
    """One subschema of a tool's schemas."""

    path: str
    schema: Any
    """Any JSON value: a boolean, or something that is no schema."""
    name: str = ""
    """The property that it describes, if it does."""
    depth: int = 0
    """The number of objects and arrays around it."""
    inside: str = ""
    """The keyword of the parent that holds it; empty for the root."""
    level: int = 0
    """The number of schemas around it."""


class LintedTool:
    """One tool with accessors that are safe on any JSON value. The subschemas are collected once for all rules."""

    def __init__(self, tool: Any, server: ToolList) -> None:
        self.record: Json = tool if is_object(tool) else {}
        self.server = server
        name = self.record.get("name")
        self.name: str = name if isinstance(name, str) else ""
        self.declared: Declaration | None = server.declared.get(self.name)
        self._nodes: list[SchemaNode] | None = None

    @property
    def description(self) -> str:
        text = self.record.get("description")
        return text if isinstance(text, str) else ""

    @property
    def input(self) -> Json:
        """The input schema, or {} if there is none or it is no object."""
        schema = self.record.get("inputSchema")
        return schema if is_object(schema) else {}

    @property
    def output(self) -> Json | None:
        schema = self.record.get("outputSchema")
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
    def ours(self) -> Declaration | None:
        """The declaration; None for tools of other servers, also mounted ones."""
        return None if self.declared is None or self.declared.foreign else self.declared

    @property
    def category(self) -> str | None:
        if self.declared is not None and self.declared.category is not None:
            return self.declared.category
        meta = self.record.get("_meta")
        found = meta.get("longshore/category") if is_object(meta) else None
        return found if isinstance(found, str) else None

    def schemas(self) -> Iterator[tuple[str, Json]]:
        """The input and the output schema with their keys, if they are objects."""
        for key in SCHEMAS:
            schema = self.record.get(key)
            if is_object(schema):
                yield key, schema

    def nodes(self, key: str = "") -> list[SchemaNode]:
        """Every subschema of both schemas, or of the one under `key`; roots first, outer before inner."""
        if self._nodes is None:
            roots = ((self.record[each], each) for each in SCHEMAS if each in self.record)
            self._nodes = [node for schema, path in roots for node in walk_schema(schema, path)]
        return [node for node in self._nodes if node.path.startswith(key)]

    def objects(self, key: str) -> list[SchemaNode]:
        """The subschemas under `key` that are objects."""
        return [node for node in self.nodes(key) if is_object(node.schema)]


_DEEPER: Final = frozenset(
    ("properties", "patternProperties", "additionalProperties", "items", "prefixItems", "contains", "unevaluatedItems")
)
"""Keywords whose subschemas describe a part of the value."""


def walk_schema(schema: Any, root: str) -> Iterator[SchemaNode]:
    """Every subschema, the root first, with its path below `root`."""
    return (_locate(node, root) for node in walk(schema))


def _locate(node: Node, root: str) -> SchemaNode:
    path, depth, name, steps = root, 0, "", list(node.path)
    while steps:
        keyword, name = str(steps.pop(0)), ""
        path, depth = f"{path}.{keyword}", depth + (keyword in _DEEPER)
        if keyword in BY_NAME:
            name = str(steps.pop(0))
            path = f"{path}.{cut(name)}"
        elif steps and isinstance(steps[0], int):
            path = f"{path}[{steps.pop(0)}]"
    named = name if node.keyword in ("properties", "patternProperties") else ""
    return SchemaNode(path, node.schema, named, depth, node.keyword, node.level)


def show(path: str) -> str:
    """A path as it stands in a message: the end of a long one."""
    return path if len(path) <= PATH_CHARS else f"…{path[1 - PATH_CHARS :]}"


def change_schemas(change: Callable[[Any], Any], *keys: str) -> Callable[[Json], Json]:
    """A `mend` function that changes the schemas under `keys`, or both."""

    def mend(tool: Json) -> Json:
        return {**tool, **{key: change(tool[key]) for key in keys or SCHEMAS if is_object(tool.get(key))}}

    return mend


def example(tool: Json, *, name: str = "example", declared: Declaration | None = None, **more: Any) -> ToolList:
    """A server with one tool, for the examples of a rule."""
    filled: Json = {
        "name": "get_weather",
        "description": "Get the weather of a city",
        "inputSchema": {"type": "object", "properties": {}},
    }
    whole = {**filled, **tool}
    known = {} if declared is None else {str(whole["name"]): declared}
    return ToolList(name=name, tools=(whole,), declared=known, **more)
