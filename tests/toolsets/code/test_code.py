"""`run_code` as a client sees it: values, tools, errors, sessions, limits and questions."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.toolsets.terminal.started import PATIENCE, command_lines, open_files, own_children, until

from longshore import Client, Server
from longshore.errors import SandboxUnavailable, ServerError
from longshore.limits import Limits
from longshore.protocol.content import CallResult, Image, ResourceLink, Text
from longshore.registry.token_budget import count_tokens
from longshore.telemetry.records import ToolCompleted
from longshore.toolsets.code import options
from longshore.toolsets.code.options import CodeOptions
from longshore.toolsets.code.process import CALLS_AT_ONCE
from longshore.toolsets.code.tools import Code

from .codes import ERAS, PIXEL, Counting, connected, failure, make_server, run


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The server's only folder."""
    folder = Path(os.path.realpath(tmp_path)) / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    return folder


# -- values


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("1 + 1", "2"),
        ("print('a')\n'b'", "a\nb"),
        ("x = [1, 2]\nx", "[1, 2]"),
        ("x = 1", "[nothing was printed, and the last line has no value]"),
        ("", "[nothing was printed, and the last line has no value]"),
        ("None", "[nothing was printed, and the last line has no value]"),
        ("def f():\n    return 'é'\nf()", "é"),
        ("import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    return 3\nawait f()", "3"),
        ("import sys\nprint('e', file=sys.stderr)", "e"),
        ("import json, statistics, re, datetime, subprocess\nstatistics.mean([1, 3])", "2"),
        ("import subprocess\nsubprocess.run(['echo', 'child'])\nNone", "child"),
        ("exit()", "[nothing was printed, and the last line has no value]"),
        ("import sys\nsys.stdout = None", "[nothing was printed, and the last line has no value]"),
    ],
)
async def test_what_is_printed_and_the_last_value_are_the_answer(code: str, answer: str) -> None:
    async with connected() as client:
        assert await run(client, code) == answer


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("tools.add(2, 3)", "5"),
        ("tools.add(a=2, b=3)", "5"),
        ("tools.add(2) + 1", "4"),
        ("tools['add'](2, b=3)", "5"),
        ("await tools.add(2, 3)", "5"),
        ("f = tools.add\nf(1)", "2"),
        ("f = tools.add\nawait f(1)", "2"),
        ("tools.greet('Ann').upper()", "HELLO ANN"),
        ("isinstance(tools.greet(name='Ann'), str)", "True"),
        ("tools.hello('Ann')", "hello Ann"),
        ("tools['move-point'](1, 2)", "{'x': 2, 'y': 3}"),
        ("tools.move_point(x=1, y=2)['x']", "2"),
        ("from pathlib import Path\ntools.greet(Path('/a'))", "hello /a"),
        (
            "try:\n    tools.fail('no such thing')\nexcept ToolError as problem:\n    print('caught', problem)",
            "caught no such",
        ),
        ("import asyncio\nsum(await asyncio.gather(*[tools.add(n, 0) for n in range(5)]))", "10"),
        ("import asyncio\ncalls = [tools.add(n, 0) for n in range(5)]\nsum(await asyncio.gather(*calls))", "10"),
        ("import asyncio\nsum(await asyncio.gather(*map(tools.add, range(4))))", "10"),
        ("import asyncio\nsum([await each for each in asyncio.as_completed([tools.add(1), tools.add(2)])])", "5"),
        ("import asyncio\ncall = tools.add(1)\nawait asyncio.wait_for(call, 9)", "2"),
        ("import asyncio\nawait asyncio.gather(tools.greet(tools.greet('Ann')))", "['hello hello Ann']"),
        (
            "import asyncio\nasync def shout(text):\n    return text.upper()\n"
            "await asyncio.gather(shout(tools.greet('Ann')), shout(tools.greet('Bob')))",
            "['HELLO ANN', 'HELLO BOB']",
        ),
        ("def gather(text):\n    return text.upper()\ngather(tools.greet('Ann'))", "HELLO ANN"),
        (
            "from concurrent.futures import ThreadPoolExecutor\n"
            "with ThreadPoolExecutor(8) as pool:\n    total = sum(pool.map(tools.add, range(100)))\ntotal",
            "5050",
        ),
    ],
)
async def test_tools_are_called_as_functions(code: str, answer: str) -> None:
    async with connected() as client:
        assert (await run(client, code)).startswith(answer)


@pytest.mark.parametrize(
    "code",
    [
        "import asyncio\nawait asyncio.gather(tools.meet(), tools.meet())",
        "import asyncio\nasync def one():\n    return await tools.meet()\nawait asyncio.gather(one(), one())",
        "import asyncio\na, b = [asyncio.create_task(tools.meet()) for _ in range(2)]\n[await a, await b]",
        "from concurrent.futures import ThreadPoolExecutor\n"
        "with ThreadPoolExecutor() as pool:\n    found = [*pool.map(lambda _: tools.meet(), range(2))]\nfound",
    ],
)
async def test_calls_run_concurrently(code: str) -> None:
    async with connected() as client:
        assert await run(client, code) == "['met', 'met']"


async def test_an_answer_that_nobody_awaits_any_more_does_no_harm() -> None:
    """Its loop is closed when it comes, with the answer of the second call behind it."""
    async with connected() as client:
        code = (
            "import asyncio\nasync def wait():\n    try: await asyncio.wait_for(tools.meet(), 0.05)\n"
            "    except asyncio.TimeoutError: print('too late')\nasyncio.run(wait())\ntools.meet()"
        )
        assert await run(client, code) == "too late\nmet"


async def test_code_that_calls_fast_leaves_turns_to_others() -> None:
    app = make_server()
    turns = 0
    called = Counter[int]()

    @app.tool(run="inline")
    def note() -> None:
        called[turns] += 1

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with connected(app) as client:
        other = asyncio.ensure_future(take_turns())
        await run(client, "import asyncio\nlen(await asyncio.gather(*[tools.note() for _ in range(2000)]))")
        other.cancel()
        assert called.total() == 2000 and max(called.values()) <= 2 * CALLS_AT_ONCE


async def test_pictures_and_links_are_objects_that_can_be_shown() -> None:
    async with connected() as client:
        answer = await client.call_tool("run_code", {"code": "tools.picture()"})
        text, image = answer.content
        assert text.text == "a pixel" and isinstance(image, Image) and image.data == PIXEL
        code = "found = tools.picture()\nimage = found.media[0]\n(image.mime_type, len(image.data), str(found))"
        assert await run(client, code) == f"('image/png', {len(PIXEL)}, 'a pixel')"
        shown = await client.call_tool("run_code", {"code": "display(tools.picture().media[0], 'below')"})
        assert [getattr(part, "text", "an image") for part in shown.content] == ["below", "an image"]


@pytest.mark.parametrize(
    ("structured", "shown"),
    [({"width": 1}, "{'width': 1}"), ({"result": [1, 2]}, "[1, 2]"), ({"result": 7}, "{'result': 7}")],
)
async def test_pictures_beside_structured_content_come_with_the_value(structured: dict[str, Any], shown: str) -> None:
    app = make_server()

    @app.tool(effects="read")
    def chart() -> CallResult:
        return CallResult([Text("a chart"), Image(PIXEL)], structured=structured)

    async with connected(app) as client:
        answer = await client.call_tool("run_code", {"code": "tools.chart()"})
        text, image = answer.content
        assert text.text == shown and isinstance(image, Image) and image.data == PIXEL
        assert await run(client, "found = tools.chart()\n(len(found.media), found.links)") == "(1, [])"


async def test_a_link_of_a_tool_is_read_and_passed_on() -> None:
    async with connected() as client:
        assert await run(client, "tools.store(text='kept').read()") == "kept"
        answer = await client.call_tool("run_code", {"code": "tools.store(text='kept')"})
        (link,) = answer.content
        assert isinstance(link, ResourceLink)
        assert (await client.read_resource(link.uri))[0].text == "kept"


async def test_pictures_beyond_a_bound_are_linked() -> None:
    async with connected() as client:
        code = "display(*[Image(bytes(600_000)) for _ in range(2)])"
        answer = await client.call_tool("run_code", {"code": code})
        assert [type(part) for part in answer.content] == [Image, ResourceLink]


# -- errors


async def test_a_traceback_shows_the_users_code_and_the_tools_own_error() -> None:
    async with connected() as client:
        text = await failure(client, "def look():\n    return tools.fail('the file is gone')\n\nprint('first')\nlook()")
        assert text.endswith(
            "first\n"
            "Traceback (most recent call last):\n"
            '  File "<code>", line 5, in <module>\n    look()\n'
            "  File \"<code>\", line 2, in look\n    return tools.fail('the file is gone')\n"
            "           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
            "ToolError: the file is gone"
        )


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("1 +", "SyntaxError"),
        ("try: tools.fail('gone')\nexcept ToolError as problem: raise ValueError('x') from problem", "ToolError: gone"),
        ("import asyncio\nasync with asyncio.TaskGroup() as g: g.create_task(tools.fail('gone'))", "ToolError: gone"),
        ("raise SystemExit(3)", "sys.exit(3)"),
        ("tools.add('x')", "add: invalid arguments"),
        ("tools.add(1, 2, 3)", "add takes at most 2 arguments, and 3 were given"),
        ("tools.add(1, a=2)", "'a' was given twice"),
        ("tools.ad(1)", "did you mean 'add'?"),
        ("tools.add(object())", "can't take a object"),
        ("tools.add(float('nan'))", "not JSON compliant"),
        ("tools.greet('\\udc80')", "surrogates not allowed"),
        (
            "import os\nif os.fork() == 0:\n    try: tools.add(1)\n    except RuntimeError as problem: print(problem)\n"
            "    os._exit(0)\nos.wait()\n1 / 0",
            "a forked process can't call tools",
        ),
        ("tools.run_code('1')", "code can't run code"),
        ("tools.call_tool(name='run_code', arguments={'code': '1'})", "code can't run code"),
        ("import os\nos.kill(os.getpid(), 9)", "SIGKILL"),
        ("import os\nos._exit(3)", "exit code 3"),
        ("import os\nos.closerange(3, 65536)", "ended"),
        ("'x' * 10**10", "MemoryError"),
    ],
)
async def test_errors_say_what_and_where(code: str, said: str) -> None:
    async with connected(make_server(memory=256 << 20)) as client:
        assert said in await failure(client, code)
        assert await run(client, "1") == "1"


async def test_arguments_out_of_bounds_are_refused() -> None:
    async with connected() as client:
        for arguments in ({"timeout_ms": 0}, {"timeout_ms": 600_001}):
            assert "give 1 to 600000" in await failure(client, "1", **arguments)
        assert "at most 200,000" in await failure(client, "1" * 200_001)
        for session in ("", "x" * 65):
            assert "1 to 64 characters" in await failure(client, "1", session=session)


# -- sessions


async def test_a_session_keeps_its_variables() -> None:
    async with connected() as client:
        assert await run(client, "x = 5\nx", session="a") == "5\n[new session 'a']"
        assert await run(client, "x += 1\nx", session="a") == "6"
        assert "NameError" in await failure(client, "x")
        assert "NameError" in await failure(client, "x", session="b")
        assert "ZeroDivisionError" in await failure(client, "x / 0", session="a")
        assert await run(client, "x", session="a") == "6"


async def test_a_session_that_was_ended_begins_anew_and_says_so() -> None:
    async with connected() as client:
        await run(client, "x = 5", session="a")
        assert "did not end within 0.2 s" in await failure(client, "while True: pass", session="a", timeout_ms=200)
        assert await run(client, "'x' in globals()", session="a") == "False\n[new session 'a']"


async def test_one_session_runs_one_piece_of_code_at_a_time() -> None:
    counting = Counting()
    async with connected(make_server(counting)) as client:
        first = asyncio.ensure_future(run(client, "tools.meet()", session="a"))
        await until(lambda: counting.begun)
        assert "is running code" in await failure(client, "1", session="a")
        counting.meeting.set()
        assert (await first).startswith("met")


async def test_a_session_that_is_about_to_begin_is_begun_once() -> None:
    counting = Counting()
    async with connected(make_server(counting)) as client:
        begun = [
            asyncio.ensure_future(client.call_tool("run_code", {"code": "tools.meet()", "session": "a"}, check=False))
            for _ in range(2)
        ]
        refused, _ = await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
        counting.meeting.set()
        assert ["is running code" in each.result().text for each in refused] == [True]
        assert sorted(each.is_error for each in await asyncio.gather(*begun)) == [False, True]


async def test_a_session_is_not_idle_while_its_code_runs() -> None:
    async with connected(make_server(idle_seconds=1)) as client:
        assert (await run(client, "import time\ntime.sleep(2)\n'awake'", session="a")).startswith("awake")


async def test_a_call_that_is_not_awaited_ends_with_the_code_that_made_it() -> None:
    async with connected() as client:
        code = "import asyncio\ntask = asyncio.create_task(tools.meet())\nawait asyncio.sleep(0)"
        await run(client, code, session="a")
        assert "the code that made this call has ended" in await failure(client, "await task", session="a")


async def test_as_many_pieces_of_code_run_as_configured() -> None:
    counting = Counting()
    async with connected(make_server(counting, most_running=1, most_sessions=1)) as client:
        first = asyncio.ensure_future(run(client, "tools.meet()"))
        await until(lambda: counting.begun)
        assert "the most that may" in await failure(client, "1")
        counting.meeting.set()
        assert await first == "met"
        await run(client, "1", session="a")
        assert "the most that you may have" in await failure(client, "1", session="b")


# -- limits


async def test_output_beyond_the_budget_is_linked_whole() -> None:
    async with connected() as client:
        answer = await client.call_tool("run_code", {"code": "for n in range(100_000): print(n)", "max_tokens": 500})
        text, link = answer.content
        assert count_tokens(text.text) <= 500 and text.text.startswith("0\n1\n") and text.text.endswith("\n99999")
        contents = await client.read_resource(link.uri)
        assert contents[0].text.startswith("0\n1\n2\n")


async def test_the_time_limit_ends_the_code_its_calls_and_its_processes() -> None:
    counting = Counting()
    async with connected(make_server(counting)) as client:
        code = "import subprocess\nsubprocess.Popen(['sleep', '600.77'])\nprint('begun')\ntools.meet()"
        text = await failure(client, code, timeout_ms=1500)
        assert text.endswith("begun\n[the code did not end within 1.5 s (timeout_ms)]")
        await until(lambda: counting.cancelled == 1 and not command_lines("sleep 600.77"))


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_ends_the_code_its_calls_and_its_processes(era: str) -> None:
    counting = Counting()
    async with connected(make_server(counting), era=era) as client:
        code = "import subprocess\nsubprocess.Popen(['sleep', '600.78'])\ntools.meet()"
        running = asyncio.ensure_future(run(client, code))
        await until(lambda: counting.begun and command_lines("sleep 600.78"))
        running.cancel()
        await until(lambda: counting.cancelled == 1 and not command_lines("sleep 600.78"))


async def test_calls_that_wait_for_each_other_do_not_take_every_place() -> None:
    """With two places, two pieces of code whose tools need a place each would else wait for ever."""
    app = Server("few", limits=Limits(running=2), catalog="code")
    made = make_server()
    for name, entry in made.catalog.tools.items():
        if name != "run_code":
            app.catalog.add(entry)
    app.add_toolset(Code(CodeOptions(), app))
    async with Client(app) as client:
        texts = await asyncio.wait_for(asyncio.gather(*[run(client, "tools.meet()") for _ in range(2)]), PATIENCE)
        assert texts == ["met", "met"]


async def test_nothing_is_left_after_many_runs() -> None:
    before = own_children()  # other tests of this process may have some
    async with connected() as client:
        await run(client, "1")
        await until(lambda: len(own_children() - before) == 1)  # the process in reserve
        files = open_files()
        for _ in range(20):
            await run(client, "1")
        await until(lambda: len(own_children() - before) == 1 and len(open_files()) <= len(files))
    await until(lambda: not own_children() - before)


# -- what the called tools do


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_of_a_called_tool_goes_to_the_client(era: str) -> None:
    asked: list[str] = []

    def answer(question: Any) -> str:
        asked.append(question.message)
        return "Ann"

    async with connected(era=era, on_elicit=answer) as client:
        code = "print('once')\nfirst = tools.ask_name()\n(first, tools.ask_name())"
        assert await run(client, code) == "once\n('hello Ann', 'hello Ann')"
        assert asked == ["What is your name?"] * 2


@pytest.mark.parametrize("era", ERAS)
async def test_the_time_limit_stops_while_the_user_is_asked(era: str) -> None:
    async def answer(_: Any) -> str:
        await asyncio.sleep(1.2)
        return "Ann"

    async with connected(era=era, on_elicit=answer) as client:
        assert await run(client, "tools.ask_name()", timeout_ms=1000) == "hello Ann"


@pytest.mark.parametrize("era", ERAS)
async def test_a_declined_question_is_the_tools_error(era: str) -> None:
    async with connected(era=era, on_elicit=lambda _: False) as client:
        code = "try:\n    tools.ask_name()\nexcept ToolError as problem:\n    print('no:', problem)"
        assert await run(client, code) == "no: without a name there is no greeting"


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_can_not_be_asked_gets_the_tools_error(era: str) -> None:
    async with connected(era=era) as client:
        assert "did not declare" in await failure(client, "tools.ask_name()")


@pytest.mark.parametrize("era", ERAS)
async def test_progress_of_called_tools_is_passed_on(era: str) -> None:
    messages: list[str | None] = []
    counting = Counting()
    async with connected(make_server(counting), era=era) as client:
        code = "import asyncio\nawait asyncio.gather(tools.meet(), tools.meet())"
        await client.call_tool("run_code", {"code": code}, on_progress=lambda _, __, message: messages.append(message))
        assert "meet: waiting" in messages


async def test_calls_of_code_are_counted_as_calls() -> None:
    app = make_server()
    async with connected(app) as client:
        await run(client, "for n in range(5): tools.add(n)")
        assert app.catalog.tools["add"].calls == 5


async def test_records_of_calls_of_code_name_the_call_that_makes_them() -> None:
    app = make_server()
    records = list[Any]()
    app.listen(records.append)
    async with connected(app) as client:
        await run(client, "tools.add(1)\ntools.call_tool(name='greet', arguments={'name': 'x'})")
    ends = {each.tool: each for each in records if isinstance(each, ToolCompleted)}
    assert ends["run_code"].parent is None
    assert ends["add"].parent == ends["greet"].parent == ends["run_code"].id


async def test_a_tool_that_is_off_can_not_be_called() -> None:
    app = make_server()
    app.disable("add")
    async with connected(app) as client:
        assert "off" in await failure(client, "tools.add(1)")


async def test_code_sees_the_folder_and_changes_it(folder: Path) -> None:
    (folder / "a.txt").write_text("text")
    async with connected() as client:
        assert await run(client, "open('b.txt', 'w').write(open('a.txt').read() * 2)") == "8"
        assert (folder / "b.txt").read_text() == "texttext"


async def test_where_nothing_can_confine_it_code_is_unavailable_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:

    def refuse(_: Any) -> Any:
        raise SandboxUnavailable("bwrap is not installed", "apt install bubblewrap")

    monkeypatch.setattr(options, "make_sandbox", refuse)
    monkeypatch.setattr("longshore.sandbox.checked_levels.was_checked", lambda _: False)
    async with connected() as client:
        with pytest.raises(ServerError, match=r"bwrap is not installed.*apt install bubblewrap"):
            await client.call_tool("run_code", {"code": "1"})
