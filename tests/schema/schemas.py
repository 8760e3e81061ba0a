"""Random JSON Schemas, random values that they are about, and anything at all.

Made with a `Random` in place of strategies, which for things of this size take a hundred times as long.
"""

from functools import partial
from random import Random
from typing import Any

Schema = dict[str, Any]

NAMES = ["a", "b", "c"]
SCALARS: list[Any] = [None, True, False, -2, 0, 1, 2, 12, 1.5, "", "x", "yes", "12"]
PLAIN: list[Schema] = [
    {"type": "string"},
    {"type": "string", "minLength": 1, "description": "a word"},
    {"type": "string", "pattern": "^[a-z]+$", "title": "Word"},
    {"type": "integer", "minimum": 0, "default": 3},
    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 12},
    {"type": "boolean"},
    {"type": "null"},
    {"type": ["string", "null"], "enum": ["x", None]},
    {"type": ["null", "integer"], "minimum": 1},
    {"type": ["integer", "string", "null"]},
    {"enum": ["x", "yes", 1, True, None]},
    {"type": "integer", "enum": [1, 2]},
    {"const": "x"},
    {"const": 1},
    {"const": True},
    {"const": None},
    {"$ref": "#/$defs/leaf"},
    {"$ref": "#/$defs/leaf", "description": "a leaf"},
    {"$ref": "#/$defs/leaf", "minLength": 2},
    {"$ref": "#/$defs/tree"},
    {},
]
DEFINITIONS: Schema = {
    "leaf": {"type": ["string", "integer"], "maximum": 10},
    "tree": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/tree"}, "b": {"$ref": "#/$defs/leaf"}},
        "additionalProperties": False,
    },
}


def some(random: Random, **parts: Any) -> Schema:
    """A few of the keywords, each of which a function or a value gives."""
    chosen = {keyword: part for keyword, part in parts.items() if random.random() < 0.4}
    return {keyword: part() if callable(part) else part for keyword, part in chosen.items()}


class Schemas:
    """Makes schemas."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def any(self, depth: int = 3) -> Any:
        kinds = [self.plain, self.plain] if depth == 0 else [self.plain, self.object, self.array, self.relation]
        return self.random.choice(kinds)(depth - 1)

    def plain(self, _: int) -> Schema:
        return dict(self.random.choice(PLAIN))

    def several(self, depth: int) -> list[Schema]:
        return [self.any(depth) for _ in range(self.random.randint(1, 3))]

    def object(self, depth: int) -> Schema:
        random = self.random
        return {"type": "object"} | some(
            random,
            properties=lambda: {name: self.or_boolean(depth) for name in random.sample(NAMES, random.randint(0, 3))},
            required=lambda: random.sample(NAMES, random.randint(0, 2)),
            additionalProperties=lambda: random.choice([True, False, self.any(depth)]),
            patternProperties=lambda: {"^[ab]$": self.any(depth)},
            minProperties=1,
            description="an object",
        )

    def or_boolean(self, depth: int) -> Any:
        return self.random.choice([True, False]) if self.random.random() < 0.1 else self.any(depth)

    def array(self, depth: int) -> Schema:
        return {"type": "array"} | some(
            self.random,
            items=lambda: self.or_boolean(depth),
            prefixItems=lambda: self.several(depth),
            contains=lambda: self.any(depth),
            maxItems=2,
            uniqueItems=True,
        )

    def relation(self, depth: int) -> Schema:
        match self.random.choice(["anyOf", "oneOf", "allOf", "null", "not", "if"]):
            case "null":
                return {"anyOf": [self.any(depth), {"type": "null"}], "default": None}
            case "not":
                return {"not": self.any(depth)}
            case "if":
                return {"if": self.any(depth), "then": self.any(depth)}
            case keyword:
                beside = some(self.random, description="related", minLength=1, type="string")
                return {keyword: self.several(depth), **beside}

    def root(self) -> Schema:
        """An input schema."""
        return {**self.object(3), "$defs": DEFINITIONS}

    def related(self) -> Schema:
        """One with a relation at its root."""
        branches = [self.object(0) for _ in range(self.random.randint(1, 3))]
        return {**self.object(0), self.random.choice(["anyOf", "oneOf", "allOf"]): branches, "$defs": DEFINITIONS}


class Closed(Schemas):
    """Makes schemas that strict mode can say, word for word."""

    def plain(self, depth: int) -> Schema:
        found = super().plain(depth)
        return found if found and "minLength" not in found else self.plain(depth)

    def object(self, depth: int) -> Schema:
        properties = {name: self.any(depth) for name in self.random.sample(NAMES, self.random.randint(1, 3))}
        needed = [name for name in properties if self.random.random() < 0.5]
        return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False}

    def array(self, depth: int) -> Schema:
        return {"type": "array", "items": self.any(depth)}

    def relation(self, depth: int) -> Schema:
        return {"anyOf": [*self.several(depth), {"type": "null"}][self.random.randint(0, 1) :]}


def fitting(schema: Any, root: Schema, random: Random, depth: int = 6) -> Any:
    """A value that is probably valid."""
    inner = partial(fitting, root=root, random=random, depth=depth - 1)
    match schema:
        case {"$ref": str(ref)} if depth > 0:
            return inner(root["$defs"][ref.rpartition("/")[2]])
        case {"const": found}:
            return found
        case {"enum": found} | {"anyOf": found} if depth > 0:
            return random.choice(found) if "enum" in schema else inner(random.choice(found))
        case {"properties": named} if depth > 0:
            needed = schema.get("required", [])
            return {name: inner(each) for name, each in named.items() if name in needed or random.random() < 0.5}
        case {"items": each} if depth > 0:
            return [inner(each) for _ in range(random.randint(0, 2))]
        case _:
            return random.choice(SCALARS)


def value(random: Random, depth: int = 2) -> Any:
    """A value of any kind."""
    if depth == 0 or random.random() < 0.6:
        return random.choice(SCALARS)
    if random.random() < 0.5:
        return [value(random, depth - 1) for _ in range(random.randint(0, 3))]
    return arguments(random, depth - 1)


def arguments(random: Random, depth: int = 2) -> dict[str, Any]:
    """Random arguments."""
    return {name: value(random, depth) for name in random.sample(NAMES, random.randint(0, 3))}


_KEYWORDS = (
    *("type", "properties", "required", "anyOf", "oneOf", "allOf", "not", "items", "prefixItems", "enum", "const"),
    *("$ref", "$defs", "definitions", "additionalProperties", "default", "description", "id", "$id", "format"),
    *("dependencies", "exclusiveMinimum", "minimum", "$schema", "title", "patternProperties", "unevaluatedItems"),
    *("a", "b", "if"),
)
_WORDS = ["object", "array", "string", "null", "#", "#/$defs/a", "#/definitions/a", "a", "draft-07", ["object"]]


def anything(random: Random, depth: int = 5) -> Any:
    """A random value that is no schema, or looks like one."""
    if depth == 0 or random.random() < 0.3:
        return random.choice([*SCALARS, *_WORDS])
    if random.random() < 0.25:
        return [anything(random, depth - 1) for _ in range(random.randint(0, 3))]
    return {key: anything(random, depth - 1) for key in random.sample(_KEYWORDS, random.randint(0, 6))}


def doubling(levels: int) -> dict[str, Any]:
    """2 to the power of `levels`, in a line for each."""
    defs: dict[str, Any] = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(levels)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{levels}": {"type": "object"}}}


DOUBLING: Schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": doubling(16)["$defs"]}
"""A few kilobytes by which a check takes 65,536 steps. With as many again it takes hours, and no signal ends it."""
