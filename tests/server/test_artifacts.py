"""Artifacts as tools save them and clients read them: links, ranges, owners, both eras."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import pytest

from longshore import Context, ResourceLink, Server, Text, Toolset, tool
from longshore.protocol.peer import Principal
from longshore.sandbox.artifacts import READ_BYTES
from talk import ERAS, NEWEST, OLDEST, Client, Refused, call, converse, result

TEMPLATE = "artifact://{id}/{name}{?offset,length}"
BINARY = bytes(range(256)) * 10


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "longshore/artifacts"


class Maker(Toolset):
    """Saves what it is given."""

    @tool(artifacts=True)
    def text(self, text: str, ctx: Context, name: str = "log.txt") -> list[Text | ResourceLink]:
        return [Text("saved"), ctx.save_artifact(name, text, description="the log")]

    @tool(artifacts=True)
    async def binary(self, ctx: Context) -> ResourceLink:
        return ctx.save_artifact("page.png", BINARY)

    @tool(artifacts=True)
    def typed(self, name: str, mime_type: str, ctx: Context) -> ResourceLink:
        return ctx.save_artifact(name, b"{}", mime_type)

    @tool
    def undeclared(self, ctx: Context) -> ResourceLink:
        return ctx.save_artifact("a.txt", "")


@pytest.fixture
def app() -> Server:
    app = Server("maker")
    app.add_toolset(Maker())
    return app


def save(app: Server, text: str, **more: Any) -> dict[str, Any]:
    """The link that the tool answers."""
    [_, link] = call(app, "text", {"text": text, **more}, NEWEST)["content"]
    return dict(link)


def read(app: Server, uri: str, revision: str = NEWEST) -> list[dict[str, Any]]:
    return list(result(app, "resources/read", {"uri": uri}, revision)["contents"])


@pytest.mark.parametrize("revision", ERAS)
def test_a_saved_text_is_linked_and_read_back(app: Server, revision: str) -> None:
    [said, link] = call(app, "text", {"text": "é€\n"}, revision)["content"]
    assert said["text"] == "saved"
    assert (link["type"], link["name"], link["mimeType"], link["size"]) == ("resource_link", "log.txt", "text/plain", 6)
    assert link["description"].startswith("the log; can be read until 2")
    assert read(app, link["uri"], revision) == [{"uri": link["uri"], "text": "é€\n", "mimeType": "text/plain"}]


@pytest.mark.parametrize("revision", ERAS)
def test_bytes_are_read_back_as_a_blob(app: Server, revision: str) -> None:
    [link] = call(app, "binary", revision=revision)["content"]
    assert link["mimeType"] == "image/png"
    [found] = read(app, link["uri"], revision)
    assert base64.b64decode(found["blob"]) == BINARY


@pytest.mark.parametrize(
    ("name", "kind", "form"),
    [
        ("a.bin", "application/json", "text"),
        ("a", "application/vnd.api+json", "text"),
        ("a.svg", "image/svg+xml", "text"),
        ("a.txt", "application/octet-stream", "blob"),
    ],
)
def test_the_mime_type_says_whether_it_is_text(app: Server, name: str, kind: str, form: str) -> None:
    [link] = call(app, "typed", {"name": name, "mime_type": kind})["content"]
    [found] = read(app, link["uri"])
    assert link["mimeType"] == found["mimeType"] == kind
    assert form in found


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.html", "text/html"), ("a.json", "application/json"), ("a.log", "text/plain"), ("a.tar.gz", "text/plain")],
)
def test_without_a_mime_type_the_name_says_it(app: Server, name: str, kind: str) -> None:
    assert save(app, "x", name=name)["mimeType"] == kind


def test_parameters_of_a_mime_type_are_left_out(app: Server) -> None:
    [link] = call(app, "typed", {"name": "a", "mime_type": "text/html; charset=utf-8"})["content"]
    assert link["mimeType"] == "text/html"


def test_before_resource_links_a_client_gets_the_uri_as_text(app: Server) -> None:
    [_, link] = call(app, "text", {"text": "x"}, OLDEST)["content"]
    assert link["type"] == "text"
    name, _, uri = link["text"].partition(": ")
    assert name == "log.txt"
    assert read(app, uri, OLDEST)[0]["text"] == "x"


# -- ranges


def test_a_long_artifact_is_read_in_parts_that_name_the_next(app: Server) -> None:
    whole = "é" * READ_BYTES + "end"
    parts, uri = list[str](), save(app, whole)["uri"]
    first = uri
    while uri:
        part, *rest = read(app, uri)
        assert part["uri"] == uri
        assert len(part["text"].encode()) <= READ_BYTES
        parts.append(part["text"])
        uri = rest[0]["uri"] if rest else ""
        if len(parts) == 1:
            assert uri == f"{first}?offset={READ_BYTES}"
            assert rest[0]["text"] == f"[bytes 0 to 1,048,576 of 2,097,155; the rest: {uri}]"
    assert "".join(parts) == whole
    assert len(parts) == 3


@pytest.mark.parametrize(
    ("query", "text", "following"),
    [
        ("?offset=2&length=3", "234", "?offset=5&length=3"),
        ("?length=10", "0123456789", ""),
        ("?length=9", "012345678", "?offset=9&length=9"),
        ("?offset=9", "9", ""),
        ("?offset=10", "", ""),
        ("?offset=11", "", ""),
        ("?length=11", "0123456789", ""),
    ],
)
def test_a_range(app: Server, query: str, text: str, following: str) -> None:
    uri = save(app, "0123456789")["uri"]
    part, *rest = read(app, uri + query)
    assert part["text"] == text
    assert [each["uri"] for each in rest] == ([uri + following] if following else [])


def test_a_range_ends_before_a_character_that_it_divides(app: Server) -> None:
    uri = save(app, "a€b")["uri"]
    part, rest = read(app, f"{uri}?length=2")
    assert part["text"] == "a"
    assert rest["uri"] == f"{uri}?offset=1&length=2"
    part, rest = read(app, rest["uri"])  # too short for the character: as bytes, so that reading goes on
    assert base64.b64decode(part["blob"]) == "€".encode()[:2]
    assert rest["uri"] == f"{uri}?offset=3&length=2"


@pytest.mark.parametrize("query", ["offset=-1", "offset=x", "offset=1e3", "length=0", "length=-1", f"offset={10**15}"])
def test_a_malformed_range_is_refused(app: Server, query: str) -> None:
    uri = save(app, "x")["uri"]
    with pytest.raises(Refused, match="is no number of bytes from") as caught:
        read(app, f"{uri}?{query}")
    assert caught.value.code == -32602


# -- owners


@pytest.mark.parametrize("revision", ERAS)
def test_another_principal_gets_the_error_of_an_artifact_that_never_was(app: Server, revision: str) -> None:
    uri = save(app, "secret")["uri"]
    id = uri.split("/")[2]
    never = uri.replace(id, "0" * len(id))

    async def refusal(principal: str, wanted: str) -> tuple[int, str, Any]:
        client = Client(app, revision)
        client._memory.principal = Principal(principal)
        await client.open()
        with pytest.raises(Refused) as caught:
            await client.request("resources/read", {"uri": wanted})
        client.close()
        return caught.value.code, caught.value.message, caught.value.data

    theirs = asyncio.run(refusal("eve", uri))
    made_up = asyncio.run(refusal("local", never))
    assert theirs[0] == made_up[0]
    assert theirs[1].replace(uri, never) == made_up[1]
    assert theirs[2] == {"uri": uri}
    assert made_up[2] == {"uri": never}


def test_an_expired_artifact_is_gone(app: Server, cache: Path) -> None:
    import os

    uri = save(app, "x")["uri"]
    [path] = cache.glob("*/*")
    os.utime(path, (0, 0))
    with pytest.raises(Refused, match="may have expired"):
        read(app, uri)


# -- what is declared


@pytest.mark.parametrize("revision", ERAS)
def test_a_server_with_a_tool_that_saves_artifacts_declares_resources(app: Server, revision: str) -> None:
    async def script(client: Client) -> tuple[Any, Any]:
        return await client.open(), await client.request("resources/templates/list")

    greeting, listed = converse(app, script, revision)
    assert "resources" in greeting["capabilities"]
    [template] = listed["resourceTemplates"]
    assert template["uriTemplate"] == TEMPLATE


def test_any_other_server_does_not() -> None:
    app = Server("plain")

    @app.tool
    def f(ctx: Context) -> str:
        return ""

    async def script(client: Client) -> Any:
        return await client.open()

    assert "resources" not in converse(app, script)["capabilities"]


def test_with_the_last_such_tool_the_template_goes(app: Server) -> None:
    assert result(app, "resources/templates/list")["resourceTemplates"]
    app.remove_toolset("maker")
    with pytest.raises(Refused, match="no resources"):
        result(app, "resources/templates/list")


def test_a_tool_that_does_not_declare_artifacts_can_not_save_one(app: Server) -> None:
    failed = call(app, "undeclared")
    assert failed["isError"]
    assert "declare it with artifacts=True" in failed["content"][0]["text"]


def test_without_a_home_the_error_names_the_variable(app: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "relative")
    failed = call(app, "text", {"text": "x"})
    assert "set XDG_CACHE_HOME" in failed["content"][0]["text"]
