"""The input of lint rules: a server's tools in their wire form, and their authors' declarations."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, Final

from msgspec import Struct, field

from longshore.schema.kinds import as_array, as_object, is_array, is_object
from longshore.schema.phrase import cut
from longshore.schema.walk import BY_NAME, Subschema, find_parts, walk

Json = dict[str, Any]

PATH_CHARS: Final = 70
"""Characters of a path in a message. A longer one loses its beginning."""
MOST_PARAMETERS: Final = 1_000
"""Parameters of one tool that are checked."""
SCHEMAS: Final = ("inputSchema", "outputSchema")
TYPES: Final = ("string", "number", "integer", "boolean", "object", "array", "null")
"""The types of JSON Schema. Not a set: the value that is looked for may be a list."""
_DEEPER: Final = frozenset(
    ("properties", "patternProperties", "additionalProperties", "items", "prefixItems", "contains", "unevaluatedItems")
)
"""Keywords whose subschemas describe a part of the value."""


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


class ToolParameter(Struct, frozen=True):
    """A parameter. `parts` are its schema, the schemas that it refers to, and its alternatives."""

    name: str
    path: str
    parts: list[Json]
    required: bool

    @property
    def description(self) -> str:
        return next((text for part in self.parts if isinstance(text := part.get("description"), str) and text), "")

    @property
    def types(self) -> set[str]:
        """The names of its types without null."""
        return {each for part in self.parts for each in types_of(part) if isinstance(each, str)} - {"null"}

    @property
    def is_number(self) -> bool:
        return bool(self.types) and self.types <= {"number", "integer"}

    def find(self, keyword: str) -> Any:
        """The value of a keyword in the first part that has it."""
        return next((part[keyword] for part in self.parts if keyword in part), None)

    def has(self, *keywords: str) -> bool:
        return any(each in part for part in self.parts for each in keywords)


class LintedTool:
    """One tool with members that are safe on any JSON value. The subschemas are collected once for all rules."""

    def __init__(self, tool: Any, server: ToolList) -> None:
        self.record, self.server = as_object(tool), server
        self.name, self.description = (as_text(self.record.get(key)) for key in ("name", "description"))
        self.input = as_object(self.record.get("inputSchema"))
        self.properties = as_object(self.input.get("properties"))
        self.required = [each for each in as_array(self.input.get("required")) if isinstance(each, str)]
        self.declared = server.declared.get(self.name)
        foreign = self.declared is None or self.declared.foreign
        self.ours: Declaration | None = None if foreign else self.declared
        """The declaration; None for tools of other servers, also mounted ones."""
        listed = as_text(as_object(self.record.get("_meta")).get("longshore/category"))
        self.category: str = (self.ours and self.ours.category) or listed
        self._objects: dict[str, list[SchemaNode]] = {}

    def schemas(self) -> Iterator[tuple[str, Json]]:
        """The input and the output schema with their keys, if they are objects."""
        return ((key, self.record[key]) for key in SCHEMAS if is_object(self.record.get(key)))

    @cached_property
    def _nodes(self) -> list[SchemaNode]:
        return [node for key in SCHEMAS if key in self.record for node in walk_schema(self.record[key], key)]

    def nodes(self, key: str = "") -> list[SchemaNode]:
        """Every subschema of both schemas, or of the one under `key`; roots first, outer before inner."""
        return [node for node in self._nodes if node.path.startswith(key)]

    def objects(self, key: str = "") -> list[SchemaNode]:
        """The subschemas that are objects."""
        if key not in self._objects:
            self._objects[key] = [node for node in self.nodes(key) if is_object(node.schema)]
        return self._objects[key]

    @cached_property
    def parameters(self) -> list[ToolParameter]:
        """The parameters whose schema is an object."""
        required = frozenset(self.required)
        return [
            ToolParameter(name, f"inputSchema.properties.{cut(name)}", find_parts(schema, self.input), name in required)
            for name, schema in islice(self.properties.items(), MOST_PARAMETERS)
            if is_object(schema)
        ]


def as_text(value: Any) -> str:
    """The value if it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def types_of(schema: Any) -> list[Any]:
    """The value of `type` as a list. Its items may be any JSON value."""
    named: Any = as_object(schema).get("type", [])
    return named if is_array(named) else [named]


def walk_schema(schema: Any, root: str) -> Iterator[SchemaNode]:
    """Every subschema, the root first, with its path below `root`."""
    return (_locate(node, root) for node in walk(schema))


def _locate(node: Subschema, root: str) -> SchemaNode:
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
    """A path for a message: the end of a long one."""
    return path if len(path) <= PATH_CHARS else f"…{path[1 - PATH_CHARS :]}"


def change_schemas(change: Callable[[Any], Any], *keys: str) -> Callable[[Json], Json]:
    """A `mend` function that changes the schemas under `keys`, or both."""

    def mend(tool: Json) -> Json:
        return {**tool, **{key: change(tool[key]) for key in keys or SCHEMAS if is_object(tool.get(key))}}

    return mend
