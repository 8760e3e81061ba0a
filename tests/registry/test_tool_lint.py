"""Linting at registration: which tools are refused, logged, or not linted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import MappingProxyType
from typing import Annotated, Any

import msgspec
import pytest
from tests.schema.schemas import DOUBLING

from longshore import Client, RegistrationError, Server, Tool, Toolset, tool
from longshore.protocol.content import Icon
from longshore.registry import tool_lint
from longshore.registry.tool_lint import ENFORCED, MIXED, collect_refusals
from longshore.schema.lint import rules as all_rules
from longshore.schema.lint.rule import PROFILES
from longshore.schema.lint.rules import RULES
from longshore.schema.lint.run import lint
from longshore.telemetry.records import Problem
from talk import result

PATH = {"type": "string", "description": "where"}
ROOT_CHOICE: dict[str, Any] = {"type": "object", "properties": {"path": PATH}, "anyOf": [{"required": ["path"]}]}
GOOD: dict[str, Any] = {"type": "object", "properties": {"path": PATH}}
DANGLING: dict[str, Any] = {"type": "object", "properties": {"path": {"$ref": "#/$defs/none"}}}


@pytest.fixture(autouse=True)
def _no_memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def handle(arguments: Any, ctx: Any) -> dict[str, Any]:
    return {"content": []}


def raw(schema: dict[str, Any], name: str = "find", **options: Any) -> Tool:
    return Tool(name=name, input_schema=schema, description="Find a file", **options)


def logged(app: Server) -> list[str]:
    """The warnings that are logged when the server starts."""
    lines: list[str] = []
    stop = app.listen(lambda record: lines.append(record.text) if isinstance(record, Problem) else None)
    app.admission.report()
    stop()
    return lines


def refusal(step: Callable[[], Any]) -> RegistrationError:
    with pytest.raises(RegistrationError) as caught:
        step()
    return caught.value


# -- what becomes of a tool


def test_an_error_is_logged_by_default() -> None:
    app = Server("t")
    app.add_tool(raw(ROOT_CHOICE), handle)
    (line,) = logged(app)
    assert "test_tool_lint.py:" in line and "handle(arguments, ctx): E04: the tool 'find'" in line
    assert line.endswith("(longshore lint --explain E04)") and "optional" in line
    assert logged(app) == [], "each thing is told once"
    assert [each["name"] for each in result(app, "tools/list")["tools"]] == ["find"]


def test_an_error_is_refused_with_place_and_fix_under_refuse() -> None:
    app = Server("t", standards="refuse")
    problem = refusal(lambda: app.add_tool(raw(ROOT_CHOICE), handle))
    assert "test_tool_lint.py:" in problem.where and problem.where.endswith("handle(arguments, ctx)")
    assert problem.what.startswith("E04: the tool 'find': ")
    assert "optional" in problem.fix and problem.fix.endswith("(longshore lint --explain E04)")
    assert app.catalog.tools == {}


def test_nothing_is_linted_under_off() -> None:
    app = Server("t", standards="off")
    app.add_tool(raw(ROOT_CHOICE), handle)
    app.add_tool(raw(DANGLING, "other"), handle)
    assert logged(app) == []


@pytest.mark.parametrize("policy", ["warn", "refuse"])
def test_a_tool_that_mcp_forbids_is_refused_under_warn_and_refuse(policy: Any) -> None:
    app = Server("t", standards=policy)
    assert refusal(lambda: app.add_tool(raw(DANGLING), handle)).what.startswith("E09: ")


def test_an_unbounded_schema_is_refused_at_registration() -> None:
    problem = refusal(lambda: Server("t").add_tool(raw(DOUBLING), handle))
    assert problem.what.startswith("E13: ") and "busy for ever" in problem.what and 'waive={"E13"' in problem.fix
    for harmless in ({"waive": {"E13": "only we call it"}}, {"validate": False}):
        app = Server("t")
        app.add_tool(raw(DOUBLING, **harmless), handle)
        assert "find" in app.catalog.tools


@pytest.mark.parametrize("policy", ["warn", "refuse", "off"])
def test_a_root_that_is_no_object_is_refused_under_every_policy(policy: Any) -> None:
    with pytest.raises(RegistrationError, match="no object at its root"):
        Server("t", standards=policy).add_tool(raw({"type": "string"}), handle)


def test_several_faults_of_one_rule_are_one_log_line() -> None:
    app = Server("t")
    app.add_tool(raw({"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": "array"}}}), handle)
    (line,) = logged(app)
    assert "E08" in line and "(and 1 more)" in line


def test_a_result_that_is_no_object_is_no_fault() -> None:
    app = Server("t", standards="refuse")
    app.add_tool(raw(GOOD, output_schema={"type": "array", "items": {"type": "string"}}), handle)
    assert logged(app) == []


def test_a_tool_added_while_the_server_runs_is_logged_at_once_and_once() -> None:
    app, lines = Server("t"), []
    app.listen(lines.append)
    app.add_tool(raw(ROOT_CHOICE), handle)
    assert len(lines) == 1
    app.add_tool(raw(ROOT_CHOICE), handle, replace=True)
    assert len(lines) == 1, "the same of the same tool is not told twice"


def test_the_number_of_log_lines_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_lint, "MOST_WARNINGS", 3)
    app = Server("t")
    for number in range(6):
        app.add_tool(raw(ROOT_CHOICE, f"find_{number}"), handle)
    lines = logged(app)
    assert len(lines) == 4 and "longshore lint" in lines[3] and "E04" not in lines[3]


# -- typed tools


class Shelf(msgspec.Struct, rename={"row": "the row"}):
    row: int


def by_name(app: Server) -> None:
    app.tool(name="3d_model")(lambda path: path)


def by_parameter(app: Server) -> None:
    exec("def measure(größe: int) -> int:\n    return 1", names := {})
    app.tool(names["measure"])


def by_extra_keyword(app: Server) -> None:
    @app.tool
    def find(path: Annotated[str, msgspec.Meta(extra_json_schema={"default": 3})]) -> str:
        return path


def by_nested_keyword(app: Server) -> None:
    @app.tool
    def find(paths: list[Annotated[str, msgspec.Meta(extra_json_schema={"default": 3})]]) -> str:
        return ""


@pytest.mark.parametrize(
    ("declare", "rule"),
    [(by_name, "E12"), (by_parameter, "E05"), (by_extra_keyword, "E11"), (by_nested_keyword, "E11")],
)
def test_an_authors_additions_to_a_typed_tool_are_linted(declare: Callable[[Server], None], rule: str) -> None:
    app = Server("t")
    declare(app)
    assert [line for line in logged(app) if f": {rule}: " in line]
    assert refusal(lambda: declare(Server("t", standards="refuse"))).what.startswith(f"{rule}: ")


@pytest.mark.parametrize("kind", [list[Shelf], Shelf, dict[str, Shelf] | None])
def test_record_keys_that_are_no_plain_names_are_linted(kind: Any) -> None:
    def find(shelf: Any) -> str:
        return ""

    find.__annotations__["shelf"] = kind
    app = Server("t")
    app.tool(find)
    assert app.catalog.tools["find"].authored


def test_a_plain_typed_tool_is_not_linted() -> None:
    app = Server("t")

    @app.tool(effects="read", examples=[{"path": 3}], category="What ever", tags=["x"])
    def find(path: str, depth: Annotated[int, msgspec.Meta(ge=0)] = 3, kinds: list[str] | None = None) -> list[str]:
        return []

    assert app.admission.standards is None


def test_no_other_warning_rule_finds_an_error() -> None:
    for rule in RULES:
        if rule.level != "error" and rule.id not in MIXED and rule.check is not None:
            errors = lint(rule.bad, profiles=PROFILES, levels=("error",))
            assert rule.id not in {finding.rule for finding in errors}
    assert {*MIXED, *ENFORCED} <= {rule.id for rule in RULES}


class Quoted(msgspec.Struct):
    count: Annotated[int, msgspec.Meta(extra_json_schema={"default": "none"})]


@pytest.mark.parametrize(
    "kind", [Quoted, list[Quoted], Annotated[int, msgspec.Meta(extra_json_schema={"type": "any"})]]
)
def test_an_authors_additions_to_a_result_are_linted(kind: Any) -> None:
    def find(path: str) -> Any:
        return None

    find.__annotations__["return"] = kind
    assert "outputSchema" in refusal(lambda: Server("t", standards="refuse").tool(find)).what


def test_a_schema_inferred_for_linting_is_reused() -> None:
    app = Server("t")
    app.tool(name="count")(lambda quoted: quoted)
    entry = app.catalog.tools["count"]
    one, two = entry.describe(), entry.describe()
    assert one is not two and one["inputSchema"] is two["inputSchema"]


@pytest.mark.parametrize("option", ["title", "description", "category", "help"])
def test_an_option_that_must_be_a_string_is_refused_otherwise(option: str) -> None:
    off: Any = Server("t", standards="off")
    options: Any = {option: 3}
    assert f"{option}=3" in refusal(lambda: off.tool(name="find", **options)(lambda path: path)).what
    assert f"{option}=3" in refusal(lambda: off.add_tool(Tool(name="a", input_schema=GOOD, **options), handle)).what


@pytest.mark.parametrize(
    "options",
    [
        {"icons": [Icon(src="https://example.com/a.png", mime_type="image/png", sizes=("48x48",))]},
        {"input_schema": {**GOOD, "properties": {"path": {"type": ("string", "null")}}}},
        {"input_schema": {**GOOD, "required": ("path",)}},
        {"annotations": MappingProxyType({"readOnlyHint": True})},
    ],
    ids=["icon", "types", "required", "annotations"],
)
def test_a_tool_is_linted_in_its_json_form(options: dict[str, Any]) -> None:
    app = Server("t", standards="refuse")
    app.add_tool(Tool(**{"name": "find", "description": "Find a file", "input_schema": GOOD, **options}), handle)
    assert logged(app) == []


def test_a_fault_inside_of_a_tuple_is_found() -> None:
    closed = {**GOOD, "required": ("where",), "additionalProperties": False}
    assert refusal(lambda: Server("t", standards="refuse").add_tool(raw(closed), handle)).what.startswith("E11: ")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"meta": {"a": object()}}, "type object"),
        ({"annotations": {"title": "\ud800"}}, "surrogates"),
        ({"icons": [object()]}, "type object"),
    ],
)
def test_a_tool_without_a_json_form_is_refused(options: dict[str, Any], why: str) -> None:
    app = Server("t")
    for declare in (
        lambda: app.add_tool(raw(GOOD, validate=False, **options), handle),
        lambda: app.tool(name="find", **options)(lambda path: path),
    ):
        problem = refusal(declare)
        assert "has no form in JSON" in problem.what and why in problem.what
        assert "test_tool_lint.py:" in problem.where


@pytest.mark.parametrize("schema", [lambda: _cyclic(), lambda: _deep(5000)], ids=["cyclic", "deep"])
def test_a_cyclic_or_very_deep_schema_is_refused_even_without_validation(schema: Callable[[], dict[str, Any]]) -> None:
    problem = refusal(lambda: Server("t").add_tool(raw(schema(), validate=False), handle))
    assert "holds itself, or is too deep" in problem.what


HUGE = {"type": "object", "properties": {f"p{n}": {"type": "string", "description": "x" * 60} for n in range(900)}}


def test_a_schema_without_validation_may_have_any_size() -> None:
    assert "bytes" in refusal(lambda: Server("t").add_tool(raw(HUGE), handle)).what
    app = Server("t", standards="refuse")
    app.add_tool(raw(HUGE, validate=False), handle)
    app.add_tool(raw({**GOOD, "$schema": "https://example.com/own"}, "own", validate=False), handle)
    assert logged(app) == []
    of_results = raw(GOOD, "b", output_schema=HUGE, validate=False)  # which are checked all the same
    assert "bytes" in refusal(lambda: Server("t").add_tool(of_results, handle)).what


# -- toolsets


class Mixed(Toolset):
    @tool
    def first(self, path: str) -> str:
        return path

    @tool(name="2nd")
    def second(self, path: str) -> str:
        return path


def test_a_toolset_with_a_refused_tool_adds_nothing() -> None:
    app = Server("t", standards="refuse")
    assert refusal(lambda: app.add_toolset(Mixed())).what.startswith("E12: the tool '2nd'")
    assert (app.catalog.tools, app.catalog.toolsets) == ({}, {})
    mild = Server("t")
    mild.add_toolset(Mixed())
    assert list(mild.catalog.tools) == ["first", "2nd"] and len(logged(mild)) == 1


def test_a_refused_replacement_leaves_the_old_tool() -> None:
    app = Server("t", standards="refuse")
    app.add_tool(raw(GOOD), handle)
    before = app.catalog.tools["find"]
    refusal(lambda: app.add_tool(raw(ROOT_CHOICE), handle, replace=True))
    assert app.catalog.tools == {"find": before}


def test_tools_of_a_mounted_server_are_not_linted() -> None:
    other, app = Server("other", standards="off"), Server("gate", standards="refuse")
    other.add_tool(raw(ROOT_CHOICE), handle)
    app.mount(other, prefix="b")

    async def look() -> list[str]:
        async with Client(app) as client:
            return [each.name for each in await client.list_tools()]

    assert asyncio.run(look()) == ["b_find"]
    assert logged(app) == []


# -- waivers


@pytest.mark.parametrize("policy", ["warn", "refuse"])
def test_a_waived_rule_is_not_logged(policy: Any) -> None:
    of_tool = Server("t", standards=policy)
    of_tool.add_tool(raw(ROOT_CHOICE, waive={"E04": "our only client takes it"}), handle)
    of_all = Server("t", standards=policy, waive={"E04": "our only client takes it"})
    of_all.add_tool(raw(ROOT_CHOICE), handle)
    assert logged(of_tool) == logged(of_all) == []


@pytest.mark.parametrize(
    ("waive", "what"),
    [
        ({"E99": "why"}, "there is no such rule"),
        ({"e04": "why"}, "did you mean 'E04'?"),
        ({"E04": ""}, "E04 is waived without a reason"),
        ({"E04": " \n"}, "E04 is waived without a reason"),
        ({"E04": None}, "E04 is waived without a reason"),
        ({4: "why"}, "there is no such rule"),
    ],
)
def test_a_waiver_of_an_unknown_rule_or_without_a_reason_is_refused(waive: Any, what: str) -> None:
    app = Server("t")
    assert what in str(refusal(lambda: app.add_tool(raw(GOOD, waive=waive), handle)))
    assert what in str(refusal(lambda: app.tool(waive=waive)(handle)))
    assert what in str(refusal(lambda: Server("t", waive=waive)))


def test_an_unknown_policy_is_refused() -> None:
    problem = refusal(lambda: Server("t", standards="strict"))  # type: ignore[arg-type]
    assert "test_tool_lint.py:" in problem.where and "'strict'" in problem.what


# -- categories and examples


def test_a_server_with_categories_requires_them_of_its_tools() -> None:
    def find(path: str) -> str:
        """Find a file."""
        return path

    app = Server("t", categories=["files"])
    app.tool(category="files")(find)
    app.tool(name="b", category="Files")(find)
    app.tool(name="c")(find)
    app.tool(name="d", category="files")(lambda path: path)
    lines = logged(app)
    assert {line.split("the tool ")[1][:3] for line in lines} == {"'b'", "'c'", "'d'"}
    strict = Server("t", standards="refuse", categories=["files"])
    strict.tool(category="files")(find)
    assert "'Files'" in refusal(lambda: strict.tool(name="b", category="Files")(find)).what


def test_the_name_of_a_toolset_is_a_category() -> None:
    class Files(Toolset):
        @tool
        def find(self, path: str) -> str:
            """Find a file."""
            return path

    app = Server("t", standards="refuse", categories=["files"])
    app.add_toolset(Files())
    assert list(app.catalog.tools) == ["find"]


@pytest.mark.parametrize("waive", ["E04", ["E04"], {"E04"}, 3, [("E04", "why")]])
def test_waivers_that_are_no_mapping_are_refused(waive: Any) -> None:
    problem = refusal(lambda: Server("t", waive=waive))
    assert "is no mapping" in problem.what and "test_tool_lint.py:" in problem.where


@pytest.mark.parametrize("categories", [3, [3], b"files", [None]])
def test_categories_that_are_no_strings_are_refused(categories: Any) -> None:
    assert "is no list of texts" in refusal(lambda: Server("t", categories=categories)).what


def test_a_string_instead_of_a_list_of_categories_is_refused() -> None:
    assert "categories=['files']" in refusal(lambda: Server("t", categories="files")).fix


@pytest.mark.parametrize("example", [{"path": 3}, {"where": "x"}, {}, "path", None, [1], {"path": "x" * 500, "b": 1}])
def test_an_example_that_the_tool_would_refuse_is_refused(example: Any) -> None:
    def find(path: str) -> str:
        return path

    closed = {**GOOD, "required": ["path"], "additionalProperties": False}
    strict = Server("t", standards="refuse")
    for declare in (
        lambda: strict.tool(examples=[{"path": "x"}, example])(find),
        lambda: strict.add_tool(raw(closed, examples=[{"path": "x"}, example]), handle),
    ):
        problem = refusal(declare)
        assert problem.what.startswith("B58: the tool 'find' does not take its example ")
        assert len(problem.what) < 400
    Server("t").tool(examples=[example])(find)


# -- malformed schemas


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def _cyclic() -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema["properties"]["self"] = schema
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        _deep(5000),
        _cyclic(),
        {"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(20_000)}},
        {"type": "object", "properties": 3, "required": {}, "$defs": None},
        {"type": "object", "properties": {"a": {"default": {1, 2}}}},
        {"type": "object", 3: 4},
        {"type": "object", "properties": {"\ud800": {"type": "string"}}},
    ],
    ids=["deep", "cyclic", "wide", "no maps", "no JSON", "odd key", "surrogate"],
)
def test_a_malformed_schema_is_refused_or_logged_and_raises_nothing_else(schema: Any) -> None:
    app = Server("t")
    try:
        app.add_tool(raw(schema), handle)
    except RegistrationError:
        return
    assert all(len(line) < 2000 and "could not be checked" not in line for line in logged(app))


def _failing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise RecursionError("too deep")

    rules = [msgspec.structs.replace(rule, check=fail) if rule.id == "E01" else rule for rule in RULES]
    monkeypatch.setattr(all_rules, "RULES", rules)


def test_a_rule_that_raises_does_not_stop_the_server_and_is_not_cached(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as broken:
        _failing(broken)
        app = Server("t", standards="refuse")
        app.add_tool(raw(GOOD), handle)
        (line,) = logged(app)
        assert "the tool 'find' could not be checked by E01: RecursionError" in line
    mended = Server("t", standards="refuse")
    mended.add_tool(raw(GOOD), handle)
    assert logged(mended) == [], "it is not remembered"


def test_a_rule_that_raises_does_not_hide_findings_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    _failing(monkeypatch)
    assert refusal(lambda: Server("t", standards="refuse").add_tool(raw(ROOT_CHOICE), handle)).what.startswith("E04")
    app = Server("t")
    app.add_tool(raw(ROOT_CHOICE), handle)
    assert [line.split(": ")[1] for line in logged(app)] == ["E04", "the tool 'find' could not be checked by E01"]


# -- collecting


def test_refusals_are_collected_and_other_tools_are_registered() -> None:
    with collect_refusals() as found:
        app = Server("t", standards="refuse")
        app.tool(name="bad name")(handle)
        app.add_tool(raw({"type": "array"}), handle)
        app.add_tool(raw(ROOT_CHOICE, "odd"), handle)
        app.add_toolset(Mixed())
        app.add_toolset(Mixed())
    reasons = ("'bad name' can't be", "no object at its root", "a toolset named 'mixed' is there")
    assert all(reason in problem.what for problem, reason in zip(found, reasons, strict=True))
    assert list(app.catalog.tools) == ["odd", "first", "2nd"]
    refusal(lambda: app.add_tool(raw(ROOT_CHOICE), handle))


@pytest.mark.parametrize(
    ("policy", "reasons"),
    [
        ("refuse", ["no such rule", "without a reason", "B58"]),
        ("warn", ["no such rule", "without a reason"]),
        ("off", []),
    ],
)
def test_refused_waivers_and_examples_are_collected(policy: Any, reasons: list[str]) -> None:
    def take(n: int) -> None: ...

    with collect_refusals() as found:
        app = Server("t", standards=policy)
        app.tool(name="a", waive={"E99": "why"})(take)
        app.tool(name="b", waive={"E04": " "})(take)
        app.tool(name="c", examples=[{"m": 1}])(take)
        app.tool(name="d", examples=[{"n": 1}], waive={"E04": "why"})(take)
    assert len(found) == len(reasons)
    assert all(reason in problem.what for problem, reason in zip(found, reasons, strict=True))
    assert list(app.catalog.tools) == ["a", "b", "c", "d"], "and are looked at"
