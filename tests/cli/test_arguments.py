"""`key=value` words read by schemas of every kind."""

from __future__ import annotations

import os
import threading
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schema.schemas import DOUBLING

from longshore.cli import arguments
from longshore.cli.arguments import (
    MOST_PARTS,
    BadArguments,
    Files,
    Word,
    build,
    child,
    parts,
    read_base,
    read_words,
    take_text,
    types,
)
from longshore.cli.prompts import find_faults
from longshore.cli.screen import clean, json_text


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False}


def made(shape: dict[str, Any], *words: str, base: dict[str, Any] | None = None) -> dict[str, Any]:
    return build(shape, read_words(words), base or {})


def wrong(shape: dict[str, Any], *words: str, base: dict[str, Any] | None = None) -> list[str]:
    with pytest.raises(BadArguments) as caught:
        made(shape, *words, base=base)
    return caught.value.lines


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ({"type": "string"}, "5", "5"),
        ({"type": "string"}, "null", "null"),
        ({"type": "string"}, "", ""),
        ({"type": "integer"}, "5", 5),
        ({"type": "integer"}, "-5", -5),
        ({"type": "integer"}, "9" * 30, int("9" * 30)),
        ({"type": "number"}, "5", 5),
        ({"type": "number"}, "1e3", 1000.0),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "0", False),
        ({"type": "null"}, "null", None),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "array", "items": {"type": "integer"}}, "7", [7]),
        ({"type": "array", "items": {"type": "string"}}, "a,b", ["a,b"]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5", 5),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "null", None),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "5", "5"),
        ({"type": ["integer", "null"]}, "5", 5),
        ({"enum": [1, 2, "three"]}, "2", 2),
        ({"enum": [1, 2, "three"]}, "three", "three"),
        ({"const": True}, "true", True),
        ({"$ref": "#/$defs/n"}, "5", 5),
        ({"$ref": "#/$defs/any", "type": "string"}, "5", "5"),
        ({"allOf": [{"type": "string"}, {"pattern": "^[0-9]+$"}]}, "00100", "00100"),
        ({"allOf": [{"type": ["integer", "string"]}, {"type": "integer"}]}, "5", 5),
        ({"allOf": [{"type": "number"}, {"type": "integer"}]}, "5", 5),
        ({"type": "integer", "anyOf": [{"minimum": 3}, {"maximum": 1}]}, "5", 5),
        ({"anyOf": [{"type": "integer"}, {"type": "string", "enum": ["auto"]}]}, "5", 5),
        ({"anyOf": [{"type": "integer"}, {"type": "string", "enum": ["auto"]}]}, "auto", "auto"),
        ({"type": ["array", "null"], "items": {"type": "string"}}, "5", ["5"]),
        ({"type": "number"}, ".5", 0.5),
        ({}, "5", 5),
        ({}, "five", "five"),
        ({}, '{"a": [1]}', {"a": [1]}),
        (True, "five", "five"),
    ],
)
def test_a_text_is_read_as_the_schema_says(kind: Any, text: str, value: Any) -> None:
    shape = {**schema(k=kind), "$defs": {"n": {"type": "integer"}, "any": {}}}
    found = made(shape, f"k={text}")["k"]
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        ({"type": "integer"}, "5.5", 'k: expected an integer, got "5.5"'),
        ({"type": "integer"}, "", 'k: expected an integer, got ""'),
        ({"type": "number"}, "nan", 'k: expected a number, got "nan"'),
        ({"type": "number"}, "1e999", 'k: expected a number, got "1e999"'),
        ({"type": "number"}, "1_000.0", 'k: expected a number, got "1_000.0"'),
        ({"type": "number"}, "１", 'k: expected a number, got "１"'),
        ({"type": "boolean"}, "2", 'k: expected a boolean, got "2"'),
        ({"type": "array", "items": {"type": "integer"}}, "x", 'k: expected an integer, got "x"'),
        ({"type": "array"}, "[1", 'k: expected an array, got "[1"; write a JSON array, or the key once for each item'),
        ({"type": "object"}, "x", 'k: expected an object, got "x"; write it as JSON'),
        ({"type": "integer", "minimum": 3}, "2", "k: must be >= 3; got 2"),
        ({"type": "string", "pattern": "^a"}, "b", 'k: must match the pattern ^a; got "b"'),
    ],
)
def test_a_value_that_does_not_fit_the_schema_is_refused(kind: Any, text: str, said: str) -> None:
    assert wrong(schema(k=kind), f"k={text}") == [said]


def test_colon_equals_reads_json() -> None:
    shape = schema(k={"type": "string"}, n={})
    assert made(shape, 'k:="@x"', "n:=null") == {"k": "@x", "n": None}
    assert wrong(shape, "k:=5") == ["k: expected a string, got a number"]
    assert "expected JSON after :=" in wrong(shape, "n:={")[0]


def test_a_value_may_contain_equals_signs() -> None:
    assert made(schema(k={"type": "string"}), "k=a=b:=c") == {"k": "a=b:=c"}


def test_argument_files_are_read(tmp_path: Path) -> None:
    file = tmp_path / "f"
    shape = schema(t={"type": "string"}, n={"type": "integer"}, o={"type": "object"},
                   b={"type": "string", "contentEncoding": "base64"})  # fmt: skip
    file.write_text("five\n")
    assert made(shape, f"t=@{file}") == {"t": "five\n"}
    file.write_text('{"a": 1}')
    assert made(shape, f"o=@{file}") == {"o": {"a": 1}}
    file.write_bytes(b"\xff\x00")
    assert made(shape, f"b=@{file}") == {"b": "/wA="}
    assert wrong(shape, f"t=@{file}") == ["t: the file holds no UTF-8 text"]
    assert "t:='\"@…\"'" in wrong(shape, "t=@nobody")[0]


def test_a_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (lambda: made(schema(t={"type": "string"}), f"t=@{pipe}"), lambda: read_base(f"@{pipe}")):
        writer = threading.Thread(target=pipe.write_text, args=('{"t": "' + "x" * 100_000 + '"}',))
        writer.start()
        assert len(str(read()["t"])) >= 100_000
        writer.join(20)


def test_a_folder_as_an_argument_file_is_refused(tmp_path: Path) -> None:
    assert "Is a directory" in wrong(schema(t={"type": "string"}), f"t=@{tmp_path}")[0]
    with pytest.raises(BadArguments, match=r"--args: .*Is a directory"):
        read_base(f"@{tmp_path}")


def test_the_size_of_an_argument_file_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arguments, "FILE_BYTES", 10)
    file, shape = tmp_path / "f", schema(t={"type": "string"})
    for size in (9, 10):
        file.write_bytes(b"x" * size)
        assert made(shape, f"t=@{file}") == {"t": "x" * size}
    file.write_bytes(b"x" * 11)
    assert "has more than" in wrong(shape, f"t=@{file}")[0]


def test_stdin_can_be_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"once")))
    files = Files()
    assert files.read("-", "a") == b"once"
    with pytest.raises(BadArguments, match="b: a has read the standard input already"):
        files.read("-", "b")


def test_a_dotted_key_sets_a_property_of_an_object() -> None:
    inner = {"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "string"}}}
    shape = schema(p=inner, **{"d.t": {"type": "integer"}})
    assert made(shape, "p.x=1", "p.y=2", "d.t=3") == {"p": {"x": 1, "y": "2"}, "d.t": 3}
    assert made(shape, "p.x=1", base={"p": {"y": "0"}}) == {"p": {"y": "0", "x": 1}}
    assert wrong(shape, "p.z=1") == ["p.z: there is no such argument; there are x, y"]
    assert "so it has no parts" in wrong(schema(p={}), "p=1", "p.x=1")[0]


def test_the_object_of_args_is_not_changed() -> None:
    base = {"p": {"y": 1}}
    made(schema(p={"type": "object"}), "p.x=2", base=base)
    assert base == {"p": {"y": 1}}


def test_a_key_given_twice_is_refused_unless_it_is_an_array() -> None:
    assert wrong(schema(k={"type": "integer"}), "k=1", "k=2") == ["k: it was given twice"]
    assert made(schema(k={"type": "array"}), "k=1", "k=[2, 3]") == {"k": [1, 2, 3]}
    assert made(schema(k={"type": "integer"}), "k=2", base={"k": 1}) == {"k": 2}


def test_unknown_arguments_are_refused_unless_the_schema_allows_them() -> None:
    assert wrong({"type": "object", "properties": {"city": {}}}, "ciy=1")[0].endswith("did you mean 'city'?")
    assert made({"type": "object"}, "any=1") == {"any": 1}
    assert made({"type": "object", "properties": {"a": {}}, "additionalProperties": True}, "b=1") == {"b": 1}
    numbers = {"type": "object", "additionalProperties": {"type": "integer"}}
    assert wrong(numbers, "b=x") == ['b: expected an integer, got "x"']
    assert wrong(schema(a={}), base={"b": 1}) == ["b: unknown field"]


CITY_OR_ZIP = [
    {"properties": {"city": {"type": "string"}}, "required": ["city"]},
    {"properties": {"zip": {"type": "string"}}, "required": ["zip"]},
]


@pytest.mark.parametrize("union", ["anyOf", "oneOf"])
def test_a_union_beside_properties(union: str) -> None:
    shape = {"type": "object", "properties": {"kind": {"type": "integer"}}, union: CITY_OR_ZIP}
    assert made(shape, "kind=1", "city=Rome") == {"kind": 1, "city": "Rome"}
    assert made(shape, "zip=00100") == {"zip": "00100"}
    assert wrong(shape, "town=Rome")[0] == "town: there is no such argument; there are kind, city, zip"


def test_alternatives_may_differ_in_one_argument() -> None:
    forms = [{"properties": {"id": {"type": "integer"}}}, {"properties": {"id": {"type": "array"}}}]
    shape = {"type": "object", "oneOf": forms}
    assert made(shape, "id=5") == {"id": 5}
    assert made(shape, "id=[5]") == {"id": [5]}


def test_all_of_merges_properties() -> None:
    shape = {"type": "object", "properties": {"a": {"type": "string"}}, "allOf": [{"properties": {"b": {}}}, {}]}
    assert made(shape, "a=1", "b=x") == {"a": "1", "b": "x"}


def test_an_argument_declared_twice_under_all_of_has_the_types_of_both() -> None:
    loose, strict = {"properties": {"a": {"type": ["integer", "string"]}}}, {"properties": {"a": {"type": "integer"}}}
    assert made({"type": "object", "allOf": [loose, strict]}, "a=1") == {"a": 1}
    assert made({"type": "object", **loose, "$ref": "#/$defs/x", "$defs": {"x": strict}}, "a=1") == {"a": 1}
    assert made({"type": "object", "anyOf": [loose, strict]}, "a=1") == {"a": "1"}
    patterns = {"^a": {"type": ["integer", "string"]}, "a$": {"type": "integer"}}
    assert made({"type": "object", "patternProperties": patterns}, "a=1") == {"a": 1}
    others = [{"additionalProperties": each["properties"]["a"]} for each in (loose, strict)]
    assert made({"type": "object", "allOf": others}, "a=1") == {"a": 1}
    assert made({"type": "object", "additionalProperties": {}}, "a=1") == {"a": 1}


def test_a_schema_that_refers_to_itself_is_read() -> None:
    shape = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "allOf": [{"$ref": "#"}, {"$ref": "#/allOf/0"}],
    }
    assert made(shape, "a=1") == {"a": 1}


def test_pattern_properties_are_arguments() -> None:
    patterns = {"^s-": {"type": "string"}, "^n-": {"type": "integer"}}
    shape = {"type": "object", "patternProperties": patterns, "additionalProperties": False}
    assert made(shape, "s-a=1", "n-a=1") == {"s-a": "1", "n-a": 1}
    assert wrong(shape, "x=1") == ["x: unknown field"]
    assert made({"type": "object", "properties": {"a": {}}, "patternProperties": patterns}, "n-b=1") == {"n-b": 1}


def test_keywords_beside_a_reference_count() -> None:
    shape = {**schema(k={"$ref": "#/$defs/n", "description": "how many"}), "required": ["k"]}
    shape["$defs"] = {"n": {"type": "integer", "description": "a number"}}
    assert wrong(shape) == ["k: missing, an integer: how many"]


def test_the_number_of_considered_parts_is_limited() -> None:
    for count in (MOST_PARTS - 2, MOST_PARTS - 1, MOST_PARTS, 10_000):
        union = {"anyOf": [{"type": "integer"} for _ in range(count)]}
        assert len(parts(union, {})) == min(count + 1, MOST_PARTS)
    assert types({"anyOf": [{"type": "integer"}] * (MOST_PARTS - 1)}, {}) == {"integer"}


@pytest.mark.parametrize(
    "shape",
    [
        {"properties": 3, "required": "a"},
        {"type": "object", "properties": {"k": {"$ref": "#/properties/k"}}},
        {"type": "object", "properties": {"k": {"type": ["array", "object"], "items": {"$ref": "#/properties/k"}}}},
        {"type": "object", "properties": {"k": {"$ref": "http://127.0.0.1:1/x"}}},
        {"type": "object", "properties": {"k": {"anyOf": [{"$ref": "#"}]}}},
        {"type": "object", "properties": {"k": {"type": 7, "enum": 3, "anyOf": {}}}},
        {"type": "object", "required": [1, {}]},
        {"type": "object", "properties": {"k": {"anyOf": [{"$ref": "#/properties/k"}] * 50}}},
    ],
)
def test_malformed_schemas_raise_no_other_exception(shape: dict[str, Any]) -> None:
    try:
        made(shape, "k=x")
    except BadArguments as problem:
        assert problem.lines


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "enum",
                    "anyOf",
                    "allOf",
                    "oneOf",
                    "$ref",
                    "patternProperties",
                    "items",
                    "properties",
                    "const",
                    "k",
                    "required",
                ]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(JSON, st.text(max_size=8))
def test_any_schema_is_read_without_an_exception(shape: Any, text: str) -> None:
    types(shape, {"properties": {"k": shape}})
    child(shape, {"properties": {"k": shape}}, "k")
    try:
        take_text(text, shape, {"properties": {"k": shape}})
    except ValueError as problem:
        assert "expected" in str(problem)


@given(st.text())
def test_a_cleaned_text_has_no_control_characters(text: str) -> None:
    shown = clean(text)
    assert all(letter in "\n\t" or ord(letter) >= 32 for letter in shown)
    assert not any(0x7F <= ord(letter) <= 0x9F for letter in shown)


@given(st.text())
def test_printed_json_is_equal_and_has_no_control_characters(text: str) -> None:
    import json

    proper = text.encode("utf-8", "replace").decode()
    printed = json_text([proper])
    assert json.loads(printed) == [proper]
    assert not any(0x7F <= ord(letter) <= 0x9F or letter == "\x1b" for letter in printed)


def test_words_are_split_into_key_and_value() -> None:
    assert read_words(["a=1", "b:=2", "c:d=3"]) == [Word("a", "1"), Word("b", "2", True), Word("c:d", "3")]
    with pytest.raises(BadArguments) as caught:
        read_words(["a", "=b", ":=c"])
    assert len(caught.value.lines) == 3


def test_a_schema_that_is_too_costly_is_not_checked() -> None:
    assert made(DOUBLING, base={"x": 1}) == {"x": 1}  # the schema wants an object there
    doubling: dict[str, Any] = {str(n): {"allOf": [{"$ref": f"#/properties/f/$defs/{n + 1}"}] * 2} for n in range(16)}
    field = {"$ref": "#/properties/f/$defs/0", "$defs": {**doubling, "16": {"type": "object"}}}
    assert find_faults("f", {"type": "object"}, 1) and not find_faults("f", field, 1)
