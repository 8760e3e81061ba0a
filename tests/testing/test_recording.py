"""Recordings: their lines, and the secrets that they leave out."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import Mock

import pytest

from client.scripted import script
from longshore import Ask, Client, ClientError, ConnectError, Context, HttpRefused, Server, Tool, ToolError
from longshore.client.channel import Channel, FrameInfo, TransportOptions
from longshore.client.targets import Target, find
from longshore.testing import check, record, recording, replay
from longshore.testing.recording import Recording, RecordingChannel, Redaction
from longshore.testing.transcript import read_transcript
from serving import serve

SERVER = '''
from longshore import Context, Server
app = Server("till", version="1")

@app.tool
async def add(a: int, b: int, ctx: Context) -> int:
    """Add."""
    await ctx.progress(1, 2, "half")
    return a + b

if __name__ == "__main__":
    app.run()
'''


def till() -> Server:
    app = Server("till", version="1")

    @app.tool
    async def add(a: int, b: int, ctx: Context) -> int:
        """Add."""
        await ctx.progress(1, 2, "half")
        return a + b

    return app


async def use(target: Any, era: str = "auto", **options: Any) -> tuple[str, list[float]]:
    seen: list[float] = []
    async with Client(target, era=era, timeout=10, **options) as client:
        result = await client.call_tool(
            "add", {"a": 1, "b": 2}, on_progress=lambda done, total, text: seen.append(done)
        )
        return result.text, seen


@pytest.mark.parametrize(
    ("way", "era"),
    [(way, era) for way in ("memory", "stdio", "http") for era in ("modern", "legacy")]
    + [("memory", "2024-11-05"), ("stdio", "2024-11-05")],
)
def test_every_transport_is_recorded_replayed_and_checked(era: str, way: str, tmp_path: Path) -> None:
    """A recording of one transport also passes the check over another."""
    path = tmp_path / "till.transcript"
    (tmp_path / "till.py").write_text(SERVER)
    if way == "http":
        with serve(till().asgi()) as server:
            assert asyncio.run(use(record(server.url, path), era)) == ("3", [1.0])
            check(server.url, path)
    else:
        target: Any = till() if way == "memory" else [sys.executable, str(tmp_path / "till.py")]
        assert asyncio.run(use(record(target, path), era)) == ("3", [1.0])
        check(target, path)
    replayed = replay(path)
    assert asyncio.run(use(replayed, era)) == ("3", [1.0])
    assert replayed.unused() == [] and replayed.problems == []
    check(till(), path)
    lines = read_transcript(path)
    assert [line.method for line in lines if line.client][-1] == "tools/call"
    assert all(line.startswith(("> {", "< {")) for line in path.read_text().splitlines())


def test_no_header_gets_into_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "t"
    with serve(till().asgi()) as server:
        headers = {"X-Api-Key": "hunter2hunter2", "Authorization": "Bearer abcdefgh"}
        asyncio.run(use(record(server.url, path, headers=headers)))
    assert "hunter2" not in path.read_text() and "abcdefgh" not in path.read_text()


def vault() -> Server:
    app = Server("vault")

    @app.tool
    async def unlock(apiKey: str, pet: Annotated[str, Ask("Your first pet?")]) -> dict[str, Any]:
        """Unlock."""
        return {"github_token": apiKey[::-1], "progressToken": "p", "note": f"by {pet}", "max_tokens": 5}

    return app


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_secrets_are_left_out_of_every_message(era: str, tmp_path: Path) -> None:
    """In arguments, in answers of the person, in results, in texts that say the same, and in a server's own state."""
    path = tmp_path / "t"

    async def work(target: Any) -> Any:
        async with Client(target, era=era, on_elicit=lambda _: {"pet": "hunter2hunter2"}, timeout=5) as client:
            await client.list_tools()
            return (await client.call_tool("unlock", {"apiKey": "key-abcdefgh"})).structured

    asyncio.run(work(record(vault(), path, redact=["pet"])))
    text = path.read_text()
    assert "hunter2" not in text and "abcdefgh" not in text and "hgfedcba" not in text
    assert '"github_token":"…"' in text and '"apiKey":"…"' in text and '"pet":"…"' in text
    assert '"progressToken":"p"' in text and '"max_tokens":5' in text
    assert '"apiKey":{"type":"string"}' in text, "a schema is no secret"
    if era == "modern":
        assert '"requestState":"state-1"' in text
    # The holes match whatever comes; what the client's side left out is given.
    asyncio.run(work(replay(path)))
    check(vault(), path, given={"apiKey": "other", "pet": "another"})
    with pytest.raises(Exception, match="'apiKey' was left out when it was recorded; give it by given="):
        check(vault(), path)


def test_the_redacted_keys_can_be_chosen(tmp_path: Path) -> None:
    async def work(target: Any) -> None:
        async with Client(target, on_elicit=lambda _: {"pet": "hunter2hunter2"}, timeout=5) as client:
            await client.call_tool("unlock", {"apiKey": "key-abcdefgh"})

    asyncio.run(work(record(vault(), tmp_path / "all", redact=None)))
    assert "hunter2" in (tmp_path / "all").read_text() and "key-abcdefgh" in (tmp_path / "all").read_text()
    asyncio.run(work(record(vault(), tmp_path / "some", redact=["note"])))
    text = (tmp_path / "some").read_text()
    assert '"note":"…"' in text and "key-abcdefgh" not in text, "names are added to those that there are"
    with pytest.raises(TypeError, match=r"write redact=\['pet'\]"):
        record(vault(), tmp_path / "t", redact="pet")


SECRET_VALUES: dict[str, Any] = {
    "private_key": "-----BEGIN KEY-----\nMIISECRETLINE\n-----END KEY-----",
    "password": 'hun"ter2-SECRET',
    "passphrase": "пароль-SECRET",
    "token": 98765432123,
    "cookie": {"type": "jar", "value": "chip-SECRET"},
    "credentials": [{"method": "bearer", "action": "x", "value": "typed-SECRET"}],
}


@pytest.mark.parametrize("key", SECRET_VALUES)
def test_texts_that_repeat_a_secret_are_left_out(key: str, tmp_path: Path) -> None:
    app = Server("vault")

    @app.tool
    async def get() -> dict[str, Any]:
        """Get."""
        return {key: SECRET_VALUES[key], "note": "fine"}

    @app.tool
    async def tell() -> str:
        """Tell."""
        return f"it is {json.dumps(SECRET_VALUES[key])}, which you knew"

    async def work(target: Any) -> None:
        async with Client(target, timeout=5) as client:
            await client.call_tool("get")
            await client.call_tool("tell")

    path = tmp_path / "t"
    asyncio.run(work(record(app, path)))
    text = path.read_text()
    assert not [secret for secret in ("SECRET", "98765432123") if secret in text]
    assert "fine" in text
    asyncio.run(work(replay(path)))
    check(app, path)


def test_schemas_of_secret_parameters_are_recorded_whole(tmp_path: Path) -> None:
    app, path = Server("raw"), tmp_path / "t"
    forms = [{"type": "string", "format": "token-format"}, {"type": "null"}]
    schema = {"type": "object", "properties": {"token": {"oneOf": forms}, "q": {"type": "string"}}}

    async def answer(arguments: Any, ctx: Any) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": "string theory of token-format"}]}

    app.add_tool(Tool(name="x", description="d", input_schema=schema), answer)

    async def work(target: Any) -> Any:
        async with Client(target, timeout=5) as client:
            (tool,) = await client.list_tools()
            return tool.record["inputSchema"], (
                await client.call_tool("x", {"token": "sk-12345678", "q": "object"})
            ).text

    assert asyncio.run(work(record(app, path))) == (schema, "string theory of token-format")
    assert asyncio.run(work(replay(path))) == (schema, "string theory of token-format")
    assert "sk-12345678" not in path.read_text()


def test_short_secrets_are_not_looked_for_in_texts() -> None:
    for secret, found in (("abcde", False), ("abcdef", True), ("abcdefg", True)):
        cleaned = Redaction().clean({"password": secret, "text": f"<{secret}>"})
        assert cleaned == {"password": "\ue001", "text": "\ue001" if found else f"<{secret}>"}


def test_texts_like_patterns_and_macros_are_recorded_literally(tmp_path: Path) -> None:
    app = Server("odd")
    texts = ["…", "…word…", "$HOME", 'a "… b', "\\$X", "line\u2028break\x85", "\ue000", "x\n> y"]

    @app.tool
    async def echo(texts: list[str]) -> list[str]:
        """Say it again."""
        return texts

    async def work(target: Any, texts: list[str]) -> Any:
        async with Client(target, timeout=5) as client:
            return (await client.call_tool("echo", {"texts": texts})).structured["result"]

    path = tmp_path / "t"
    assert asyncio.run(work(record(app, path), texts)) == texts
    assert asyncio.run(work(replay(path), texts)) == texts
    check(app, path)
    with pytest.raises(ClientError, match="was not recorded here"):
        asyncio.run(work(replay(path), ["any", *texts[1:]]))


def test_a_malformed_message_is_recorded_as_a_comment(tmp_path: Path) -> None:
    server = tmp_path / "noisy.py"
    server.write_text("import os\nos.write(1, b'hello\\n\\n[[[[\\n')\n" + SERVER)
    path = tmp_path / "t"
    assert asyncio.run(use(record([sys.executable, str(server)], path)))[0] == "3"
    remarks = [line for line in path.read_text().splitlines() if line.startswith("#")]
    assert len(remarks) == 2 and "hello" in remarks[0]
    assert asyncio.run(use(replay(path)))[0] == "3"


def test_the_old_recording_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("old")

    async def work() -> None:
        async with Client(record(till(), path), timeout=5) as client:
            await client.call_tool("add", {"a": 1, "b": 2})
            assert path.read_text() == "old"

    asyncio.run(work())
    assert "tools/call" in path.read_text()
    assert [each.name for each in tmp_path.iterdir()] == ["t"]


def test_a_server_that_can_not_be_reached_leaves_no_recording(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_text("old")
    with pytest.raises(ConnectError):
        asyncio.run(use(record([sys.executable, "-c", "pass"], path)))
    assert path.read_text() == "old"


def test_a_channel_without_agreement_is_not_recorded(tmp_path: Path) -> None:
    """Servers of the first revision are reached by the second HTTP channel; the first one is not recorded."""

    class Wrong(Channel):
        def send(self, frame: bytes, info: FrameInfo) -> None:
            if info.id is not None:
                self.events.on_failure(info.id, HttpRefused(404))

    target = Target("x", (Wrong, *find(till(), TransportOptions()).channels))
    path = tmp_path / "t"
    assert asyncio.run(use(record(target, path)))[0] == "3"
    assert asyncio.run(use(replay(path)))[0] == "3"
    assert not any(line.method == "initialize" for line in read_transcript(path))


def test_a_missing_folder_for_the_recording_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match=r"there is no folder .*nowhere to record to; make it first"):
        asyncio.run(use(record(till(), tmp_path / "nowhere" / "t")))


def test_the_size_of_a_recording_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_BYTES", 2000)
    path = tmp_path / "t"

    async def work() -> None:
        async with Client(record(till(), path), timeout=5, reconnect=False) as client:
            for _ in range(20):
                await client.call_tool("add", {"a": 1, "b": 2})

    with pytest.raises(ClientError, match="the recording is longer than 2,000 bytes; record less"):
        asyncio.run(work())
    assert not path.exists()


def test_one_connection_at_a_time(tmp_path: Path) -> None:
    target = record(till(), tmp_path / "t")

    async def work() -> None:
        async with Client(target, timeout=5) as client:
            with pytest.raises(ConnectError, match=r"one connection at a time .* call record\(…\) for each client"):
                await use(target)
            await client.call_tool("add", {"a": 1, "b": 2})
        await use(target)

    asyncio.run(work())
    assert (tmp_path / "t").read_text().count("# connected again") == 1
    assert asyncio.run(use(replay(tmp_path / "t")))[0] == "3"


def test_a_failed_reconnection_keeps_the_recorded_lines(tmp_path: Path) -> None:
    recording = Recording(str(tmp_path / "t"), Redaction())
    for frame, agreed in ((b'{"a":1}', True), (b'{"b":1}', False), (b'{"c":1}', True)):
        recording.begin()
        recording.add(">", frame)
        if agreed:
            recording.agreed = True
        recording.end()
    assert (tmp_path / "t").read_text().splitlines() == ['> {"a":1}', "# connected again", '> {"c":1}']


@pytest.mark.parametrize("options", [{"headers": {"a": "b"}}, {"auth": "token"}, {"env": {"a": "b"}}, {"cwd": "/"}])
def test_transport_options_beside_a_recorded_target_are_refused(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ConnectError, match=r"too late here; give them to what made this target, such as record\(…\)"):
        Client(record("http://127.0.0.1:1/mcp", tmp_path / "t"), **options)


class Peculiar(Channel):
    """Other than any channel is by itself, in all that one is asked."""

    label, shared, handshake_only, ended, congested = "elsewhere", True, True, True, True  # type: ignore[assignment]


def test_a_recorded_channel_has_the_attributes_of_its_inner_channel() -> None:
    """Also attributes that are added to channels later."""
    events: Any = Mock()
    plain, inner = Channel(events), Peculiar(events)
    outer = RecordingChannel(lambda _: inner, events, Recording("t", Redaction()))
    asked = [name for name in dir(Channel) if name[0] != "_" and not callable(getattr(Channel, name))]
    for name in asked:
        assert getattr(plain, name) != getattr(inner, name) == getattr(outer, name), name


DONE = "for m in calls(): reply(m, DONE)"


async def call(target: Any, era: str = "auto") -> str:
    async with Client(target, era=era, timeout=10) as client:
        await client.call_tool("a")
        return (await client.call_tool("b")).text


def test_a_server_that_exits_on_the_probe_is_recorded(tmp_path: Path) -> None:
    """It is started again and shaken hands with, as without a recorder. The way that led nowhere is not kept."""
    command = script(
        tmp_path, "for m in asks(): usual(m) or reply(m, DONE) if m['method'] != 'server/discover' else sys.exit(1)"
    )
    path = tmp_path / "t"
    assert asyncio.run(call(record(command, path))) == "done"
    assert read_transcript(path)[0].method == "initialize"
    assert asyncio.run(call(replay(path))) == "done"


def test_a_recording_begins_with_the_full_negotiation(tmp_path: Path) -> None:
    command, path = script(tmp_path, DONE), tmp_path / "t"
    for target in (command, record(command, path)):
        assert asyncio.run(call(target)) == "done"
    assert read_transcript(path)[0].method == "server/discover"


ODDLY = {
    "twice": "reply(m, DONE)",
    "of another request": "send(dict(jsonrpc='2.0', id=1, result={}))",
    "of none": "send(dict(jsonrpc='2.0', id=9999, result={}))",
    "without an id": "send(dict(jsonrpc='2.0', id=None, result={}))",
    "its id is a fraction": "send(dict(jsonrpc='2.0', id=1.5, result={}))",
    "so is a question's": "ask(1.5, 'ping')",
    "or a token": "notify('notifications/progress', progressToken={}, progress=1)",
    "its id is a list": "send(dict(jsonrpc='2.0', id=[1], result={}))",
    "no object": "send(5); send(None)",
    "no JSON": "raw(b'hello\\n')",
}


@pytest.mark.parametrize("how", ODDLY)
def test_malformed_answers_are_recorded(how: str, tmp_path: Path) -> None:
    """The usable messages are replayed, and the check of the same server passes."""
    code = f"for m in calls():\n    reply(m, DONE)\n    if m['params']['name'] == 'a': {ODDLY[how]}"
    path, command = tmp_path / "t", script(tmp_path, code)
    assert asyncio.run(call(record(command, path), "legacy")) == "done"
    replayed = replay(path)
    assert asyncio.run(call(replayed, "legacy")) == "done"
    assert replayed.problems == [] and replayed.unused() == []
    check(command, path)


def test_a_malformed_message_is_redacted_too(tmp_path: Path) -> None:
    recording = Recording(str(tmp_path / "t"), Redaction())
    recording.add("<", b'{"id":1,"result":{"token":"sk-12345678"}}')
    recording.add("<", b'"a sk-12345678"')
    lines = vars(recording)["_lines"]
    assert lines[1].startswith("# < no message") and "12345678" not in "".join(lines)


def test_concurrent_recordings_leave_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "t"

    async def work() -> None:
        await asyncio.gather(*(use(record(till(), path)) for _ in range(5)))

    asyncio.run(work())
    assert asyncio.run(use(replay(path)))[0] == "3"
    assert [each.name for each in tmp_path.iterdir()] == ["t"]


def test_a_recording_that_is_too_long_fails_every_later_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that reconnects gets the error too. The limit counts bytes, not characters."""
    monkeypatch.setattr(recording, "MOST_BYTES", 3000)
    app = Server("long")

    @app.tool(effects="read")
    async def tell() -> str:
        """Tell."""
        return "…" * 300

    async def work() -> None:
        async with Client(record(app, tmp_path / "t"), timeout=5) as client:
            await client.list_tools()
            for _ in range(20):
                with contextlib.suppress(ClientError):
                    await client.call_tool("tell")
                    said.append("ok")
            with pytest.raises(ClientError, match="the recording is longer than 3,000 bytes; record less"):
                await client.call_tool("tell")

    said: list[str] = []
    asyncio.run(work())
    assert len(said) < 3 and not (tmp_path / "t").exists()


def test_a_client_with_a_name_is_recorded(tmp_path: Path) -> None:
    assert asyncio.run(use(record(till(), tmp_path / "t"), name="mine"))[0] == "3"


def test_a_failing_tool_and_an_unknown_one_are_recorded(tmp_path: Path) -> None:
    app = till()

    @app.tool
    async def refuse() -> str:
        """Refuse."""
        raise ToolError("out of stock")

    async def work(target: Any) -> list[str]:
        said = []
        async with Client(target, timeout=5) as client:
            for name in ("refuse", "nothing"):
                with pytest.raises(ClientError) as caught:
                    await client.call_tool(name)
                said.append(caught.value.what)
        return said

    path = tmp_path / "t"
    assert asyncio.run(work(record(app, path))) == asyncio.run(work(replay(path)))
    check(app, path)


def test_each_line_is_the_message_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "t"
    asyncio.run(use(record(till(), path)))
    for line in path.read_text().splitlines():
        assert json.loads(line[2:])["jsonrpc"] == "2.0"
