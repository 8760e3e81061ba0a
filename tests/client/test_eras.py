"""Negotiating, pinning and remembering the era, with our own server and scripted ones."""

from __future__ import annotations

import asyncio
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from client.scripted import script
from longshore import Server
from longshore.client import Client, negotiate
from longshore.errors import ConnectError
from longshore.protocol.revisions import LEGACY, MODERN


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that does not answer the probe is offered the handshake soon."""
    monkeypatch.setattr(negotiate, "PROBE_SECONDS", 0.2)


def connect_to(folder: Path, code: str, **options: Any) -> Client:
    return Client(script(folder, code), **{"timeout": 5.0, **options})


OWN = """
from longshore import Server
app = Server("own", version="3", instructions="Read this.")
@app.tool
def add(a: int, b: int) -> int:
    "Add."
    return a + b
app.run()
"""


def own(folder: Path) -> list[str]:
    path = folder / "own.py"
    path.write_text(OWN)
    return [sys.executable, str(path)]


def own_in_memory(_: Path) -> Server:
    app = Server("own", version="3", instructions="Read this.")

    @app.tool(run="inline")  # a thread would be the server's, and outlive the client
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    return app


@pytest.mark.parametrize("make", [own, own_in_memory], ids=["stdio", "memory"])
@pytest.mark.parametrize(
    ("wish", "revision"),
    [
        ("auto", MODERN[-1]),
        ("modern", MODERN[-1]),
        ("legacy", LEGACY[-1]),
        *((each, each) for each in (*LEGACY, *MODERN)),
    ],
)
async def test_our_own_server_speaks_each(tmp_path: Path, make: Any, wish: str, revision: str) -> None:
    async with Client(make(tmp_path), era=wish) as client:
        assert client.server.revision == revision
        assert (client.server.name, client.server.version) == ("own", "3")
        assert client.server.instructions == "Read this."
        assert [tool.name for tool in await client.list_tools()] == ["add"]
        assert await client.call_tool("add", {"a": 1, "b": 2}, returns=int) == 3
        await client.ping()


def test_there_is_no_other_era() -> None:
    for wish in ("", "newest", "2025-01-01", "Modern"):
        with pytest.raises(ValueError, match="auto, modern, legacy or one of"):
            Client(["x"], era=wish)


# -- finding out

BOTH_GOOD = "for m in calls(): reply(m, DONE)"


@pytest.mark.parametrize(
    "answer",
    [
        "refuse(m)",
        "refuse(m, -32600, 'initialize first')",
        "refuse(m, -32000)",
        "refuse(m, 0, '')",
        "refuse(m, -32603, data={'supported': ['2026-07-28']})",
        "send(dict(jsonrpc='2.0', id=m['id'], error='what?'))",
        "reply(m, {})",
        "reply(m, [])",
        "reply(m, None)",
        "reply(m, dict(supportedVersions='2026-07-28'))",
        "reply(m, dict(supportedVersions=[]))",
        "reply(m, dict(supportedVersions=['2025-11-25']))",
        "reply(m, dict(supportedVersions=[5, None]))",
        "send(dict(jsonrpc='2.0', id=None, error=dict(code=-32600, message='Invalid Request')))",
        "raw(b'Error: unknown method\\n')",
        "pass",
        "reply(m, DONE) or reply(m, DONE)",
    ],
)
@pytest.mark.usefixtures("impatient")
async def test_whatever_it_says_to_the_probe_the_handshake_follows(tmp_path: Path, answer: str) -> None:
    code = f"""
            for m in asks():
                mark("methods", m.get("method"))
                if m.get("method") == "server/discover":
                    {answer}
                elif not usual(m): reply(m, DONE)
        """
    async with connect_to(tmp_path, code) as client:
        assert client.server.revision == LEGACY[-1]
        assert client.server.name == "odd"
        assert (await client.call_tool("x")).text == "done"
    methods = (tmp_path / "methods").read_text().split()
    assert methods[:2] == ["server/discover", "initialize"]
    assert methods.count("initialize") == 1
    assert methods.count("notifications/initialized") == 1


@pytest.mark.usefixtures("impatient")
async def test_a_modern_server_that_starts_slowly_is_still_modern(tmp_path: Path) -> None:
    """By the time that it reads, both have been offered. It knows one of them."""
    code = """
            time.sleep(0.6)
            for m in asks():
                mark("methods", m["method"])
                if m["method"] == "server/discover": meet(m)
                elif "id" in m and m["method"] != "initialize": reply(m, DONE)
        """
    async with connect_to(tmp_path, code) as client:
        assert client.server.revision == MODERN[-1]
        assert (await client.call_tool("x")).text == "done"
    assert "notifications/cancelled" not in (tmp_path / "methods").read_text(), "a handshake is never cancelled"


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("order", ["[1, 0]", "[0, 1]"])
async def test_a_server_that_answers_probe_and_handshake_late_gets_one_era(tmp_path: Path, order: str) -> None:
    code = f"""
            from itertools import islice
            both = list(islice((m for m in asks() if "id" in m), 2))
            for at in {order}: (meet, greet)[at](both[at])
            for m in asks():
                if "id" in m:
                    mark("eras", str("_meta" in m.get("params", {{}})))
                    reply(m, DONE)
        """
    async with connect_to(tmp_path, code) as client:
        for _ in range(3):
            assert (await client.call_tool("x")).text == "done"
    modern = client.server.revision in MODERN
    assert (tmp_path / "eras").read_text().split() == [str(modern)] * 3


async def test_a_server_that_starts_slowly_is_connected(tmp_path: Path) -> None:
    async with connect_to(tmp_path, "time.sleep(3)\n" + BOTH_GOOD, timeout=15) as client:
        assert client.server.revision == LEGACY[-1]
        assert (await client.call_tool("x")).text == "done"


# -- answers that can't be agreed with

HANDSHAKES = {
    "an unknown version": ("greet(m, protocolVersion='2031-01-01')", "2031-01-01"),
    "a modern version": ("greet(m, protocolVersion='2026-07-28')", "2026-07-28"),
    "no version": ("reply(m, {'capabilities': {}})", "protocolVersion"),
    "a version that is a number": ("greet(m, protocolVersion=5)", "initialize can't be read"),
    "capabilities that are a list": ("greet(m, capabilities=[])", "initialize can't be read"),
    "capabilities that are a text": ("greet(m, capabilities='all')", "initialize can't be read"),
    "a refusal": ("refuse(m, -32602, 'not you')", "not you"),
    "nonsense": ("reply(m, 5)", "initialize can't be read"),
    "nothing at all": ("pass", "did not answer within 3 s"),
    "its end": ("complain('no licence'); sys.exit(9)", "exit code 9"),
}


@pytest.mark.parametrize(("answer", "says"), HANDSHAKES.values(), ids=list(HANDSHAKES))
@pytest.mark.parametrize("wish", ["auto", "legacy"])
async def test_a_handshake_that_fails_says_why(tmp_path: Path, answer: str, says: str, wish: str) -> None:
    code = f"""
            for m in asks():
                if m.get("method") == "initialize":
                    {answer}
                else: usual(m)
        """
    with pytest.raises(ConnectError) as caught:
        await connect_to(tmp_path, code, era=wish, timeout=3.0 if answer == "pass" else 30.0).open()
    assert says in str(caught.value)
    assert "odd.py" in str(caught.value)
    if "licence" in answer:
        assert "| no licence" in str(caught.value)


@pytest.mark.parametrize(
    "greeting",
    [
        "protocolVersion='2025-06-18', capabilities={}",
        "protocolVersion='2024-11-05', capabilities={'x': 5, 'tools': None}",
    ],
)
async def test_a_bare_greeting_is_good_enough(tmp_path: Path, greeting: str) -> None:
    code = f"""
            for m in asks():
                if m.get("method") == "initialize": reply(m, dict({greeting}))
                elif not usual(m): reply(m, DONE)
        """
    async with connect_to(tmp_path, code) as client:
        assert (client.server.name, client.server.version) == ("", "")
        assert await client.list_tools() == [], "it did not say that it has any"
        assert (await client.call_tool("x")).text == "done"


async def test_a_revision_that_is_insisted_on_is_had_or_not(tmp_path: Path) -> None:
    code = "for m in asks(): greet(m, protocolVersion='2025-03-26') if m.get('method') == 'initialize' else usual(m)"
    async with connect_to(tmp_path, code, era="2025-03-26") as client:
        assert client.server.revision == "2025-03-26"
    with pytest.raises(ConnectError, match="we speak 2025-06-18"):
        await connect_to(tmp_path, code, era="2025-06-18").open()
    async with connect_to(tmp_path, code, era="legacy") as client:
        assert client.server.revision == "2025-03-26"


@pytest.mark.parametrize("wish", ["modern", MODERN[-1]])
async def test_a_pinned_modern_era_sends_no_handshake(tmp_path: Path, wish: str) -> None:
    code = "for m in asks():\n    mark('methods', m.get('method'))\n    usual(m)"
    with pytest.raises(ConnectError, match="no such method"):
        await connect_to(tmp_path, code, era=wish).open()
    assert "initialize" not in (tmp_path / "methods").read_text()


@pytest.mark.parametrize("wish", ["auto", "modern"])
async def test_a_server_of_later_revisions_only_is_named(tmp_path: Path, wish: str) -> None:
    code = "for m in asks(): refuse(m, -32022, 'no', data={'supported': ['2031-01-01']}) if 'id' in m else None"
    with pytest.raises(ConnectError, match="2031-01-01"):
        await connect_to(tmp_path, code, era=wish).open()


async def test_a_server_with_later_revisions_is_used_in_ours(tmp_path: Path) -> None:
    code = """
            for m in asks():
                if m.get("method") == "server/discover":
                    meet(m, supportedVersions=["2031-01-01", "2026-07-28", "2025-11-25"])
                elif "id" in m: reply(m, text(m["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]))
        """
    async with connect_to(tmp_path, code) as client:
        assert client.server.revision == "2026-07-28"
        assert (await client.call_tool("x")).text == "2026-07-28"


async def test_unsupported_versions_without_end_are_refused_once(tmp_path: Path) -> None:
    """It names a revision, and refuses that too."""
    code = """
            for m in asks():
                mark("asked")
                if "id" in m: refuse(m, -32022, "not this one", data={"supported": ["2026-07-28"]})
        """
    with pytest.raises(ConnectError, match="not this one"):
        await connect_to(tmp_path, code).open()
    assert len((tmp_path / "asked").read_text()) <= 4


# -- memory

CHANGING = """
kind = open(os.path.join(os.path.dirname(__file__), "kind")).read()
for m in asks():
    mark("methods", m.get("method"))
    if kind == "legacy": usual(m) or reply(m, DONE)
    elif m.get("method") == "server/discover": meet(m)
    elif m.get("method") == "initialize": refuse(m, -32022, "modern only", data={"supported": ["2026-07-28"]})
    elif "id" in m: reply(m, DONE)
"""


async def test_the_negotiated_era_is_remembered(tmp_path: Path) -> None:
    (tmp_path / "kind").write_text("legacy")
    for _ in range(3):
        async with connect_to(tmp_path, CHANGING) as client:
            assert client.server.revision in LEGACY
    methods = (tmp_path / "methods").read_text().split()
    assert methods.count("server/discover") == 1
    assert methods.count("initialize") == 3


async def test_a_pinned_era_is_not_remembered(tmp_path: Path) -> None:
    async with Client(own(tmp_path), era="legacy") as client:
        assert client.server.revision in LEGACY
    async with Client(own(tmp_path)) as client:
        assert client.server.revision in MODERN


@pytest.mark.parametrize(("before", "after"), [("legacy", "modern"), ("modern", "legacy")])
async def test_a_server_that_was_exchanged_for_another_is_found_out_again(
    tmp_path: Path, before: str, after: str
) -> None:
    for kind in (before, after, before, after):
        (tmp_path / "kind").write_text(kind)
        async with connect_to(tmp_path, CHANGING) as client:
            assert (client.server.revision in MODERN) == (kind == "modern")
            assert (await client.call_tool("x")).text == "done"


@pytest.mark.parametrize(("before", "after"), [("legacy", "modern"), ("modern", "legacy")])
async def test_even_while_a_client_is_open(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "kind").write_text(before)
    code = CHANGING.replace("reply(m, DONE)", "(reply(m, DONE), sys.exit(0))")
    async with connect_to(tmp_path, code) as client:
        assert (client.server.revision in MODERN) == (before == "modern")
        await client.call_tool("x")
        async with asyncio.timeout(5):
            while client.connected:
                await asyncio.sleep(0.005)
        (tmp_path / "kind").write_text(after)
        assert (await client.call_tool("x")).text == "done"
        assert (client.server.revision in MODERN) == (after == "modern")


async def test_the_memory_is_of_one_command_in_one_folder(tmp_path: Path) -> None:
    for name, kind in (("a", "legacy"), ("b", "modern")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "kind").write_text(kind)
        text = textwrap.dedent(CHANGING).replace("os.path.dirname(__file__)", "os.getcwd()")
        script(tmp_path / name, text)
    for _ in range(2):
        for name, kind in (("a", "legacy"), ("b", "modern")):
            async with Client([sys.executable, "-SEu", "odd.py"], cwd=str(tmp_path / name)) as client:
                assert (client.server.revision in MODERN) == (kind == "modern")
    assert (tmp_path / "a" / "methods").read_text().count("server/discover") == 1


# -- servers that the probe is too much for

DIES = """
mark("starts")
for m in asks():
    mark("methods", m["method"])
    if m["method"] == "server/discover": complain("expected initialize"); sys.exit(1)
    usual(m) or reply(m, DONE)
"""


async def test_a_server_that_dies_of_the_probe_is_restarted_with_a_handshake(tmp_path: Path) -> None:
    for _ in range(2):
        async with connect_to(tmp_path, DIES) as client:
            assert client.server.revision == LEGACY[-1]
            assert (await client.call_tool("x")).text == "done"
    methods = (tmp_path / "methods").read_text().split()
    assert methods.count("server/discover") == 1, "what it can't bear is remembered"
    assert len((tmp_path / "starts").read_text()) == 3


@pytest.mark.parametrize(("era", "starts"), [("auto", 2), ("modern", 1), ("legacy", 1)])
async def test_a_server_that_dies_without_the_probe_too_reports_the_first_reason(
    tmp_path: Path, era: str, starts: int
) -> None:
    code = """
            mark("starts")
            n = len(open(os.path.join(os.path.dirname(__file__), "starts")).read())
            for m in asks(): complain(f"death {n}"); sys.exit(n)
        """
    with pytest.raises(ConnectError, match="exit code 1") as caught:
        await connect_to(tmp_path, code, era=era).open()
    assert "| death 1" in str(caught.value)
    assert len((tmp_path / "starts").read_text()) == starts


@pytest.mark.usefixtures("impatient")
async def test_a_refused_handshake_after_a_silent_probe_is_the_reported_error(tmp_path: Path) -> None:
    code = "for m in asks(): refuse(m, -32602, 'licence expired') if m['method'] == 'initialize' else None"
    with pytest.raises(ConnectError, match="licence expired"):
        await connect_to(tmp_path, code, timeout=15).open()
