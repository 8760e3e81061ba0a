# ruff: noqa: UP045  (both spellings of unions are tested)
"""For random types and values: an encoded value decodes again, and schema and decoder agree on validity."""

import datetime
import enum
import itertools
import uuid
from dataclasses import make_dataclass
from typing import Any, Literal, Optional

import jsonschema_rs
import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from counts import count
from longshore.schema.infer import input_schema, type_schema
from longshore.schema.output import read_output
from longshore.schema.repair import repair_typed

from .conftest import taking
from .test_types import assert_client_safe


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


Typed = tuple[Any, st.SearchStrategy[Any]]
_numbers = itertools.count()

EXACT: list[Typed] = [
    (str, st.text(max_size=5)),
    (int, st.integers()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (bool, st.booleans()),
    (Color, st.sampled_from(Color)),
    (Literal["a", "b", 3], st.sampled_from(["a", "b", 3])),
]
# Their schemas name a format, which validators don't check.
FORMATTED: list[Typed] = [
    (datetime.date, st.dates()),
    (uuid.UUID, st.uuids()),
    (bytes, st.binary(max_size=5)),
]


def record(fields: list[Typed]) -> Typed:
    names = [f"f{i}" for i in range(len(fields))]
    cls = make_dataclass(f"Record{next(_numbers)}", [(n, t) for n, (t, _) in zip(names, fields, strict=True)])
    return cls, st.builds(cls, **{n: v for n, (_, v) in zip(names, fields, strict=True)})


def compound(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    return st.one_of(
        inner.map(lambda t: (list[t[0]], st.lists(t[1], max_size=3))),  # type: ignore[name-defined]
        inner.map(lambda t: (dict[str, t[0]], st.dictionaries(st.text(max_size=3), t[1], max_size=3))),  # type: ignore[name-defined]
        inner.map(lambda t: (Optional[t[0]], st.none() | t[1])),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda ts: (tuple[tuple(t for t, _ in ts)], st.tuples(*(v for _, v in ts)))  # type: ignore[misc]
        ),
        st.lists(inner, max_size=3).map(record),
    )


def types(leaves: list[Typed]) -> st.SearchStrategy[Typed]:
    return st.recursive(st.sampled_from(leaves), compound, max_leaves=4)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["f0", "f1", "a"]), inner, max_size=3),
    max_leaves=5,
)
quick = settings(max_examples=count(150), deadline=None, suppress_health_check=list(HealthCheck))


@quick
@given(types(EXACT + FORMATTED), st.data())
def test_an_encoded_value_decodes_again_and_matches_the_schema(typed: Typed, data: st.DataObject) -> None:
    annotation, values = typed
    value = data.draw(values)
    signature = taking(annotation)
    raw = msgspec.json.encode({"x": value})
    assert signature.decode(raw).x == value
    schema = type_schema(annotation)
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(msgspec.json.decode(raw)["x"])
    assert_client_safe(input_schema(signature, {}))


@quick
@given(types(EXACT), json_values)
def test_schema_and_decoder_agree_on_random_json(typed: Typed, value: Any) -> None:
    signature = taking(typed[0])
    raw = msgspec.json.encode({"x": value})
    valid = jsonschema_rs.Draft202012Validator(type_schema(typed[0])).is_valid(msgspec.json.decode(raw)["x"])
    try:
        signature.decode(raw)
    except msgspec.ValidationError:
        reading = repair_typed("f", signature, raw)
        decoded, lines = reading.arguments, list(reading.faults)
        assert (decoded is not None) is valid or isinstance(value, str)
        assert (decoded is None) is bool(lines)
    else:
        assert valid


@quick
@given(types(EXACT + FORMATTED), types(EXACT + FORMATTED), st.data())
def test_any_union_of_two_types_takes_the_values_of_both(left: Typed, right: Typed, data: st.DataObject) -> None:
    value = data.draw(left[1] | right[1])
    signature = taking(left[0] | right[0])
    raw = msgspec.json.encode({"x": value})
    decoded = signature.decode(raw).x
    # Which member takes it may differ (every date is a string), but nothing is lost or added.
    again = msgspec.json.encode({"x": decoded})
    assert msgspec.json.decode(again) == msgspec.json.decode(raw)
    assert jsonschema_rs.Draft202012Validator(type_schema(left[0] | right[0])).is_valid(msgspec.json.decode(raw)["x"])


@quick
@given(types(EXACT + FORMATTED), st.data())
def test_a_declared_result_is_enforced_and_keeps_its_schema(typed: Typed, data: st.DataObject) -> None:
    annotation, values = typed
    output = read_output(annotation, passthrough=())
    value = data.draw(values)
    plain = msgspec.json.decode(output.enforce(value))
    if output.structured:
        sent = {"result": plain} if output.wrap else plain
        assert jsonschema_rs.Draft202012Validator(output.schema() or {}).is_valid(sent)


@quick
@given(types(EXACT), st.binary(max_size=40) | json_values.map(msgspec.json.encode))
def test_explaining_never_raises(typed: Typed, raw: bytes) -> None:
    reading = repair_typed("f", taking(typed[0]), raw)
    decoded, lines = reading.arguments, list(reading.faults)
    assert (decoded is None) is bool(lines)
