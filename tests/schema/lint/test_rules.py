"""Each rule: its bad example breaks it, its good one keeps it, and mending keeps the meaning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.schema.lint.checking import example
from tests.schema.schemas import DOUBLING

from longshore.schema.lint.rule import COMMON, LEVELS, MESSAGE_CHARS, PROFILES, Finding, Rule
from longshore.schema.lint.rules import NOT_OFFERED, RULES
from longshore.schema.lint.run import MOST_FAULTS, find_rule, lint
from longshore.schema.lint.tool_list import Declaration, ToolList, walk_schema
from longshore.schema.phrase import SHOWN_CHARS
from longshore.schema.validate import SchemaProblem, compile
from longshore.schema.walk import MAX_DEPTH

Json = dict[str, Any]

CHECKED = [rule for rule in RULES if rule.id != NOT_OFFERED]
each_rule = pytest.mark.parametrize("rule", CHECKED, ids=[rule.id for rule in CHECKED])
each_mending = pytest.mark.parametrize("rule", [r for r in RULES if r.mend is not None], ids=lambda rule: rule.id)


def findings(surface: ToolList, rule: str) -> list[Finding]:
    return [found for found in lint(surface, profiles=PROFILES) if found.rule == rule]


# -- all rules


def test_no_two_rules_have_one_id() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)


def test_the_documented_rules_exist() -> None:
    numbers = [*(f"E{n:02}" for n in range(1, 17)), *(f"W{n}" for n in range(20, 33)), "I40"]
    assert set(numbers) <= {rule.id for rule in RULES}
    assert find_rule(" e04 ") is not None and find_rule("E99") is None


@each_rule
def test_a_rule_has_all_its_texts(rule: Rule) -> None:
    assert rule.level in LEVELS and rule.profiles and set(rule.profiles) <= set(PROFILES)
    assert rule.check is not None or rule.whole is not None
    for text in (rule.title, rule.why, rule.evidence, rule.fix):
        assert text.strip() == text and len(text) > 10 and "\n" not in text and "http" not in text
    assert not rule.title.endswith(".") and rule.why.endswith(".")


@each_rule
def test_the_bad_example_breaks_the_rule_with_a_short_message(rule: Rule) -> None:
    found = findings(rule.bad, rule.id)
    assert found
    for each in found:
        assert each.message and len(each.message) <= MESSAGE_CHARS and each.message.isprintable()
        assert each.fix and set(each.profiles) <= set(rule.profiles)
    assert min(LEVELS.index(each.level) for each in found) <= LEVELS.index(rule.level)


@each_rule
def test_the_good_example_keeps_the_rule_and_every_error_rule_of_its_profiles(rule: Rule) -> None:
    assert findings(rule.good, rule.id) == []
    assert lint(rule.good, profiles=rule.profiles, levels=("error",)) == []


@each_mending
def test_a_mended_tool_keeps_the_rule(rule: Rule) -> None:
    assert rule.mend is not None
    mended = [rule.mend(tool) for tool in rule.bad.tools]
    assert mended != list(rule.bad.tools)
    assert findings(with_tools(rule.bad, mended), rule.id) == []
    assert [rule.mend(tool) for tool in mended] == mended
    assert [rule.mend(tool) for tool in rule.good.tools] == list(rule.good.tools)


@each_mending
def test_a_mended_tool_accepts_the_same_values(rule: Rule) -> None:
    assert rule.mend is not None
    for tool in (*rule.bad.tools, *(tool for id, tool, _ in EDGES if id == rule.id)):
        for key in ("inputSchema", "outputSchema"):
            before, after = tool.get(key, {}), rule.mend(tool).get(key, {})
            for value in samples(before):
                assert accepts(before, value) in (accepts(after, value), None), value


def with_tools(surface: ToolList, tools: list[Any]) -> ToolList:
    return ToolList(
        name=surface.name,
        tools=tuple(tools),
        instructions=surface.instructions,
        declared=surface.declared,
        categories=surface.categories,
    )


def samples(schema: Any) -> Iterator[Json]:
    """Valid and invalid arguments for every property of a schema."""
    names = [node.name for node in walk_schema(schema, "") if node.name]
    yield {}
    numbers, texts, lists = (0, 1, -1, 0.5, 1000), ("", "a", "a" * 1000), ([], ["a"], [1], [None], [1] * 1000)
    for value in (None, True, *numbers, *texts, *lists, {}, {"x": 1}, {"x": "a", "y": None}):
        yield from ({name: value} for name in {*names, "other"})
        yield dict.fromkeys(names, value)


def accepts(schema: Any, value: Json) -> bool | None:
    """None for a schema that can't be compiled, because of a pattern in Python syntax."""
    try:
        return compile(schema).is_valid(value)
    except SchemaProblem:
        return None


# -- each of them at its edges: the tool, and where it is broken with which level

Places = list[tuple[str, str]]


def takes(schema: Any, **root: Any) -> Json:
    return {"inputSchema": {"type": "object", "properties": {"a": schema}, **root}}


def gives(schema: Any, **root: Any) -> Json:
    return {"outputSchema": {"type": "object", "properties": {"a": schema}, **root}}


A = "inputSchema.properties.a"
OUT = "outputSchema.properties.a"
REF = {"$ref": "#/$defs/B"}
_HINTED: Places = [("annotations.title", "error"), ("annotations.readOnlyHint", "error")]

EDGES: list[tuple[str, Json, Places]] = [
    ("E01", {"inputSchema": {"type": ["object"]}}, [("inputSchema", "error")]),
    ("E01", {"inputSchema": {"type": "array"}}, [("inputSchema", "error")]),
    ("E01", {"inputSchema": True}, [("inputSchema", "error")]),
    ("E01", {"inputSchema": None}, [("inputSchema", "error")]),
    ("E01", {"inputSchema": {}}, [("inputSchema", "error")]),
    ("E02", takes(False), [(A, "error")]),
    ("E02", takes([]), [(A, "error")]),
    ("E02", takes("string"), [(A, "error")]),
    ("E02", takes(None), [(A, "error")]),
    ("E02", gives(True), [(OUT, "error")]),
    ("E02", takes({"properties": {"b": True}}), [(f"{A}.properties.b", "warning")]),
    ("E02", takes({"properties": {"b": 3}}), [(f"{A}.properties.b", "error")]),
    ("E02", takes({"type": "array", "items": True}), [(f"{A}.items", "warning")]),
    ("E02", takes({"anyOf": [True, {}]}), [(f"{A}.anyOf[0]", "warning")]),
    ("E02", takes({"additionalProperties": True}, additionalProperties=False), []),
    ("E02", takes({"unevaluatedItems": False}, unevaluatedProperties=False), []),
    ("E02", takes({}, dependencies={"a": ["b"]}), []),
    ("E03", {"outputSchema": None}, [("outputSchema", "error")]),
    ("E03", {"outputSchema": {"properties": {}}}, [("outputSchema", "error")]),
    ("E03", {"outputSchema": {"type": "object"}}, []),
    ("E03", {}, []),
    ("E04", takes({}, oneOf=[{}], allOf=[{}]), [("inputSchema.oneOf", "error"), ("inputSchema.allOf", "error")]),
    ("E04", takes({}, **{"not": {}, "enum": [{}]}), [("inputSchema.not", "error"), ("inputSchema.enum", "error")]),
    ("E04", takes({}, **{"if": {}, "const": {}}), [("inputSchema.if", "warning"), ("inputSchema.const", "warning")]),
    ("E04", takes({"oneOf": [{"enum": ["latest"]}, {"pattern": "^b-[a-z]+$"}]}), []),
    ("E04", gives({}, anyOf=[{}]), []),
    (
        "E05",
        {"inputSchema": {"type": "object", "properties": {"k" * 64: {}, "$x": {}}}},
        [_ := ("inputSchema.properties", "error")],
    ),
    ("E05", {"inputSchema": {"type": "object", "properties": {"k" * 65: {}, "a.b-c_1": {}}}}, [_]),
    ("E05", {"inputSchema": {"type": "object", "properties": {"": {}, "a\n": {}}}}, [_, _]),
    ("E05", takes({"properties": {"a b": {}}}), [(f"{A}.properties", "warning")]),
    ("E05", gives({"properties": {"a b": {}}}), []),
    ("E06", {"name": "a" * 64}, []),
    ("E06", {"name": "a" * 65}, [("name", "error")]),
    ("E06", {"name": "a" * 129}, [("name", "error")]),
    ("E06", {"name": "a.b"}, [("name", "warning")]),
    ("E06", {"name": "a.b c"}, [("name", "error")]),
    ("E06", {"name": "größe"}, [("name", "error")]),
    ("E06", {"name": "a\n"}, [("name", "error")]),
    ("E08", takes({"type": ["array", "null"]}), [(A, "error")]),
    ("E08", takes({"type": "array", "prefixItems": [{}]}), [(A, "error")]),
    ("E08", takes({"anyOf": [{"type": "array"}]}), [(f"{A}.anyOf[0]", "error")]),
    ("E08", takes(REF, **{"$defs": {"B": {"type": "array"}}}), [("inputSchema.$defs.B", "error")]),
    ("E08", takes({"type": "array", "items": {}}), []),
    ("E08", gives({"type": "array"}), []),
    ("E09", takes(REF, **{"$defs": {"B": {}}}), []),
    ("E09", takes({"$ref": "#"}), []),
    ("E09", takes({"$ref": "#/properties/a"}), []),
    ("E09", takes({"$ref": "#/$defs/a~1b%20c"}, **{"$defs": {"a/b c": {}}}), []),
    ("E09", takes({"$ref": "#/anyOf/0"}, anyOf=[{}]), []),
    ("E09", takes({"$ref": "#/anyOf/1"}, anyOf=[{}]), [(f"{A}.$ref", "error")]),
    ("E09", takes({"$ref": "#here"}, **{"$defs": {"B": {"$anchor": "here"}}}), []),
    ("E09", takes({"$ref": "#there"}, **{"$defs": {"B": {"$anchor": "here"}}}), [(f"{A}.$ref", "error")]),
    ("E09", takes({"$ref": "other.json"}), [(f"{A}.$ref", "error")]),
    ("E09", takes({"$ref": "a#/$defs/B"}, **{"$id": "https://example.com/a", "$defs": {"B": {}}}), []),
    ("E09", takes(REF, **{"$id": "https://example.com/a"}), [(f"{A}.$ref", "error")]),
    ("E09", gives(REF), [(f"{OUT}.$ref", "error")]),
    ("E09", takes({"properties": {"$ref": {"type": "string"}}}), []),
    ("E10", takes({"type": ["string", "any"]}), [(f"{A}.type", "error")]),
    ("E10", takes({"type": {"not": "hashable"}}), [(f"{A}.type", "error")]),
    ("E10", takes({"type": None}), [(f"{A}.type", "error")]),
    ("E10", gives({"type": "float"}), [(f"{OUT}.type", "error")]),
    ("E10", takes({"properties": {"type": {"type": "string"}}}), []),
    ("E11", takes({}, required=["b"]), [("inputSchema.required", "error")]),
    ("E11", takes({}, required=["b"], allOf=[{"properties": {"b": {}}}]), []),
    ("E11", takes({"anyOf": [{"required": ["b"]}]}), [(f"{A}.anyOf[0].required", "warning")]),
    ("E11", takes({"type": "string", "default": None}), [(f"{A}.default", "warning")]),
    ("E11", takes({"type": "array", "items": {"type": "integer"}, "default": ["x"]}), [(f"{A}.default", "error")]),
    ("E11", takes({"enum": ["x"], "default": "y"}), [(f"{A}.default", "error")]),
    ("E11", gives({"enum": ["x"], "default": "y"}), [(f"{OUT}.default", "error")]),
    ("E11", takes({**REF, "default": 1}, **{"$defs": {"B": {"type": "string"}}}), [(f"{A}.default", "error")]),
    ("E11", takes({**REF, "default": "x"}, **{"$defs": {"B": {"type": "string"}}}), []),
    ("E11", takes({"type": "integer", "default": 1.0}), []),
    (
        "E11",
        takes({"items": {"$ref": "#/properties/a", "default": 1}, "type": "string"}),
        [(f"{A}.items.default", "error")],
    ),
    ("E11", takes({"items": {"$ref": "#", "default": 1}}), [(f"{A}.items.default", "error")]),
    ("E12", {"name": "_a"}, []),
    ("E12", {"name": "-a"}, [("name", "error")]),
    ("E13", takes({}, properties=[]), [("inputSchema", "error")]),
    ("E13", takes({}, required="a"), [("inputSchema", "error")]),
    ("E13", takes({}, **{"$schema": "https://json-schema.org/draft-07/schema#"}), [("inputSchema", "warning")]),
    ("E13", takes({}, **{"$schema": []}), [("inputSchema", "warning")]),
    ("E13", takes({"nullable": True}), []),
    ("E13", gives({"nullable": True}), [(f"{OUT}.nullable", "error")]),
    ("E13", gives({"type": "string", "nullable": True}), []),
    ("E13", takes({"$ref": "b"}, **{"$id": "https://example.com/a"}), [("inputSchema", "error")]),
    ("E13", takes({"exclusiveMinimum": True, "minimum": 1}), [("inputSchema", "error")]),
    ("E13", takes({"enum": ["x" * 70_000]}), [("inputSchema", "warning")]),
    ("E13", takes({"type": "any"}), []),  # told by E10
    ("E13", takes("string"), []),  # told by E02
    ("E13", takes(REF), []),  # told by E09
    ("E13", takes({"pattern": "(?<a>b)\\k<a>"}), []),
    ("E13", takes({"pattern": "\\Z"}), []),  # told by E15
    ("E13", takes({"pattern": 3}), [("inputSchema", "error")]),
    ("E13", takes({"patternProperties": {"\\Z": {"format": 3}}}), [("inputSchema", "error")]),
    ("E13", takes({"enum": []}), [(f"{A}.enum", "error")]),
    ("W33", takes({"pattern": "^(a+)+$"}), [(f"{A}.pattern", "warning")]),
    ("W33", takes({"type": "object", "patternProperties": {"^(a+)*$": {}}}), [(f"{A}.patternProperties", "warning")]),
    ("W33", takes({"items": {"pattern": "^[a-z]+(-[a-z]+)*$"}, "pattern": "^[A-Z]{3}-\\d+$"}), []),
    ("E14", {"inputSchema": {"type": "object", "additionalProperties": False}}, [("inputSchema", "error")]),
    ("E14", takes({"type": "object"}), [(A, "warning")]),
    ("E14", takes({"type": "object", "additionalProperties": {"type": "string"}}), []),
    ("E14", takes({"type": "object", "patternProperties": {"^x-": {}}}), []),
    ("E14", takes({"type": "object", "anyOf": [{"properties": {}}]}), []),
    ("E14", takes({"type": "object", **REF}, **{"$defs": {"B": {"properties": {}}}}), []),
    ("E14", gives({"type": "object"}), []),
    ("E15", takes({"pattern": "\\Z"}), [(f"{A}.pattern", "warning")]),
    ("E15", gives({"patternProperties": {"\\Z": {}}}), [(f"{OUT}.patternProperties", "error")]),
    ("E16", {"name": ""}, [("name", "error")]),
    ("E16", {"name": 3}, [("name", "error")]),
    (
        "E16",
        {"annotations": [], "icons": {}, "title": 1},
        [("title", "error"), ("annotations", "error"), ("icons", "error")],
    ),
    ("E16", {"annotations": {"title": None, "readOnlyHint": "yes", "x": None}}, _HINTED),
    ("E16", {"annotations": {"title": "A", "readOnlyHint": False}, "execution": {"taskSupport": "optional"}}, []),
    ("E16", {"execution": {"taskSupport": None}}, [("execution.taskSupport", "error")]),
    ("E16", {"icons": [{"src": "a.png", "sizes": ["any"]}]}, []),
    ("E16", {"icons": [{"src": "a.png", "sizes": "any"}, 3]}, [("icons[0].sizes", "error"), ("icons[1].src", "error")]),
    ("W23", gives(REF, **{"$defs": {"B": {}}}), []),
    ("W23", takes(REF, **{"$defs": {"B": {"items": REF}}}), [(f"{A}.$ref", "info")]),
    ("W23", takes({"items": {"$ref": "#"}}), [(f"{A}.items.$ref", "info")]),
    ("W23", takes({"anyOf": [{"$ref": {}}, REF]}, **{"$defs": {"B": {}}}), [(f"{A}.anyOf[1].$ref", "info")]),
    (
        "W23",
        takes({"anyOf": [REF, {"$ref": "#/$defs/C"}]}, **{"$defs": {"B": {"items": REF}, "C": {}}}),
        [(f"{A}.anyOf[1].$ref", "warning")],
    ),
    ("W24", takes({"anyOf": [{"type": "string"}, {"type": "null"}]}), [(f"{A}.anyOf", "warning")]),
    ("W24", takes({"type": ["string", "integer"]}), [(f"{A}.type", "warning")]),
    ("W24", takes({"type": ["string"]}), []),
    ("W24", gives({"type": ["string", "null"]}), []),
    ("W26", takes({"items": [{}]}), [(A, "warning")]),
    ("W27", takes({"items": [{}]}), [(f"{A}.items", "warning")]),
    ("W27", takes({"exclusiveMaximum": False}), [(f"{A}.exclusiveMaximum", "error")]),
    (
        "W27",
        takes({}, definitions={}, dependencies={}),
        [("inputSchema.definitions", "warning"), ("inputSchema.dependencies", "warning")],
    ),
    ("W27", takes({}, definitions={}, **{"$schema": "http://json-schema.org/draft-07/schema#"}), []),
    ("W27", takes({}, id="x"), [("inputSchema.id", "warning")]),
    ("W27", takes({}, id={"type": "string"}), []),
    ("W27", gives({}, id={"type": "string"}), [("outputSchema.id", "error")]),
    ("W27", {"inputSchema": {"type": "object", "properties": {"id": {}, "definitions": {}}}}, []),
]


@pytest.mark.parametrize(("rule", "tool", "places"), EDGES, ids=[f"{rule}-{i}" for i, (rule, _, _) in enumerate(EDGES)])
def test_a_rule_reports_exactly_these_paths_and_levels(rule: str, tool: Json, places: Places) -> None:
    assert [(found.path, found.level) for found in findings(example(tool, name="s"), rule)] == places


@pytest.mark.parametrize(
    ("server", "tool", "profiles"),
    [
        ("s" * 20, "t" * 38, ()),
        ("s" * 20, "t" * 39, ("gemini",)),
        ("s" * 20, "t" * 40, ("gemini",)),
        ("s" * 20, "t" * 41, ("cursor", "gemini")),
    ],
)
def test_names_of_server_and_tool_that_are_too_long_together_are_reported(
    server: str, tool: str, profiles: tuple[str, ...]
) -> None:
    found = findings(example({"name": tool}, name=server), "W20")
    assert [each.profiles for each in found] == ([profiles] if profiles else [])


def test_a_required_name_that_is_no_property_concerns_gemini_only_unless_the_object_is_closed() -> None:
    """In a closed object the argument could not be given at all."""
    closed = {"required": ["b"], "additionalProperties": False}
    tools = (takes({}, required=["b"]), takes({}, **closed), takes({"oneOf": [closed]}))
    found = [findings(example(tool), "E11") for tool in tools]
    assert [each.profiles == ("gemini",) for [each] in found] == [True, False, True]


def test_a_name_that_the_server_makes_too_long_for_an_api() -> None:
    assert not findings(example({"name": "t" * 61}, name="s" * 60), "E06")
    [found] = findings(example({"name": "t" * 61}, name="s" * 61), "E06")
    assert found.profiles == ("claude",) and "129" in found.message


def test_names_that_become_equal_in_some_clients_are_reported() -> None:
    tools = tuple({"name": name, "inputSchema": {"type": "object"}} for name in ("a.b", "c", "c", "a_b", "a b", "C"))
    found = findings(ToolList(tools=(*tools, None, {}, {"name": 3}, {"name": 3})), "E07")
    assert [(each.tool, "mcp" in each.profiles) for each in found] == [("c", True), ("a_b", False), ("a b", False)]
    assert found[1].message == '"a_b" and "a.b" are both a_b in Claude Code and Codex'
    assert [each.tool for each in lint(ToolList(tools=tools), profiles=("mcp",)) if each.rule == "E07"] == ["c"]


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("get weather/now", "Call it 'get_weather_now'."),
        ("fs.read", "Call it 'fs_read'."),
        ("2fa", "Call it '_2fa'."),
        ("-x", "Call it 'x'."),
        ("天気", "Write the name in letters, digits, _ and -, at most 64 of them."),
    ],
)
def test_the_fix_suggests_a_legal_name(name: str, fix: str) -> None:
    assert fix in [found.fix for rule in ("E06", "E12") for found in findings(example({"name": name}), rule)]


def test_a_schema_under_the_key_of_another_api_is_found() -> None:
    tool = {"name": "a", "input_schema": {"type": "object"}}
    [found] = findings(ToolList(tools=(tool,)), "E01")
    assert found.fix == "Call input_schema inputSchema." and mend("E01", tool) == tool


def test_parameters_beside_the_type_are_found() -> None:
    tool = {"inputSchema": {"type": "object", "city": {"type": "string"}}}
    [found] = findings(example(tool), "E14")
    assert found.fix == 'Put "city" and its like under "properties".' and mend("E14", tool) == tool


def test_nulls_in_annotations_are_left_out() -> None:
    tool = {"name": "a", "annotations": {"title": None, "readOnlyHint": True}}
    assert mend("E16", tool) == {"name": "a", "annotations": {"readOnlyHint": True}}


DRAFT_04, DRAFT_07 = (f"http://json-schema.org/draft-0{n}/schema#" for n in (4, 7))


@pytest.mark.parametrize(
    "tool",
    [
        takes({"dependentRequired": {"a": ["b"]}}, definitions={}, **{"$schema": DRAFT_07}),
        takes({"const": 1, "minimum": 0, "exclusiveMinimum": True}, **{"$schema": DRAFT_04}),
    ],
)
def test_mending_an_old_draft_gives_no_meaning_to_keywords_of_later_drafts(tool: Json) -> None:
    assert mend("W27", tool) == tool


def test_an_inlined_definition_stays_in_its_draft() -> None:
    item = {"type": "number", "minimum": 0, "exclusiveMinimum": True}
    root = {"$schema": DRAFT_04, "$ref": "#/definitions/A", "definitions": {"A": {"properties": {"n": item}}}}
    assert mend("W23", {"inputSchema": root})["inputSchema"] == {"$schema": DRAFT_04, "properties": {"n": item}}


def mend(id: str, tool: Json) -> Json:
    rule = find_rule(id)
    assert rule is not None and rule.mend is not None
    return rule.mend(tool)


def test_an_output_that_is_no_object_is_no_fault_of_our_own_server() -> None:
    tool = {"outputSchema": {"type": "array", "items": {}}}
    assert findings(example(tool), "E03") and not findings(example(tool, declared=Declaration()), "E03")


@pytest.mark.parametrize(
    ("declared", "levels"),
    [
        (Declaration(), ["error"]),
        (Declaration(typed=True), []),  # by its types it is checked in a moment
        (Declaration(checks=False), []),
        (Declaration(foreign=True), []),
        (None, []),
    ],
)
def test_an_unbounded_schema_is_an_error_if_our_server_validates_against_it(
    declared: Declaration | None, levels: list[str]
) -> None:
    assert [found.level for found in findings(example({"inputSchema": DOUBLING}, declared=declared), "E13")] == levels


def test_a_large_schema_is_an_error_if_our_server_validates_against_it() -> None:
    large = takes({"enum": ["x" * 70_000]})
    assert [found.level for found in findings(example(large, declared=Declaration()), "E13")] == ["error"]


def test_a_pattern_unknown_to_our_validator_is_an_error_if_our_server_validates_against_it() -> None:
    tool = takes({"pattern": "(?<a>b)\\k<a>"})
    assert findings(example(tool, declared=Declaration()), "E13")
    assert not findings(example(tool, declared=Declaration(foreign=True)), "E13")


# -- whatever comes


def nested(levels: int) -> Json:
    schema: Json = {}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


HOSTILE: dict[str, Any] = {
    "deep": nested(10_000),
    "wide": {"type": "object", "properties": {f"é{n}": {"type": "any", "default": n} for n in range(3_000)}},
    "long": {"type": "object", "properties": {"\x1b[31m" + "x" * 500_000: True}, "required": ["y" * 500_000]},
    "repeated": {"type": ["\u202e"] * 100_000, "required": ["b"] * 100_000},
    "patterns": {"type": "object", "properties": {f"p{n}": {"pattern": "(" * 60} for n in range(1_000)}},
    "anchors": {
        "type": "object",
        "properties": {f"p{n}": {"$anchor": f"a{n}", "$ref": "#a2999"} for n in range(3_000)},
    },
}


@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE)
def test_findings_in_a_hostile_schema_are_short_and_few(schema: Any) -> None:
    found = lint(example({"inputSchema": schema, "outputSchema": schema}), profiles=PROFILES)
    assert found and len(found) < MOST_FAULTS * len(RULES)
    for each in found:
        assert len(each.message) <= MESSAGE_CHARS and each.message.isprintable()
        assert len(each.path) < MAX_DEPTH * (SHOWN_CHARS * 8 + 20)


def test_one_rule_reports_at_most_a_limited_number_of_places_of_a_tool() -> None:
    many = {"inputSchema": {"type": "object", "properties": {f"p{n}": True for n in range(MOST_FAULTS + 1)}}}
    assert len(findings(example(many), "E02")) == MOST_FAULTS


def test_no_error_hides_behind_many_warnings() -> None:
    deep = {f"p{n}": True for n in range(MOST_FAULTS)}
    found = findings(example({"inputSchema": {"properties": {"a": {"properties": deep}, "b": True}}}), "E02")
    assert [each.level for each in found] == ["error"] + ["warning"] * (MOST_FAULTS - 1)


def test_only_findings_of_the_given_profiles_are_reported() -> None:
    dotted = example({"name": "a.b"})
    assert [found.rule for found in lint(dotted, profiles=("gemini",))] == []
    assert "E06" in [found.rule for found in lint(dotted, profiles=("claude",))]
    assert set(COMMON) == set(PROFILES) - {"openai-strict", "brooklyn"}
