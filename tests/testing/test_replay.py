"""Replaying a transcript: in any order, under any ids; unrecorded requests fail."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypeVar

import pytest

from longshore import Ask, Client, ClientError, Context, Server, ServerError
from longshore.errors import LongshoreError
from longshore.testing import Answers, record, replay
from longshore.testing.transcript import read_transcript

T = TypeVar("T")
AGREED = '"protocolVersion":"2025-11-25","capabilities":{"tools":{}}'
HELLO = f"""
> {{"jsonrpc":"2.0","id":"h","method":"initialize","params":{{{AGREED}}}}}
< {{"jsonrpc":"2.0","id":"h","result":{{{AGREED},"serverInfo":{{"name":"t"}}}}}}
> {{"jsonrpc":"2.0","method":"notifications/initialized"}}
"""


def call(id: Any, name: str, **arguments: Any) -> str:
    params = {"name": name, "arguments": arguments}
    return "> " + json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}, ensure_ascii=False)


def answer(id: Any, text: str) -> str:
    return "< " + json.dumps({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": text}]}})


def written(path: Path, *lines: str) -> Path:
    path.write_text(HELLO + "\n".join(lines) + "\n")
    return path


def talk(target: Any, work: Callable[[Client], Awaitable[T]], **options: Any) -> T:
    async def run() -> T:
        async with Client(target, timeout=5, **options) as client:
            return await asyncio.wait_for(work(client), 20)

    return asyncio.run(run())


def test_the_same_request_is_answered_as_often_as_it_was_recorded(tmp_path: Path) -> None:
    target = replay(written(tmp_path / "t", call(1, "a"), answer(1, "one"), call(2, "a"), answer(2, "two")))

    async def work(client: Client) -> list[str]:
        said = [(await client.call_tool("a")).text for _ in range(2)]
        with pytest.raises(ClientError, match=r"tools/call a was not recorded here; the recording is at its end"):
            await client.call_tool("a")
        return said

    assert talk(target, work) == ["one", "two"]
    assert len(target.problems) == 1
    assert talk(target, work) == ["one", "two"], "each connection begins anew"


def test_an_unrecorded_request_fails_with_the_recorded_ones(tmp_path: Path) -> None:
    target = replay(written(tmp_path / "t", call(1, "a", city="Oslo", days=3), answer(1, "A")))

    async def work(client: Client) -> None:
        with pytest.raises(ClientError) as caught:
            await client.call_tool("a", {"city": "Bergen", "days": 3})
        assert "tools/call a was not recorded here; line 5 is next" in caught.value.what
        assert '-      "city": "Oslo"' in caught.value.what and '+      "city": "Bergen"' in caught.value.what
        with pytest.raises(ClientError, match=r"prompts/get x was not recorded here"):
            await client.request("prompts/get", {"name": "x"})

    talk(target, work)
    assert len(target.problems) == 2, "code under test may swallow what it gets"
    assert target.unused() == ["line 5: tools/call"]


def test_patterns_in_recorded_requests_match(tmp_path: Path) -> None:
    path = written(tmp_path / "t", call(1, "a", when="…", note="…tea…"), answer(1, "A"))

    async def work(client: Client) -> str:
        with pytest.raises(ClientError, match="was not recorded here"):
            await client.call_tool("a", {"when": 1, "note": "milk"})
        return (await client.call_tool("a", {"when": 5, "note": "a cup of tea"})).text

    assert talk(replay(path), work) == "A"


def test_progress_is_replayed_to_its_own_request(tmp_path: Path) -> None:
    """Under the tokens of this connection."""

    def begun(id: int, name: str, token: str) -> str:
        return call(id, name).replace('"arguments": {}', f'"arguments": {{}}, "_meta": {{"progressToken": "{token}"}}')

    def progress(token: str, done: int) -> str:
        params = {"progressToken": token, "progress": done}
        return "< " + json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    path = written(
        tmp_path / "t",
        *(begun(1, "a", "x"), begun(2, "b", "y"), progress("x", 1), progress("y", 5), progress("x", 2)),
        *(answer(1, "A"), answer(2, "B")),
    )

    async def work(client: Client) -> dict[str, list[float]]:
        seen: dict[str, list[float]] = {"a": [], "b": []}
        await asyncio.gather(
            *(client.call_tool(name, on_progress=lambda done, *_, name=name: seen[name].append(done)) for name in "ab")
        )
        return seen

    assert talk(replay(path), work) == {"a": [1.0, 2.0], "b": [5.0]}


def test_replaying_in_another_era_fails(tmp_path: Path) -> None:
    path = written(tmp_path / "t", call(1, "a"), answer(1, "A"))

    async def work(client: Client) -> None: ...

    with pytest.raises(ClientError, match="the server that was recorded uses a handshake"):
        talk(replay(path), work, era="modern")
    app = Server("x")
    talk(record(app, tmp_path / "modern"), work)
    with pytest.raises(ClientError, match=r"(?s)initialize was not recorded here; line 1 is next.*server/discover"):
        talk(replay(tmp_path / "modern"), work, era="legacy")


def test_a_cancelled_call_gets_no_answer_in_a_replay(tmp_path: Path) -> None:
    app = Server("slow")
    started: asyncio.Event

    @app.tool
    async def wait() -> str:
        """Wait for ever."""
        started.set()
        await asyncio.Event().wait()
        return ""

    @app.tool
    async def hello() -> str:
        """Say hello."""
        return "hello"

    async def recorded(client: Client) -> None:
        task = asyncio.ensure_future(client.call_tool("wait"))
        await asyncio.wait_for(started.wait(), 5)
        task.cancel()
        await asyncio.wait([task])
        await client.call_tool("hello")

    async def replayed(client: Client) -> str:
        task = asyncio.ensure_future(client.call_tool("wait"))
        done, _ = await asyncio.wait([task], timeout=0.05)
        assert not done
        task.cancel()
        await asyncio.wait([task])
        return (await client.call_tool("hello")).text

    for era in ("modern", "legacy"):
        started = asyncio.Event()
        path = tmp_path / era
        talk(record(app, path), recorded, era=era)
        target = replay(path)
        assert talk(target, replayed, era=era) == "hello"
        assert target.problems == [] and target.unused() == []


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_notifications_are_replayed_after_the_message_that_they_followed(era: str, tmp_path: Path) -> None:
    """A change comes after the call that caused it, with the id of the current subscription."""
    app = Server("changing")

    @app.resource("base://", name="base")
    def base() -> str:
        """Read me."""
        return "base"

    @app.tool
    async def touch(ctx: Context) -> str:
        """Change it."""
        await ctx.info("touching")
        ctx.resource_changed("base://")
        return "touched"

    async def work(client: Client) -> str:
        async with client.watch(uris=["base://"]) as changes:
            await client.call_tool("touch")
            async for change in changes:
                return str(change.uri)
        return ""

    path, logs = tmp_path / "t", []
    options: dict[str, Any] = {"era": era, "on_log": lambda said: logs.append(said.data), "log_level": "info"}
    assert talk(record(app, path), work, **options) == "base://"
    target = replay(path)
    assert talk(target, work, **options) == "base://"
    assert target.problems == [] and logs == ["touching"] * 2


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_another_answer_of_the_user_fails_the_replay(era: str, tmp_path: Path) -> None:
    app = Server("asking")

    @app.tool
    async def refund(ok: Annotated[bool, Ask("Refund?")]) -> str:
        """Refund."""
        return f"refunded: {ok}"

    async def work(client: Client) -> str:
        return (await client.call_tool("refund")).text

    path = tmp_path / "t"
    assert talk(record(app, path), work, era=era, on_elicit=Answers(True)) == "refunded: True"
    assert talk(replay(path), work, era=era, on_elicit=Answers(True)) == "refunded: True"
    with pytest.raises(ClientError, match=r'(?s)-.*"accept".*\+.*"decline"'):
        talk(replay(path), work, era=era, on_elicit=Answers(False))


def test_errors_of_the_server_are_errors(tmp_path: Path) -> None:
    fault = '< {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no tool"}}'

    async def work(client: Client) -> None:
        with pytest.raises(ServerError) as caught:
            await client.call_tool("a")
        assert caught.value.code == -32602

    talk(replay(written(tmp_path / "t", call(1, "a"), fault)), work)


def test_messages_before_the_first_request_are_replayed(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text(
        '< {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"up"}}\n' + HELLO
    )
    said: list[Any] = []

    async def work(client: Client) -> None: ...

    talk(replay(path), work, era="legacy", on_log=lambda message: said.append(message.data))
    assert said == ["up"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "t: it holds no messages"),
        ("# only a remark\n@server x\n", "t: it holds no messages"),
        ("{}", "t:1: a line begins with >, <, <|, @ or #, not with '{}'"),
        ("> {", "t:1: that is no JSON"),
        ("> " + "[" * 100_000, "t:1: that is no JSON"),
        ("\n> 5", "t:2: a message is a JSON object"),
        ("> {$J}", r"t:1: \$J is not defined; write @let J"),
        (
            "@let A " + "x" * 100 + "\n" + "".join(f"@let {b} {f'${a}' * 100}\n" for a, b in pairwise("ABCDEF")),
            "t:4: written out, the macros have more than",
        ),
        ('> {"id":1,"method":"\\ud800"}', "t:1: that is no JSON"),
        ('> {"id":1,"method":NaN}', "t:1: that is no JSON"),
        (
            '> {"id":1,"method":' + "[" * 900 + "]" * 900 + "}",
            "t:1: that is no JSON: nesting is deeper than 128 levels",
        ),
    ],
)
def test_a_malformed_transcript_is_refused(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "t").write_text(text)
    with pytest.raises(LongshoreError, match=says):
        replay(tmp_path / "t")


def test_a_missing_transcript_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LongshoreError, match=r"there is no such transcript; longshore.testing.record\(target, file\)"):
        replay(tmp_path / "t")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(LongshoreError, match="can't be read"):
        replay(tmp_path / "binary")


def test_the_size_of_a_transcript_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "t", call(1, "a"), answer(1, "ä"))
    size = path.stat().st_size
    for most in (size + 1, size):
        monkeypatch.setattr("longshore.testing.transcript.MOST_BYTES", most)
        read_transcript(path)
    monkeypatch.setattr("longshore.testing.transcript.MOST_BYTES", size - 1)
    with pytest.raises(LongshoreError, match=f"t: the transcript is longer than {size - 1:,} bytes"):
        read_transcript(path)


def test_a_transcript_line_ends_at_a_newline_only(tmp_path: Path) -> None:
    """Not at other line ends of Unicode. A Windows editor may have written the file."""
    path = written(tmp_path / "t", call(1, "a"), answer(1, "A").replace("A", "a\u2028b\x85c"))
    path.write_text(path.read_text(), newline="\r\n")

    async def work(client: Client) -> str:
        return (await client.call_tool("a")).text

    assert talk(replay(path), work, era="legacy") == "a\u2028b\x85c"


def test_unused_requests_are_listed_without_the_file(tmp_path: Path) -> None:
    path = written(tmp_path / "t", call(1, "a"), answer(1, "A"))
    target = replay(path)
    path.unlink()
    assert target.unused() == ["line 2: initialize", "line 5: tools/call"]


def test_macros_are_expanded(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text('@let J "jsonrpc":"2.0"\n' + HELLO.replace('"jsonrpc":"2.0"', "$J"))

    async def work(client: Client) -> str:
        return client.server.name

    assert talk(replay(path), work, era="legacy") == "t"
