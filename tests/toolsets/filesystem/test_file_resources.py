"""Files as resources: read by their URIs, and watched for changes."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Literal, TypeVar

import pytest
from msgspec.structs import replace
from tests.sandbox.confined_tree import SECRET, make_tree

from longshore import Client, Server
from longshore.builtin import make
from longshore.config import DEFAULT
from longshore.toolsets.filesystem import tools
from talk import ERAS, NEWEST_LEGACY, WAIT_SECONDS, Refused, converse, result, until
from talk import Client as RawClient

from .file_server import serve

T = TypeVar("T")
UPDATED = "notifications/resources/updated"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = make_tree(tmp_path) / "allow"
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def new_changes_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of these tests are so new that their watches would begin with a report."""
    monkeypatch.setattr(tools, "LATE_SECONDS", 0.0)


def read(app: Server, uri: str, revision: str = NEWEST_LEGACY) -> dict[str, str]:
    [contents] = result(app, "resources/read", {"uri": uri}, revision)["contents"]
    found: dict[str, str] = contents
    return found


@pytest.mark.parametrize("revision", ERAS)
def test_a_file_is_read_by_its_uri(folder: Path, revision: str) -> None:
    (folder / "a é.txt").write_bytes(b"\xef\xbb\xbfone\r\n")
    (folder / "b").write_bytes(b"\x89PNG\r\n\x1a\n\0")
    uri = (folder / "a é.txt").as_uri()
    assert read(serve(), uri, revision) == {"uri": uri, "text": "one\r\n", "mimeType": "text/plain"}
    data = base64.b64encode(b"\x89PNG\r\n\x1a\n\0").decode()
    uri = (folder / "b").as_uri()
    assert read(serve(), uri, revision) == {"uri": uri, "blob": data, "mimeType": "image/png"}


@pytest.mark.parametrize(
    "path", ["../secret", "l/secret", "to_secret", "../allow_evil/secret", "nothing", ".env", "sub", "%2e%2e/secret"]
)
def test_what_may_not_be_read_is_not_found(folder: Path, path: str) -> None:
    (folder / ".env").write_bytes(SECRET)
    with pytest.raises(Refused) as refused:
        read(serve(), f"file://{folder}/{path}")
    assert refused.value.code == -32002 and SECRET.decode() not in refused.value.message


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_resource_has_at_most_max_file_size(folder: Path, more: int) -> None:
    (folder / "a").write_bytes(b"x" * (100 + more))
    app = serve(max_file_size=100)
    if more <= 0:
        assert len(read(app, (folder / "a").as_uri())["text"]) == 100 + more
    else:
        with pytest.raises(Refused, match="is too large: 101 bytes, more than the limit of 100"):
            read(app, (folder / "a").as_uri())


def test_the_template_is_listed() -> None:
    templates = result(make(), "resources/templates/list")["resourceTemplates"]
    assert "file:///{+path}" in [each["uriTemplate"] for each in templates]


async def watch(client: RawClient, *uris: str) -> int:
    """Watch resources, in the way of the client's era. Returns the id with which it is ended."""
    if client.modern:
        id = client.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": list(uris)}})
        await client.heard("notifications/subscriptions/acknowledged")
        return id
    for uri in uris:
        await client.request("resources/subscribe", {"uri": uri})
    return 0


async def until_watched(app: Server, count: int) -> None:
    """Wait until the toolset observes so many resources: a watch is answered before."""
    await until(lambda: app.catalog.toolsets["filesystem"].toolset.status() == {"watched": count})


def watching(app: Server, script: Callable[[RawClient], Awaitable[T]], revision: str) -> T:
    """Run a script. Afterwards the toolset is removed, and its thread with it."""

    async def run(client: RawClient) -> T:
        try:
            return await script(client)
        finally:
            app.remove_toolset("filesystem")
            await until(lambda: "file watcher" not in [thread.name for thread in threading.enumerate()])

    return converse(app, run, revision)


@pytest.mark.usefixtures("new_changes_only")
@pytest.mark.parametrize("built_in", [False, True])
@pytest.mark.parametrize("revision", ERAS)
def test_a_change_of_a_watched_file_is_reported(folder: Path, revision: str, built_in: bool) -> None:
    app = make() if built_in else serve()
    app.config = replace(DEFAULT, server=replace(DEFAULT.server, roots=[str(folder)]))
    uri, other = (folder / "file.txt").as_uri(), (folder / "new.txt").as_uri()

    async def talk(client: RawClient) -> None:
        await watch(client, uri, other)
        await until_watched(app, 2)
        (folder / "sub/inner.txt").write_text("nobody watches this")
        (folder / "file.txt").write_text("changed")
        assert (await client.heard(UPDATED))["params"]["uri"] == uri
        os.rename(folder / "sub/inner.txt", folder / "new.txt")
        assert (await client.heard(UPDATED))["params"]["uri"] == other
        await client.call_tool("fs_write", path="file.txt", content="by the tool")
        assert (await client.heard(UPDATED))["params"]["uri"] == uri

    watching(app, talk, revision)


@pytest.mark.parametrize("name", ["made.txt", "deleted.txt"])
@pytest.mark.parametrize("revision", ERAS)
def test_a_change_right_before_the_watch_begins_is_reported(folder: Path, revision: str, name: str) -> None:
    app = serve()
    (folder / name).write_text("new")
    if name == "deleted.txt":
        (folder / name).unlink()

    async def talk(client: RawClient) -> None:
        await watch(client, uri := (folder / name).as_uri())
        assert (await client.heard(UPDATED))["params"]["uri"] == uri

    watching(app, talk, revision)


@pytest.mark.usefixtures("new_changes_only")
@pytest.mark.parametrize("revision", ERAS)
def test_a_change_in_a_watched_folder_is_reported(folder: Path, revision: str) -> None:
    app = serve()
    uri = (folder / "sub").as_uri()

    async def talk(client: RawClient) -> None:
        await watch(client, uri)
        await until_watched(app, 1)
        (folder / "sub/made.txt").write_text("new")
        assert (await client.heard(UPDATED))["params"]["uri"] == uri

    watching(app, talk, revision)


OUTSIDE = ["{above}/secret", "{above}/allow/l/secret", "{above}/allow/to_secret", "{above}/allow/.env"]


@pytest.mark.parametrize("built_in", [False, True])
@pytest.mark.parametrize("path", OUTSIDE)
def test_the_acknowledgement_of_a_listen_leaves_out_what_is_outside(folder: Path, path: str, built_in: bool) -> None:
    (folder / ".env").write_bytes(SECRET)
    app = make() if built_in else serve()
    app.config = replace(DEFAULT, server=replace(DEFAULT.server, roots=[str(folder)]))
    hidden, uri = "file://" + path.format(above=folder.parent), (folder / "file.txt").as_uri()

    async def talk(client: RawClient) -> None:
        for wanted in ([hidden, uri], [hidden]):
            client.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": wanted}})
            note = await client.heard("notifications/subscriptions/acknowledged")
            accepted = note["params"]["notifications"].get("resourceSubscriptions", [])
            assert accepted == [each for each in wanted if each == uri]
        await until_watched(app, 1)

    watching(app, talk, ERAS[1])


@pytest.mark.parametrize("built_in", [False, True])
@pytest.mark.parametrize("path", [*OUTSIDE, "{above}/allow/../secret"])
def test_a_subscription_to_what_is_outside_is_refused(folder: Path, path: str, built_in: bool) -> None:
    (folder / ".env").write_bytes(SECRET)
    app = make() if built_in else serve()
    app.config = replace(DEFAULT, server=replace(DEFAULT.server, roots=[str(folder)]))
    uri = (folder / "file.txt").as_uri()

    async def talk(client: RawClient) -> None:
        with pytest.raises(Refused) as refused:
            await client.request("resources/subscribe", {"uri": "file://" + path.format(above=folder.parent)})
        assert refused.value.code == -32002
        await client.request("resources/subscribe", {"uri": uri})
        assert app.engine.subscriptions.watched() == {uri}
        await until_watched(app, 1)

    watching(app, talk, ERAS[0])


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_process_reports_a_change_to_a_client(folder: Path, era: Literal["legacy", "modern"]) -> None:
    uri = (folder / "file.txt").as_uri()

    async def talk() -> list[str]:
        command = [sys.executable, "-m", "longshore", "serve", "--root", str(folder)]
        read = list[str]()
        async with Client(command, era=era) as client, client.watch(uris=[uri]) as changes:
            (folder / "file.txt").write_text("at once")  # the watch was answered before the toolset is imported
            async for change in changes:
                assert change.uri == uri
                [contents] = await client.read_resource(uri)
                if contents.text not in read:
                    read.append(str(contents.text))
                    (folder / "file.txt").write_text("later")
                if "later" in read:
                    break
        return read

    assert asyncio.run(asyncio.wait_for(talk(), WAIT_SECONDS)) == ["at once", "later"]
