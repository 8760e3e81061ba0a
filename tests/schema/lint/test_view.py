"""Client views agree with the measurements and with the rules."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.schema.lint.checking import example

from counts import count
from longshore.schema.lint.clients import CLIENTS, ClientName
from longshore.schema.lint.rule import Rule
from longshore.schema.lint.rules import RULES
from longshore.schema.lint.run import find_rule, lint
from longshore.schema.lint.tool_list import ToolList
from longshore.schema.lint.view import ClientView, ToolView, view_as
from longshore.schema.output import count_tokens
from longshore.schema.walk import MAX_DEPTH

ALL_CLIENTS: tuple[ClientName, ...] = get_args(ClientName)


def takes(**properties: Any) -> dict[str, Any]:
    return {"inputSchema": {"type": "object", "properties": properties}}


def one(tool: dict[str, Any], client: ClientName, **more: Any) -> ToolView:
    [seen] = view_as(example(tool, **more), client).tools
    return seen


def schema_of(seen: ToolView) -> Any:
    [key] = seen.handed.keys() & {"input_schema", "parameters", "parametersJsonSchema"}
    return seen.handed[key]


def costs(sight: ClientView) -> set[str]:
    return {mark.costs for mark in sight.all_marks()}


# -- names


@pytest.mark.parametrize(
    ("client", "server", "name", "sent"),
    [
        ("claude", "srv", "get_it", "mcp__srv__get_it"),
        ("claude", "srv", "a.b/c d-ü", "mcp__srv__a_b_c_d-_"),
        ("claude", "my server", "x", "mcp__my_server__x"),
        ("claude", "x", "n" * 60, "mcp__x__" + "n" * 60),
        ("codex", "srv", "a.b/c", "mcp__srv__a_b_c"),
        ("codex", "x", "n" * 120, "mcp__x__" + "n" * 120),
        ("gemini", "srv", "a.b/c", "mcp_srv_a.b_c"),
        ("gemini", "x", "n" * 57, "mcp_x_" + "n" * 57),
        ("gemini", "x", "n" * 58, "mcp_x_" + "n" * 24 + "..." + "n" * 30),
        ("vscode", "A Very Long Server", "Get.It", "mcp_a_very_long_s_Get_It"),
        ("vscode", "x", "n" * 90, "mcp_x_" + "n" * 58),
        ("cursor", "srv", "a.b", "a.b"),
        ("openai", "srv", "a.b", "a.b"),
    ],
)
def test_the_name_that_the_model_calls(client: ClientName, server: str, name: str, sent: str) -> None:
    seen = one({"name": name}, client, name=server)
    assert (seen.name, seen.sent) == (name, sent)


def test_codex_cuts_a_name_and_appends_a_hash() -> None:
    surface = ToolList(name="x", tools=tuple(example({"name": "n" * 128 + end}).tools[0] for end in "ab"))
    first, second = view_as(surface, "codex").tools
    assert [len(first.sent), len(second.sent)] == [128, 128] and first.sent != second.sent
    assert first.sent[:115] == second.sent[:115] and int(first.sent[116:], 16)


def test_codex_passes_a_namespace() -> None:
    sight = view_as(example({"name": "get_it"}, name="srv", instructions="Ask first."), "codex")
    [space] = sight.handed
    assert (space["type"], space["name"], space["description"]) == ("namespace", "mcp__srv", "Ask first.")
    assert [tool["name"] for tool in space["tools"]] == ["get_it"]


def test_the_first_of_two_tools_with_one_name_wins() -> None:
    def both(*names: str, client: ClientName) -> list[str]:
        tools = tuple(example({"name": name}).tools[0] for name in names)
        return ["" if tool.is_lost else tool.sent for tool in view_as(ToolList(name="s", tools=tools), client).tools]

    assert both("a", "a", client="claude") == ["mcp__s__a", ""]
    assert both("a.b", "a_b", client="claude") == ["mcp__s__a_b", ""]
    assert both("a", "a", client="codex") == ["mcp__s__a", ""]
    first, second = both("a.b", "a_b", client="codex")  # told apart
    assert first == "mcp__s__a_b" and second.startswith("mcp__s__a_b_")
    names = both("a b", "a.b", "a_b", "a.b", client="codex")
    assert len(set(names)) == 4 and names[3] == ""
    assert all(len(name) == 128 for name in both("n" * 120 + ".", "n" * 120 + "_", client="codex")[1:])
    assert both("a.b", "a_b", client="gemini") == ["mcp_s_a.b", "mcp_s_a_b"]


# -- texts


@pytest.mark.parametrize("length", [2047, 2048, 2049, 20_000])
def test_claude_cuts_texts(length: int) -> None:
    sight = view_as(example({"description": "d" * length}, instructions="i" * length), "claude")
    said = min(length, 2048) * "d" + ("… [truncated]" if length > 2048 else "")
    assert sight.tools[0].handed["description"] == said
    assert sight.instructions == said.replace("d", "i", 2048)
    assert len(list(sight.all_marks())) == (2 if length > 2048 else 0)
    for client in ("codex", "gemini"):
        assert one({"description": "d" * length}, client).handed["description"] == "d" * length


def test_a_missing_description_is_passed_as_an_empty_one() -> None:
    for client in ALL_CLIENTS:
        assert view_as(ToolList(tools=({"name": "a", **takes()},)), client).tools[0].handed["description"] == ""


# -- schemas


@pytest.mark.parametrize(
    ("client", "given", "handed"),
    [
        ("codex", {"const": 3}, {"enum": [3]}),
        ("codex", {"type": "string", "const": "a", "title": "A"}, {"type": "string", "enum": ["a"]}),
        (
            "codex",
            {"type": "integer", "minimum": 1, "default": 2, "description": "d"},
            {"type": "integer", "description": "d"},
        ),
        ("codex", {"type": "string", "pattern": "a", "format": "uri", "title": "A"}, {"type": "string"}),
        ("codex", True, {"type": "string"}),
        ("codex", {"type": "array"}, {"type": "array", "items": {"type": "string"}}),
        ("codex", {"type": "array", "prefixItems": [{}]}, {"type": "array", "items": {"type": "string"}}),
        ("codex", {"type": "any", "description": "d"}, {}),
        ("codex", {"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ("codex", {"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}),
        ("codex", {"type": "array", "items": {"minimum": 1}}, {"type": "array", "items": {}}),
        ("codex", {"type": "object", "additionalProperties": False}, None),
        ("gemini", {"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ("gemini", {"type": ["string", "integer", "null"]}, {"type": ["string", "integer"], "nullable": True}),
        ("gemini", {"type": "string", "pattern": "a", "const": "b"}, {"type": "string", "pattern": "a", "const": "b"}),
        ("claude", {"type": "string", "pattern": "a", "const": "b"}, {"type": "string", "pattern": "a", "const": "b"}),
        ("claude", {"type": ["string", "null"]}, {"type": ["string", "null"]}),
    ],
)
def test_a_client_changes_a_schema(client: ClientName, given: Any, handed: Any) -> None:
    seen = one(takes(x=given), client)
    expected = {"properties": {}, **given} if handed is None else handed
    assert schema_of(seen)["properties"]["x"] == expected
    assert (expected == given) == (not seen.marks)


def test_codex_passes_a_combinator_at_the_root() -> None:
    tool = {"inputSchema": {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}}
    branches = [{"required": ["a"], "properties": {}}, {"required": ["b"], "properties": {}}]
    assert schema_of(one(tool, "codex")) == {"type": "object", "anyOf": branches, "properties": {}}


# -- losses


@pytest.mark.parametrize("client", ALL_CLIENTS)
@pytest.mark.parametrize(
    ("tool", "lost"),
    [
        ({"inputSchema": {"type": "object", "properties": {}, "anyOf": [{}]}}, {"claude": "tool", "openai": "request"}),
        ({"inputSchema": {"properties": {}}}, {"claude": "list", "gemini": "list", "openai": "request"}),
        (takes(x=True), {"claude": "list", "gemini": "list"}),
        ({**takes(), "outputSchema": {"type": "array", "items": {}}}, {"claude": "list", "gemini": "list"}),
        ({"inputSchema": {"type": "object", "properties": {}, "required": ["x"]}}, {"gemini": "request"}),
        (
            {
                "inputSchema": {
                    "type": "object",
                    "properties": {},
                    "required": ["x"],
                    "allOf": [takes(x={})["inputSchema"]],
                }
            },
            {"claude": "tool", "openai": "request"},
        ),
        (takes(x={"type": "array"}), dict.fromkeys(("openai", "vscode", "gemini"), "request")),
        (takes(**{"has space": {}}), {"claude": "request"}),
        (takes(x={"type": "any"}), {"claude": "request"}),
        ({"inputSchema": {"type": "object"}}, {"openai": "request"}),
        ({**takes(), "name": "n" * 54}, {"cursor": "tool"}),
        ({**takes(), "name": "n" * 65}, {"cursor": "tool", "openai": "request"}),
        ({**takes(), "name": "n" * 128}, {"cursor": "tool", "openai": "request", "claude": "request"}),
        ({**takes(), "name": ""}, {"claude": "list", "gemini": "list", "openai": "request"}),
        (takes(x={"type": "object", "additionalProperties": False, "not": {}}), {}),
    ],
)
def test_a_client_loses_a_tool_a_list_or_a_request(
    tool: dict[str, Any], lost: dict[ClientName, str], client: ClientName
) -> None:
    fine = {"name": "fine", "description": "Fine", **takes()}
    sight = view_as(ToolList(name="example", tools=(*example(tool).tools, fine)), client)
    assert costs(sight) - {""} == {lost[client]} if client in lost else costs(sight) <= {""}
    kept = {"tool": [False, True], "list": [False, False]}.get(lost.get(client, ""), [True, True])
    assert [not each.is_lost for each in sight.tools] == kept
    assert bool(sight.handed) == any(kept) and bool(sight.tokens) == any(kept)


@pytest.mark.parametrize(("client", "most"), [("cursor", 80), ("vscode", 128)])
def test_tools_beyond_the_limit_are_lost_or_refused(client: ClientName, most: int) -> None:
    def many(number: int) -> ClientView:
        tools = tuple({"name": f"t{n}", "description": "T", **takes()} for n in range(number))
        return view_as(ToolList(tools=tools), client)

    assert costs(many(most)) == set()
    sight = many(most + 1)
    assert costs(sight) == {"tool" if client == "cursor" else "request"}
    assert sum(not tool.is_lost for tool in sight.tools) == (most if client == "cursor" else most + 1)


# -- tokens


def test_a_token_is_four_characters_of_the_json() -> None:
    sight = view_as(example(takes(), instructions="never counted here"), "claude")
    assert sight.tokens == count_tokens(sight.handed) and sight.tools[0].tokens == count_tokens(sight.handed[0])


# -- the rules and the views agree

NO_FINDING = {
    "W25": "it is silent where a description says the constraint again",
}
"""Rules → why an effect of a client need not be a finding, except in the rule's own example."""
NO_LOSS = {
    "E12": "Gemini CLI puts `mcp_` before every name; it is for those who hand tools to the API themselves",
}
"""Error rules about clients → why no view shows a loss."""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
@pytest.mark.parametrize("client", ALL_CLIENTS)
def test_each_effect_of_a_client_is_a_finding_of_its_profile(client: ClientName, rule: Rule) -> None:
    """Each bad example in each client. The rules of MCP count for every client."""
    found = {finding.rule for finding in lint(rule.bad, profiles=[CLIENTS[client].profile, "mcp"])}
    for mark in view_as(rule.bad, client).all_marks():
        if mark.rule == rule.id or (mark.rule and mark.rule not in NO_FINDING):
            assert mark.rule in found, f"{mark} is not reported"


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.level == "error"], ids=lambda rule: rule.id)
def test_a_tool_that_breaks_an_error_rule_of_a_client_is_lost_there(rule: Rule) -> None:
    clients = [client for client in ALL_CLIENTS if CLIENTS[client].profile in rule.profiles]
    losses = [client for client in clients if costs(view_as(rule.bad, client)) & {"tool", "list", "request"}]
    assert bool(clients) == bool(losses) or rule.id in NO_LOSS
    assert not (losses and rule.id in NO_LOSS), "it is shown after all"


def test_each_effect_names_a_rule_of_the_clients_profile() -> None:
    for client in CLIENTS.values():
        others = [each for each in (client.too_many_tools, client.refused_name) if each is not None]
        for effect in (*client.effects, *others):
            rule = find_rule(effect.rule)
            assert not effect.rule or (rule and client.profile in rule.profiles), f"no {effect.rule}: {effect.what}"
            assert effect.rule or not effect.costs, f"nothing warns: {effect.what}"


# -- whatever a server says

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "object", "array", "any", "{}", "ü.."]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "type", "inputSchema", "properties", "items", "anyOf", "const", "title", "x"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=count(60))
@given(st.lists(JSON | st.fixed_dictionaries({"name": JSON, "inputSchema": JSON}), max_size=3))
def test_viewing_any_json_value_raises_nothing(tools: list[Any]) -> None:
    for client in ALL_CLIENTS:
        sight = view_as(ToolList(tools=tuple(tools)), client)
        assert len(sight.tools) == len(tools)
        assert sight.tokens == count_tokens(sight.handed)


def test_a_schema_beyond_the_depth_limit_is_passed_unchanged() -> None:
    deep: Any = {"type": "array"}
    for _ in range(MAX_DEPTH + 50):
        deep = {"type": "array", "items": deep}
    handed = schema_of(one(takes(x=deep), "codex"))
    for _ in range(MAX_DEPTH + 50):
        handed = handed.get("items") or handed["properties"]["x"]
    assert "items" not in handed["items"]  # beyond the depth that is looked into
