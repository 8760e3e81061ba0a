# ruff: noqa: UP045  (both spellings of unions are tested)
import functools
import operator
from typing import Annotated, Any, Optional

import msgspec
import pytest
from msgspec import NODEFAULT, UNSET, Meta

from longshore.schema.signature import SignatureProblem

from .conftest import Ask, Context, read_fn, taking
from .models import Unreadable


def forecast(city: str, days: int = 3) -> str:
    return f"{city} {days}"


class Service:
    def __init__(self) -> None:
        self.calls = 0

    def bound(self, a: int, b: str = "x") -> str:
        return f"{a}{b}"

    @classmethod
    def of_class(cls, a: int) -> int:
        return a

    @staticmethod
    def of_none(a: int) -> int:
        return a

    async def __call__(self, a: int) -> int:
        return a


def test_plain_parameters_keep_their_order_types_and_defaults() -> None:
    signature = read_fn(forecast)
    assert [(p.name, p.type, p.required) for p in signature.parameters] == [("city", str, True), ("days", int, False)]
    assert signature.parameters[0].default is NODEFAULT
    assert signature.parameters[1].default == 3
    assert signature.returns is str
    assert signature.simple and not signature.is_async and signature.context is None


def test_the_fast_call_passes_values_by_place() -> None:
    signature = read_fn(forecast)
    assert forecast(*signature.positional(signature.decode(b'{"days":2,"city":"Oslo"}'))) == "Oslo 2"
    assert forecast(*signature.positional(signature.decode(b'{"city":"Oslo"}'))) == "Oslo 3"


@pytest.mark.parametrize(
    ("fn", "raw", "values"),
    [
        (lambda: None, b"{}", ()),
        (lambda a: None, b'{"a":[1]}', ([1],)),
        (lambda a, b: None, b'{"b":1,"a":null}', (None, 1)),
    ],
)
def test_zero_one_and_many_parameters_bind(fn: Any, raw: bytes, values: tuple[Any, ...]) -> None:
    signature = read_fn(fn)
    assert signature.positional(signature.decode(raw)) == values


def test_arguments_decode_from_a_slice_of_the_message() -> None:
    signature = read_fn(forecast)
    assert signature.decode(msgspec.Raw(b'{"city":"a"}')).city == "a"
    assert signature.decode(memoryview(b'{"city":"a"}')).city == "a"


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b'{"city":1}',
        b'{"city":null}',
        b'{"city":"a","days":"3"}',
        b'{"city":"a","dayz":3}',
        b'{"city":"a","days":true}',
        b"[]",
        b"null",
        b'{"city":',
    ],
)
def test_decoding_is_strict(raw: bytes) -> None:
    with pytest.raises((msgspec.ValidationError, msgspec.DecodeError)):
        read_fn(forecast).decode(raw)


def test_context_and_asked_parameters_are_not_sent_by_the_client() -> None:
    async def refund(
        order: str, ctx: Context, *, ok: Annotated[bool, Ask("Refund {order}?")], note: str = ""
    ) -> None: ...

    signature = read_fn(refund)
    assert [p.name for p in signature.parameters] == ["order", "note"]
    assert signature.parameters[1].keyword_only
    assert [p.name for p in signature.asked] == ["ok"]
    assert signature.asked[0].marker.question == "Refund {order}?"
    assert signature.asked[0].type is bool
    assert signature.context == "ctx"
    assert signature.is_async and not signature.simple
    assert signature.keywords(signature.decode(b'{"order":"7"}')) == {"order": "7", "note": ""}


@pytest.mark.parametrize("annotation", [Context, Optional[Context], Context | None, Annotated[Context, "the context"]])
def test_the_context_is_found_in_every_spelling(annotation: Any) -> None:
    assert taking(annotation).context == "x"


def test_a_quoted_context_that_was_imported_for_typing_only_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fn(a: "int", ctx: "Context | None" = None) -> "str": ...

    monkeypatch.delitem(fn.__globals__, "Context")
    assert read_fn(fn).context == "ctx"


def test_quoted_annotations_are_resolved() -> None:
    def fn(a: "int", b: "list[str] | None" = None, c: list["Pair"] | None = None) -> "dict[str, int]": ...

    signature = read_fn(fn)
    assert [p.type for p in signature.parameters][:2] == [int, list[str] | None]
    assert signature.returns == dict[str, int]
    assert signature.decode(b'{"a":1,"c":[{"left":2}]}').c == [Pair(2)]


class Pair(msgspec.Struct):
    left: int


def test_bare_quoted_names_need_no_evaluation() -> None:
    def fn(a: "int", b: "Pair", c: "None" = None) -> "str": ...

    signature = read_fn(fn)
    assert [p.type for p in signature.parameters] == [int, Pair, type(None)]
    assert signature.returns is str


def test_methods_skip_self_and_class() -> None:
    service = Service()
    for fn, names in [(service.bound, ["a", "b"]), (service.of_class, ["a"]), (Service.of_class, ["a"])]:
        assert [p.name for p in read_fn(fn).parameters] == names
    assert [p.name for p in read_fn(service.of_none).parameters] == ["a"]


def test_callable_objects_partials_and_wrapped_functions_work() -> None:
    @functools.wraps(forecast)
    def logged(*args: Any, **kwargs: Any) -> Any:
        return forecast(*args, **kwargs)

    assert read_fn(Service()).is_async
    assert [p.name for p in read_fn(Service()).parameters] == ["a"]
    assert [p.name for p in read_fn(logged).parameters] == ["city", "days"]
    assert [p.name for p in read_fn(functools.lru_cache(forecast)).parameters] == ["city", "days"]
    assert [p.name for p in read_fn(functools.partial(forecast, "Oslo")).parameters] == ["days"]


def test_a_partial_with_a_named_value_is_called_by_name() -> None:
    fn = functools.partial(forecast, city="Oslo")
    signature = read_fn(fn)
    assert not signature.simple
    assert fn(**signature.keywords(signature.decode(b'{"days":9}'))) == "Oslo 9"


def test_a_wrapper_around_a_coroutine_function_counts_as_async() -> None:
    async def inner(a: int) -> int:
        return a

    @functools.wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

    assert read_fn(outer).is_async


def test_unannotated_parameters_take_anything() -> None:
    sentinel = object()

    def fn(a, b=sentinel): ...  # type: ignore[no-untyped-def]

    signature = read_fn(fn)
    assert signature.returns is UNSET
    assert signature.positional(signature.decode(b'{"a":{"x":[1]}}')) == ({"x": [1]}, sentinel)


@pytest.mark.parametrize(
    ("annotation", "default"),
    [(list[int], [1, 2]), (dict[str, Any], {"a": []}), (list, []), (set[int], {1}), (Pair, Pair(1)), (Any, [1])],
)
def test_mutable_defaults_are_not_shared_between_calls(annotation: Any, default: Any) -> None:
    signature = taking(annotation, default)
    first, second = signature.decode(b"{}").x, signature.decode(b"{}").x
    assert first == second == default
    assert first is not second and first is not default


def test_descriptions_and_extra_keywords_are_taken_out_of_the_type() -> None:
    described = Meta(ge=1, description="how many", extra_json_schema={"x-mcp-header": "Count"})
    (parameter,) = taking(Annotated[int, described]).parameters
    assert parameter.description == "how many"
    assert parameter.extra == {"x-mcp-header": "Count"}
    assert parameter.type == Annotated[int, Meta(ge=1)]
    assert taking(Annotated[str, "the city"]).parameters[0].description == "the city"
    assert taking(Annotated[str, "the city"]).parameters[0].type is str


class Opaque: ...


def takes_args(*nums: int) -> None: ...
def takes_kwargs(**options: int) -> None: ...
def takes_positional(a: int, /) -> None: ...
def takes_two(a: Context, b: Context) -> None: ...
def takes_unknown(a: "Nowhere") -> None: ...  # type: ignore[name-defined] # noqa: F821
def takes_nonsense(a: "1 +") -> None: ...  # type: ignore[valid-type] # noqa: F722
def generates() -> Any:
    yield 1


PROBLEMS = [
    (takes_args, "*nums", "nums: list["),
    (takes_kwargs, "**options", "options: dict["),
    (takes_positional, "'a' is positional-only", "remove the `/`"),
    (takes_two, "'a' and 'b'", "remove 'b'"),
    (takes_unknown, "'Nowhere'", "import Nowhere"),
    (takes_nonsense, "can't be evaluated", "annotations"),
    (generates, "generator", "return a list"),
    (Opaque, "Opaque is a class", "function"),
    (len, "len", "wrap it"),
    (operator.itemgetter(1), "itemgetter", "wrap it"),
]


@pytest.mark.parametrize(("fn", "what", "fix"), PROBLEMS, ids=lambda v: getattr(v, "__name__", None))
def test_a_function_that_cant_be_offered_is_refused_with_a_remedy(fn: Any, what: str, fix: str) -> None:
    with pytest.raises(SignatureProblem) as caught:
        read_fn(fn)
    assert what in caught.value.what
    assert fix in caught.value.fix


PARAMETER_PROBLEMS = [
    (Opaque, (), "Opaque", "make Opaque a dataclass"),
    (list[Opaque], (), "Opaque", "make Opaque a dataclass"),
    (complex, (), "complex", "two floats"),
    (int, (None,), "default None is not a valid int", "`x: int | None = None`"),
    (int, ("three",), "'three' does not fit", "correct the default"),
    (Annotated[int, Meta(ge=5)], (3,), "must be >= 5", "correct the default"),
    (Annotated[int, Meta(min_length=3)], (), "min_length can't be set on int", "remove the constraint"),
    (Unreadable, (), "Unreadable.keys: the keys of", "use str keys"),
    (set[dict], (), "not hashable", "use list[dict]"),
    (type, (), "type can't come from JSON", "a name"),
]


@pytest.mark.parametrize(("annotation", "default", "what", "fix"), PARAMETER_PROBLEMS)
def test_a_bad_parameter_is_named(annotation: Any, default: tuple[Any, ...], what: str, fix: str) -> None:
    with pytest.raises(SignatureProblem) as caught:
        taking(annotation, *default)
    assert caught.value.what.startswith("parameter 'x'")
    assert what in caught.value.what
    assert fix in caught.value.fix


def test_a_wrapper_loop_is_refused() -> None:
    def fn() -> None: ...

    fn.__wrapped__ = fn  # type: ignore[attr-defined]
    with pytest.raises(SignatureProblem, match="no end"):
        read_fn(fn)
