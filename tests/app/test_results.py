"""How a return value reaches the client: text, structured content, blocks, and what happens to a wrong one."""

from __future__ import annotations

import base64
import datetime
import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Optional, TypedDict, Union

import jsonschema_rs
import msgspec
import pydantic
import pytest

from longshore import (
    Annotations,
    Audio,
    CallResult,
    Contents,
    EmbeddedResource,
    Icon,
    Image,
    Limits,
    ResourceLink,
    Server,
    Text,
)
from longshore.config import load
from longshore.protocol.revisions import NAMES
from longshore.telemetry.records import Problem
from talk import ERAS, NEWEST, NEWEST_LEGACY, OLDEST, call, listed, talk, text

PNG = b"\x89PNG\r\n\x1a\n\xff"
PNG64 = base64.b64encode(PNG).decode()
WITH_STRUCTURED = NAMES[2:]


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: float = 0.5


class Box(msgspec.Struct):
    name: str
    points: list[Point]


class Car(TypedDict):
    wheels: int


class Pair(NamedTuple):
    left: int
    right: str


class User(pydantic.BaseModel):
    name: str
    born: datetime.date | None = None


def returning(annotation: Any, value: Any, *, run: str | None = "inline", **options: Any) -> Server:
    """A server with one tool `f` that returns the value."""
    app = Server("t")

    def f() -> Any:
        return value() if callable(value) and not isinstance(value, type) else value

    if annotation is ...:
        f.__annotations__.pop("return")
    else:
        f.__annotations__["return"] = annotation
    app.tool(run=run, **options)(f)  # type: ignore[call-overload]
    return app


# -- structured results

WHEN = datetime.datetime(2026, 7, 28, 12, 0, tzinfo=datetime.UTC)
STRUCTURED: list[tuple[str, Any, Any, Any]] = [
    ("int", int, 3, {"result": 3}),
    ("float", float, 2.5, {"result": 2.5}),
    ("whole float", float, 2.0, {"result": 2.0}),
    ("bool", bool, True, {"result": True}),
    ("list", list[int], [1, 2], {"result": [1, 2]}),
    ("bare list", list, ["a", 1], {"result": ["a", 1]}),
    ("tuple", tuple[int, str], (1, "a"), {"result": [1, "a"]}),
    ("dict", dict[str, int], {"a": 1}, {"a": 1}),
    ("bare dict", dict, {"a": [1]}, {"a": [1]}),
    ("mapping", Mapping[str, int], {"a": 1}, {"a": 1}),
    ("dataclass", Point, Point(1), {"x": 1, "y": 0.5}),
    ("list of dataclasses", list[Point], [Point(1)], {"result": [{"x": 1, "y": 0.5}]}),
    ("struct", Box, Box("b", [Point(1, 2.5)]), {"name": "b", "points": [{"x": 1, "y": 2.5}]}),
    ("TypedDict", Car, {"wheels": 4}, {"wheels": 4}),
    ("NamedTuple", Pair, Pair(1, "r"), {"result": [1, "r"]}),
    ("model", User, User(name="u", born=datetime.date(2000, 1, 2)), {"name": "u", "born": "2000-01-02"}),
    ("list of models", list[User], [User(name="u")], {"result": [{"name": "u", "born": None}]}),
    ("enum", Colour, Colour.RED, {"result": "red"}),
    ("Literal", Literal["a", "b"], "a", {"result": "a"}),
    ("datetime", datetime.datetime, WHEN, {"result": "2026-07-28T12:00:00Z"}),
    ("Optional", Optional[int], None, {"result": None}),  # noqa: UP045
    ("Optional dataclass", Point | None, Point(2), {"result": {"x": 2, "y": 0.5}}),
    ("union", Union[int, str], "s", {"result": "s"}),  # noqa: UP007
    ("set", set[int], {1}, {"result": [1]}),
    ("bytes", bytes, b"hi", {"result": "aGk="}),
]


@pytest.mark.parametrize(
    ("annotation", "value", "wire"), [row[1:] for row in STRUCTURED], ids=[r[0] for r in STRUCTURED]
)
@pytest.mark.parametrize("revision", NAMES)
def test_a_declared_type_gives_text_and_structured_content_that_keep_the_schema(
    annotation: Any, value: Any, wire: Any, revision: str
) -> None:
    app = returning(annotation, value)
    answer = call(app, "f", revision=revision)
    inner = wire["result"] if isinstance(wire, dict) and wire.keys() == {"result"} else wire
    assert json.loads(text(answer)) == inner
    assert "isError" not in answer
    if revision not in WITH_STRUCTURED:
        assert "structuredContent" not in answer
        assert "outputSchema" not in listed(app, "f", revision)
        return
    assert answer["structuredContent"] == wire
    schema = listed(app, "f", revision)["outputSchema"]
    assert schema["type"] == "object"
    jsonschema_rs.Draft202012Validator(schema).validate(answer["structuredContent"])


@pytest.mark.parametrize("run", ["inline", "thread"])
@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (int, "3"),
        (int, 3.5),
        (int, None),
        (bool, 1),
        (float, float("nan")),
        (float, "x"),
        (list[int], [1, "2"]),
        (dict[str, int], {"a": "b"}),
        (Point, {"x": "no"}),
        (Point, {"y": 1.0}),
        (Box, Point(1)),
        (Car, {}),
        (Pair, (1,)),
        (User, {"name": 5}),
        (Colour, "green"),
        (Literal["a"], "b"),
        (Optional[int], "x"),  # noqa: UP045
        (datetime.datetime, "yesterday"),
        (Point, CallResult([Text("no structure")])),
        (Point, CallResult([Text("wrong one")], structured={"x": "no"})),
        (int, CallResult([Text("wrong one")], structured={"result": "no"})),
        (list[int], CallResult([Text("wrong one")], structured={"result": ["a"]})),
        (dict, object()),
        (..., object()),
        (Any, {"a": float("inf")}),
        (None, [object()]),
    ],
)
def test_a_wrong_result_is_an_error_for_the_model_and_a_line_in_the_log(annotation: Any, value: Any, run: str) -> None:
    app = returning(annotation, value, run=run)
    heard: list[Any] = []
    app.listen(heard.append)
    answer = call(app, "f")
    assert answer["isError"] is True
    assert "f returned an invalid result: " in text(answer)
    assert "structuredContent" not in answer
    [problem] = [record for record in heard if isinstance(record, Problem)]
    assert problem.level == "error" and "test_results.py:" in problem.text and " f()" in problem.text


def test_an_invalid_result_is_an_error_without_a_listener_too() -> None:
    assert call(returning(int, "3"), "f")["isError"] is True


# -- text


@pytest.mark.parametrize("revision", NAMES)
@pytest.mark.parametrize("annotation", [str, ..., Any, str | None])
def test_a_text_is_one_text_block_and_nothing_else(annotation: Any, revision: str) -> None:
    app = returning(annotation, "line 1\nline 2 é\u2028")
    answer = call(app, "f", revision=revision)
    assert text(answer) == "line 1\nline 2 é\u2028"
    assert answer.keys() - {"resultType", "_meta"} == {"content"}
    assert "outputSchema" not in listed(app, "f")


@pytest.mark.parametrize("annotation", [None, ..., str | None])
def test_none_is_rendered_as_empty_content(annotation: Any) -> None:
    assert call(returning(annotation, None), "f") == {"content": []}


@pytest.mark.parametrize(
    ("value", "wire", "structured"),
    [
        (3, "3", None),
        (True, "true", None),
        (1.5, "1.5", None),
        ([1, "a"], '[1,"a"]', None),
        (["a", "b"], '["a","b"]', None),
        ({"a": 1}, '{"a":1}', {"a": 1}),
        (Point(1), '{"x":1,"y":0.5}', {"x": 1, "y": 0.5}),
        (User(name="u"), '{"name":"u","born":null}', {"name": "u", "born": None}),
        (Colour.RED, '"red"', None),
        (b"hi", '"aGk="', None),
        ({"type": "text", "value": 3}, '{"type":"text","value":3}', {"type": "text", "value": 3}),
        ({"type": "image"}, '{"type":"image"}', {"type": "image"}),
    ],
)
def test_without_a_declared_type_data_is_json_text_and_an_object_is_structured_too(
    value: Any, wire: str, structured: Any
) -> None:
    answer = call(returning(..., value), "f")
    assert text(answer) == wire
    assert answer.get("structuredContent") == structured


# -- blocks

NOTE = Annotations(audience=["user"], priority=0.5, last_modified="2026-07-28T00:00:00Z")
NOTE_WIRE = {"audience": ["user"], "priority": 0.5, "lastModified": "2026-07-28T00:00:00Z"}
LINK = ResourceLink("file:///a", "a", title="A", size=3, icons=[Icon("https://i")], annotations=NOTE)
LINK_WIRE = {
    "type": "resource_link",
    "uri": "file:///a",
    "name": "a",
    "title": "A",
    "size": 3,
    "icons": [{"src": "https://i"}],
    "annotations": NOTE_WIRE,
}
READY = {"type": "image", "data": "@@", "mimeType": "m"}
BLOCKS: list[tuple[str, Any, dict[str, Any]]] = [
    ("text", Text("t", annotations=NOTE), {"type": "text", "text": "t", "annotations": NOTE_WIRE}),
    ("image", Image(PNG), {"type": "image", "data": PNG64, "mimeType": "image/png"}),
    ("jpeg", Image(PNG, "image/jpeg"), {"type": "image", "data": PNG64, "mimeType": "image/jpeg"}),
    ("audio", Audio(PNG), {"type": "audio", "data": PNG64, "mimeType": "audio/wav"}),
    ("link", LINK, LINK_WIRE),
    (
        "embedded text",
        EmbeddedResource(Contents("a://b", text="t", mime_type="text/plain")),
        {"type": "resource", "resource": {"uri": "a://b", "text": "t", "mimeType": "text/plain"}},
    ),
    (
        "contents",
        Contents("a://b", blob=PNG),
        {"type": "resource", "resource": {"uri": "a://b", "blob": PNG64}},
    ),
    ("ready-made", {"type": "text", "text": "t", "x": [1]}, {"type": "text", "text": "t", "x": [1]}),
    ("ready-made link", LINK_WIRE, LINK_WIRE),
    (
        "ready-made image",
        {"type": "image", "data": "@@", "mimeType": "m"},
        {"type": "image", "data": "@@", "mimeType": "m"},
    ),
]


@pytest.mark.parametrize(("block", "wire"), [row[1:] for row in BLOCKS], ids=[row[0] for row in BLOCKS])
@pytest.mark.parametrize("revision", ["2025-06-18", *ERAS])
def test_a_block_goes_out_as_it_is_alone_or_in_a_list(block: Any, wire: dict[str, Any], revision: str) -> None:
    app = Server("t")
    app.tool(name="alone", run="inline")(lambda: block)
    app.tool(name="listed", run="inline")(lambda: ["before", block, {"n": 1}, 7])
    app.tool(name="whole", run="inline")(lambda: CallResult([block]))
    alone, among, whole = talk(
        app, *[("tools/call", {"name": n}) for n in ("alone", "listed", "whole")], revision=revision
    )
    if revision == "2025-06-18":
        wire = {key: value for key, value in wire.items() if key != "icons"}  # they came a revision later
    assert alone["result"]["content"] == whole["result"]["content"] == [wire]
    assert among["result"]["content"] == [
        {"type": "text", "text": "before"},
        wire,
        {"type": "text", "text": '{"n":1}'},
        {"type": "text", "text": "7"},
    ]
    assert not {"structuredContent", "isError"} & alone["result"].keys()


@pytest.mark.parametrize(
    "annotation",
    [Image, Image | None, list[Image | str], tuple[Text, Image], Contents, list[Contents], CallResult | int],
)
def test_a_declared_block_has_no_output_schema(annotation: Any) -> None:
    assert "outputSchema" not in listed(returning(annotation, Image(PNG)), "f")


@pytest.mark.parametrize(
    ("revision", "audio", "link", "meta"),
    [("2024-11-05", False, False, False), ("2025-03-26", True, False, False), ("2025-06-18", True, True, True)],
)
def test_a_block_that_the_revision_does_not_know_becomes_a_text_that_says_so(
    revision: str, audio: bool, link: bool, meta: bool
) -> None:
    blocks = [
        Audio(b"12345"),
        LINK,
        dict(LINK_WIRE),
        Text("t", meta={"k": 1}),
        {"type": "text", "text": "u", "_meta": {"k": 1}},
        Image(PNG, meta={"k": 1}),
    ]
    content = call(returning(..., blocks), "f", revision=revision)["content"]
    assert (content[0]["type"] == "audio") is audio
    assert audio or "audio, audio/wav, 5 bytes" in content[0]["text"]
    shown = {key: value for key, value in LINK_WIRE.items() if key != "icons"}  # which none of these knows
    for found in content[1:3]:
        assert found == (shown if link else {"type": "text", "text": "a: file:///a"})
    assert ["_meta" in found for found in content[3:]] == [meta] * 3


# -- whole results

WHOLE = CallResult([Text("failed")], structured={"code": 7}, is_error=True, meta={"example.com/trace": "abc"})


@pytest.mark.parametrize("run", ["inline", "thread"])
@pytest.mark.parametrize("annotation", [..., CallResult, int, Point, dict[str, int]])
def test_a_whole_result_goes_out_whole_in_every_revision_and_stays_the_authors(annotation: Any, run: str) -> None:
    mine = CallResult([Text("failed")], structured={"code": 7}, is_error=True, meta={"example.com/trace": "abc"})
    app = returning(annotation, mine, run=run)
    for revision in (*NAMES, *reversed(NAMES)):
        answer = call(app, "f", revision=revision)
        assert answer["content"] == [{"type": "text", "text": "failed"}]
        assert answer["isError"] is True
        assert answer["_meta"]["example.com/trace"] == "abc"
        assert answer.get("structuredContent") == ({"code": 7} if revision in WITH_STRUCTURED else None)
        assert ("resultType" in answer) is (revision == NEWEST)
    assert mine == WHOLE


def test_structured_content_of_a_whole_result_may_be_anything_that_has_a_json_form() -> None:
    for value in (Point(1), {"x": 1, "y": 0.5}, msgspec.Raw(b'{"x":1,"y":0.5}')):
        answer = call(returning(Point, CallResult([], structured=value)), "f")
        assert answer["structuredContent"] == {"x": 1, "y": 0.5}
    answer = call(returning(CallResult, CallResult([], structured=User(name="u"))), "f")
    assert answer["structuredContent"] == {"name": "u", "born": None}


@pytest.mark.parametrize(("revision", "wire"), [(NEWEST_LEGACY, {"result": [1]}), (NEWEST, [1])])
def test_structured_content_that_is_no_object_is_wrapped_before_the_revision_that_takes_it(
    revision: str, wire: Any
) -> None:
    for run in ("inline", "thread"):
        app = returning(CallResult, CallResult([], structured=[1]), run=run)
        assert call(app, "f", revision=revision)["structuredContent"] == wire


@pytest.mark.parametrize("structured", [3, {"result": 3}, msgspec.Raw(b"3")])
def test_a_whole_result_of_a_wrapped_type_may_be_wrapped_or_not(structured: Any) -> None:
    answer = call(returning(int, CallResult([Text("three")], structured=structured)), "f")
    assert answer == {"content": [{"type": "text", "text": "three"}], "structuredContent": {"result": 3}}


def test_texts_in_the_content_of_a_whole_result_become_blocks_and_a_non_list_is_refused() -> None:
    answer = call(returning(..., CallResult(["a", Text("b"), Contents("a://b", text="c")])), "f")
    assert [block["type"] for block in answer["content"]] == ["text", "text", "resource"]
    assert call(returning(..., CallResult("abc")), "f")["isError"] is True  # type: ignore[arg-type]


# -- an author's own output schema

ARRAY = {"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer", "minimum": 0}}}
TREE = {"anyOf": [{"type": "integer"}, {"type": "object", "additionalProperties": {"$ref": "#"}}]}
OBJECT = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}, "required": ["n"], "x-mine": 1}


@pytest.mark.parametrize("run", ["inline", "thread"])
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (OBJECT, {"n": 1}, {"n": -1}),
        (OBJECT, {"n": 1}, {}),
        (ARRAY, [1, 2], [1, -2]),
        (ARRAY, [], {"result": []}),
        (TREE, 3, "x"),
        (TREE, {"a": {"b": 3}}, {"a": {"b": "x"}}),
        ({}, {"any": 1}, object()),
    ],
)
def test_an_authors_output_schema_is_shown_kept_and_enforced(
    schema: dict[str, Any], good: Any, bad: Any, revision: str, run: str
) -> None:
    app = returning(..., good, run=run, output_schema=schema)
    shown = listed(app, "f", revision)["outputSchema"]
    answer = call(app, "f", revision=revision)
    assert json.loads(text(answer)) == good
    jsonschema_rs.Draft202012Validator(shown).validate(answer["structuredContent"])
    if revision == NEWEST or schema is OBJECT:
        assert shown == schema
        assert answer["structuredContent"] == good
    else:
        assert shown["type"] == "object"
        assert answer["structuredContent"] == {"result": good}
    failed = call(returning(..., bad, run=run, output_schema=schema), "f", revision=revision)
    assert failed["isError"] is True and "f returned an invalid result" in text(failed)


def test_an_error_of_the_authors_need_not_keep_the_output_schema() -> None:
    failed = CallResult([Text("no")], is_error=True)
    assert call(returning(..., failed, output_schema=OBJECT), "f") == {
        "content": [{"type": "text", "text": "no"}],
        "isError": True,
    }


def test_a_data_dict_with_a_content_key_is_data_at_the_typed_level() -> None:
    schema = {"type": "object", "properties": {"content": {"type": "array"}}}
    answer = call(returning(..., {"content": [1]}, output_schema=schema), "f")
    assert answer["structuredContent"] == {"content": [1]}


# -- limits


def configured(app: Server, tmp_path: Any, toml: str) -> Server:
    path = tmp_path / "longshore.toml"
    path.write_text(toml)
    app.config = load(None, path=str(path))
    return app


@pytest.mark.parametrize(("size", "cut"), [(9, False), (10, False), (11, True)])
def test_a_result_is_cut_at_result_bytes_and_says_so(tmp_path: Any, size: int, cut: bool) -> None:
    for value in ("a" * size, {"type": "text", "text": "a" * size}, [Text("a" * size), Image(PNG)]):
        app = configured(returning(..., value), tmp_path, "[tools.f]\nresult_bytes = 10\n")
        content = call(app, "f")["content"]
        assert content[0] == {"type": "text", "text": "a" * min(size, 10)}
        note = {"type": "text", "text": f"[cut: {size - 10} bytes more; this tool's result_bytes is 10]"}
        assert (note in content) is cut


def test_a_cut_never_splits_a_character(tmp_path: Any) -> None:
    app = configured(returning(str, "éééééé"), tmp_path, "[tools.f]\nresult_bytes = 5\n")
    assert call(app, "f")["content"][0]["text"] == "éé"


def test_a_structured_result_that_had_to_be_cut_is_an_error(tmp_path: Any) -> None:
    app = configured(returning(list[int], list(range(100))), tmp_path, "[tools.f]\nresult_bytes = 10\n")
    answer = call(app, "f")
    assert answer["isError"] is True and "structuredContent" not in answer


@pytest.mark.parametrize("run", ["inline", "thread"])
def test_a_result_that_fits_no_frame_is_an_error_that_says_so(run: str) -> None:
    app = Server("t", limits=Limits(frame_bytes=2000))
    app.tool(name="f", run=run)(lambda: "a" * 3000)  # type: ignore[call-overload]
    answer = call(app, "f")
    assert answer["isError"] is True and "the limit is 2,000" in text(answer)


def test_the_oldest_revision_gets_a_result_too() -> None:
    assert text(call(returning(Point, Point(1)), "f", revision=OLDEST)) == '{"x":1,"y":0.5}'
