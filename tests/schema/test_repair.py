import datetime
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from msgspec import Meta

from longshore.limits import DEFAULT_LIMITS
from longshore.nearest import nearest
from longshore.schema.repair import repair_typed
from longshore.schema.violations import SHOWN_LINES

from .conftest import read_fn, taking
from .models import Circle, Drawing, Point, Team, User


def forecast(
    city: str,
    days: Annotated[int, Meta(ge=1, le=7)],
    unit: Literal["celsius", "fahrenheit"] = "celsius",
    since: datetime.date | None = None,
) -> None: ...


FORECAST = read_fn(forecast)


def lines_of(raw: bytes, signature: Any = FORECAST) -> list[str]:
    reading = repair_typed("forecast", signature, raw)
    decoded, lines = reading.arguments, list(reading.faults)
    assert decoded is None
    return lines


@pytest.mark.parametrize(
    ("raw", "lines"),
    [
        (b'{"city":1,"days":2}', ["city: expected a string, got a number"]),
        (b'{"city":null,"days":2}', ["city: expected a string, got null"]),
        (b'{"city":"a"}', ["days: missing (an integer, required)"]),
        (b'{"city":"a","days":0}', ["days: must be >= 1; got 0"]),
        (b'{"city":"a","days":8}', ["days: must be <= 7; got 8"]),
        (b'{"city":"a","days":"3"}', ["days: expected an integer, got a string"]),
        (b'{"city":"a","days":2.5}', ["days: expected an integer, got 2.5"]),
        (
            b'{"city":"a","days":2,"unit":"Celsius"}',
            ['unit: must be one of "celsius", "fahrenheit"; got "Celsius"; did you mean "celsius"?'],
        ),
        (b'{"city":"a","days":2,"since":"soon"}', ['since: expected a date like 2026-01-31, got "soon"']),
        (b'{"city":"a","days":2,"since":3}', ["since: expected a string or null, got a number"]),
        (
            b'{"city":"a","dayz":2}',
            [
                "days: missing (an integer, required)",
                "dayz: unknown argument; did you mean days? (takes: city, days, unit, since)",
            ],
        ),
        (b'{"city":"a","days":2,"q":1}', ["q: unknown argument (takes: city, days, unit, since)"]),
        (b"[1]", ["arguments: expected an object with the arguments of forecast, got an array"]),
        (b"null", ["arguments: expected an object with the arguments of forecast, got null"]),
        (b'{"city":', ["arguments: not valid JSON (Input data was truncated)"]),
    ],
)
def test_every_failure_is_one_precise_line(raw: bytes, lines: list[str]) -> None:
    assert lines_of(raw) == lines


def test_all_violations_are_listed_at_once() -> None:
    assert lines_of(b'{"city":1,"days":0,"extra":true,"unit":3}') == [
        "city: expected a string, got a number",
        "days: must be >= 1; got 0",
        'unit: must be one of "celsius", "fahrenheit"; got 3',
        "extra: unknown argument (takes: city, days, unit, since)",
    ]


@pytest.mark.parametrize(
    ("annotation", "text", "lines"),
    [
        (
            Point,
            '{"x":"a","y":[]}',
            ["x.x: expected an integer, got a string", "x.y: expected an integer, got an array"],
        ),
        (list[Point], '[{"x":1},{}]', ["x[1].x: missing (an integer, required)"]),
        (User, '{"name":""}', ["x.name: must have a length >= 1; got 0 characters"]),
        (Team, '{"lead":{"name":"a"},"members":[{}]}', ["x.members[0].name: missing (a string, required)"]),
        (Point | Circle, '{"x":"a"}', ["x.x: expected an integer, got a string"]),
        (Point | str, "1", ["x: expected an object or a string, got a number"]),
        (Drawing, '{"shape":3}', ["x.shape: expected an object, got a number"]),
        (list[datetime.date], '["2026-01-31","soon"]', ['x[1]: expected a date like 2026-01-31, got "soon"']),
        (dict[str, int], '{"a":"b"}', ["x.a: expected an integer, got a string"]),
        (Annotated[str, Meta(pattern="^a")], '"b"', ['x: must match the pattern ^a; got "b"']),
    ],
)
def test_failures_inside_a_value_have_a_path(annotation: Any, text: str, lines: list[str]) -> None:
    assert lines_of(b'{"x":%s}' % text.encode(), taking(annotation)) == lines


class Visit(msgspec.Struct):
    at: datetime.date
    days: int
    guests: list[User] = []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (
            '{"at":"soon","days":"3"}',
            ["x.days: expected an integer, got a string", 'x.at: expected a date like 2026-01-31, got "soon"'],
        ),
        ('{"at":"2026-01-31","days":"3"}', ["x.days: expected an integer, got a string"]),
        ('{"at":"2026-01-31","days":3.0,"guests":3}', ["x.guests: expected an array, got a number"]),
        ('{"at":3,"days":3.0}', ["x.at: expected a string, got a number"]),
        ('{"at":"2026-01-31","days":"3","guests":[{"name":""}]}', None),
    ],
)
def test_violations_that_only_the_decoder_finds_are_listed_once_beside_the_others(
    text: str, lines: list[str] | None
) -> None:
    found = lines_of(b'{"x":%s}' % text.encode(), taking(Visit))
    assert lines is None or found == lines
    assert len({line.partition(":")[0] for line in found}) == len(found)


def test_a_violation_in_a_model_inside_a_record_has_its_path() -> None:
    class Event(pydantic.BaseModel):
        day: datetime.date

    assert lines_of(b'{"x":[{"day":"2026-01-31"},{"day":"soon"}]}', taking(list[Event])) == [
        "x[1].day: input should be a valid date or datetime, input is too short"
    ]


def test_a_tool_without_parameters_says_so() -> None:
    assert lines_of(b'{"a":1}', read_fn(lambda: None)) == ["a: unknown argument (forecast takes no arguments)"]


@pytest.mark.parametrize(
    ("annotation", "value", "decoded"),
    [
        (list[int], "[1, 2]", [1, 2]),
        (list[int] | None, "[1]", [1]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Point, ' {"x": 1}', Point(1)),
        (Drawing, '{"shape":{"x":1}}', Drawing(Point(1))),
        (list[User], '[{"name":"a"}]', [User(name="a")]),
    ],
)
def test_json_inside_a_string_is_taken_where_no_string_can_be_meant(annotation: Any, value: str, decoded: Any) -> None:
    raw = msgspec.json.encode({"x": value})
    reading = repair_typed("f", taking(annotation), raw)
    arguments, lines = reading.arguments, list(reading.faults)
    assert lines == []
    assert arguments.x == decoded


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (list[int] | str, None),
        (int, "3"),
        (bool, "true"),
        (list[int], '["a"]'),
        (list[int], "1,2"),
        (list[int], "[1"),
        (Point, '{"x":'),
        (float, "1.5"),
    ],
)
def test_nothing_else_is_coerced(annotation: Any, value: Any) -> None:
    reading = repair_typed("f", taking(annotation), msgspec.json.encode({"x": value}))
    decoded, lines = reading.arguments, list(reading.faults)
    assert decoded is None
    assert len(lines) == 1


def test_coercion_does_not_hide_other_failures() -> None:
    def fn(a: list[int], b: int) -> None: ...

    assert lines_of(b'{"a":"[1]","b":"x"}', read_fn(fn)) == ["b: expected an integer, got a string"]


def test_nesting_inside_a_string_is_limited_at_its_edge() -> None:
    signature = taking(list[Any])
    for depth, taken in [(DEFAULT_LIMITS.depth - 1, True), (DEFAULT_LIMITS.depth, False), (100_000, False)]:
        text = "[" * depth + '"]]["' + "]" * depth
        reading = repair_typed("f", signature, msgspec.json.encode({"x": text}))
        decoded, lines = reading.arguments, list(reading.faults)
        assert (decoded is not None) is taken
        assert bool(lines) is not taken


def test_a_string_of_nothing_but_escapes_is_looked_through_once() -> None:
    """A tokenizer that begins again at each quote would be at this for minutes."""
    reading = repair_typed("f", taking(list[Any]), msgspec.json.encode({"x": '["' + '\\"' * 200_000}))
    decoded, lines = reading.arguments, list(reading.faults)
    assert decoded is None
    assert lines


@pytest.mark.parametrize(
    ("annotation", "text", "value"), [(int, "3.0", 3), (list[int], "[1.0,2]", [1, 2]), (Point, '{"x":1e0}', Point(1))]
)
def test_a_whole_number_written_as_a_float_is_an_integer(annotation: Any, text: str, value: Any) -> None:
    reading = repair_typed("f", taking(annotation), b'{"x":%s}' % text.encode())
    arguments, lines = reading.arguments, list(reading.faults)
    assert lines == []
    assert arguments.x == value


def test_hostile_names_and_values_are_cut_and_escaped() -> None:
    name, value = "\x1b]0;\u202e" + "n" * 1000, "\x07\u2066" + "v" * 1000
    for raw in (msgspec.json.encode({name: 1}), msgspec.json.encode({"city": "a", "days": 1, "unit": value})):
        for line in lines_of(raw):
            assert line.isprintable()
            assert len(line) < 250


@pytest.mark.parametrize(("count", "shown"), [(SHOWN_LINES, SHOWN_LINES), (SHOWN_LINES + 1, SHOWN_LINES + 1)])
def test_a_flood_of_failures_is_cut_and_counted(count: int, shown: int) -> None:
    raw = msgspec.json.encode({f"k{i}": i for i in range(count)})
    lines = lines_of(raw, read_fn(lambda: None))
    assert len(lines) == shown
    assert (lines[-1] == "… and 1 more") is (count > SHOWN_LINES)


def test_bytes_that_are_no_text_are_explained() -> None:
    assert lines_of(b'{"city":"\xff"}') == ["arguments: not valid JSON (some of it is no UTF-8)"]
    assert lines_of(b'{"days":1e999}') == ["arguments: not valid JSON (Number out of range)"]
    for raw in (b"\xff\xfe", b"", b'{"\xff":1}'):
        assert lines_of(raw)[0].startswith("arguments: not valid JSON")


def test_a_validator_that_raises_anything_is_survived() -> None:
    import pydantic

    class Fragile(pydantic.BaseModel):
        x: int

        @pydantic.field_validator("x")
        def fail(cls, value: int) -> int:
            raise KeyError("inside")

    assert len(lines_of(b'{"x":{"x":1}}', taking(Fragile))) == 1


@pytest.mark.parametrize(
    ("name", "candidates", "found"),
    [
        ("crsh", ["crash", "list"], "crash"),
        ("ReadFile", ["read_file", "write"], "read_file"),
        ("DAYS", ["days"], "days"),
        ("zzz", ["days"], None),
        ("", ["days"], None),
        ("days", [], None),
        ("d" * 100_000, ["d" * 99_999], None),
    ],
)
def test_the_nearest_name_is_suggested(name: str, candidates: list[str], found: str | None) -> None:
    assert nearest(name, candidates) == found


@pytest.mark.parametrize(
    ("annotation", "value", "decoded", "notes"),
    [
        (list[Point], ['{"x":1}'], [Point(1)], ["`x[0]` came as a JSON string; it was parsed"]),
        (Point, {"x": 1, "y": None}, Point(1), ["`x.y` came as null; it was left out"]),
        (Team, {"lead": '{"name":"a"}'}, Team(User(name="a")), ["`x.lead` came as a JSON string; it was parsed"]),
        (Point | Circle, '{"x":1,"y":2}', Point(1, 2), ["`x` came as a JSON string; it was parsed"]),
        (list[int], [1.0], [1], []),
    ],
)
def test_each_repair_is_noted(annotation: Any, value: Any, decoded: Any, notes: list[str]) -> None:
    reading = repair_typed("f", taking(annotation), msgspec.json.encode({"x": value}))
    assert (reading.faults, list(reading.notes)) == ((), notes)
    assert reading.arguments.x == decoded


def test_null_for_what_has_a_default_is_the_default() -> None:
    reading = repair_typed("forecast", FORECAST, b'{"city":"a","days":1,"unit":null,"since":null}')
    assert (reading.arguments.unit, reading.arguments.since) == ("celsius", None)
    assert reading.notes == ("`unit` came as null; it was left out",)
