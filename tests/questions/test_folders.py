"""The folders that a call may touch: the server's roots, narrowed by what the session's client says of its own."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from longshore import Context, Server
from longshore.config import DEFAULT
from longshore.server import call_files, client_roots
from longshore.telemetry.records import Problem

from .wire import LEGACY, MODERN, Client, failed, run, text

both_ways = pytest.mark.parametrize("tool", ["task", "thread", "inline_first"])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("project/src", "project/docs", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path.resolve()


@pytest.fixture
def app(tree: Path) -> Server:
    app = Server("files")
    app.config = replace(DEFAULT, server=replace(DEFAULT.server, roots=[str(tree / "project")]))

    @app.tool
    async def task(ctx: Context) -> str:
        return " ".join(await ctx.folders())

    @app.tool
    def thread(ctx: Context) -> str:
        return " ".join(ctx.folders())

    @app.tool(run="inline_first")
    def inline_first(ctx: Context) -> str:
        return " ".join(ctx.folders())

    @app.tool(run="inline_first")
    def on_thread(ctx: Context) -> bool:
        ctx.folders()
        return ctx.may_block

    @app.tool(run="inline")
    def inline(ctx: Context) -> str:
        return " ".join(ctx.folders())

    return app


@pytest.fixture
def problems(app: Server) -> Iterator[list[str]]:
    found: list[str] = []
    stop = app.listen(lambda record: found.append(record.text) if isinstance(record, Problem) else None)
    yield found
    stop()


def call(client: Client, tool: str) -> int:
    return client.send("tools/call", {"name": tool, "arguments": {}})


async def question(client: Client) -> Any:
    asked = await client.get()
    assert asked["method"] == "roots/list"
    return asked


def answer(client: Client, asked: Any, *roots: Path | str) -> None:
    listed = [{"uri": root if isinstance(root, str) else root.as_uri(), "name": "x"} for root in roots]
    client.put({"jsonrpc": "2.0", "id": asked["id"], "result": {"roots": listed}})


def change(client: Client) -> None:
    client.put({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})


async def folders(client: Client, tool: str) -> str:
    """What the tool may touch, without a question."""
    return text((await client.call_tool(tool))["result"])


@both_ways
def test_a_clients_roots_are_asked_for_once_and_narrow_the_servers(app: Server, tree: Path, tool: str) -> None:
    async def main() -> None:
        client = Client(app, LEGACY)
        id = call(client, tool)
        answer(client, await question(client), tree / "project/src", tree / "elsewhere")
        reply = await client.get()
        assert (reply["id"], text(reply["result"])) == (id, str(tree / "project/src"))
        assert await folders(client, tool) == str(tree / "project/src")
        assert client.link.session.asked == {}

    run(main())


@both_ways
@pytest.mark.parametrize(("era", "capabilities"), [(LEGACY, {}), (MODERN, {}), (MODERN, {"roots": {}})])
def test_other_clients_are_not_asked(
    app: Server, tree: Path, tool: str, era: str, capabilities: dict[str, Any]
) -> None:
    async def main() -> None:
        assert await folders(Client(app, era, capabilities), tool) == str(tree / "project")

    run(main())


@both_ways
def test_concurrent_calls_share_one_question(app: Server, tree: Path, tool: str) -> None:
    async def main() -> None:
        client = Client(app, LEGACY)
        calls = {call(client, tool) for _ in range(5)}
        asked = await question(client)
        while len(client.link.session.client_roots._waiting) < 5:
            await asyncio.sleep(0)
        answer(client, asked, tree / "project/docs")
        replies = [await client.get() for _ in calls]
        assert {reply["id"] for reply in replies} == calls
        assert {text(reply["result"]) for reply in replies} == {str(tree / "project/docs")}

    run(main())


@both_ways
def test_a_client_is_asked_again_after_its_roots_have_changed(app: Server, tree: Path, tool: str) -> None:
    async def main() -> None:
        client = Client(app, LEGACY)
        change(client)  # of what nobody asked for yet
        call(client, tool)
        answer(client, await question(client), tree / "project/src")
        await client.get()
        change(client)
        call(client, tool)
        answer(client, await question(client), tree)
        assert text((await client.get())["result"]) == str(tree / "project")

    run(main())


@both_ways
def test_roots_that_change_while_they_are_asked_for_are_asked_for_again(app: Server, tree: Path, tool: str) -> None:
    async def main() -> None:
        client = Client(app, LEGACY)
        call(client, tool)
        old = await question(client)
        change(client)
        new = await question(client)
        answer(client, old, tree / "project/src")  # on its way when they changed
        answer(client, new, tree / "project/docs")
        assert text((await client.get())["result"]) == str(tree / "project/docs")

    run(main())


@both_ways
@pytest.mark.parametrize("roots", [[], ["/"], ["https://example.com/"]], ids=["none", "outside", "no file"])
def test_a_client_whose_roots_hold_none_of_the_servers_folders_gets_no_access(
    app: Server, tree: Path, tool: str, roots: list[str]
) -> None:
    async def main() -> None:
        client = Client(app, LEGACY)
        call(client, tool)
        answer(client, await question(client), *((tree / "elsewhere").as_uri() if r == "/" else r for r in roots))
        told = failed((await client.get())["result"])
        assert f"{tool} may touch no folder: the client's roots" in told
        assert f"hold nothing of this server's folders ({tree / 'project'})" in told

    run(main())


@pytest.mark.parametrize(("count", "narrows"), [(255, True), (256, True), (257, False)])
def test_the_number_of_a_clients_roots_is_bounded(app: Server, tree: Path, count: int, narrows: bool) -> None:
    async def main() -> None:
        client = Client(app, LEGACY)
        call(client, "task")
        answer(client, await question(client), *[tree / "project/src"] * count)
        assert text((await client.get())["result"]) == str(tree / ("project/src" if narrows else "project"))

    run(main())


GARBAGE: list[dict[str, Any]] = [
    {"error": {"code": -32601, "message": "no such method"}},
    {"result": {}},
    {"result": {"roots": [{"name": "no uri"}]}},
    {"result": None},
]


@both_ways
@pytest.mark.parametrize("garbage", GARBAGE, ids=["error", "empty", "malformed", "null"])
def test_a_malformed_answer_narrows_nothing_and_is_logged_once(
    app: Server, tree: Path, tool: str, garbage: dict[str, Any], problems: list[str]
) -> None:
    async def main() -> None:
        client = Client(app, LEGACY)
        call(client, tool)
        client.put({"jsonrpc": "2.0", "id": (await question(client))["id"], **garbage})
        assert text((await client.get())["result"]) == str(tree / "project")
        assert await folders(client, tool) == str(tree / "project")
        assert len(problems) == 1
        assert "so it narrows nothing" in problems[0]

    run(main())


@both_ways
def test_after_a_good_answer_a_malformed_one_changes_nothing(
    app: Server, tree: Path, tool: str, problems: list[str]
) -> None:
    async def main() -> None:
        client = Client(app, LEGACY)
        call(client, tool)
        answer(client, await question(client), tree / "project/src")
        await client.get()
        change(client)
        call(client, tool)
        client.put({"jsonrpc": "2.0", "id": (await question(client))["id"], "result": {}})
        assert text((await client.get())["result"]) == str(tree / "project/src")
        assert problems == []

    run(main())


@both_ways
def test_a_silent_client_narrows_nothing_until_it_answers(
    app: Server, tree: Path, tool: str, problems: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_files, "ANSWER_SECONDS", 0.01)

    async def main() -> None:
        client = Client(app, LEGACY)
        call(client, tool)
        asked = await question(client)
        assert text((await client.get())["result"]) == str(tree / "project")
        while not problems:
            await asyncio.sleep(0)  # a thread's report is made on the loop
        assert problems == [
            "a client did not answer roots/list within 3 s, so it narrows nothing: its calls may touch all folders of "
            "the server"
        ]
        assert await folders(client, tool) == str(tree / "project")  # nothing waits or is asked again
        answer(client, asked, tree / "project/docs")
        assert await folders(client, tool) == str(tree / "project/docs")

    run(main())
    assert client_roots.ANSWER_SECONDS == 3.0


@both_ways
def test_a_client_that_disconnects_while_it_is_asked_is_not_waited_for(app: Server, tree: Path, tool: str) -> None:
    async def main() -> None:
        client = Client(app, LEGACY)
        call(client, tool)
        await question(client)
        app.engine.detach(client.link)
        assert text((await client.get())["result"]) == str(tree / "project")
        assert await folders(client, tool) == str(tree / "project")

    run(main())


def test_each_session_has_its_own_roots(app: Server, tree: Path) -> None:
    async def main() -> None:
        ada, eve = Client(app, LEGACY), Client(app, LEGACY)
        for client, name in ((ada, "src"), (eve, "docs")):
            call(client, "task")
            answer(client, await question(client), tree / "project" / name)
            assert text((await client.get())["result"]) == str(tree / "project" / name)
        assert await folders(ada, "task") == str(tree / "project/src")

    run(main())


def test_an_inline_tool_is_told_that_it_can_not_wait(app: Server) -> None:
    async def main() -> None:
        assert 'leave out run="inline"' in failed((await Client(app, LEGACY).call_tool("inline"))["result"])

    run(main())


def test_roots_that_the_configuration_changes_hold_for_the_next_call(app: Server, tree: Path) -> None:
    async def main() -> None:
        client = Client(app, MODERN)
        assert await folders(client, "task") == str(tree / "project")
        app.engine.reconfigure(replace(DEFAULT, server=replace(DEFAULT.server, roots=[str(tree / "elsewhere")])))
        assert await folders(client, "task") == str(tree / "elsewhere")

    run(main())


def test_folders_are_known_at_once_when_they_have_been_found_before(app: Server, tree: Path) -> None:
    async def main() -> None:
        client = Client(app, LEGACY)
        call(client, "on_thread")
        answer(client, await question(client), tree / "project/src")
        assert text((await client.get())["result"]) == "true"
        assert await folders(client, "on_thread") == "false"
        change(client)
        call(client, "on_thread")
        answer(client, await question(client), tree / "project/docs")
        assert text((await client.get())["result"]) == "true"
        assert await folders(client, "on_thread") == "false"
        assert await folders(client, "inline_first") == str(tree / "project/docs")

    run(main())


def test_a_clients_root_that_is_a_link_is_looked_up_by_every_call(app: Server, tree: Path) -> None:
    async def main() -> None:
        (tree / "link").symlink_to(tree / "project/src")
        client = Client(app, LEGACY)
        call(client, "inline_first")
        answer(client, await question(client), tree / "link")
        assert text((await client.get())["result"]) == str(tree / "project/src")
        assert await folders(client, "on_thread") == "true"
        (tree / "link").unlink()
        (tree / "link").symlink_to(tree / "project/docs")
        assert await folders(client, "inline_first") == str(tree / "project/docs")

    run(main())
