import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counts import count
from longshore.schema.phrase import cut, quote
from longshore.schema.validate import SCHEMA_BYTES, SCHEMA_DEPTH, SchemaProblem, compile
from longshore.schema.violations import SHOWN_LINES

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "pattern": "^[A-Z]"},
        "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 3, "uniqueItems": True},
        "home": {"anyOf": [{"type": "string"}, {"type": "object", "required": ["street"]}]},
        "kind": {"const": "person"},
        "pick": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "even": {"multipleOf": 2},
    },
    "required": ["name"],
    "additionalProperties": False,
}


def test_a_valid_value_has_no_errors() -> None:
    validator = compile(PERSON)
    assert validator.errors({"name": "Ada", "age": 36, "tags": ["a"]}) == []
    assert validator.is_valid({"name": "Ada"}) and not validator.is_valid({})


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ([], ["expected an object, got an array"]),
        ({}, ["name: missing (a string, required)"]),
        ({"name": 1}, ["name: expected a string, got a number"]),
        ({"name": "A", "age": 1.5}, ["age: expected an integer, got 1.5"]),
        ({"name": "A", "age": None}, ["age: expected an integer, got null"]),
        ({"name": "A", "age": -1}, ["age: must be >= 0; got -1"]),
        ({"name": "A", "age": 150}, ["age: must be < 150; got 150"]),
        ({"name": "", "age": True}, None),
        ({"name": "A", "tags": ["a", "c"]}, ['tags[1]: must be one of "a", "b"; got "c"']),
        (
            {"name": "A", "tags": ["a"] * 4},
            ["tags: must have at most 3 items; got 4 items", "tags: must not repeat items"],
        ),
        ({"name": "A", "home": {}}, ["home.street: missing"]),
        ({"name": "A", "home": 3}, ["home: expected a string or an object, got a number"]),
        ({"name": "A", "pick": 3}, ["pick: expected a string or null, got a number"]),
        ({"name": "A", "kind": "x"}, ['kind: must be "person"; got "x"']),
        ({"name": "A", "even": 3}, ["even: must be a multiple of 2; got 3"]),
        ({"name": "A", "nmae": 1, "z": 2}, ["nmae: unknown field; did you mean name?", "z: unknown field"]),
        ({"name": "a"}, ['name: must match the pattern ^[A-Z]; got "a"']),
    ],
)
def test_each_failure_is_one_plain_line(value: Any, lines: list[str] | None) -> None:
    found = compile(PERSON).errors(value)
    assert lines is None or sorted(found) == sorted(lines)
    assert len(found) >= 1
    assert not any("`" in line or "http" in line or "schema" in line.lower() for line in found)


SEVERAL = "fits several of the forms of which it may fit one"


@pytest.mark.parametrize(
    ("forms", "line"),
    [
        ([{"required": ["url"]}, {"required": ["path"]}], f"{SEVERAL}: leave out url or path"),
        ([{"required": ["id", "url"]}, {"required": ["id", "path"]}], f"{SEVERAL}: leave out url or path"),
        (
            [{"required": ["id", "url"]}, {"required": ["path"]}, {"type": "string"}],
            f"{SEVERAL}: leave out id and url or path",
        ),
        ([{"required": ["id"]}, {"required": ["id", "url"]}], SEVERAL),
        ([{"required": ["id"]}, {"minProperties": 1}], SEVERAL),
        ([{"required": ["id"]}, True], SEVERAL),
    ],
)
def test_a_value_of_two_exclusive_forms_gets_a_line_that_says_what_to_leave_out(forms: list[Any], line: str) -> None:
    assert compile({"oneOf": forms}).errors({"id": 1, "url": "a", "path": "b"}) == [line]


@pytest.mark.parametrize(("count", "last"), [(SHOWN_LINES, "[19]"), (SHOWN_LINES + 1, "… and 1 more")])
def test_many_failures_are_cut_and_counted(count: int, last: str) -> None:
    found = compile({"items": {"type": "string"}}).errors([1] * count)
    assert len(found) == SHOWN_LINES + (count > SHOWN_LINES)
    assert found[-1].startswith(last)


def test_hostile_values_are_cut_and_escaped() -> None:
    (line,) = compile({"enum": ["a"]}).errors("\x1b[31m\u202e" + "x" * 500)
    assert "\x1b" not in line and "\u202e" not in line
    assert len(line) < 150


@given(
    st.recursive(st.none() | st.integers() | st.text(), lambda each: st.lists(each) | st.dictionaries(st.text(), each))
)
@settings(max_examples=count(60), deadline=None)
def test_a_quoted_value_is_its_beginning(value: Any) -> None:
    assert quote(value) == cut(msgspec.json.encode(value).decode())
    assert quote([value] * 50) == cut(msgspec.json.encode([value] * 50).decode())


def test_no_reference_is_ever_fetched(tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text('{"type": "string"}')
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        port = server.getsockname()[1]
        for ref in (f"http://127.0.0.1:{port}/x.json", f"https://127.0.0.1:{port}/x", outside.as_uri(), "other.json"):
            for schema in ({"$ref": ref}, {"properties": {"a": {"items": {"$ref": ref}}}}, {"$dynamicRef": ref}):
                with pytest.raises(SchemaProblem) as caught:
                    compile(schema)
                assert "never fetched" in caught.value.what
                assert "$defs" in caught.value.fix
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_metaschema_is_not_fetched_either() -> None:
    for schema in (
        {"$schema": "http://127.0.0.1:9/custom"},
        {"properties": {"a": {"$schema": "http://127.0.0.1:9/custom", "$id": "x"}}},
        {"items": [{"$schema": "http://127.0.0.1:9/custom", "$id": "x"}]},
        {"dependencies": {"a": {"$schema": "http://127.0.0.1:9/custom", "$id": "x"}, "b": ["a"]}},
    ):
        with pytest.raises(SchemaProblem, match="is not supported"):
            compile(schema)


def test_references_inside_the_schema_work() -> None:
    tree = {"$defs": {"t": {"type": "object", "properties": {"next": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"}
    assert compile(tree).errors({"next": {"next": 1}}) == ["next.next: expected an object, got a number"]
    embedded = {"$defs": {"e": {"$id": "https://example.com/e", "type": "integer"}}, "$ref": "https://example.com/e"}
    assert compile(embedded).errors("a") == ["expected an integer, got a string"]


@pytest.mark.parametrize(
    ("dialect", "schema", "value"),
    [
        ("https://json-schema.org/draft/2020-12/schema", {"prefixItems": [{"type": "string"}]}, [1]),
        ("http://json-schema.org/draft-07/schema#", {"items": [{"type": "string"}]}, [1]),
        ("http://json-schema.org/draft-04/schema#", {"maximum": 3, "exclusiveMaximum": True}, 3),
    ],
)
def test_known_dialects_are_honoured(dialect: str, schema: dict[str, Any], value: Any) -> None:
    assert not compile({"$schema": dialect, **schema}).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "what", "fix"),
    [
        (True, "not an object", "JSON object"),
        ([], "not an object", "JSON object"),
        ({"type": "strin"}, "invalid at type", "correct it"),
        ({"properties": {"a": {"minimum": "x"}}}, "invalid at properties.a.minimum", "expected a number, got a string"),
        ({"$ref": "#/$defs/none"}, "leads nowhere", "$defs"),
        ({"pattern": "(("}, "invalid", "correct it"),
        ({"default": object()}, "not JSON", "only dicts"),
    ],
)
def test_an_unusable_schema_is_refused_with_a_remedy(schema: Any, what: str, fix: str) -> None:
    with pytest.raises(SchemaProblem) as caught:
        compile(schema)
    assert what in caught.value.what
    assert fix in caught.value.fix


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(levels - 1):
        schema = {"not": schema}
    return schema


def test_depth_is_limited_at_its_edge() -> None:
    compile(nested(SCHEMA_DEPTH - 1))
    compile(nested(SCHEMA_DEPTH))
    with pytest.raises(SchemaProblem, match=f"deeper than {SCHEMA_DEPTH} levels"):
        compile(nested(SCHEMA_DEPTH + 1))


def test_size_is_limited_at_its_edge() -> None:
    frame = len(msgspec.json.encode({"description": ""}))
    compile({"description": "x" * (SCHEMA_BYTES - frame - 1)})
    compile({"description": "x" * (SCHEMA_BYTES - frame)})
    with pytest.raises(SchemaProblem, match=f"{SCHEMA_BYTES + 1} bytes, more than {SCHEMA_BYTES}"):
        compile({"description": "x" * (SCHEMA_BYTES - frame + 1)})


def test_a_schema_that_contains_itself_is_refused() -> None:
    schema: dict[str, Any] = {}
    schema["not"] = schema
    with pytest.raises(SchemaProblem, match="deeper"):
        compile(schema)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", r"^(a+)+\1$", "^(?=(a+)+$)"])
def test_evil_patterns_end(pattern: str) -> None:
    # A backtracking engine would need longer than the universe has; the suite's time limit is the judge.
    assert compile({"pattern": pattern}).errors("a" * 50_000 + "!")


# -- addresses and names


def test_a_part_of_a_schema_with_an_address_is_asked_about_names_in_the_whole() -> None:
    """The library panicked: the whole's address was there twice."""
    schema = {
        "$id": "https://example.com/order",
        "properties": {"weight": {"$ref": "#weight"}, "kind": {"enum": ["book"]}},
        "unevaluatedProperties": False,
        "$defs": {"w": {"$anchor": "weight", "type": "number"}},
    }
    assert compile(schema).errors({"weight": 1, "zzz": 2}) == ["zzz: unknown field"]
    assert "kind: " in "\n".join(compile(schema).errors({"weight": "1", "kind": "boook"}))


def test_two_schemas_of_one_address_are_refused() -> None:
    """The library panics, which no `except Exception` would have caught."""
    twice = {
        "$defs": {"a": {"$id": "https://example.com/a", "$anchor": "v"}, "b": {"$id": "https://example.com/a"}},
        "$ref": "https://example.com/a#v",
    }
    with pytest.raises(SchemaProblem, match="can't be told apart"):
        compile(twice)
