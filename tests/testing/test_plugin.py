"""The plugin in a user's project: each test runs pytest on one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest_plugins = "pytester"
EXAMPLE = Path(__file__).parents[2] / "examples" / "testing"
SERVER = """
    from typing import Annotated
    from longshore import Ask, Context, Server, Toolset, tool

    app = Server("shop", version="1")
    events = []

    @app.tool(effects="read")
    async def era(ctx: Context) -> str:
        '''The revision.'''
        return ctx.revision

    @app.tool
    def order(item: str, ok: Annotated[bool, Ask("Order {item}?")]) -> str:
        '''Order something.'''
        return f"{item}: {ok}"

    class Till(Toolset):
        def start(self):
            events.append("start")

        def stop(self):
            events.append("stop")

        @tool
        async def ring(self) -> str:
            '''Ring it up.'''
            return "ding"

    app.add_toolset(Till())
"""
FIXTURE = """
    import asyncio
    import pytest
    import shop

    @pytest.fixture
    def mcp_server():
        return shop.app
"""


@pytest.fixture
def shop(pytester: pytest.Pytester) -> pytest.Pytester:
    """A project with a server, whose tests name it by a fixture in conftest.py."""
    pytester.makepyfile(shop=SERVER)
    pytester.makeconftest(FIXTURE)
    pytester.syspathinsert()
    return pytester


def run(project: pytest.Pytester, *arguments: str, **outcomes: int) -> pytest.RunResult:
    """In a process of its own: pytester would load half of our modules twice in this one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # other people's take half of the time
        result = project.runpytest_subprocess("-p", "longshore.testing.plugin", "-W", "error", *arguments, timeout=50)
    result.assert_outcomes(**outcomes)
    return result


def test_a_client_by_a_fixture(shop: pytest.Pytester) -> None:
    shop.makepyfile("def test_it(mcp_client): assert mcp_client.call_tool('era').text == '2026-07-28'")
    run(shop, passed=1)


def test_a_failing_test_shows_the_traceback_of_the_tool(shop: pytest.Pytester) -> None:
    tool = "\n@app.tool\ndef price(item: str) -> int:\n    'The price.'\n    return {'tea': 250}[item]\n"
    server = shop.path / "shop.py"
    server.write_text(server.read_text() + tool)
    shop.makepyfile("def test_it(mcp_client): mcp_client.call_tool('price', {'item': 'milk'})")
    result = run(shop, failed=1)
    result.stdout.fnmatch_lines(["*Captured stderr*", "Traceback*", "*shop.py*in price", "KeyError: 'milk'"])


@pytest.mark.parametrize("name", ["shop.py", "shop.py:app", "shop", "shop:app"])
def test_a_server_by_the_configuration(pytester: pytest.Pytester, name: str) -> None:
    pytester.makepyfile(shop=SERVER)
    pytester.makepyprojecttoml(f'[tool.pytest.ini_options]\nlongshore_server = "{name}"')
    folder = pytester.mkdir("deeper")
    (folder / "test_deep.py").write_text("def test_it(mcp_client): assert mcp_client.server.name == 'shop'")
    run(pytester, "deeper", passed=1)


@pytest.mark.parametrize("first", ["import shop", ""])
def test_the_server_is_the_one_that_tests_import(pytester: pytest.Pytester, first: str) -> None:
    pytester.makepyfile(shop=SERVER)
    pytester.makeini("[pytest]\nlongshore_server = shop.py")
    pytester.makeconftest(first)
    pytester.makepyfile("def test_it(mcp_server):\n    import shop\n    assert mcp_server is shop.app")
    run(pytester, passed=1)


@pytest.mark.parametrize("first", ["import till.server", ""])
def test_a_file_of_a_package_is_what_tests_import(pytester: pytest.Pytester, first: str) -> None:
    """By its dotted name, so that its own imports work and there is no second copy."""
    names = ["src/till/__init__", "src/till/prices", "src/till/queue", "src/till/server", "test_it"]
    pytester.makepyfile(**dict.fromkeys(names, ""))
    (pytester.path / "src/till/prices.py").write_text("TEA = 5")
    (pytester.path / "src/till/server.py").write_text(
        "from longshore import Server\nfrom .prices import TEA\napp = Server('till')\n"
    )
    pytester.makeini("[pytest]\npythonpath = src\nlongshore_server = src/till/server.py")
    pytester.makeconftest(first)
    (pytester.path / "test_it.py").write_text(
        "def test_it(mcp_server):\n"
        "    import queue, till.server\n"
        "    assert mcp_server is till.server.app and queue.Queue"
    )
    run(pytester, passed=1)


def test_a_server_file_with_the_name_of_another_module_is_loaded(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(**{"deeper/json": SERVER})
    pytester.makeini("[pytest]\nlongshore_server = deeper/json.py")
    tests = [f"def test_{n}(mcp_server): seen.add(id(mcp_server)); assert len(seen) == 1" for n in range(2)]
    pytester.makepyfile("\n".join(["seen = set()", *tests]))
    run(pytester, passed=2)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("none.py", "*there is no such file*"),
        ("none", "*none: there is no such module; a file is given as path/to/none.py*"),
        ("shop:ap", "*ap is not there; did you mean 'app'?*"),
        ("shop:events", "*events is no Server*"),
        ("empty.py", "*no Server there*"),
        ("leaving.py", "*leaving.py: it called sys.exit('no config') while it was imported*"),
    ],
)
def test_a_server_that_is_not_there(pytester: pytest.Pytester, name: str, says: str) -> None:
    pytester.makepyfile(shop=SERVER, empty="", leaving="import sys; sys.exit('no config')")
    pytester.makeini(f"[pytest]\nlongshore_server = {name}")
    pytester.makepyfile("def test_it(mcp_client): pass")
    run(pytester, errors=1).stdout.fnmatch_lines([says])


def test_no_server_at_all_says_how_to_name_one(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_it(mcp_client): pass")
    run(pytester, errors=1).stdout.fnmatch_lines(["*no server to test*", "*longshore_server =*", "*def mcp_server*"])


def test_an_error_in_the_server_is_shown_whole(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(shop="raise RuntimeError('no shop today')")
    pytester.makeini("[pytest]\nlongshore_server = shop.py")
    pytester.makepyfile("def test_it(mcp_client): pass\ndef test_again(mcp_client): pass")
    run(pytester, errors=2).stdout.fnmatch_lines(["*RuntimeError: no shop today*"])


def test_once_in_each_era(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        """
        import pytest

        @pytest.mark.mcp_era("modern", "legacy", "2024-11-05")
        def test_named(mcp_client, mcp_era):
            expected = {"modern": "2026-07-28", "legacy": "2025-11-25"}.get(mcp_era, mcp_era)
            assert mcp_client.call_tool("era").text == expected

        @pytest.mark.mcp_era
        class TestAll:
            def test_both(self, mcp_client):
                assert mcp_client.call_tool("ring").text == "ding"
        """
    )
    run(shop, "-v", passed=5).stdout.fnmatch_lines(["*test_named?2024-11-05?*", "*test_both?modern?*"])


def test_an_unknown_era_is_refused(shop: pytest.Pytester) -> None:
    shop.makepyfile("import pytest\n@pytest.mark.mcp_era('old')\ndef test_it(mcp_client): pass")
    run(shop, errors=1).stdout.fnmatch_lines(["*no era 'old'; auto, modern, legacy or one of *"])


def test_answers(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        """
        import pytest
        from longshore import ToolFailed

        pytestmark = pytest.mark.mcp_era

        def test_yes(mcp_client, mcp_answers):
            mcp_answers.add(True, lambda question: {"ok": "tea" in question.message})
            assert mcp_client.call_tool("order", {"item": "tea"}).text == "tea: True"
            assert mcp_client.call_tool("order", {"item": "milk"}).text == "milk: False"
            assert [each.message for each in mcp_answers.asked] == ["Order tea?", "Order milk?"]

        def test_no(mcp_client, mcp_answers):
            mcp_answers.add(False)
            with pytest.raises(ToolFailed):
                mcp_client.call_tool("order", {"item": "tea"})
        """
    )
    run(shop, passed=4)


def test_a_question_without_an_answer_fails_the_test(shop: pytest.Pytester) -> None:
    """In the handshake era the tool only hears that the client failed, and a test may expect just that."""
    shop.makepyfile(
        """
        import pytest

        @pytest.mark.mcp_era("legacy")
        def test_it(mcp_client, mcp_answers):
            mcp_client.call_tool("order", {"item": "tea"}, check=False)
        """
    )
    run(shop, passed=1, errors=1).stdout.fnmatch_lines(
        ["*the server asked 'Order tea?', and there was no answer left*"]
    )


def test_an_unused_answer_fails_the_test(shop: pytest.Pytester) -> None:
    shop.makepyfile("def test_it(mcp_client, mcp_answers): mcp_answers.add({'ok': True}, False)")
    run(shop, passed=1, errors=1).stdout.fnmatch_lines(
        ["*the server never asked for what is left of the answers: {'ok': True}, False*"]
    )


def test_without_the_fixture_nothing_is_offered(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        """
        import pytest
        from longshore import ClientError

        @pytest.mark.mcp_era
        def test_it(mcp_client):
            with pytest.raises(ClientError):
                mcp_client.call_tool("order", {"item": "tea"})

        @pytest.mark.mcp_client(on_elicit=lambda question: {"ok": True})
        class TestOptions:
            def test_taken(self, mcp_client):
                assert mcp_client.call_tool("order", {"item": "tea"}).text == "tea: True"

            @pytest.mark.mcp_client(on_elicit=lambda question: {"ok": False})
            def test_the_nearest_holds(self, mcp_client):
                assert mcp_client.call_tool("order", {"item": "tea"}).text == "tea: False"
        """
    )
    run(shop, passed=4)


def test_async_clients_work_under_every_runner(shop: pytest.Pytester) -> None:
    """By asyncio.run and by the plugin of anyio."""
    shop.makepyfile(
        """
        import asyncio
        import pytest
        import shop
        from longshore import ConnectError, SyncClient
        from longshore import Client
        from longshore.testing import assert_surface, check, read_surface, record

        def test_plain(mcp_connect, mcp_answers):
            mcp_answers.add(True)

            async def work():
                async with mcp_connect() as one, mcp_connect(era="legacy") as other:
                    return (await one.call_tool("order", {"item": "tea"})).text, (await other.call_tool("era")).text

            assert asyncio.run(work()) == ("tea: True", "2025-11-25")

        @pytest.mark.anyio
        @pytest.mark.parametrize("anyio_backend", ["asyncio"])
        async def test_anyio(mcp_connect, tmp_path):
            assert_surface(shop.app, tmp_path / "s.json", update=True)
            assert_surface(shop.app, tmp_path / "s.json")
            async with mcp_connect() as client:
                assert (await client.call_tool("ring")).text == "ding"
                assert_surface(await read_surface(client), tmp_path / "s.json", update=True)
                with pytest.raises(ConnectError, match="lives on this very event loop"):
                    assert_surface(shop.app, tmp_path / "s.json")
                with pytest.raises(ConnectError, match="lives on this very event loop"):
                    SyncClient(record(shop.app, tmp_path / "t")).open()
                with pytest.raises(RuntimeError, match="await acheck"):
                    check(shop.app, tmp_path / "s.transcript")
                with pytest.raises(TypeError, match="await read_surface"):
                    assert_surface(client, tmp_path / "s.json")

        def test_the_function():
            async def work():
                async with Client(shop.app, era="2025-06-18") as client:
                    return client.server.revision

            assert asyncio.run(work()) == "2025-06-18"
        """
    )
    run(shop, "-p", "anyio", passed=3)


def test_only_the_server_object_outlives_a_test(shop: pytest.Pytester) -> None:
    """Each test has an engine of its own, and opens the toolsets on its own loop."""
    shop.makepyfile(
        """
        import asyncio
        import shop
        from longshore import SyncClient
        from longshore.testing import check, record

        engines = []

        def test_one(mcp_client):
            assert mcp_client.call_tool("ring").text == "ding"
            assert shop.events == ["start"]
            engines.append(shop.app.engine)

        def test_two(mcp_connect):
            assert shop.events == ["start", "stop"]

            async def work():
                async with mcp_connect() as client:
                    async with mcp_connect() as inner:
                        assert (await inner.call_tool("ring")).text == "ding"
                    assert (await client.call_tool("ring")).text == "ding"
                    assert shop.events == ["start", "stop", "start"], "nobody's toolset is closed by another's leaving"

            asyncio.run(work())
            assert shop.events == ["start", "stop"] * 2
            assert shop.app.engine is not engines[0]

        def test_three(mcp_client):
            assert mcp_client.list_tools()
            assert shop.events == ["start", "stop"] * 2

        def test_four(tmp_path):
            with SyncClient(record(shop.app, tmp_path / "t")) as client:
                client.call_tool("ring")
            assert shop.events == ["start", "stop"] * 3
            check(shop.app, tmp_path / "t")
            assert shop.events == ["start", "stop"] * 4
        """
    )
    run(shop, passed=4)


def test_a_command_may_be_the_server_under_test(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        """
        import pytest, sys

        @pytest.fixture
        def mcp_server():
            return [sys.executable, "-m", "longshore", "serve", "shop.py"]

        def test_it(mcp_client, mcp_surface):
            assert mcp_client.call_tool("ring").text == "ding"
            with pytest.raises(AssertionError, match="Write it:  pytest --mcp-update"):
                mcp_surface("s.json")
        """
    )
    run(shop, passed=1)


SURFACE = """
    def test_beside(mcp_surface):
        mcp_surface()

    def test_named(mcp_surface, mcp_client):
        mcp_surface("kept/surface.json")
"""


def test_a_surface_is_written_and_then_compared(shop: pytest.Pytester) -> None:
    shop.makepyfile(SURFACE)
    run(shop, failed=2).stdout.fnmatch_lines(["*there is no surface.json yet; it would hold tools: 3. Write it:*"])
    run(shop, "--mcp-update", passed=2)
    assert (shop.path / "surface.json").read_bytes() == (shop.path / "kept/surface.json").read_bytes()
    run(shop, passed=2)
    shop.makepyfile(shop=SERVER.replace("item: str", "item: str, count: int"))
    run(shop, "-k", "beside", failed=1, deselected=1).stdout.fnmatch_lines(
        [
            "*1 of 1 changes break callers*",
            "*tool order*",
            "*BREAKS  parameter 'count' is new and required*",
            "*+*count*",
        ]
    )


def test_the_update_flag_does_not_reach_child_processes(shop: pytest.Pytester) -> None:
    shop.makepyfile(SURFACE)
    run(shop, "--mcp-update", passed=2)
    (shop.path / "surface.json").write_text("{}")
    run(shop, "-k", "beside", failed=1, deselected=1).stdout.fnmatch_lines(["*surface.json is no surface of a server*"])


def test_a_surface_depends_on_the_era_and_the_client_options(shop: pytest.Pytester) -> None:
    shop.makepyfile(
        """
        import pytest

        @pytest.mark.mcp_era("modern", "2024-11-05")
        def test_each(mcp_surface, mcp_era):
            mcp_surface(f"{mcp_era}.json")

        @pytest.mark.mcp_client(era="no such")
        def test_options(mcp_surface):
            mcp_surface("none.json", update=True)
        """
    )
    run(shop, "--mcp-update", passed=2, failed=1).stdout.fnmatch_lines(["*no era 'no such'*"])
    modern, old = ((shop.path / f"{era}.json").read_text() for era in ("modern", "2024-11-05"))
    assert "readOnlyHint" in modern and "readOnlyHint" not in old


def test_with_xdist(shop: pytest.Pytester) -> None:
    """Several processes write one file at once, and each finds it whole."""
    shop.makepyfile(
        """
        import pytest

        @pytest.mark.parametrize("n", range(12))
        def test_surface(mcp_surface, n):
            mcp_surface()
        """
    )
    shop.runpytest_subprocess("-n", "2", "--mcp-update").assert_outcomes(passed=12)
    run(shop, passed=12)
    assert [path.name for path in shop.path.glob(".surface*")] == []


def test_the_example(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess(
        "-c", EXAMPLE / "pytest.ini", "-p", "no:cacheprovider", "-W", "error", EXAMPLE
    )
    result.assert_outcomes(passed=9)


def test_an_unused_plugin_imports_two_modules() -> None:
    """The modules that the plugin loads beside pytest's."""
    code = """
import sys, pytest, typing, collections.abc
before = set(sys.modules)
import longshore.testing.plugin
print(*sorted(set(sys.modules) - before))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["longshore", "longshore.testing", "longshore.testing.plugin"]


def test_another_plugin_may_have_our_option(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        other="""
        def pytest_addoption(parser):
            parser.addoption("--mcp-update", action="store_true", dest="theirs")
        """,
        test_it="def test_it(): pass",
    )
    pytester.syspathinsert()
    pytester.runpytest_subprocess("-p", "other").assert_outcomes(passed=1)


def test_child_processes_do_not_get_the_update_flag(shop: pytest.Pytester) -> None:
    """A server that is started by the tests refuses variables that it does not know."""
    shop.makepyfile(
        """
        import os, pytest, sys

        @pytest.fixture
        def mcp_server():
            return [sys.executable, "-m", "longshore", "serve", "shop.py"]

        def test_it(mcp_surface):
            assert not [name for name in os.environ if name.startswith("LONGSHORE_")]
            mcp_surface()
        """
    )
    run(shop, "--mcp-update", passed=1)
    run(shop, passed=1)
    assert '"ring"' in (shop.path / "surface.json").read_text()


def test_without_the_other_plugins(shop: pytest.Pytester) -> None:
    """Ours alone, in random order or not: nothing else is needed."""
    shop.makepyfile("def test_it(mcp_client): assert mcp_client.call_tool('ring').text == 'ding'")
    others = ["randomly", "xdist", "anyio", "timeout", "pytest_timeout"]
    flags = [flag for name in others for flag in ("-p", f"no:{name}")]
    shop.runpytest_subprocess(*flags, "-W", "error", "--strict-markers").assert_outcomes(passed=1)
