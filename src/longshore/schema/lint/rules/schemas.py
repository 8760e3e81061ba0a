"""Rules about a tool's schemas: their shape, references, types, defaults, patterns, and whether they compile."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from longshore.schema.cost import FIX, UNBOUNDED, compile_bounded, is_unbounded
from longshore.schema.kinds import as_object, is_array, is_object
from longshore.schema.lint.clients import PROPERTY_NAME
from longshore.schema.lint.rule import Check, Level, Mend, Profile, RuleFault
from longshore.schema.lint.tool_list import TYPES, Json, LintedTool, SchemaNode, change_schemas, show, types_of
from longshore.schema.patterns import find_flaw, has_nested_loop, translate
from longshore.schema.phrase import cut, kind, quote
from longshore.schema.rewrite import SWITCHES, with_items, with_object_root, without_booleans
from longshore.schema.walk import has_type, resolve, rewrite, subschemas, without

_OF_APIS: Final = ("input_schema", "parameters")
"""The names of inputSchema in the APIs of models."""
_SAYS_INSIDE: Final = frozenset(
    (
        *("properties", "patternProperties", "additionalProperties", "propertyNames"),
        *("$ref", "anyOf", "oneOf", "allOf", "enum", "const"),
    )
)


def is_opaque(schema: Json) -> bool:
    """Whether it accepts objects and doesn't describe their properties."""
    return has_type(schema, "object") and _SAYS_INSIDE.isdisjoint(schema)


def check_inputs(is_broken: Callable[[SchemaNode], bool], message: str) -> Check:
    """A check that reports each part of the input schema that `is_broken`. `{}` in the message is its path."""

    def check(tool: LintedTool) -> Iterator[RuleFault]:
        for node in tool.objects("inputSchema"):
            if is_broken(node):
                yield RuleFault(message.format(show(node.path)), node.path)

    return check


# -- roots


def _check_input_root(tool: LintedTool) -> Iterator[RuleFault]:
    if "inputSchema" in tool.record:
        yield from _check_root(tool, "inputSchema")
    elif other := next((key for key in _OF_APIS if key in tool.record), ""):
        yield RuleFault(f"the tool has {other} instead of inputSchema", fix=f"Call {other} inputSchema.")
    else:
        fix = 'Give it "inputSchema": {"type": "object", "properties": {}}.'
        yield RuleFault("the tool has no inputSchema", fix=fix)


def _check_output_root(tool: LintedTool) -> Iterator[RuleFault]:
    """A server of ours wraps other results in an object, so this rule does not apply to it."""
    if "outputSchema" in tool.record and tool.declared is None:
        yield from _check_root(tool, "outputSchema")


def _check_root(tool: LintedTool, key: str) -> Iterator[RuleFault]:
    schema = tool.record[key]
    if not is_object(schema):
        yield RuleFault(f"{key} is {kind(schema)}, not an object", key)
    elif "type" not in schema:
        yield RuleFault(f"the root of {key} has no type", key)
    elif schema["type"] != "object":
        yield RuleFault(f"the root of {key} has the type {quote(schema['type'])}", key)


def _mend_input_root(tool: Json) -> Json:
    """Add `type: object`: arguments are always objects."""
    schema = tool.get("inputSchema", {} if tool.keys().isdisjoint(_OF_APIS) else None)
    sure = is_object(schema) and (has_type(schema, "object") or "type" not in schema)
    return {**tool, "inputSchema": with_object_root(schema)} if sure else tool


def _check_combinators(tool: LintedTool) -> Iterator[RuleFault]:
    for keyword in ("anyOf", "oneOf", "allOf", "not", "enum", "if", "const"):
        if keyword in tool.input:
            message, path = f"inputSchema has {keyword} at its root", f"inputSchema.{keyword}"
            if keyword in ("anyOf", "oneOf", "allOf"):
                yield RuleFault(message, path)
            else:
                level: Level = "error" if keyword in ("not", "enum") else "warning"
                yield RuleFault(message, path, level=level, profiles=("openai",))


# -- subschemas


def _check_subschemas(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.nodes():
        value = node.schema
        if node.level == 0 or is_object(value) or (node.inside == "dependencies" and is_array(value)):
            continue
        if not isinstance(value, bool):
            message = f"{show(node.path)} is {kind(value)}, not a schema"
            yield RuleFault(message, node.path, 'Write {} where anything goes, or {"type": …}.')
        elif node.inside not in SWITCHES:
            message = f"{show(node.path)} is the boolean {quote(value)}"
            if node.level == 1 and node.inside == "properties":
                yield RuleFault(message, node.path, profiles=("claude", "openai", "gemini"))
            else:
                yield RuleFault(message, node.path, level="warning", profiles=("openai", "gemini"))


def _check_keys(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.objects("inputSchema"):
        for key in as_object(node.schema.get("properties")):
            if not PROPERTY_NAME.fullmatch(key):
                message = f"{show(node.path)} has the property {quote(key)}"
                yield RuleFault(message, f"{node.path}.properties", level="warning" if node.level else "error")


def _check_objects(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.objects("inputSchema"):
        if not has_type(node.schema, "object") or "properties" in node.schema:
            continue
        if node.level == 0:
            misplaced = _find_misplaced(node.schema)
            fix = f'Put {quote(misplaced[0])} and its like under "properties".' if misplaced else ""
            yield RuleFault(f"{node.path} is an object without properties", node.path, fix)
        elif is_opaque(node.schema):
            message = f"{show(node.path)} is an object that doesn't say what is in it"
            fix = "Name the properties that it has, or describe those that it may have in additionalProperties."
            yield RuleFault(message, node.path, fix, "warning")


def _find_misplaced(schema: Json) -> list[str]:
    """Parameters that stand beside "type" instead of inside of "properties"."""
    named = ((key, value) for key, value in schema.items() if key not in ("default", "const"))
    return [key for key, value in named if "type" in as_object(value) and not list(subschemas({key: value}))]


def _mend_objects(tool: Json) -> Json:
    """Add empty properties at the root only: below it, Google's API has refused them."""
    schema = tool.get("inputSchema")
    if not is_object(schema) or "properties" in schema or _find_misplaced(schema):
        return tool
    return {**tool, "inputSchema": {**schema, "properties": {}}}


def _check_types(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.nodes():
        for each in types_of(node.schema):
            if each not in TYPES:
                yield RuleFault(f"{show(node.path)} has the unknown type {quote(each)}", f"{node.path}.type")


def _check_references(tool: LintedTool) -> Iterator[RuleFault]:
    for key, root in tool.schemas():
        nodes = tool.objects(key)
        if any("$id" in node.schema or "id" in node.schema for node in nodes if node.level):
            continue  # references are relative to that $id; the compiler resolves them
        words = ("$anchor", "$dynamicAnchor")
        anchors = {f"#{node.schema[word]}" for node in nodes for word in words if word in node.schema}
        has_id = not root.keys().isdisjoint(("$id", "id"))  # then the compiler decides about other files
        for node in nodes:
            ref = node.schema.get("$ref")
            if not isinstance(ref, str) or ref in anchors:
                continue
            if resolve(root, ref) is None if ref.startswith("#") else not has_id:
                why = "leads nowhere" if ref.startswith("#") else "points outside of the schema"
                yield RuleFault(f"{show(node.path)}: the $ref {quote(ref)} {why}", f"{node.path}.$ref")


# -- contradictions

_BRANCHES: Final = frozenset(("$ref", "anyOf", "oneOf", "allOf", "if", "then", "else", "dependentSchemas"))
CONDITION: Final = re.compile(r"(?<!properties)\.(?:not|if|then|else|dependentSchemas)(?=\.|$)")
"""Paths inside of which a schema says nothing about a value by itself."""
_BRANCH: Final = re.compile(rf"\.(?:anyOf|oneOf|allOf)\[|{CONDITION.pattern}")
"""Paths inside of which a schema is only a part of the description of an object."""
_ADDED: Final = "\0"
"""The beginning of the property names that are added here. No author's name begins so."""


def _check_contradictions(tool: LintedTool) -> Iterator[RuleFault]:
    for node in tool.objects("inputSchema"):
        yield from _find_undescribed(node)
    for key, root in tool.schemas():
        yield from _find_wrong_defaults(tool.objects(key), root)


def _find_undescribed(node: SchemaNode) -> Iterator[RuleFault]:
    """Names in `required` that `properties` in the same schema lacks, unless another keyword may describe them."""
    required, properties = node.schema.get("required"), node.schema.get("properties", {})
    if not is_array(required) or not is_object(properties) or not _BRANCHES.isdisjoint(node.schema):
        return
    branch = _BRANCH.search(node.path)
    closed = node.schema.get("additionalProperties") is False and not branch
    for name in required:
        if isinstance(name, str) and name not in properties:
            message = f"{show(node.path)} requires {quote(name)}, which is not one of its properties"
            other = "check it in the tool" if branch else 'take it out of "required"'
            fix = f'Add {quote(name)} to the "properties" beside "required", or {other}.'
            whom: tuple[Profile, ...] = () if closed else ("gemini",)
            yield RuleFault(message, f"{node.path}.required", fix, "warning" if branch else None, whom)


def _find_wrong_defaults(nodes: list[SchemaNode], root: Json) -> Iterator[RuleFault]:
    found = [node for node in nodes if "default" in node.schema and node.level]
    context: Json = {key: root[key] for key in ("$schema", "$id", "$defs", "definitions") if key in root}
    added = {f"{_ADDED}{place}": node.schema for place, node in enumerate(found)}
    named = as_object(root.get("properties"))  # references may lead there
    whole: Json = {**context, "type": "object", "properties": {**named, **added}}
    validator = compile_bounded(whole) if found else None
    if validator is None:  # reported by other rules, or it refers to a part of the root that is not in `context`
        return
    for place, node in enumerate(found):
        value = node.schema["default"]
        if not validator.is_valid({f"{_ADDED}{place}": value}):
            message = f"{show(node.path)} has the default {quote(value)}, which breaks its own schema"
            fix = "Leave the default out." if value is None else "Correct the default, or the schema."
            yield RuleFault(message, f"{node.path}.default", fix, "warning" if value is None else None)


# -- the schema as a whole


def _check_whole(tool: LintedTool) -> Iterator[RuleFault]:
    from longshore.schema.validate import SchemaProblem, compile, measure, read_dialect

    for key, schema in tool.schemas():
        yield from _find_refused(tool.objects(key), key)
        ours = tool.ours is not None and (key == "outputSchema" or tool.ours.checks)  # we validate against it
        compiles = False
        try:
            measure(schema)
            read_dialect(schema, {})
            compiles = True
            compile(schema if ours else rewrite(schema, _without_patterns))
        except SchemaProblem as problem:
            if not compiles or not _is_reported(tool, key):
                fix = f"{problem.fix[:1].upper()}{problem.fix[1:]}."
                yield RuleFault(f"{key}: {problem.what}", key, fix, "error" if ours or compiles else "warning")
            continue
        # msgspec decodes the arguments of typed tools, and follows no reference.
        if ours and tool.ours and not tool.ours.typed and is_unbounded(schema, if_unknown=False):
            yield RuleFault(f"{key}: {UNBOUNDED}", key, f"{FIX[:1].upper()}{FIX[1:]}.")


def _find_refused(nodes: list[SchemaNode], key: str) -> Iterator[RuleFault]:
    """Keywords that the metaschema accepts and the official TypeScript SDK refuses."""
    for node in nodes:
        if node.schema.get("enum") == []:
            yield RuleFault(f"{show(node.path)} has an empty enum, which takes nothing", f"{node.path}.enum")
        if key == "outputSchema" and node.schema.get("nullable") is True and "type" not in node.schema:
            fix = 'Write {"type": "null"} as one of the alternatives.'
            yield RuleFault(f"{show(node.path)} has nullable without type", f"{node.path}.nullable", fix)


def _without_patterns(schema: Json) -> Json:
    """The schema without patterns, which the other server's validator reads, not ours."""
    rest = without(schema, "pattern") if isinstance(schema.get("pattern"), str) else schema
    named = rest.get("patternProperties")
    if not is_object(named):
        return rest
    return {**rest, "patternProperties": {str(number): each for number, each in enumerate(named.values())}}


def _is_reported(tool: LintedTool, key: str) -> bool:
    """Whether another rule reports the fault of this schema."""
    paths = [each.path for check in (_check_types, _check_references) for each in check(tool)]
    paths += [node.path for node in tool.nodes() if not isinstance(node.schema, (dict, bool))]
    return any(path.startswith(key) for path in paths)


# -- patterns


def _find_patterns(tool: LintedTool) -> Iterator[tuple[SchemaNode, str, str]]:
    """Every pattern, with its schema and keyword."""
    for node in tool.objects():
        if isinstance(pattern := node.schema.get("pattern"), str):
            yield node, "pattern", pattern
        for pattern in as_object(node.schema.get("patternProperties")):
            yield node, "patternProperties", pattern


def _check_patterns(tool: LintedTool) -> Iterator[RuleFault]:
    for node, keyword, pattern in _find_patterns(tool):
        if flaw := find_flaw(pattern):
            message = f"{show(node.path)}: {quote(pattern)[:50]} is no pattern in JavaScript: {cut(flaw)}"
            in_output = node.path.startswith("outputSchema")
            yield RuleFault(message, f"{node.path}.{keyword}", level=None if in_output else "warning")


def _check_loops(tool: LintedTool) -> Iterator[RuleFault]:
    for node, keyword, pattern in _find_patterns(tool):
        if has_nested_loop(pattern):
            message = f"{show(node.path)}: a loop in {quote(pattern)[:50]} can match one text in many ways"
            yield RuleFault(message, f"{node.path}.{keyword}")


def _translate_pattern(schema: Json) -> Json:
    pattern = schema.get("pattern")
    written = translate(pattern) if isinstance(pattern, str) else None
    return schema if written is None else {**schema, "pattern": written}


CHECKS: Final[dict[str, Check]] = {
    "E01": _check_input_root,
    "E02": _check_subschemas,
    "E03": _check_output_root,
    "E04": _check_combinators,
    "E05": _check_keys,
    "E08": check_inputs(
        lambda node: has_type(node.schema, "array") and "items" not in node.schema, "{} is an array without items"
    ),
    "E09": _check_references,
    "E10": _check_types,
    "E11": _check_contradictions,
    "E13": _check_whole,
    "E14": _check_objects,
    "E15": _check_patterns,
    "W33": _check_loops,
}
MENDS: Final[dict[str, Mend]] = {
    "E01": _mend_input_root,
    "E02": change_schemas(without_booleans),
    "E08": change_schemas(with_items, "inputSchema"),
    "E14": _mend_objects,
    "E15": change_schemas(lambda schema: rewrite(schema, _translate_pattern)),
}
