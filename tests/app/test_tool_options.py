"""`@app.tool`: every option, and where a client sees it."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

import pytest

from longshore import Context, Icon, RegistrationError, Server, Tool
from longshore.protocol.revisions import NAMES
from longshore.registry.tool import ToolOptions
from longshore.toolsets.discovery.tools import Discovery
from talk import NEWEST, NEWEST_LEGACY, call, converse, listed, result, talk, text


def from_town(town: str) -> dict[str, str]:
    return {"city": town}


ICON = Icon("https://example.com/i.png", mime_type="image/png", sizes=["48x48"])
OPTIONS: dict[str, Any] = {
    "name": "get-weather",
    "title": "The weather",
    "description": "Say how the weather is.",
    "category": "weather",
    "tags": ["sky", "rain"],
    "effects": "write",
    "idempotent": True,
    "open_world": False,
    "timeout": 2.5,
    "run": "inline",
    "examples": [{"city": "Oslo"}],
    "errors": {"no_city": "there is no such city"},
    "output_schema": {"type": "object", "properties": {"degrees": {"type": "number"}}, "required": ["degrees"]},
    "annotations": {"title": "Hint"},
    "icons": [ICON],
    "meta": {"example.com/shelf": 3},
    "scopes": ["weather:read"],
    "help": "Degrees are those of Celsius.",
    "listed": True,
    "catalog_forms": [],
    "group": None,
    "aliases": ["weather-now"],
    "migrations": [from_town],
    "waive": {"W22": "a city needs no words"},
}


def weather(city: str) -> dict[str, float]:
    """Words of the docstring, which the option replaces."""
    return {"degrees": 1.5}


def app_with(**options: Any) -> Server:
    app = Server("t")
    app.add_toolset(Discovery(app))
    app.tool(**options)(weather)
    return app


WIRE = {
    "name": "get-weather",
    "title": "The weather",
    "description": "Say how the weather is.",
    "icons": [{"src": "https://example.com/i.png", "mimeType": "image/png", "sizes": ["48x48"]}],
    "inputSchema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    "outputSchema": OPTIONS["output_schema"],
    "annotations": {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
        "title": "Hint",
    },
    "_meta": {"longshore/category": "weather", "longshore/tags": ["sky", "rain"], "example.com/shelf": 3},
}


@pytest.mark.parametrize(
    ("revision", "unknown"),
    [
        ("2024-11-05", {"title", "icons", "outputSchema", "annotations", "_meta"}),
        ("2025-03-26", {"title", "icons", "outputSchema", "_meta"}),
        ("2025-06-18", {"icons"}),
        ("2025-11-25", set()),
        ("2026-07-28", set()),
    ],
)
def test_a_list_shows_each_option_from_the_revision_on_that_knows_it(revision: str, unknown: set[str]) -> None:
    shown = listed(app_with(**OPTIONS), "get-weather", revision)
    assert shown == {key: value for key, value in WIRE.items() if key not in unknown}


def test_the_help_of_a_tool_shows_what_a_list_has_no_field_for() -> None:
    shown = text(call(app_with(**OPTIONS), "tool_help", {"name": "get-weather"}))
    for words in (
        "get-weather: Say how the weather is.",
        "city (string, required)",
        "Gives: object with degrees",
        "Effects: write, idempotent",
        "no_city: there is no such city",
        '{"city":"Oslo"}',
    ):
        assert words in shown


def test_the_entry_keeps_what_the_engine_needs() -> None:
    app = app_with(**OPTIONS)
    app.engine  # noqa: B018  (the limits are settled when the engine is made)
    entry = app.catalog.tools["get-weather"]
    assert (entry.timeout, entry.limit, entry.run) == (2.5, 2.5, "inline")
    assert entry.scopes == {"weather:read"}
    assert (entry.category, entry.tags, entry.examples) == ("weather", ("sky", "rain"), ({"city": "Oslo"},))


def test_every_option_is_tried_here() -> None:
    assert OPTIONS.keys() | {"artifacts", "replay"} == set(ToolOptions.__struct_fields__)


def test_without_options_everything_follows_from_the_function() -> None:
    app = Server("t")

    @app.tool
    def add(a: int, b: int = 2) -> int:
        """Add two numbers.

        a: the first
        b: the second
        """
        return a + b

    shown = listed(app, "add")
    assert shown.keys() == {"name", "description", "inputSchema", "outputSchema"}
    assert shown["description"] == "Add two numbers."
    assert shown["inputSchema"]["properties"] == {
        "a": {"type": "integer", "description": "the first"},
        "b": {"type": "integer", "description": "the second", "default": 2},
    }
    assert text(call(app, "add", {"a": 1})) == "3"


@pytest.mark.parametrize("decorate", [lambda app: app.tool, lambda app: app.tool(), lambda app: app.tool(title="T")])
def test_the_function_comes_back_unchanged(decorate: Any) -> None:
    app = Server("t")

    def f(x: int) -> int:
        return x

    before = dict(vars(f))
    assert decorate(app)(f) is f
    assert vars(f) == before
    assert f(3) == 3


def test_one_function_may_be_two_tools_and_a_prompt() -> None:
    app = Server("t")

    @app.prompt
    @app.tool(name="second")
    @app.tool
    def first(text: str) -> str:
        return text

    assert [tool["name"] for tool in result(app, "tools/list")["tools"]] == ["first", "second"]
    assert [prompt["name"] for prompt in result(app, "prompts/list")["prompts"]] == ["first"]


@pytest.mark.parametrize(
    ("effects", "idempotent", "hints"),
    [
        (None, None, None),
        ("read", None, {"readOnlyHint": True}),
        ("read", True, {"readOnlyHint": True}),
        ("write", None, {"readOnlyHint": False, "destructiveHint": False}),
        ("write", False, {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False}),
        ("destroy", True, {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True}),
    ],
)
def test_hints_follow_from_effects(effects: Any, idempotent: bool | None, hints: dict[str, bool] | None) -> None:
    app = Server("t")
    app.tool(effects=effects, idempotent=idempotent)(weather)
    assert listed(app, "weather").get("annotations") == hints


def test_an_annotation_of_the_author_wins_over_the_hint() -> None:
    app = Server("t")
    app.tool(effects="read", annotations={"readOnlyHint": False, "example.com/x": 1})(weather)
    assert listed(app, "weather")["annotations"] == {"readOnlyHint": False, "example.com/x": 1}


def test_replace_swaps_a_tool_in_its_position() -> None:
    app = Server("t")

    @app.tool(name="a")
    def old() -> str:
        return "old"

    @app.tool
    def b() -> str:
        return "b"

    @app.tool(name="a", replace=True)
    def new() -> str:
        return "new"

    assert [tool["name"] for tool in result(app, "tools/list")["tools"]] == ["a", "b"]
    assert text(call(app, "a")) == "new"


# -- callables of every kind


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name

    def sell(self, item: str) -> str:
        """Sell one thing."""
        return f"{self.name} sells {item}"

    async def buy(self, item: str) -> str:
        return f"{self.name} buys {item}"

    def __call__(self, item: str) -> str:
        return f"{self.name} has {item}"

    @classmethod
    def count(cls, item: str) -> str:
        return f"{cls.__name__} counts {item}"

    @staticmethod
    def weigh(item: str) -> str:
        return f"weighed {item}"


def wrapped(fn: Any) -> Any:
    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return wrapper


def _lend(shop: str, item: str) -> str:
    return f"{shop} lends {item}"


@pytest.mark.parametrize(
    ("fn", "name", "answer"),
    [
        (Shop("A").sell, "sell", "A sells tea"),
        (Shop("A").buy, "buy", "A buys tea"),
        (Shop("A"), "Shop", "A has tea"),
        (Shop.count, "count", "Shop counts tea"),
        (Shop.weigh, "weigh", "weighed tea"),
        (functools.partial(_lend, "A"), "_lend", "A lends tea"),
        (functools.partial(_lend, shop="A"), "_lend", "A lends tea"),
        (functools.partial(Shop("A").buy), "buy", "A buys tea"),
        (wrapped(Shop("A").sell), "sell", "A sells tea"),
        (wrapped(Shop("A").buy), "buy", "A buys tea"),
        (wrapped(wrapped(Shop.weigh)), "weigh", "weighed tea"),
    ],
)
def test_methods_partials_callables_and_wrappers_are_tools(fn: Any, name: str, answer: str) -> None:
    app = Server("t")
    assert app.tool(fn) is fn
    assert listed(app, name)["inputSchema"]["required"] == ["item"]
    assert text(call(app, name, {"item": "tea"})) == answer


def test_a_lambda_with_a_name_is_a_tool() -> None:
    app = Server("t")
    app.tool(name="twice")(lambda n: n * 2)
    assert text(call(app, "twice", {"n": 4})) == "8"


# -- how it is run


def test_each_way_of_running_gets_its_own_thread_or_none() -> None:
    import threading

    app = Server("t")
    seen: dict[str, Any] = {}

    def note(name: str) -> None:
        seen[name] = threading.current_thread() is threading.main_thread()

    @app.tool(run="inline")
    def inline() -> None:
        note("inline")

    @app.tool(run="thread")
    def thread() -> None:
        note("thread")

    @app.tool
    def plain() -> None:
        note("plain")

    @app.tool
    async def coroutine() -> None:
        await asyncio.sleep(0)
        note("coroutine")

    talk(app, *[("tools/call", {"name": name}) for name in ("inline", "thread", "plain", "coroutine")])
    assert seen == {"inline": True, "thread": False, "plain": False, "coroutine": True}


def test_a_tool_that_takes_too_long_is_stopped_at_its_own_timeout() -> None:
    app = Server("t")
    stopped: list[bool] = []

    @app.tool(timeout=0.05)
    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)
        return "never"

    answer = call(app, "slow")
    assert answer["isError"] is True
    assert "slow did not finish within 0.05 s" in text(answer)
    assert stopped == [True]


@pytest.mark.parametrize("timeout", [None, False, 7])
def test_the_deadline_of_a_call_follows_from_the_timeout(timeout: Any) -> None:
    app = Server("t")

    @app.tool(timeout=timeout)
    async def left(ctx: Context) -> str:
        return str(round(ctx.remaining)) if ctx.remaining < 1e9 else "for ever"

    assert text(call(app, "left")) == {None: "30", False: "for ever", 7: "7"}[timeout]


# -- options that do not exist


@pytest.mark.parametrize(
    ("option", "fix"),
    [
        ("effect", "did you mean effects=?"),
        ("desciption", "did you mean description=?"),
        ("tag", "did you mean tags=?"),
        ("zzzz", "there are name, title,"),
    ],
)
def test_an_option_that_does_not_exist_is_refused_with_the_nearest(option: str, fix: str) -> None:
    app = Server("t")
    with pytest.raises(RegistrationError) as caught:
        app.tool(**{option: "read"})
    where, what, advice = str(caught.value).splitlines()
    assert "test_tool_options.py:" in where
    assert what.strip() == f"@app.tool(…) takes no {option}="
    assert fix in advice


def test_the_options_of_prompts_are_checked_too() -> None:
    with pytest.raises(RegistrationError, match=r"did you mean title=\?"):
        Server("t").prompt(titel="x")


@pytest.mark.parametrize(
    ("option", "fix"),
    [
        ("instruction", "did you mean instructions=?"),
        ("Version", "did you mean version=?"),
        ("zzzz", "there are version, title,"),
    ],
)
def test_an_option_that_a_server_does_not_take_is_refused_with_the_nearest(option: str, fix: str) -> None:
    with pytest.raises(RegistrationError) as caught:
        Server("t", **{option: "x"})  # type: ignore[arg-type]
    where, what, advice = str(caught.value).splitlines()
    assert "test_tool_options.py:" in where
    assert what.strip() == f"Server(…) takes no {option}="
    assert fix in advice


def test_a_name_in_the_functions_place_is_refused_with_the_fix() -> None:
    app = Server("t")
    with pytest.raises(RegistrationError, match=r"@app\.tool\(name='add'\)"):
        app.tool("add")  # type: ignore[call-overload]
    with pytest.raises(RegistrationError, match=r"@app\.resource needs the URI"):
        app.resource(weather)  # type: ignore[arg-type]


# -- order, names of the server


def test_tools_are_listed_in_the_order_in_which_they_were_declared() -> None:
    app = Server("t")
    names = [f"tool_{n}" for n in (5, 1, 9, 3)]
    for name in names:
        app.tool(name=name)(weather)
    for revision in NAMES:
        assert [tool["name"] for tool in result(app, "tools/list", revision=revision)["tools"]] == names


def test_the_servers_own_words_reach_the_client_as_its_revision_knows_them() -> None:
    app = Server("t", version="2", title="T", description="D", website_url="https://t", icons=[ICON], instructions="I")

    async def script(client: Any) -> Any:
        return await client.open()

    old = converse(app, script, "2024-11-05")
    assert old["serverInfo"] == {"name": "t", "version": "2"} and old["instructions"] == "I"
    new = converse(app, script, NEWEST_LEGACY)
    assert new["serverInfo"].keys() == {"name", "version", "title", "description", "websiteUrl", "icons"}
    modern = converse(app, script, NEWEST)
    assert modern["instructions"] == "I"
    assert modern["_meta"]["io.modelcontextprotocol/serverInfo"]["websiteUrl"] == "https://t"


def test_a_raw_tool_shows_the_same_options() -> None:
    app = Server("t")
    known = {key: value for key, value in OPTIONS.items() if key in Tool.__struct_fields__}
    app.add_tool(Tool(input_schema=WIRE["inputSchema"], **known), lambda arguments, ctx: {"content": []})
    assert listed(app, "get-weather") == WIRE
