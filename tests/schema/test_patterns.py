"""Patterns of typed tools: matched in linear time at every place of a type, and refused where that is not possible.

On the wedging text `re` would need longer than the universe has; the suite's time limit is the judge.
"""

from __future__ import annotations

import re
import signal
import threading
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NamedTuple, NewType, NotRequired, TypedDict, TypeVar

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, Struct

from longshore.client.client import Result
from longshore.client.models import as_type
from longshore.errors import BadAnswer
from longshore.schema.infer import input_schema
from longshore.schema.output import OutputMismatch, read_output
from longshore.schema.repair import repair_typed
from longshore.schema.signature import SignatureProblem, read
from longshore.schema.types import read_type
from longshore.schema.validate import interruptible

from .conftest import Ask, Context, taking

WEDGING = "a" * 40 + "!"
As = Annotated[str, Meta(pattern="^(a+)+$")]
NewAs = NewType("NewAs", As)
Described = NewType("Described", Annotated[str, Meta(pattern="^(a+)+$", description="letters a")])
T = TypeVar("T")


@dataclass
class Line:
    text: As
    number: int = 0


@dataclass
class Chain(Generic[T]):
    text: T
    rest: Chain[T] | None = None


class Keys(TypedDict):
    text: As
    number: NotRequired[int]


class Pair(NamedTuple):
    text: As
    number: int = 0


@attrs.define
class Attrs:
    text: As


class Knot(Struct):
    text: As
    next: Knot | None = None


class One(Struct, tag="one"):
    text: As


class Two(Struct, tag="two"):
    number: int


class Page(Struct, Generic[T]):
    items: list[T]
    cursor: As = "a"


class NumberPage(Page[int]):
    title: As = "a"


# annotation, JSON with a hole for the text, the path of the text
PLACES: dict[str, tuple[Any, str, str]] = {
    "itself": (As, '"%s"', "x"),
    "optional": (As | None, '"%s"', "x"),
    "a NewType": (NewAs, '"%s"', "x"),
    "a NewType with another constraint": (Annotated[NewAs, Meta(max_length=50)], '"%s"', "x"),
    "a NewType with words and another constraint": (Annotated[Described, Meta(max_length=50)], '"%s"', "x"),
    "around a union": (Annotated[str | int, Meta(pattern="^(a+)+$")], '"%s"', "x"),
    "in a union": (As | int, '"%s"', "x"),
    "items": (list[As], '["%s"]', "x[0]"),
    "a set": (set[As], '["%s"]', "x[0]"),
    "a tuple": (tuple[int, As], '[1,"%s"]', "x[1]"),
    "values": (dict[str, As], '{"k":"%s"}', "x.k"),
    "keys": (dict[As, int], '{"%s":1}', "x"),
    "keys with words": (list[dict[Described, int]], '[{"%s":1}]', "x[0]"),
    "keys of items": (list[dict[As, int]], '[{"%s":1}]', "x[0]"),
    "keys in a record": (Chain[dict[As, int]], '{"text":{"%s":1}}', "x.text"),
    "keys of as many": (Annotated[dict[As, Line], Meta(min_length=1)], '{"%s":{"text":"a"}}', "x"),
    "a dataclass": (Line, '{"text":"%s"}', "x.text"),
    "records in records": (dict[str, list[Line]], '{"k":[{"text":"%s"}]}', "x.k[0].text"),
    "a TypedDict": (Keys, '{"text":"%s"}', "x.text"),
    "a NamedTuple": (Pair, '["%s"]', "x[0]"),
    "attrs": (Attrs, '{"text":"%s"}', "x.text"),
    "a Struct that holds itself": (Knot, '{"text":"a","next":{"text":"%s"}}', "x.next.text"),
    "a tagged Struct": (One | Two, '{"type":"one","text":"%s"}', "x.text"),
    "a generic Struct": (Page[int], '{"items":[1],"cursor":"%s"}', "x.cursor"),
    "the argument of a generic Struct": (Page[As], '{"items":["%s"]}', "x.items[0]"),
    "a heir of a generic Struct": (NumberPage, '{"items":[1],"title":"%s"}', "x.title"),
    "a generic that holds itself": (Chain[As], '{"text":"a","rest":{"text":"%s"}}', "x.rest.text"),
    "pydantic's Field": (Annotated[str, pydantic.Field(pattern="^(a+)+$")], '"%s"', "x"),
}


@pytest.mark.parametrize(("annotation", "form", "path"), PLACES.values(), ids=PLACES)
def test_a_text_that_re_would_never_end_on_is_refused_wherever_it_stands(annotation: Any, form: str, path: str) -> None:
    signature = taking(annotation)
    signature.decode(f'{{"x":{form % "aa"}}}')
    raw = f'{{"x":{form % WEDGING}}}'.encode()
    with pytest.raises(msgspec.ValidationError):
        signature.decode(raw)
    [line] = repair_typed("tool", signature, raw).faults
    assert line.startswith(f"{path}: ")
    assert f'must match the pattern ^(a+)+$; got "{WEDGING}"' in line


@pytest.mark.parametrize(("annotation", "form", "path"), PLACES.values(), ids=PLACES)
def test_a_result_is_checked_so_too(annotation: Any, form: str, path: str) -> None:
    output = read_output(list[annotation], passthrough=())
    output.enforce(msgspec.json.decode(f"[{form % 'aa'}]"))
    with pytest.raises(OutputMismatch):
        output.enforce(msgspec.json.decode(f"[{form % WEDGING}]"))


@pytest.mark.parametrize("value", [b'"bb"', b'"a"', b"1"])
def test_the_decoder_says_what_msgspec_would_say(value: bytes) -> None:
    annotation = list[Annotated[str, Meta(pattern="^a", min_length=2)]]
    with pytest.raises(msgspec.ValidationError) as theirs:
        msgspec.json.decode(b"[[%s]]" % value, type=list[annotation])
    with pytest.raises(msgspec.ValidationError) as ours:
        taking(annotation).decode(b'{"x":[%s]}' % value)
    assert str(ours.value).replace("$.x", "$[0]") == str(theirs.value)


def test_the_path_leads_through_records_of_ours() -> None:
    output = read_output(list[Chain[Line]], passthrough=())
    with pytest.raises(OutputMismatch, match=re.escape("[1].rest.text.number: expected an integer, got a string")):
        output.enforce([Chain(Line("a")), Chain(Line("a"), Chain(Line("a", "one")))])  # type: ignore[arg-type]


def test_the_schema_is_that_of_the_annotation() -> None:
    described = list[Annotated[str, Meta(pattern="^a", max_length=3, description="As", examples=["a"])]]
    assert input_schema(taking(described), {})["properties"]["x"]["items"] == {
        "type": "string",
        "pattern": "^a",
        "maxLength": 3,
        "description": "As",
        "examples": ["a"],
    }
    tagged = input_schema(taking(One | Two), {})["properties"]["x"]["anyOf"]
    assert [option["properties"]["type"]["const"] for option in tagged] == ["one", "two"]
    often = input_schema(taking(tuple[(Line,) * 13]), {})
    assert "str" not in often["$defs"]


def test_a_tagged_struct_is_not_taken_without_its_tag() -> None:
    with pytest.raises(msgspec.ValidationError):
        taking(One | Two).decode(b'{"x":{"text":"a"}}')


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("b", "abc", True),
        ("^b", "abc", False),
        ("a$", "a\n", False),
        (r"\Aa\Z", "a", True),
        (r"^\d$", "3", True),
        (r"^\d$", "\N{ARABIC-INDIC DIGIT THREE}", False),
        (r"^\w+$", "Jose", True),
        (r"^\w+$", "José", False),
        (r"^\s$", "\N{NO-BREAK SPACE}", True),
        ("^.$", "\N{GRINNING FACE}", True),
        ("(?i)^abc$", "aBc", True),
        ("(?is)^a.c$", "A\nC", True),
        (r"(?P<year>\d{4})", "in 2026", True),
        ("^[]a]$", "]", True),
        ("^a{,2}$", "aa", True),
    ],
)
def test_a_pattern_means_what_ecmascript_says(pattern: str, text: str, matches: bool) -> None:
    signature = taking(Annotated[str, Meta(pattern=pattern)])
    raw = msgspec.json.encode({"x": text})
    if matches:
        assert signature.decode(raw).x == text
    else:
        with pytest.raises(msgspec.ValidationError):
            signature.decode(raw)


_ATOMS = st.sampled_from(
    [*"abc01_-. ", "\\d", "\\w", "\\s", "\\D", "\\W", "\\S", ".", "[a-c]", "[^a1]", "[\\w-]", "\\."]
)


@given(
    st.recursive(
        _ATOMS,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map("".join),
            st.lists(inner, min_size=1, max_size=3).map(lambda options: f"({'|'.join(options)})"),
            st.tuples(inner, st.sampled_from("*+?")).map(lambda found: f"(?:{found[0]}){found[1]}"),
        ),
        max_leaves=6,
    ),
    st.text("abc01_-. !", max_size=6),
)
def test_on_ascii_a_pattern_means_what_it_means_to_re(pattern: str, text: str) -> None:
    decode = taking(Annotated[str, Meta(pattern=f"^{pattern}$")]).decode
    try:
        decode(msgspec.json.encode({"x": text}))
        matches = True
    except msgspec.ValidationError:
        matches = False
    assert matches == (re.search(f"^{pattern}$", text) is not None)


# -- what only `re` can match

ONLY_RE = [r"(?=a)b", r"(?<!a)b", r"(a)\1", r"(?P<n>a)(?P=n)", "a++b", "(?>a)b", "(?i:a)", "(a)?(?(1)b|c)", r"(?x) a"]


def taking_any(annotation: Any, patterns: Any = "any") -> Any:
    def fn(x: Any) -> None: ...

    fn.__annotations__["x"] = annotation
    return read(fn, context_type=Context, marker_type=Ask, patterns=patterns)


@pytest.mark.parametrize("pattern", ONLY_RE)
def test_a_pattern_that_only_re_can_match_is_refused(pattern: str) -> None:
    for annotation in (Annotated[str, Meta(pattern=pattern)], list[Annotated[str, Meta(pattern=pattern)]]):
        with pytest.raises(SignatureProblem, match="can't be matched in linear time") as problem:
            taking(annotation)
        assert problem.value.what.startswith(f"parameter 'x': the pattern {pattern!r} ")
        assert "waive" not in problem.value.fix
        with pytest.raises(SignatureProblem) as problem:
            taking_any(annotation, "waivable")
        assert problem.value.fix.endswith('or waive={"E13": "why it is harmless"}')
        with pytest.raises(SignatureProblem, match="return type"):
            read_output(annotation | int, passthrough=())


@pytest.mark.parametrize("pattern", ONLY_RE)
def test_a_waived_pattern_is_matched_by_re(pattern: str) -> None:
    decode = taking_any(Annotated[str, Meta(pattern=pattern)]).decode
    for text in ("a", "b", "ab", "aa", "aab", "c"):
        raw = msgspec.json.encode({"x": text})
        if re.search(pattern, text):
            assert decode(raw).x == text
        else:
            with pytest.raises(msgspec.ValidationError, match="matching regex"):
                decode(raw)


class Compiled(pydantic.BaseModel):
    text: str = pydantic.Field(pattern=re.compile("^(a+)+$"))


class ByRe(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(regex_engine="python-re")
    text: str = pydantic.Field(pattern="^(a+)+$")


class Outer(pydantic.BaseModel):
    inner: list[ByRe]


class ByRust(pydantic.BaseModel):
    text: str = pydantic.Field(pattern="^(a+)+$")


Stripped = Annotated[str, pydantic.StringConstraints(strip_whitespace=True, pattern=re.compile("a"))]


@pytest.mark.parametrize("annotation", [Compiled, ByRe, Outer, Stripped])
def test_a_pydantic_type_that_has_re_match_is_refused(annotation: Any) -> None:
    with pytest.raises(SignatureProblem, match="has its patterns matched by `re`"):
        taking(list[annotation])
    taking_any(annotation)


def test_a_pydantic_type_that_only_mentions_re_is_taken() -> None:
    class Tree(pydantic.BaseModel):
        description: str = pydantic.Field("re.compile('a')", description="a pattern, as in re.compile('a')")
        engine: str = "'python-re'"
        pattern: str = pydantic.Field("b", pattern="^b")
        children: list[Tree] = []

    taking(Tree)


def test_a_pydantic_model_that_is_built_later_is_refused_for_re_too() -> None:
    class Deferred(Compiled):
        model_config = pydantic.ConfigDict(defer_build=True)

    with pytest.raises(SignatureProblem, match="has its patterns matched by `re`"):
        taking(Deferred)


def test_a_pydantic_model_may_name_a_class_that_comes_later() -> None:
    class Early(pydantic.BaseModel):
        late: Late  # noqa: F821  # type: ignore[name-defined]

    signature = taking(Early)
    Early.model_rebuild(_types_namespace={"Late": ByRust})
    assert signature.decode(b'{"x":{"late":{"text":"a"}}}').x.late == ByRust(text="a")


def test_a_pydantic_model_matches_in_linear_time() -> None:
    with pytest.raises(msgspec.ValidationError):
        taking(ByRust).decode(msgspec.json.encode({"x": {"text": WEDGING}}))


# -- checks that may never end


def test_stop_signals_are_the_kernels_during_such_a_check_only() -> None:
    def during(_: None) -> list[Any]:
        return [signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)]

    def handler(*_: object) -> None: ...

    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    try:
        signal.signal(signal.SIGTERM, handler)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        assert interruptible(during)(None) == [signal.SIG_DFL, signal.SIG_DFL, signal.SIG_IGN]
        assert during(None) == [handler, before[signal.SIGINT], signal.SIG_IGN]
        with pytest.raises(ZeroDivisionError):
            interruptible(lambda _: 1 / 0)(None)
        assert during(None) == [handler, before[signal.SIGINT], signal.SIG_IGN]
        elsewhere: list[Any] = []
        thread = threading.Thread(target=lambda: elsewhere.append(interruptible(during)(None)))
        thread.start()
        thread.join(10)
        assert elsewhere == [[handler, before[signal.SIGINT], signal.SIG_IGN]]
    finally:
        for each, kept in before.items():
            signal.signal(each, kept)


# -- a client


@pytest.mark.parametrize(("annotation", "form", "path"), PLACES.values(), ids=PLACES)
def test_a_client_reads_a_result_so_too(annotation: Any, form: str, path: str) -> None:
    as_type(Result([], structured={"result": msgspec.json.decode(form % "aa")}), annotation)
    with pytest.raises(BadAnswer):
        as_type(Result([], structured={"result": msgspec.json.decode(form % WEDGING)}), annotation)


def test_a_client_refuses_a_type_that_only_re_can_check() -> None:
    with pytest.raises(TypeError, match="can't be matched in linear time"):
        as_type(Result([], structured={"result": "b"}), Annotated[str, Meta(pattern="(?=a)b")])  # type: ignore[arg-type]
    assert read_type(As) is not As
