"""The walker of JSON Schemas and the resolver of `$ref`: one budget for everything that goes through a schema.

A schema may be untrusted, so it may be of any depth and size, contain itself, and have any value in the place of a
subschema. Nothing here raises for that, except `SchemaTooLarge` where it is documented.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, final

from longshore.schema.kinds import as_array, is_array, is_object

BY_NAME: Final = ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
"""Keywords that hold subschemas by name; `IN_LISTS` hold lists of them, `ALONE` hold one. In any dialect."""
IN_LISTS: Final = ("anyOf", "allOf", "oneOf", "prefixItems", "items")
ALONE: Final = (
    *("items", "additionalItems", "unevaluatedItems", "contains", "contentSchema"),
    *("additionalProperties", "unevaluatedProperties", "propertyNames"),
    *("not", "if", "then", "else"),
)

Schema = dict[str, Any]
Change = Callable[[Schema], Schema]
Edit = Callable[[Any, str, str | int | None], Any]
"""Returns a new subschema for one, its keyword, and its name or index under that keyword."""

MAX_DEPTH: Final = 64
"""Levels of subschemas. Few schemas have ten, and no client accepts as many as this."""

MAX_NODES: Final = 20_000
"""Subschemas of one schema. The limit also ends the walk of a schema that holds itself."""

MAX_PARTS: Final = 50
"""Alternatives of one value that are looked at. No model can use more than a few dozen."""

NULL: Final = {"type": "null"}
ANNOTATIONS: Final = frozenset(
    ("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment")
)
"""Keywords that describe a value and check nothing."""
DEFINITIONS: Final = ("$defs", "definitions")
CLOSED: Final = frozenset(("const", "not", "anyOf", "oneOf", "allOf", "if", "$ref", "$dynamicRef", "$recursiveRef"))
"""Keywords that also decide about null, so that adding null to `type` is not enough. (`enum` gets null as a value.)"""


class SchemaTooLarge(Exception):
    """A schema exceeds `MAX_DEPTH` or the number of nodes that the caller allows."""


class Subschema(NamedTuple):
    """A subschema and its place."""

    schema: Any
    path: tuple[str | int, ...] = ()
    """The keys and indices that lead to it from the root: `("properties", "a", "items")`."""
    keyword: str = ""
    """The keyword of its parent that holds it; empty for the root."""
    level: int = 0
    """The number of schemas around it."""


def subschemas(schema: Schema) -> Iterator[tuple[str, str | int | None, Any]]:
    """The direct subschemas: keyword, name or index under that keyword (None if there is neither), subschema."""
    for keyword, value in schema.items():
        if keyword in BY_NAME and is_object(value):
            yield from ((keyword, name, each) for name, each in value.items())
        elif keyword in IN_LISTS and isinstance(value, (list, tuple)):
            yield from ((keyword, index, each) for index, each in enumerate(value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        elif keyword in ALONE:
            yield keyword, None, value


def walk(schema: Any) -> Iterator[Subschema]:
    """Every subschema, the root first, outer before inner, in the order of the text; at most `MAX_NODES`."""
    waiting = [Subschema(schema)]
    for _ in range(MAX_NODES):
        if not waiting:
            return
        node = waiting.pop()
        yield node
        if is_object(node.schema) and node.level < MAX_DEPTH:
            inner = [
                Subschema(
                    each, (*node.path, keyword) if key is None else (*node.path, keyword, key), keyword, node.level + 1
                )
                for keyword, key, each in subschemas(node.schema)
            ]
            waiting.extend(reversed(inner))


def walk_objects(schema: Any) -> Iterator[Schema]:
    """Every subschema that is an object."""
    return (node.schema for node in walk(schema) if is_object(node.schema))


def edit_subschemas(schema: Schema, edit: Edit) -> Schema:
    """A copy of the schema with each direct subschema edited."""
    edited: Schema = {}
    for keyword, value in schema.items():
        if keyword in BY_NAME and is_object(value):
            value = {name: edit(each, keyword, name) for name, each in value.items()}
        elif keyword in IN_LISTS and is_array(value):
            value = [edit(each, keyword, index) for index, each in enumerate(value)]
        elif keyword in ALONE:
            value = edit(value, keyword, None)
        edited[keyword] = value
    return edited


def rewrite(schema: Any, change: Change) -> Any:
    """A copy with every subschema changed, outer before inner; the schema itself if it is too large."""
    try:
        return Rewriter(change).rewrite(schema)
    except SchemaTooLarge:
        return schema


@final
class Rewriter:
    """Changes every subschema within one budget of nodes. Raises `SchemaTooLarge` beyond it."""

    def __init__(self, change: Change, max_nodes: int = MAX_NODES) -> None:
        self._change = change
        self._left = max_nodes

    def rewrite(self, schema: Any, levels: int = MAX_DEPTH) -> Any:
        if not is_object(schema):
            return schema
        if levels == 0:
            raise SchemaTooLarge
        self.spend()
        return edit_subschemas(self._change(schema), lambda each, _keyword, _key: self.rewrite(each, levels - 1))

    def spend(self) -> None:
        """Take one node from the budget."""
        self._left -= 1
        if self._left < 0:
            raise SchemaTooLarge


def resolve(root: Any, ref: Any) -> Any:
    """The target of a `$ref` inside of `root`; None for an address, an anchor, or a pointer to nothing."""
    if ref == "#":
        return root
    if not isinstance(ref, str) or not ref.startswith("#/"):
        return None
    if "%" in ref:
        from urllib.parse import unquote  # slow to import, and few references need it

        ref = unquote(ref)
    found: Any = root
    for part in ref[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if is_object(found) and name in found:
            found = found[name]
        elif is_array(found) and name.isdecimal() and len(name) < 9 and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found


def find_parts(schema: Schema, root: Any, most: int = MAX_PARTS) -> list[Schema]:
    """A schema, the schemas that it refers to, and its alternatives; each once, and at most so many."""
    parts, waiting, seen = list[Schema](), [schema], set[int]()
    while waiting and len(parts) < most:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        parts.append(part)
        choices = [each for key in ("anyOf", "oneOf", "allOf") for each in as_array(part.get(key))[:most]]
        waiting += reversed([each for each in (resolve(root, part.get("$ref")), *choices) if is_object(each)])
    return parts


def listed_values(schema: Schema) -> list[Any]:
    """The values that a schema lists by `const` or `enum`."""
    return [schema["const"]] if "const" in schema else as_array(schema.get("enum"))


# -- small edits


def without(schema: Schema, *keywords: str) -> Schema:
    """The schema without some keywords."""
    return {keyword: value for keyword, value in schema.items() if keyword not in keywords}


def add_sentence(described: dict[str, Any], sentence: str) -> dict[str, Any]:
    """A schema or a tool with a sentence added to its description."""
    before = described.get("description")
    text = f"{before.rstrip()} {sentence}" if isinstance(before, str) and before.strip() else sentence
    return {**described, "description": text} if sentence else described


def has_type(schema: Schema, name: str) -> bool:
    """Whether the schema's `type` names this type."""
    found = schema.get("type")
    return found == name or (is_array(found) and name in found)


def with_null(schema: Schema) -> Schema | None:
    """The schema or null, as a list of types (`["string", "null"]`); None where that can't be written.

    Two of three clients pass such a list to their model as it is; all of them handle a union with null worse.
    """
    kind = schema.get("type")
    if not isinstance(kind, str) or not CLOSED.isdisjoint(schema):
        return None
    values = schema.get("enum")
    choice = {"enum": [*values, None]} if is_array(values) and None not in values else {}
    return {**schema, "type": kind if kind == "null" else [kind, "null"], **choice}


def without_null(schema: Schema) -> Schema:
    """A schema that may be null as one that may not; any other as it is."""
    match schema:
        case {"type": [str(kind), "null"]}:
            values = schema.get("enum")
            choice = {"enum": [each for each in values if each is not None]} if is_array(values) else {}
            return {**schema, "type": kind, **choice}
        case {"anyOf": [*options]} if NULL in options:
            rest, beside = [each for each in options if each != NULL], without(schema, "anyOf")
            return {**rest[0], **beside} if len(rest) == 1 else {"anyOf": rest, **beside}
        case _:
            return schema


def list_null(schema: Schema) -> Schema:
    """A union with null as a list of types, where it can be written so."""
    keyword = "anyOf" if "anyOf" in schema else "oneOf"
    options = as_array(schema.get(keyword))
    others = [each for each in options if each != NULL]
    written = with_null(others[0]) if len(others) == 1 and len(options) == 2 and is_object(others[0]) else None
    beside = without(schema, keyword)
    if written is None or not all(key in ANNOTATIONS or str(key).startswith("x-") for key in beside):
        return schema
    return {**written, **beside}
