"""Resources: what a list shows, what a read gives, and what never reaches a reader."""

from __future__ import annotations

import asyncio
import base64
import enum
from dataclasses import dataclass
from typing import Any

import pytest

from longshore import Annotations, Contents, Context, Icon, ResourceNotFound, Server, ToolError
from longshore.protocol.revisions import NAMES
from talk import ERAS, NEWEST, NEWEST_LEGACY, Client, Refused, converse, result, talk

NOT_FOUND = {revision: -32602 if revision == NEWEST else -32002 for revision in NAMES}


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


@dataclass
class Report:
    city: str
    degrees: float


def read(app: Server, uri: str, revision: str = NEWEST_LEGACY) -> dict[str, Any]:
    return result(app, "resources/read", {"uri": uri}, revision)


def content(app: Server, uri: str, revision: str = NEWEST_LEGACY) -> dict[str, Any]:
    [found] = read(app, uri, revision)["contents"]
    return dict(found)


def refusal(app: Server, uri: str, revision: str) -> Refused:
    with pytest.raises(Refused) as caught:
        read(app, uri, revision)
    return caught.value


# -- lists

OPTIONS: dict[str, Any] = {
    "name": "guide",
    "title": "The guide",
    "description": "How to.",
    "mime_type": "text/markdown",
    "size": 12,
    "annotations": Annotations(audience=["assistant"], priority=1.0),
    "icons": [Icon("https://i")],
    "meta": {"example.com/k": 1},
}
WIRE = {
    "name": "guide",
    "title": "The guide",
    "description": "How to.",
    "mimeType": "text/markdown",
    "size": 12,
    "annotations": {"audience": ["assistant"], "priority": 1.0},
    "icons": [{"src": "https://i"}],
    "_meta": {"example.com/k": 1},
}


@pytest.mark.parametrize(
    ("revision", "unknown"),
    [
        ("2024-11-05", {"title", "icons", "_meta"}),
        ("2025-03-26", {"title", "icons", "_meta"}),
        ("2025-06-18", {"icons"}),
        ("2025-11-25", set()),
        ("2026-07-28", set()),
    ],
)
def test_every_option_stands_in_the_list_from_the_revision_on_that_knows_it(revision: str, unknown: set[str]) -> None:
    app = Server("t")
    app.resource("docs://guide", **OPTIONS)(lambda: "x")
    app.resource("docs://{page}", **OPTIONS)(lambda page: page)
    wire = {key: value for key, value in WIRE.items() if key not in unknown}
    assert result(app, "resources/list", revision=revision)["resources"] == [{"uri": "docs://guide"} | wire]
    wire.pop("size")
    templates = result(app, "resources/templates/list", revision=revision)["resourceTemplates"]
    assert templates == [{"uriTemplate": "docs://{page}"} | wire]


def test_name_and_description_follow_from_the_function() -> None:
    app = Server("t")

    @app.resource("docs://guide")
    def guide() -> str:
        """How to begin.

        And more.
        """
        return "x"

    [found] = result(app, "resources/list")["resources"]
    assert found["name"] == "guide" and found["description"].startswith("How to begin.")


def test_a_lambda_is_named_by_its_uri() -> None:
    app = Server("t")
    app.resource("docs://guide")(lambda: "x")
    assert result(app, "resources/list")["resources"] == [{"uri": "docs://guide", "name": "docs://guide"}]


def test_the_reader_comes_back_unchanged() -> None:
    app = Server("t")

    def guide() -> str:
        return "x"

    assert app.resource("docs://guide")(guide) is guide


def test_a_server_without_resources_has_no_such_methods() -> None:
    for method in ("resources/list", "resources/templates/list"):
        with pytest.raises(Refused) as caught:
            result(Server("t"), method)
        assert caught.value.code == -32601


# -- what a read gives

READINGS: list[tuple[str, Any, str | None, dict[str, Any]]] = [
    ("text", "héllo", None, {"mimeType": "text/plain", "text": "héllo"}),
    ("empty text", "", None, {"mimeType": "text/plain", "text": ""}),
    ("typed text", "# a", "text/markdown", {"mimeType": "text/markdown", "text": "# a"}),
    ("bytes", b"\xff\x00", None, {"mimeType": "application/octet-stream", "blob": "/wA="}),
    ("typed bytes", bytearray(b"\xff"), "image/png", {"mimeType": "image/png", "blob": "/w=="}),
    ("memory", memoryview(b"\xff"), None, {"mimeType": "application/octet-stream", "blob": "/w=="}),
    ("object", {"a": [1]}, None, {"mimeType": "application/json", "text": '{"a":[1]}'}),
    ("list", [1, 2], None, {"mimeType": "application/json", "text": "[1,2]"}),
    ("empty list", [], None, {"mimeType": "application/json", "text": "[]"}),
    ("record", Report("Oslo", 1.5), None, {"mimeType": "application/json", "text": '{"city":"Oslo","degrees":1.5}'}),
    ("number", 3, None, {"mimeType": "application/json", "text": "3"}),
    ("contents", Contents("", text="x"), None, {"text": "x"}),
    (
        "contents elsewhere",
        Contents("o://1", text="x", mime_type="m/n"),
        None,
        {"uri": "o://1", "mimeType": "m/n", "text": "x"},
    ),
]


@pytest.mark.parametrize(("value", "mime", "wire"), [row[1:] for row in READINGS], ids=[row[0] for row in READINGS])
@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize("run", ["inline", "thread", "async"])
def test_a_reader_returns_text_bytes_data_or_ready_made_contents(
    value: Any, mime: str | None, wire: dict[str, Any], revision: str, run: Any
) -> None:
    app = Server("t")

    def plain() -> Any:
        return value

    async def coroutine() -> Any:
        await asyncio.sleep(0)
        return value

    app.resource("a://b", mime_type=mime, run=None if run == "async" else run)(coroutine if run == "async" else plain)
    assert content(app, "a://b", revision) == {"uri": "a://b"} | wire


def test_several_contents_come_back_together() -> None:
    app = Server("t")

    @app.resource("dir://all")
    def everything() -> list[Contents]:
        return [Contents("dir://a", text="a"), Contents("dir://b", blob=b"b", meta={"k": 1}), Contents("", text="self")]

    assert read(app, "dir://all")["contents"] == [
        {"uri": "dir://a", "text": "a"},
        {"uri": "dir://b", "blob": base64.b64encode(b"b").decode(), "_meta": {"k": 1}},
        {"uri": "dir://all", "text": "self"},
    ]


@pytest.mark.parametrize("value", [None, object()])
def test_an_invalid_value_of_a_reader_is_an_internal_error(value: Any) -> None:
    app = Server("t")
    app.resource("a://b")(lambda: value)
    assert refusal(app, "a://b", NEWEST).code == -32603


@pytest.mark.parametrize(("max_age", "ttl"), [(0.0, 0), (1.5, 1500), (60, 60000)])
def test_a_modern_read_may_be_cached_for_max_age(max_age: float, ttl: int) -> None:
    app = Server("t")
    app.resource("a://b", max_age=max_age)(lambda: "x")
    modern = read(app, "a://b", NEWEST)
    assert (modern["ttlMs"], modern["cacheScope"], modern["resultType"]) == (ttl, "private", "complete")
    assert read(app, "a://b", NEWEST_LEGACY).keys() == {"contents"}


# -- templates


def library() -> tuple[Server, list[Any]]:
    app = Server("t")
    seen: list[Any] = []

    @app.resource("shelf://{shelf}/{number}")
    def book(shelf: str, number: int, ctx: Context) -> str:
        seen.append((shelf, number))
        if number == 404:
            raise ResourceNotFound(f"shelf://{shelf}/404")
        return f"{ctx.name}: {shelf} {number}"

    @app.resource("weather://{city}{?unit,days}")
    async def weather(city: str, unit: Unit = Unit.C, days: int = 3) -> dict[str, Any]:
        seen.append(city)
        return {"city": city, "unit": unit.value, "days": days}

    @app.resource("file:///{+path}", mime_type="text/plain")
    def file(path: str) -> str:
        seen.append(path)
        return path

    @app.resource("shelf://poems/1")
    def poems() -> str:
        return "fixed"

    return app, seen


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("shelf://novels/7", "book: novels 7"),
        ("shelf://caf%C3%A9%20noir/7", "book: café noir 7"),
        ("shelf://poems/1", "fixed"),
        ("shelf://poems/2", "book: poems 2"),
        ("weather://Oslo", '{"city":"Oslo","unit":"celsius","days":3}'),
        ("weather://Oslo?unit=fahrenheit&days=5", '{"city":"Oslo","unit":"fahrenheit","days":5}'),
        ("weather://Oslo?days=5&other=1", '{"city":"Oslo","unit":"celsius","days":5}'),
        ("file:///a/b%20c/d.txt", "a/b c/d.txt"),
    ],
)
def test_the_values_in_a_uri_reach_the_reader_typed(uri: str, text: str, revision: str) -> None:
    found = content(library()[0], uri, revision)
    assert (found["uri"], found["text"]) == (uri, text)


@pytest.mark.parametrize("revision", ERAS)
@pytest.mark.parametrize(
    ("uri", "words"),
    [
        ("shelf://novels/seven", "number: "),
        ("shelf://novels/7.5", "number: "),
        ("weather://Oslo?unit=kelvin", "unit: "),
        ("weather://Oslo?days=x", "days: "),
    ],
)
def test_a_value_of_the_wrong_type_is_an_invalid_parameter(uri: str, words: str, revision: str) -> None:
    app, seen = library()
    problem = refusal(app, uri, revision)
    assert problem.code == -32602 and words in problem.message
    assert seen == []


@pytest.mark.parametrize("revision", NAMES)
@pytest.mark.parametrize(
    "uri",
    [
        "nothing://here",
        "shelf://novels",
        "shelf://novels/7/8",
        "shelf://../7",
        "shelf://%2e%2e/7",
        "shelf://a%2Fb/7",
        "shelf://a%5Cb/7",
        "shelf://a\\b/7",
        "shelf://a%00/7",
        "file:///../etc/passwd",
        "file:///a/../../etc/passwd",
        "file:///%2e%2e/%2e%2e/etc/passwd",
        "file:///a/%2E%2E%2Fb",
        "file:///..%5C..%5Cwindows",
        "file:////etc/passwd",
        "file:///%2Fetc%2Fpasswd",
        "file:///a%00.txt",
        "",
        "x" * 10_000,
    ],
)
def test_an_unknown_uri_is_not_found_and_calls_no_reader(uri: str, revision: str) -> None:
    app, seen = library()
    problem = refusal(app, uri, revision)
    assert problem.code == NOT_FOUND[revision]
    assert problem.data == {"uri": uri[:1000]}
    assert seen == []


@pytest.mark.parametrize("revision", NAMES)
def test_a_reader_may_raise_resource_not_found(revision: str) -> None:
    app, seen = library()
    problem = refusal(app, "shelf://novels/404", revision)
    assert (problem.code, problem.data) == (NOT_FOUND[revision], {"uri": "shelf://novels/404"})
    assert seen == [("novels", 404)]


def test_only_the_text_of_a_tool_error_reaches_the_client() -> None:
    app = Server("t")

    @app.resource("a://said")
    def said() -> str:
        raise ToolError("the disk is full")

    @app.resource("a://raised")
    def raised() -> str:
        raise KeyError("/secret/path")

    told = refusal(app, "a://said", NEWEST)
    assert (told.code, told.message) == (-32603, "the disk is full")
    masked = refusal(app, "a://raised", NEWEST)
    assert masked.code == -32603 and "secret" not in masked.message and "error" in masked.message


@pytest.mark.parametrize("params", [{}, {"uri": 5}, {"uri": None}, {"uri": ["a://b"]}])
def test_a_read_without_a_uri_is_an_invalid_parameter(params: dict[str, Any]) -> None:
    [answer] = talk(library()[0], ("resources/read", params))
    assert answer["error"]["code"] == -32602


def test_of_two_templates_that_fit_the_first_is_read() -> None:
    app = Server("t")
    app.resource("a://{x}")(lambda x: f"first {x}")
    app.resource("a://{y}.txt")(lambda y: f"second {y}")
    assert content(app, "a://b.txt")["text"] == "first b.txt"


def test_a_template_is_no_uri_of_itself() -> None:
    app = Server("t")
    app.resource("a://{x}/y")(lambda x: f"x={x}")
    assert content(app, "a://%7Bx%7D/y")["text"] == "x={x}"


def test_replace_swaps_a_resource() -> None:
    app = Server("t")
    app.resource("a://b")(lambda: "old")
    app.resource("a://b", replace=True)(lambda: "new")
    assert content(app, "a://b")["text"] == "new"


# -- changes


def test_a_subscriber_is_notified_of_its_resource_only() -> None:
    app, _ = library()

    @app.tool
    def touch(ctx: Context) -> None:
        ctx.resource_changed("file:///other")
        ctx.resource_changed("file:///a/b.txt")

    async def script(client: Client) -> None:
        await client.request("resources/subscribe", {"uri": "file:///a"})
        await client.call_tool("touch")
        note = await client.heard("notifications/resources/updated")
        assert note["params"] == {"uri": "file:///a/b.txt"}
        await client.request("resources/unsubscribe", {"uri": "file:///a"})
        await client.call_tool("touch")
        assert client.notes == []

    converse(app, script)


def test_an_unknown_resource_can_not_be_subscribed_to() -> None:
    with pytest.raises(Refused) as caught:
        result(library()[0], "resources/subscribe", {"uri": "nothing://here"})
    assert caught.value.code == -32002


def test_a_listen_is_notified_of_a_change() -> None:
    app, _ = library()

    async def script(client: Client) -> None:
        wanted = {"resourceSubscriptions": ["file:///a"], "resourcesListChanged": True}
        id = client.send("subscriptions/listen", {"notifications": wanted})
        acknowledged = await client.heard("notifications/subscriptions/acknowledged")
        assert acknowledged["params"]["notifications"] == wanted
        app.resource_changed("file:///a/b")
        note = await client.heard("notifications/resources/updated")
        assert note["params"]["uri"] == "file:///a/b"
        assert note["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": id}
        app.resource("new://one")(lambda: "x")
        await client.heard("notifications/resources/list_changed")

    converse(app, script, NEWEST)
