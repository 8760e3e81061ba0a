"""A mistake at registration is three lines: where it is, what it is, and the fix."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from datetime import date
from typing import Annotated, Any, Literal
from unittest.mock import AsyncMock, Mock

import pytest
from msgspec import Meta

from longshore import Context, RegistrationError, Server, Tool, Toolset, prompt, resource, tool
from longshore.registry.source_location import locate
from talk import result

OBJECT: dict[str, Any] = {"type": "object"}


class Plain:
    """A class that has no JSON form."""


def refusal(declare: Callable[[], Any]) -> RegistrationError:
    with pytest.raises(RegistrationError) as caught:
        declare()
    return caught.value


# Each function below declares one mistake on the server that it is given.


def star(app: Server) -> None:
    @app.tool
    def add(*nums: int) -> int:
        return sum(nums)


def double_star(app: Server) -> None:
    @app.tool
    def add(**nums: int) -> int:
        return sum(nums.values())


def positional_only(app: Server) -> None:
    @app.tool
    def add(a: int, /) -> int:
        return a


def plain_class(app: Server) -> None:
    @app.tool
    def add(a: Plain) -> int:
        return 1


def pattern_of_re(app: Server) -> None:
    @app.tool
    def add(a: Annotated[str, Meta(pattern="(?=a)b")]) -> int:
        return 1


def pattern_of_re_returned(app: Server) -> None:
    @app.tool(waive={"E13": "a waiver is for arguments: results are checked on threads, where no signal ends a check"})
    def add(a: int) -> list[Annotated[str, Meta(pattern="(?=a)b")]]:
        return []


def pattern_of_re_before(app: Server) -> None:
    def add(a: Annotated[str, Meta(pattern="(?=a)b")]) -> dict[str, str]:
        return {"a": a}

    @app.tool(migrations=[add], waive={"E13": "only of its own"})
    def sub(a: str) -> int:
        return 1


def pattern_of_re_in_a_prompt(app: Server) -> None:
    @app.prompt
    def add(a: Annotated[str, Meta(pattern="(?=a)b")]) -> str:
        return a


def pattern_of_re_in_a_resource(app: Server) -> None:
    @app.resource("texts://{a}")
    def add(a: Annotated[str, Meta(pattern="(?=a)b")]) -> str:
        return a


def function_parameter(app: Server) -> None:
    @app.tool
    def add(a: Callable[[], int]) -> int:
        return 1


def generator(app: Server) -> None:
    @app.tool
    def add(a: int) -> Iterator[int]:
        yield a


def plain_class_returned(app: Server) -> None:
    @app.tool
    def add(a: int) -> Plain:
        return Plain()


def default_breaks_type(app: Server) -> None:
    @app.tool
    def add(a: int = "one") -> int:  # type: ignore[assignment]
        return a


def default_breaks_constraint(app: Server) -> None:
    @app.tool
    def add(a: Annotated[int, Meta(ge=10)] = 3) -> int:
        return a


def default_breaks_literal(app: Server) -> None:
    @app.tool
    def add(a: Literal["x", "y"] = "z") -> int:  # type: ignore[assignment]
        return 1


def two_contexts(app: Server) -> None:
    @app.tool
    def add(a: Context, b: Context) -> int:
        return 1


def inline_of_async(app: Server) -> None:
    @app.tool(run="inline")
    async def add(a: int) -> int:
        return a


def prompt_with_bad_name(app: Server) -> None:
    @app.prompt(name="a b")
    def add(a: str) -> str:
        return a


def twice(app: Server) -> None:
    @app.tool(name="add")
    def first(a: int) -> int:
        return a

    @app.tool
    def add(a: int) -> int:
        return a


def hole_without_parameter(app: Server) -> None:
    @app.resource("users://{user_id}")
    def add(uid: str) -> str:
        return uid


def query_in_the_middle(app: Server) -> None:
    @app.resource("users://x{?a}/y")
    def add(a: str = "") -> str:
        return a


def resource_twice(app: Server) -> None:
    @app.resource("users://all")
    def first() -> str:
        return ""

    @app.resource("users://all")
    def add() -> str:
        return ""


def completion_of_nothing(app: Server) -> None:
    @app.prompt
    def greet(name: str) -> str:
        return name

    @app.completion("great", "name")
    def add(text: str) -> list[str]:
        return [text]


def completion_of_no_argument(app: Server) -> None:
    @app.prompt
    def greet(name: str) -> str:
        return name

    @app.completion("greet", "nmae")
    def add(text: str) -> list[str]:
        return [text]


def completion_without_parameters(app: Server) -> None:
    @app.prompt
    def greet(name: str) -> str:
        return name

    @app.completion("greet", "name")
    def add() -> list[str]:
        return []


def completion_with_three(app: Server) -> None:
    @app.prompt
    def greet(name: str) -> str:
        return name

    @app.completion("greet", "name")
    def add(a: str, b: dict[str, str], c: int) -> list[str]:
        return []


def typed(**options: Any) -> Callable[[Server], None]:
    def declare(app: Server) -> None:
        @app.tool(**options)
        def add(a: int) -> int:
            return a

    return declare


def read_at(uri: str) -> Callable[[Server], None]:
    def declare(app: Server) -> None:
        @app.resource(uri)
        def add(a: str) -> str:
            return a

    return declare


def read_by_two(uri: str) -> Callable[[Server], None]:
    def declare(app: Server) -> None:
        @app.resource(uri)
        def add(a: str, b: str) -> str:
            return a

    return declare


def raw(**options: Any) -> Callable[[Server], None]:
    def declare(app: Server) -> None:
        def add(arguments: dict[str, Any], ctx: Context) -> dict[str, Any]:
            return {"content": []}

        app.add_tool(Tool(**{"name": "add", "input_schema": OBJECT} | options), add)

    return declare


def raw_with_one_parameter(app: Server) -> None:
    def add(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": []}

    app.add_tool(Tool(name="add", input_schema=OBJECT), add)


@pytest.mark.parametrize(
    ("declare", "head", "what", "fix"),
    [
        (star, "add(*nums)", "*nums", "name each parameter"),
        (double_star, "add(**nums)", "**nums", "name each parameter"),
        (positional_only, "add(a)", "positional-only", "remove the `/`"),
        (plain_class, "add(a)", "'a'", "dataclass"),
        (function_parameter, "add(a)", "'a'", ""),
        (pattern_of_re, "add(a)", "pattern '(?=a)b' can't be matched in linear time", 'waive={"E13": "why'),
        (pattern_of_re_returned, "add(a)", "return type: the pattern '(?=a)b'", "without look-around"),
        (pattern_of_re_before, "add(a)", "pattern '(?=a)b' can't be matched", "without look-around"),
        (pattern_of_re_in_a_prompt, "add(a)", "pattern '(?=a)b' can't be matched", "without look-around"),
        (pattern_of_re_in_a_resource, "add(a)", "pattern '(?=a)b' can't be matched", "without look-around"),
        (generator, "add(a)", "generator", "return a list"),
        (plain_class_returned, "add(a)", "return type", "dataclass"),
        (default_breaks_type, "add(a)", "'a'", "default"),
        (default_breaks_constraint, "add(a)", "'a'", "default"),
        (default_breaks_literal, "add(a)", "'a'", "default"),
        (two_contexts, "add(a, b)", "context", "remove 'b'"),
        (typed(effects="reads"), "add(a)", "effects='reads' is unknown", 'effects="read"'),
        (typed(timeout="30"), "add(a)", "timeout='30'", "timeout=30"),
        (typed(timeout=0), "add(a)", "timeout=0 ", "timeout=False"),
        (typed(timeout=-1), "add(a)", "timeout=-1 ", "timeout=False"),
        (typed(timeout=True), "add(a)", "timeout=True ", "timeout=False"),
        (typed(timeout=float("nan")), "add(a)", "timeout=nan ", "timeout=False"),
        (typed(replay=True), "add(a)", "replay=True", "make it async def"),
        (inline_of_async, "add(a)", "run='inline' is for def", "leave `run` out"),
        (typed(run="process"), "add(a)", "run='process'", 'run="thread"'),
        (typed(tags="math"), "add(a)", "tags='math'", "tags=[…]"),
        (typed(examples={"a": 1}), "add(a)", "examples={'a': 1}", "examples=[…]"),
        (typed(errors=["bad"]), "add(a)", "errors=['bad']", "errors={…: …}"),
        (typed(output_schema={"type": "objct"}), "add(a)", "schema is invalid", "correct it"),
        (typed(output_schema={"$ref": "https://example.com/schema.json"}), "add(a)", "never fetched", "$defs"),
        (typed(name="add two"), "add(a)", "'add two' can't be a tool's name", "name='add_two'"),
        (typed(name=""), "add(a)", "'' can't be a tool's name", "name='tool'"),
        (typed(name="a" * 65), "add(a)", "1 to 64", f"name='{'a' * 64}'"),
        (typed(name="añadir"), "add(a)", "'añadir'", "name='a_adir'"),
        (typed(name=5), "add(a)", "5 can't be a tool's name", "name='5'"),
        (prompt_with_bad_name, "add(a)", "'a b' can't be a prompt's name", "name='a_b'"),
        (twice, "add(a)", "there is a tool 'add' already, from ", "replace=True"),
        (hole_without_parameter, "add(uid)", "{user_id} in 'users://{user_id}' is no parameter", "name both alike"),
        (read_by_two("users://{a}"), "add(a, b)", "parameter 'b' is not in", "add {b} or a default"),
        (read_at("users://all"), "add(a)", "parameter 'a' is not in", "add {a} or a default"),
        (read_at("users://all{?a}"), "add(a)", "parameter 'a'", "default"),
        (read_at("/users/{a}"), "add(a)", "has no scheme", "data://users/{a}"),
        (read_at("users://{a"), "add(a)", "brace without its partner", "close it"),
        (read_at("users://{}"), "add(a)", "is no parameter's name", "use letters"),
        (read_at("users://{a}/{a}"), "add(a)", "occurs twice", "once"),
        (read_by_two("users://{a}{b}"), "add(a, b)", "nothing separates {b}", "put a /"),
        (read_by_two("users://{a,b}"), "add(a, b)", "holds several names", "its own braces"),
        (read_at("users://x{#a}"), "add(a)", "can't be matched", "{+name}"),
        (query_in_the_middle, "add(a)", "'/y' comes after the query", "at the end"),
        (resource_twice, "add()", "there is a resource 'users://all' already, from ", "replace=True"),
        (completion_of_nothing, "add(text)", "'great' is neither", "did you mean 'greet'?"),
        (completion_of_no_argument, "add(text)", "'greet' has no argument 'nmae': it takes name", "name one"),
        (completion_without_parameters, "add()", "a completion takes", "def complete(text, given)"),
        (completion_with_three, "add(a, b, c)", "a completion takes", "def complete(text, given)"),
        (raw(input_schema={}), "add(arguments, ctx)", "no object at its root", '"type": "object"'),
        (raw(input_schema={"type": "array"}), "add(arguments, ctx)", "no object at its root", '"type": "object"'),
        (raw(input_schema=None), "add(arguments, ctx)", "no object at its root", '"type": "object"'),
        (raw(input_schema=True), "add(arguments, ctx)", "no object at its root", '"type": "object"'),
        (raw(name="a b"), "add(arguments, ctx)", "'a b' can't be a tool's name", "name='a_b'"),
        (raw(effects="no"), "add(arguments, ctx)", "effects='no'", 'effects="read"'),
        (raw(timeout="x"), "add(arguments, ctx)", "timeout='x'", "timeout=30"),
        (raw(replay=True), "add(arguments, ctx)", "replay=True", "async def"),
        (raw(run="async"), "add(arguments, ctx)", 'run="async"', "leave `run` out"),
        (raw_with_one_parameter, "add(arguments)", "a raw handler takes", "def handler(arguments, ctx)"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_mistake_is_three_lines(declare: Callable[[Server], None], head: str, what: str, fix: str) -> None:
    app = Server("t")
    problem = refusal(lambda: declare(app))
    where, said, advice = str(problem).splitlines()
    assert re.fullmatch(rf"(?:.*/)?test_mistakes\.py:\d+ {re.escape(head)}", where)
    line = int(where.split(":")[1].split()[0])
    with open(__file__) as source:
        assert re.match(r"\s*(async )?def add\(", source.readlines()[line - 1])
    assert said.startswith("  ") and what in said
    assert advice.startswith("  fix: ") and fix in advice
    assert problem.exit_code == 2


def test_the_error_for_a_second_tool_of_a_name_has_the_location_of_the_first() -> None:
    problem = refusal(lambda: twice(Server("t")))
    assert re.search(r"from (?:.*/)?test_mistakes\.py:\d+ first\(a\)$", problem.what)


def test_a_refused_tool_leaves_nothing_behind() -> None:
    app = Server("t")
    for declare in (star, typed(effects="reads"), typed(name="add two"), typed(output_schema={"type": "objct"})):
        refusal(functools.partial(declare, app))
    assert result(app, "tools/list")["tools"] == []


def test_the_names_at_the_edge_of_what_is_allowed_are_allowed() -> None:
    app = Server("t")
    names = ["a", "a" * 64, "A-z_0.9", "9"]
    for name in names:
        app.tool(name=name)(lambda: "x")
    assert list(app.catalog.tools) == names


def test_a_lambda_without_a_name_is_refused_at_its_own_line() -> None:
    app = Server("t")
    problem = refusal(lambda: app.tool(lambda x: x))
    assert re.fullmatch(r"(?:.*/)?test_mistakes\.py:\d+ <lambda>\(x\)", problem.where)
    line = int(problem.where.split(":")[1].split()[0])
    with open(__file__) as source:
        assert "app.tool(lambda x: x)" in source.readlines()[line - 1]
    assert "a lambda has no name" in problem.what and problem.fix == 'name="…"'


@pytest.mark.parametrize("thing", [date, print, len])
def test_a_callable_without_a_readable_signature_is_refused(thing: Any) -> None:
    problem = refusal(lambda: Server("t").tool(thing))
    assert len(str(problem).splitlines()) == 3
    assert thing.__name__ in str(problem)


def test_a_raw_handler_must_be_callable() -> None:
    problem = refusal(lambda: Server("t").add_tool(Tool(name="a", input_schema=OBJECT), "x"))  # type: ignore[arg-type]
    assert "the handler of 'a' is no function" in problem.what


def test_three_lines_stay_three_whatever_an_author_wrote() -> None:
    problem = refusal(lambda: Server("t").tool(name="a\nb\n\nc")(lambda: 1))
    assert len(str(problem).splitlines()) == 3


# -- toolsets


class Weather(Toolset):
    @tool
    def forecast(self, city: str) -> str:
        return city

    @resource("weather://{city}")
    def now(self, city: str) -> str:
        return city

    @prompt
    def report(self, city: str) -> str:
        return city


class Climate(Toolset):
    @tool
    def history(self) -> str:
        return ""

    @tool(name="forecast")
    def outlook(self, city: str) -> str:
        return city


class Twins(Toolset):
    @tool(name="same")
    def one(self) -> str:
        return ""

    @tool(name="same")
    def other(self) -> str:
        return ""


class Broken(Toolset):
    @tool
    def fine(self) -> str:
        return ""

    @tool
    def worse(self, *args: int) -> str:
        return ""


def test_a_toolset_twice_is_refused() -> None:
    app = Server("t")
    app.add_toolset(Weather())
    problem = refusal(lambda: app.add_toolset(Weather()))
    assert re.fullmatch(r"(?:.*/)?test_mistakes\.py:\d+ \S+ \S*test_mistakes\.Weather", problem.where)
    assert "'weather' is there already: " in problem.what and "replace=True" in problem.fix
    assert len(str(problem).splitlines()) == 3


@pytest.mark.parametrize("toolset", [Climate, Broken, Twins])
def test_a_toolset_with_a_part_that_cannot_be_added_adds_nothing(toolset: type[Toolset]) -> None:
    app = Server("t")
    app.add_toolset(Weather())
    before = (list(app.catalog.tools), list(app.catalog.toolsets))
    assert len(str(refusal(lambda: app.add_toolset(toolset()))).splitlines()) == 3
    assert (list(app.catalog.tools), list(app.catalog.toolsets)) == before


def test_a_replacement_that_clashes_leaves_the_old_toolset_as_it_was() -> None:
    app = Server("t")
    app.add_toolset(Weather())

    @app.tool
    def history() -> str:
        return "mine"

    class Newer(Toolset):
        name = "weather"

        @tool
        def history(self) -> str:
            return ""

    old = app.catalog.toolsets["weather"]
    refusal(lambda: app.add_toolset(Newer(), replace=True))
    assert app.catalog.toolsets["weather"] is old
    assert list(app.catalog.tools) == ["forecast", "history"]
    assert list(app.catalog.prompts) == ["report"]


def test_what_is_no_toolset_is_refused_with_the_fix() -> None:
    problem = refusal(lambda: Server("t").add_toolset(Context))  # type: ignore[arg-type]
    assert "test_mistakes.py:" in problem.where
    assert problem.fix == "write class Context(Toolset)"


def test_an_unknown_option_of_a_mark_is_refused() -> None:
    assert "did you mean effects=?" in refusal(lambda: tool(effect="read")).fix
    assert "did you mean title=?" in refusal(lambda: prompt(titl="x")).fix
    assert "did you mean mime_type=?" in refusal(lambda: resource("a://b", mimetype="x")).fix
    assert "needs the URI" in refusal(lambda: resource(print)).what  # type: ignore[arg-type]
    assert "given no function" in refusal(lambda: tool("x")).what  # type: ignore[call-overload]


def test_an_unknown_name_can_not_be_removed() -> None:
    app = Server("t")
    app.add_toolset(Weather())
    with pytest.raises(KeyError, match=r"no tool 'forcast'; did you mean 'forecast'\?"):
        app.remove_tool("forcast")
    with pytest.raises(KeyError, match=r"no toolset 'wether'; did you mean 'weather'\?"):
        app.remove_toolset("wether")
    with pytest.raises(KeyError, match="no toolset 'x'"):
        app.reload("x")


def test_a_place_is_found_through_wrappers() -> None:
    @functools.wraps(star)
    def outer(*args: Any) -> None:
        star(*args)

    assert re.fullmatch(r"(?:.*/)?test_mistakes\.py:\d+ star\(app\)", locate(functools.partial(star)))
    assert re.fullmatch(r"(?:.*/)?test_mistakes\.py:\d+ outer\(\*args\)", locate(outer))
    assert locate(print) == "<built-in function print>"


class Hooked(Toolset):
    """A toolset whose hook wants what nobody gives it."""

    def start(self, app: Server) -> None:  # type: ignore[override]
        raise AssertionError(app)


def nothing() -> None:
    raise AssertionError("never called")


def by_name(record: Any, *, more: int) -> None:
    raise AssertionError((record, more))


@pytest.mark.parametrize(
    ("give", "what", "fix"),
    [
        (lambda: Server("t").listen(nothing), "listener is called with 1 argument (record)", "def listener(record)"),  # type: ignore[arg-type]
        (lambda: Server("t").listen(by_name), "listener is called with 1 argument (record)", "def listener(record)"),  # type: ignore[arg-type]
        (
            lambda: Server("t").listen(staticmethod(nothing)),  # type: ignore[arg-type]
            "listener is called with 1 argument (record)",
            "def listener(record)",
        ),
        (lambda: Server("t").listen(None), "listener is no function: None", "def listener(record)"),  # type: ignore[arg-type]
        (lambda: Server("t").add_toolset(Hooked()), "start is called with no arguments", "def start(self)"),
    ],
)
def test_a_callback_of_the_wrong_arity_is_refused_where_it_is_given(
    give: Callable[[], Any], what: str, fix: str
) -> None:
    problem = refusal(give)
    assert problem.what.startswith(what)
    assert problem.fix == fix
    assert "test_mistakes.py:" in problem.where


@pytest.mark.parametrize(
    "listener",
    [
        Mock(),
        AsyncMock(),
        print,
        [].append,
        functools.partial(by_name, more=1),
        Mock,
        staticmethod(lambda record: None),
    ],
)
def test_a_callback_that_can_be_called_is_taken(listener: Any) -> None:
    Server("t").listen(listener)()
