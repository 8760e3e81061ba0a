"""What a modern request's headers must repeat of its body, case by case."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longshore.errors import ProtocolError
from longshore.protocol.http_headers import (
    HEADER_MISMATCH,
    MOST_INTEGER,
    NAME_BEARING,
    HeaderParam,
    Headers,
    read_value,
)
from longshore.schema.header_params import HeaderProblem, header_params

VERSION = "2026-07-28"
GOOD = {b"mcp-protocol-version": VERSION.encode(), b"mcp-method": b"tools/call", b"mcp-name": b"add"}


def without(header: bytes) -> dict[bytes, bytes]:
    return {name: value for name, value in GOOD.items() if name != header}


def refusal(
    headers: dict[bytes, bytes],
    twice: frozenset[bytes] = frozenset(),
    method: str = "tools/call",
    name: str | None = "add",
    version: str = VERSION,
) -> str:
    """What is said about a request that is refused."""
    with pytest.raises(ProtocolError) as caught:
        Headers(headers, twice).check(method, name, version)
    assert caught.value.code == HEADER_MISMATCH == -32020
    assert "\n" not in caught.value.message
    return caught.value.message


def wrapped(text: str) -> bytes:
    return b"=?base64?" + base64.b64encode(text.encode()) + b"?="


def sent(text: str) -> bytes:
    """The value as the specification has clients write it."""
    looks_wrapped = text.startswith("=?base64?") and text.endswith("?=")
    if text.isascii() and text.isprintable() and text == text.strip(" \t") and not looks_wrapped:
        return text.encode()
    return wrapped(text)


# The three standard headers


def test_headers_that_repeat_the_body_pass() -> None:
    Headers(GOOD).check("tools/call", "add", VERSION)
    Headers({**GOOD, b"accept": b"*/*"}, frozenset((b"accept", b"x-forwarded-for"))).check("tools/call", "add", VERSION)


@pytest.mark.parametrize(
    ("method", "name"), [("tools/call", "add"), ("prompts/get", "review"), ("resources/read", "notes://all?x=1")]
)
def test_the_name_is_checked_where_a_method_has_one(method: str, name: str) -> None:
    assert method in NAME_BEARING
    good = {**GOOD, b"mcp-method": method.encode(), b"mcp-name": name.encode()}
    Headers(good).check(method, name, VERSION)
    assert f"params.{NAME_BEARING[method]}" in refusal({**good, b"mcp-name": b"safe"}, method=method, name=name)
    Headers({**good, b"mcp-name": b"safe"}).check(method, None, VERSION)  # the method itself says that there is none


@pytest.mark.parametrize("method", ["tools/list", "server/discover", "subscriptions/listen", "completion/complete"])
def test_other_methods_need_no_name_and_mind_none(method: str) -> None:
    for headers in (without(b"mcp-name"), GOOD):
        Headers({**headers, b"mcp-method": method.encode()}).check(method, None, VERSION)
        Headers({**headers, b"mcp-method": method.encode()}).check(method, "other", VERSION)


@pytest.mark.parametrize("header", list(GOOD))
@pytest.mark.parametrize(("before", "after"), [(b" ", b""), (b"", b"  "), (b"\t", b" \t")])
def test_blanks_around_a_value_do_not_count(header: bytes, before: bytes, after: bytes) -> None:
    Headers({**GOOD, header: before + GOOD[header] + after}).check("tools/call", "add", VERSION)


@pytest.mark.parametrize(
    ("header", "value"),
    [
        (b"mcp-protocol-version", b"2025-11-25"),
        (b"mcp-protocol-version", b"v999.0.0"),
        (b"mcp-protocol-version", b""),
        (b"mcp-protocol-version", wrapped(VERSION)),
        (b"mcp-method", b"tools/list"),
        (b"mcp-method", b"TOOLS/CALL"),
        (b"mcp-method", b"tools/call, tools/call"),
        (b"mcp-method", b""),
        (b"mcp-method", wrapped("tools/call")),
        (b"mcp-name", b"safe"),
        (b"mcp-name", b"ADD"),
        (b"mcp-name", b"add add"),
        (b"mcp-name", b"add,add"),
        (b"mcp-name", b""),
        (b"mcp-name", base64.b64encode(b"add")),
    ],
)
def test_a_value_that_differs_is_refused_with_both_sides_and_the_fix(header: bytes, value: bytes) -> None:
    text = refusal({**GOOD, header: value})
    assert text.partition(" ")[0].lower() == header.decode()
    assert f" says {value.decode()!r}, the" in text
    assert f"the body says {GOOD[header].decode()!r}" in text
    assert text.endswith("; send the same in both")


@pytest.mark.parametrize("header", list(GOOD))
def test_a_missing_header_is_refused(header: bytes) -> None:
    text = refusal(without(header))
    assert text.lower().startswith(f"{header.decode()} is missing; send in it what the body says in ")
    assert text.endswith(repr(GOOD[header].decode()))


@pytest.mark.parametrize("header", list(GOOD))
def test_a_header_sent_twice_is_refused_even_if_its_last_value_is_right(header: bytes) -> None:
    text = refusal(GOOD, frozenset((header,)))
    assert text.lower() == f"{header.decode()} came more than once; send it once"


def test_a_name_that_came_twice_does_not_matter_where_no_name_is_asked_for() -> None:
    headers = {**GOOD, b"mcp-method": b"tools/list"}
    Headers(headers, frozenset((b"mcp-name",))).check("tools/list", None, VERSION)


@pytest.mark.parametrize("bad", [b"a\r\nmcp-name: x", b"a\nb", b"a\x00", b"a\tb", b"\x7f", "é".encode(), b"\xff"])
def test_a_name_that_only_base64_may_carry_is_refused_even_if_the_body_says_the_same(bad: bytes) -> None:
    for said in (bad.decode("latin-1"), bad.decode("utf-8", "replace")):
        text = refusal({**GOOD, b"mcp-name": bad}, name=said)
        assert "can't be read" in text and text.isascii() and text.isprintable()


def test_the_version_is_compared_first_then_the_method_then_the_name() -> None:
    wrong = {b"mcp-protocol-version": b"x", b"mcp-method": b"y", b"mcp-name": b"z"}
    assert refusal(wrong).startswith("MCP-Protocol-Version ")
    assert refusal({**wrong, b"mcp-protocol-version": VERSION.encode()}).startswith("Mcp-Method ")
    assert refusal({**GOOD, b"mcp-name": b"z"}).startswith("Mcp-Name ")
    assert refusal({}).startswith("MCP-Protocol-Version is missing")


def test_long_values_are_cut_and_escaped() -> None:
    text = refusal({**GOOD, b"mcp-name": b"\x1b[31m" + b"h" * 5000}, name="b\n" * 5000)
    assert len(text) < 400 and "\\x1b[31m" in text
    text = refusal({**GOOD, b"mcp-name": b"h" * 5000}, name="b\n" * 5000)
    assert "h" * 100 + "..." in text and "h" * 101 not in text and "b\\nb" in text and len(text) < 600


# The base64 form


@pytest.mark.parametrize(
    ("raw", "meant"),
    [
        (b"eu-1", "eu-1"),
        (b"", ""),
        (b"  eu 1\t", "eu 1"),
        (b"=?base64?w6k=?=", "é"),
        (b" =?base64?w6k=?= ", "é"),
        (b"=?base64?SGVsbG8=?=", "Hello"),
        (b"=?base64??=", ""),
        (wrapped(" padded "), " padded "),
        (wrapped("a\r\nb"), "a\r\nb"),
        (wrapped("=?base64?w6k=?="), "=?base64?w6k=?="),
        # the marker is not exact, so they stand for themselves
        (b"=?BASE64?w6k=?=", "=?BASE64?w6k=?="),
        (b"=?base64?w6k=", "=?base64?w6k="),
        (b"=?base64?=", "=?base64?="),
        (b"=?base64?", "=?base64?"),
        (b"=?b?w6k=?=", "=?b?w6k=?="),
        (b"x=?base64?w6k=?=", "x=?base64?w6k=?="),
        (b"w6k=", "w6k="),
        (b"=", "="),
        # no canonical base64 of UTF-8
        (b"=?base64?w6k?=", None),
        (b"=?base64?SGVsbG8?=", None),
        (b"=?base64?SGVs!!!bG8=?=", None),
        (b"=?base64?w!k=?=", None),
        (b"=?base64?w6k==?=", None),
        (b"=?base64?w6l=?=", None),  # bits left over
        (b"=?base64?w6 k=?=", None),
        (b"=?base64?=w6k?=", None),
        (b"=?base64?w6k=w6k=?=", None),
        (b"=?base64?_-8=?=", None),  # the other alphabet
        (b"=?base64?/w==?=", None),  # \xff
        (b"=?base64?7aCA?=", None),  # a lone surrogate
        (b"=?base64?\xe9?=", None),
        (b"a\x00b", None),
        (b"\xc3\xa9", None),
    ],
)
def test_header_values_are_decoded(raw: bytes, meant: str | None) -> None:
    assert read_value(raw) == meant


NAMES = st.text() | st.text(alphabet=" \t=?base64éA/+") | st.sampled_from(["add", " add", "=?base64?w6k=?="])


@given(NAMES)
@example("")
@example("=?base64?w6k=?=")
@example(" ")
@example("=")
def test_every_name_passes_in_the_form_that_clients_send(name: str) -> None:
    for raw in {sent(name), wrapped(name)}:
        assert read_value(raw) == name
        Headers({**GOOD, b"mcp-name": raw}).check("tools/call", name, VERSION)


@given(NAMES, NAMES)
@example("=?base64?SGVsbG8=?=", "Hello")
def test_no_name_passes_for_another(name: str, other: str) -> None:
    if name != other:
        for raw in (sent(name), wrapped(name)):
            refusal({**GOOD, b"mcp-name": raw}, name=other)


@given(st.binary())
@example(b"=?base64?w6k?=")
@example(b"add ")
def test_a_raw_header_value_equals_its_decoded_text_only(raw: bytes) -> None:
    meant = read_value(raw)
    headers = {**GOOD, b"mcp-name": raw}
    if meant is not None:
        Headers(headers).check("tools/call", meant, VERSION)
    as_it_is = raw.decode("latin-1")
    if meant != as_it_is:
        refusal(headers, name=as_it_is)


@given(st.binary(max_size=12))
def test_base64_has_one_spelling(data: bytes) -> None:
    meant = read_value(b"=?base64?" + data + b"?=")
    assert meant is None or data == base64.b64encode(meant.encode())


# Mcp-Param-*

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "where": {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}},
        "free": {"type": "string"},
    },
}
PARAMS = header_params(SCHEMA)
HEADER = {"region": b"mcp-param-region", "count": b"mcp-param-count", "dry": b"mcp-param-dry-run"}


def given_params(name: str, raw: bytes | None) -> Headers:
    return Headers({} if raw is None else {HEADER[name]: raw})


def param_refusal(headers: Headers, arguments: Any) -> str:
    with pytest.raises(ProtocolError) as caught:
        headers.check_params(PARAMS, arguments)
    assert caught.value.code == HEADER_MISMATCH
    assert caught.value.message.isascii() and caught.value.message.isprintable()
    return caught.value.message


AGREE: list[tuple[str, bytes | None, Any]] = [
    ("region", b"eu-1", "eu-1"),
    ("region", b" eu-1\t", "eu-1"),
    ("region", b"=?base64?SGVsbG8=?=", "Hello"),
    ("region", b"SGVsbG8=", "SGVsbG8="),
    ("region", b"=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
    ("region", b"=?BASE64?SGVsbG8=?=", "=?BASE64?SGVsbG8=?="),
    ("region", wrapped("Zürich"), "Zürich"),
    ("region", wrapped(" eu "), " eu "),
    ("region", b"", ""),
    ("region", b"=?base64??=", ""),
    ("region", b"42", "42"),
    ("region", b"true", "true"),
    ("region", None, None),
    ("count", b"42", 42),
    ("count", b"42.0", 42),
    ("count", b"42", 42.0),
    ("count", b"42.00", 42.0),
    ("count", b"0", 0),
    ("count", b"-0", 0),
    ("count", b"-7", -7),
    ("count", b"-7.0", -7),
    ("count", wrapped("42"), 42),
    ("count", str(MOST_INTEGER).encode(), MOST_INTEGER),
    ("count", str(-MOST_INTEGER).encode(), -MOST_INTEGER),
    ("dry", b"true", True),
    ("dry", b"false", False),
    ("dry", wrapped("true"), True),
    # not of the declared type, but the same on both sides: the arguments' own check says what is wrong
    ("region", b"5", 5),
    ("region", b"1.5", 1.5),
    ("count", b"x", "x"),
]

DIFFER: list[tuple[str, bytes | None, Any]] = [
    ("region", b"us-1", "eu-1"),
    ("region", b"EU-1", "eu-1"),
    ("region", None, "eu-1"),
    ("region", None, ""),
    ("region", b"eu-1", None),
    ("region", b"", None),
    ("region", b"null", None),
    ("region", b"=?base64?SGVsbG8?=", "Hello"),
    ("region", b"=?base64?SGVs!!!bG8=?=", "Hello"),
    ("region", b"=?base64?SGVsbG8=?=", "=?base64?SGVsbG8=?="),
    ("region", "Zürich".encode(), "Zürich"),
    ("region", b"a\r\nb", "a\r\nb"),
    ("region", b" eu", " eu"),
    ("region", b'["eu-1"]', ["eu-1"]),
    ("region", None, ["eu-1"]),
    ("region", b"{}", {}),
    ("region", b"1.5", 1.25),
    ("count", b"43", 42),
    ("count", b"42.5", 42),
    ("count", b"42", 42.5),
    ("count", b"042", 42),
    ("count", b"+42", 42),
    ("count", b"42.", 42),
    ("count", b"4.2e1", 42),
    ("count", b"0x2a", 42),
    ("count", b"4_2", 42),
    ("count", "४२".encode(), 42),
    ("count", wrapped("४२"), 42),
    ("count", b"", 0),
    ("count", b"true", 1),
    ("count", b"1", True),
    ("count", None, 0),
    ("count", b"9" * 5000, 42),
    ("count", str(MOST_INTEGER + 1).encode(), MOST_INTEGER + 1),
    ("count", str(-MOST_INTEGER - 1).encode(), -MOST_INTEGER - 1),
    ("count", str(MOST_INTEGER + 1).encode(), float(MOST_INTEGER + 1)),
    ("count", b"1" * 400, int("1" * 400)),
    ("dry", b"True", True),
    ("dry", b"1", True),
    ("dry", b"false", True),
    ("dry", b"", False),
    ("dry", None, False),
]


@pytest.mark.parametrize(("name", "raw", "value"), AGREE)
def test_an_argument_that_its_header_repeats_passes(name: str, raw: bytes | None, value: Any) -> None:
    given_params(name, raw).check_params(PARAMS, {name: value, "free": "x"})


@pytest.mark.parametrize(("name", "raw", "value"), DIFFER)
def test_an_argument_that_its_header_does_not_repeat_is_refused(name: str, raw: bytes | None, value: Any) -> None:
    text = param_refusal(given_params(name, raw), {name: value})
    assert HEADER[name].decode() in text.lower() or f"params.arguments.{name}" in text
    assert len(text) < 500


def test_an_argument_and_its_header_may_both_be_absent() -> None:
    for arguments in ({}, {"region": None}, {"where": None}, {"where": {}}, None, [], "x"):
        Headers({b"mcp-param-unknown": b"x"}, frozenset((b"mcp-param-unknown",))).check_params(PARAMS, arguments)


@pytest.mark.parametrize("arguments", [{}, {"where": None}, {"where": {"city": None}}, None, []])
def test_a_header_without_its_argument_is_refused(arguments: Any) -> None:
    text = param_refusal(Headers({b"mcp-param-city": b"Oslo"}), arguments)
    assert text == "Mcp-Param-City says 'Oslo', the body has no params.arguments.where.city; leave the header out"


def test_a_nested_argument_is_found() -> None:
    Headers({b"mcp-param-city": b"Oslo"}).check_params(PARAMS, {"where": {"city": "Oslo"}})
    assert param_refusal(Headers({b"mcp-param-city": b"Rome"}), {"where": {"city": "Oslo"}}) == (
        "Mcp-Param-City says 'Rome', the body says 'Oslo' in params.arguments.where.city; send the same in both"
    )


@pytest.mark.parametrize("raw", [None, b"Oslo", b"Rome"])
@pytest.mark.parametrize("where", ['{"city":"Rome"}', "", [], ["Rome"], 5, False])
def test_an_argument_can_not_hide_in_what_is_no_object(where: Any, raw: bytes | None) -> None:
    """A tool reads a record from a JSON text too, so such a text could smuggle a city past the header."""
    text = param_refusal(Headers({} if raw is None else {b"mcp-param-city": raw}), {"where": where})
    assert text.startswith("params.arguments.where.city can't be compared with Mcp-Param-City")


@pytest.mark.parametrize("value", ["eu-1", None])
def test_a_parameter_header_that_came_twice_is_refused(value: str | None) -> None:
    headers = Headers({b"mcp-param-region": b"eu-1"}, frozenset((b"mcp-param-region",)))
    assert param_refusal(headers, {"region": value}) == "Mcp-Param-Region came more than once; send it once"


def test_the_texts_say_what_to_do() -> None:
    assert param_refusal(Headers({}), {"region": "eu-1"}) == (
        "Mcp-Param-Region is missing; send in it what the body says in params.arguments.region, 'eu-1'"
    )
    assert param_refusal(Headers({}), {"region": ["eu-1"] * 1000}).endswith("in params.arguments.region, an array")
    assert param_refusal(Headers({b"mcp-param-region": b"=?base64?w6k?="}), {"region": "é"}) == (
        "Mcp-Param-Region says '=?base64?w6k?=', which can't be read; "
        'send printable ASCII, or "=?base64?" + padded base64 of the UTF-8 text + "?="'
    )
    large = {b"mcp-param-count": b"9007199254740992"}
    assert param_refusal(Headers(large), {"count": 2**53}) == (
        "params.arguments.count is 9007199254740992; an integer that a header repeats is between -(2^53-1) and 2^53-1"
    )


@given(st.text())
def test_every_text_passes_in_the_form_that_clients_send(text: str) -> None:
    Headers({b"mcp-param-region": sent(text)}).check_params(PARAMS, {"region": text})


@given(st.integers(-MOST_INTEGER, MOST_INTEGER), st.integers(-MOST_INTEGER, MOST_INTEGER))
def test_integers_pass_for_themselves_alone(one: int, other: int) -> None:
    for raw in (b"%d" % one, b"%d.0" % one):
        headers = Headers({b"mcp-param-count": raw})
        headers.check_params(PARAMS, {"count": one})
        if one != other:
            param_refusal(headers, {"count": other})


# The annotations of a schema


def annotated(name: Any, **schema: Any) -> dict[str, Any]:
    return {"type": "string", **schema, "x-mcp-header": name}


def holding(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_the_annotations_are_found_with_their_paths_and_types() -> None:
    assert (
        HeaderParam(("region",), b"mcp-param-region", "string"),
        HeaderParam(("count",), b"mcp-param-count", "integer"),
        HeaderParam(("dry",), b"mcp-param-dry-run", "boolean"),
        HeaderParam(("where", "city"), b"mcp-param-city", "string"),
    ) == PARAMS


@pytest.mark.parametrize("name", ["Method", "Name", "x", "A1", "!#$%&'*+-.^_`|~", "0"])
def test_any_token_is_a_name(name: str) -> None:
    [found] = header_params(holding(a=annotated(name)))
    assert found.header == b"mcp-param-" + name.lower().encode()


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        holding(a={"type": "string", "description": "is an x-mcp-header"}),
        holding(**{"x-mcp-header": {"type": "string"}}),
        holding(a={"type": "object", "default": {"x-mcp-header": "A"}, "examples": [{"x-mcp-header": "A"}]}),
        holding(a={"const": {"x-mcp-header": "A"}, "enum": [{"x-mcp-header": "A"}]}),
        holding(a={"type": "string", "x-other": {"x-mcp-header": "A"}}),
    ],
)
def test_a_keyword_outside_of_a_schema_is_no_annotation(schema: dict[str, Any]) -> None:
    assert header_params(schema) == ()


def test_a_schema_that_is_not_json_has_no_header_parameters() -> None:
    loop: dict[str, Any] = holding(a=annotated("A"))
    loop["properties"]["b"] = loop
    assert header_params(loop) == ()
    assert header_params(holding(a=annotated("A", default=object()))) == ()


def test_a_reference_beside_the_annotation_is_fine_and_one_to_it_is_not() -> None:
    inner = {"$defs": {"r": {"minLength": 1}}, **holding(a=annotated("A", **{"$ref": "#/$defs/r"}))}
    assert len(header_params(inner)) == 1
    with pytest.raises(HeaderProblem):
        header_params({"$defs": {"r": annotated("A")}, **holding(a={"$ref": "#/$defs/r"})})


WRONG: list[tuple[dict[str, Any], str]] = [
    *((holding(a=annotated(name)), "can't be part of a header's name") for name in ("", " ", "My Region", "a:b", "é")),
    *(
        (holding(a=annotated(name)), "can't be part of")
        for name in ("a\r\nb", "A\n", "a,b", "a/b", "(a)", 'a"b', "a\0")
    ),
    *((holding(a=annotated(name)), "can't be part of") for name in (None, True, 5, ["Region"], {"name": "Region"})),
    *((holding(a=annotated("A", type=kind)), "but is of type") for kind in ("number", "object", "array", "null", "x")),
    (holding(a=annotated("A", type=["string", "null"])), "has no single type"),
    (holding(a=annotated("A", type=["string"])), "has no single type"),
    (holding(a={"x-mcp-header": "A"}), "has no single type"),
    (holding(a={"enum": ["x"], "x-mcp-header": "A"}), "has no single type"),
    (holding(a={"anyOf": [{"type": "string"}, {"type": "null"}], "x-mcp-header": "A"}), "has no single type"),
    (holding(a={"$ref": "#/$defs/r", "x-mcp-header": "A"}), "has no single type"),
    (holding(a=annotated("Region"), b=annotated("Region")), "'a' and 'b' have the same"),
    (holding(a=annotated("Region"), b=annotated("REGION")), "'a' and 'b' have the same"),
    (holding(a=annotated("Region"), b=holding(c=annotated("region"))), "'a' and 'b.c' have the same"),
    ({**holding(), "x-mcp-header": "A"}, "an x-mcp-header stands at 'the root'"),
    *(
        (holding(a={"type": "array", keyword: annotated("A")}), f"stands at 'a.{keyword}'")
        for keyword in ("items", "contains", "unevaluatedItems", "additionalItems")
    ),
    *(
        (holding(a={"type": "object", keyword: annotated("A")}), f"stands at 'a.{keyword}'")
        for keyword in ("additionalProperties", "unevaluatedProperties", "propertyNames", "contentSchema")
    ),
    *(
        ({**holding(), keyword: holding(a=annotated("A"))}, f"stands at '{keyword}.a'")
        for keyword in ("not", "if", "then", "else")
    ),
    *(
        ({**holding(), keyword: [{}, holding(a=annotated("A"))]}, f"stands at '{keyword}.1.a'")
        for keyword in ("anyOf", "oneOf", "allOf", "prefixItems", "items")
    ),
    *(
        ({**holding(), keyword: {"r": holding(a=annotated("A"))}}, f"stands at '{keyword}.r.a'")
        for keyword in ("$defs", "definitions", "patternProperties", "dependentSchemas", "dependencies")
    ),
    (holding(a={"type": "array", "items": holding(b=holding(c=annotated("A")))}), "stands at 'a.items.b.c'"),
]


@pytest.mark.parametrize(("schema", "what"), WRONG)
def test_an_annotation_that_clients_could_not_use_is_refused(schema: dict[str, Any], what: str) -> None:
    with pytest.raises(ValueError) as caught:
        header_params(schema)
    problem = caught.value
    assert isinstance(problem, HeaderProblem)
    assert what in problem.what and problem.fix
    assert str(problem) == f"{problem.what}; {problem.fix}" and "\n" not in str(problem)
