"""Statements S-86 to S-120: Brooklyn's schema standards. Their examples and our list are held against each other."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from interop.client.peers import NODE
from longshore.builtin import CATEGORIES, make
from longshore.schema.lint.run import lint
from longshore.schema.lint.tool_list import ToolList
from process.conftest import Workshop
from process.peer import Peer
from services import need_command, skip
from toolsets.browser.conftest import browser_path as browser_path
from waiting import PATIENCE

from .document import LIST, SERVER, literals, text_of
from .test_document import error_of

GOOD = "Navigate browser to a specific URL and wait for page load"
STANDARD = {"browser-lifecycle", "navigation", "content-capture", "interaction", "discovery"}
HARNESS = """
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const [tools, modules] = process.argv.slice(2);
const require = createRequire(modules + "/any.js");
const Ajv = require("ajv");
const ajv = new Ajv({ meta: false, strict: false });
const metaSchema = require("ajv/dist/refs/json-schema-draft-07.json");
const getAllTools = () => JSON.parse(readFileSync(tools, "utf8"));
const describe = (name, body) => body();
const test = (name, body) => { body(); console.log("passed: " + name); };
const fail = (text) => { throw new Error(text); };
const expect = (value) => ({
  not: { toHaveProperty: (key) => key in value && fail(`has ${key}`) },
  toBe: (other) => value === other || fail(`${value} is not ${other}`),
});
"""
"""What the document's test needs of its test runner, and a real validator of draft 7."""


@pytest.fixture
def tools(workshop: Workshop, browser_path: str) -> dict[str, dict[str, Any]]:
    """The list of the entry point, by name."""
    listed = workshop.spawn(*SERVER).ask(LIST)["result"]["tools"]
    return {each["name"]: each for each in listed}


def properties(tool: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = tool["input_schema"]["properties"]
    return found


def broken(level: str = "", **tool: Any) -> set[str]:
    """The rules that a tool breaks, which is a good one but for what is given."""
    usual = {"name": "flexible_tool", "description": GOOD, "inputSchema": {"type": "object", "properties": {}}}
    meta = {"longshore/category": tool.pop("category", "navigation")}
    server = ToolList(tools=({**usual, "_meta": meta, **tool},), categories=CATEGORIES)
    return {each.rule for each in lint(server, profiles=("mcp", "claude", "brooklyn")) if level in ("", each.level)}


def taking(given: dict[str, Any]) -> dict[str, Any]:
    return {"inputSchema": {"type": "object", "properties": given}}


# -- keys


def test_the_list_has_the_fields_of_a_tool_definition_with_the_key_of_the_wire(tools: dict[str, Any]) -> None:
    """S-87, S-92, S-96, S-118: examples and errors are told by tool_help."""
    fields = re.findall(r"^  (\w+)\??: ", text_of("tool_definition.ts"), re.MULTILINE)
    wire = {"input_schema" if each == "inputSchema" else each for each in fields} - {"examples", "errors"}
    for tool in tools.values():
        assert tool.keys() == wire
        assert tool["input_schema"]["type"] == "object"


def test_within_the_server_the_key_is_that_of_mcp() -> None:
    """S-86, S-90, S-91, S-118: the dialect alone changes it, when the list is rendered."""
    app = make("brooklyn")
    described = [each.describe() for each in app.engine.tools.values()]
    assert all("inputSchema" in each and "input_schema" not in each for each in described)


# -- combinators


@pytest.mark.parametrize("example", ["top_level_constraint", "top_level_constraint_bad"])
def test_a_combinator_at_the_root_is_an_error(example: str) -> None:
    """S-93, S-115."""
    assert "E04" in broken("error", **literals(example)[0])


def test_the_alternatives_of_the_document_break_no_rule_at_error_level() -> None:
    """S-94, S-95, S-98, S-113."""
    assert not broken("error", **literals("top_level_constraint")[1])
    assert not broken("error", **taking(literals("nested_constraint")[0]["properties"]))
    [either] = literals("either_parameter")
    assert not broken("error", **either) and "B53" not in broken(**either)


def test_a_choice_that_is_not_made_is_refused_by_the_server_in_its_words(workshop: Workshop) -> None:
    """S-94, S-98, S-113: described, optional, and checked by the server."""
    [says] = re.findall(r'Error\("(.+)"\)', text_of("migration_validation.ts"))
    [description] = re.findall(r'"(.+)"', text_of("migration_description.ts"))
    source = f"""
    from typing import Annotated
    from longshore import Server, ToolError
    app = Server("mine")

    @app.tool(description={description!r})
    def flexible_tool(
        paramA: Annotated[str | None, "Parameter A (optional if paramB provided)"] = None,
        paramB: Annotated[str | None, "Parameter B (optional if paramA provided)"] = None,
    ) -> str:
        if not paramA and not paramB:
            raise ToolError({says!r})
        return "done"
    """
    peer: Peer = workshop.serve(source, "--dialect", "brooklyn")
    [listed] = peer.ask(LIST)["result"]["tools"]
    [either] = literals("either_parameter")
    assert listed["description"] == either["description"]
    for name, schema in either["inputSchema"]["properties"].items():
        assert listed["input_schema"]["properties"][name] == schema
    assert "required" not in listed["input_schema"]
    assert error_of(peer.call("flexible_tool"))["data"] == {"toolName": "flexible_tool", "error": says}
    assert peer.call("flexible_tool", paramB="x")["result"]["content"][0]["text"] == "done"


# -- parameters


def test_browsers_are_chosen_by_the_pattern_of_the_document(tools: dict[str, Any]) -> None:
    """S-99."""
    [pattern] = literals("browser_targeting")
    for name in tools.keys() - {"brooklyn_status", "launch_browser", "list_active_browsers"}:
        found = properties(tools[name])
        for each in ("type", "enum", "default"):
            assert found["target"][each] == pattern["properties"]["target"][each], name
        assert found["browserId"]["type"] == pattern["properties"]["browserId"]["type"]
        assert not {"browserId", "target"} & set(tools[name]["input_schema"].get("required", ()))


def test_a_browser_id_that_is_unknown_is_resolved_by_the_target(workshop: Workshop, browser_path: str) -> None:
    """S-99, C-26: and the answer says which it is, and that it was not the one asked for."""
    server = workshop.spawn(*SERVER)
    first = json.loads(server.call("launch_browser", 1)["result"]["content"][0]["text"])["browserId"]
    said = json.loads(
        server.call("navigate_to_url", 2, url="about:blank", browserId="x")["result"]["content"][0]["text"]
    )
    assert said["browserId"] == first and "x" in said["notice"]
    refused = error_of(server.call("navigate_to_url", 3, url="about:blank", browserId="x", target="byId"))
    assert refused["code"] == -32603 and first in refused["data"]["error"]


def test_a_timeout_has_the_unit_default_and_bounds_of_the_document(tools: dict[str, Any]) -> None:
    """S-101."""
    [example] = literals("parameter_descriptions")
    shown, found = example["properties"]["timeout"], properties(tools["take_screenshot"])["timeout"]
    assert {key: found[key] for key in shown if key != "description"} == {
        key: value for key, value in shown.items() if key != "description"
    }
    assert shown["description"].lower() in found["description"].lower()
    assert not broken(**taking(example["properties"])) & {"B52", "B56"}
    assert "B56" in broken(**taking({"timeout": {"type": "number", "description": shown["description"]}}))


def test_a_closed_set_is_the_enum_of_the_document(tools: dict[str, Any]) -> None:
    """S-106."""
    good, bad = literals("enum_constraint")
    shown, found = good["browserType"], properties(tools["launch_browser"])["browserType"]
    assert {key: found[key] for key in ("type", "enum", "default")} == {
        key: shown[key] for key in ("type", "enum", "default")
    }
    assert shown["description"] in found["description"]
    assert "B52" in broken(**taking(bad)) and "B55" not in broken(**taking(good))


@pytest.mark.parametrize("engine", ["firefox", "webkit"])
def test_an_engine_that_is_not_there_is_refused_with_what_is(
    workshop: Workshop, engine: str, browser_path: str
) -> None:
    """S-106: so far."""
    refused = error_of(workshop.spawn(*SERVER).call("launch_browser", browserType=engine))
    assert f"{engine} is not there yet: only chromium is" in refused["data"]["error"]


def test_a_number_has_the_bounds_of_the_document(tools: dict[str, Any]) -> None:
    """S-107."""
    [example] = literals("numeric_constraint")
    found = properties(tools["take_screenshot"])["quality"]
    assert found["description"].endswith(example["quality"]["description"])
    assert {key: found[key] for key in ("minimum", "maximum", "default")} == {
        key: example["quality"][key] for key in ("minimum", "maximum", "default")
    }
    for tool in tools.values():
        for parameter in properties(tool).values():
            if parameter["type"] in ("number", "integer"):
                assert {"minimum", "maximum"} <= parameter.keys(), tool["name"]


def test_an_object_lists_its_properties_with_the_defaults_of_the_document(tools: dict[str, Any]) -> None:
    """S-108: it takes no others."""
    [example] = literals("object_properties")
    found = properties(tools["launch_browser"])["viewport"]
    shown = example["viewport"]["properties"]
    assert {key: each["default"] for key, each in found["properties"].items()} == {
        key: each["default"] for key, each in shown.items()
    }
    assert example["viewport"]["description"] in found["description"]
    assert found["additionalProperties"] is False
    assert "B57" not in broken(**taking(example))


def test_a_type_that_is_none_is_an_error() -> None:
    """S-105."""
    assert "E10" in broken("error", **taking({"value": {"type": "any", "description": "Value to store (optional)"}}))


# -- words and categories


def test_descriptions_are_held_to_the_examples_of_the_document() -> None:
    """S-100, S-115."""
    good, bad = (re.findall(r'"(.+)"', part) for part in text_of("descriptions.ts").split("AVOID"))
    [vague] = re.findall(r'BAD\ndescription: "(.+)"', text_of("vague_description.ts"))
    for text in good:
        assert "B51" not in broken(description=text), text
    for text in (*bad, vague):
        assert "B51" in broken(description=text), text


def test_a_parameter_without_context_is_reported() -> None:
    """S-101, S-115."""
    bad, good = literals("parameter_context")
    assert "B52" in broken(**taking(bad))
    assert "B52" not in broken(**taking(good))


def test_categories_are_held_to_the_examples_of_the_document() -> None:
    """S-103, S-115."""
    bad, good = (re.findall(r'"(.+)"', part) for part in text_of("category_names.ts").split("GOOD"))
    for each in bad:
        assert "I40" in broken("error", category=each), each
    for each in good:
        assert "I40" not in broken(category=each), each


def test_the_tools_have_the_standard_categories(tools: dict[str, Any]) -> None:
    """S-102, S-103, S-104."""
    assert set(CATEGORIES) >= STANDARD
    assert {each["category"] for each in tools.values()} == STANDARD
    [name, category] = re.findall(r'(?:name|category): "(.+)"', text_of("category.ts"))
    assert tools[name]["category"] == category


# -- the whole list


def test_the_test_of_the_document_passes_for_our_tools(tools: dict[str, Any], tmp_path: Path) -> None:
    """S-109, S-110, S-116: as it stands, with a validator of draft 7."""
    if not (NODE / "ajv").exists():
        skip("ajv is missing; run `sh scripts/interop` (`make test` does) to run the document's test")
    listed = [{"name": each["name"], "inputSchema": each["input_schema"]} for each in tools.values()]
    (tmp_path / "tools.json").write_text(json.dumps(listed))
    program = tmp_path / "program.mjs"
    program.write_text(f"{HARNESS}\n{text_of('compatibility_test.ts')}")
    argv = [need_command("node", "nodejs"), str(program), str(tmp_path / "tools.json"), str(NODE)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("passed: ") == 2
