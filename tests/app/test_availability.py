"""A toolset that can't run here is not offered, and everything that could be asked for it says why."""

from __future__ import annotations

from typing import Any

import pytest

from longshore import RegistrationError, Server, Toolset, prompt, resource, tool
from longshore.config.sections import Config, ToolsetConfig
from longshore.toolsets.discovery import Discovery
from talk import ERAS, Client, Refused, call, converse, result, talk, text

WHY = "bubblewrap is missing; install it: apt install bubblewrap"


class Terminal(Toolset):
    """Can't run, or could."""

    def __init__(self, why: str | None = WHY) -> None:
        self.why, self.asked, self.started = why, 0, False

    def available(self) -> str | None:
        self.asked += 1
        return self.why

    def start(self) -> None:
        self.started = True

    def stop(self) -> None: ...

    def status(self) -> dict[str, Any]:
        raise AssertionError("it was not started")

    @tool(aliases=["execute"])
    def run(self) -> str:
        return "ran"

    @resource("terminal://screen")
    def screen(self) -> str:
        return "$"

    @resource("terminal://{id}/log")
    def log(self, id: str) -> str:
        return "$"

    @prompt
    def plan(self) -> str:
        return "plan"


def serve(why: str | None = WHY) -> tuple[Server, Terminal]:
    app, terminal = Server("t"), Terminal(why)
    app.add_toolset(Discovery(app))
    app.add_toolset(terminal)
    return app, terminal


def names(app: Server) -> list[str]:
    return [found["name"] for found in result(app, "tools/list")["tools"]]


@pytest.mark.parametrize("revision", ERAS)
def test_nothing_of_an_unavailable_toolset_is_listed(revision: str) -> None:
    app, terminal = serve()
    assert names(app) == ["hello", "server_status", "tool_help", "list_tools"]
    [found] = talk(app, ("server/discover" if revision == ERAS[1] else "ping", {}), revision=revision)
    assert found["result"].get("capabilities", {}).keys().isdisjoint({"resources", "prompts"})
    for method in ("resources/list", "prompts/list", "resources/templates/list"):
        [refused] = talk(app, (method, {}), revision=revision)
        assert refused["error"]["code"] == -32601
    assert not terminal.started


@pytest.mark.parametrize("name", ["run", "execute"])
def test_a_call_of_its_tools_is_refused_with_the_reason(name: str) -> None:
    app, terminal = serve()
    with pytest.raises(Refused, match=f"-32602: the tool '{name}' is unavailable: {WHY}"):
        call(app, name)
    assert not terminal.started


def test_hello_the_status_and_the_help_say_what_to_install() -> None:
    app, _ = serve()
    assert text(call(app, "hello")).endswith(f"\nUnavailable here: terminal: {WHY}")
    assert call(app, "server_status")["structuredContent"]["toolsets"][1] == {
        "name": "terminal",
        "tools": 0,
        "open": False,
        "details": {"unavailable": WHY},
    }
    helped = call(app, "tool_help", {"name": "run"})
    assert helped["isError"] and text(helped) == f"the tool 'run' is unavailable: {WHY}"


@pytest.mark.parametrize("answer", [None, ""])
def test_a_toolset_that_can_run_is_asked_once_and_offered(answer: str | None) -> None:
    app, terminal = serve(answer)
    assert text(call(app, "run")) == "ran"
    app.engine.refresh()
    app.renew()
    assert "run" in names(app) and terminal.asked == 1
    assert "Unavailable" not in text(call(app, "hello"))


def test_an_exception_counts_as_unavailable_and_is_logged_with_its_trace() -> None:
    class Broken(Terminal):
        name = "broken"

        def available(self) -> str | None:
            raise OSError("no such device")

    app, records = Server("t"), list[Any]()
    app.listen(records.append)
    app.add_toolset(Broken())
    with pytest.raises(Refused, match="the tool 'run' is unavailable: OSError: no such device"):
        call(app, "run")
    app.engine.refresh()
    [problem] = [record for record in records if "unavailable" in getattr(record, "text", "")]
    assert (problem.level, problem.text) == ("warning", "the toolset 'broken' is unavailable: OSError: no such device")
    assert 'raise OSError("no such device")' in problem.trace


def test_a_disabled_toolset_is_not_asked() -> None:
    app, terminal = serve()
    app.config = Config(toolsets={"terminal": ToolsetConfig(enabled=False)})
    with pytest.raises(Refused, match="no tool 'run'"):
        call(app, "run")
    assert terminal.asked == 0


def test_one_that_is_replaced_while_the_server_runs_is_asked_anew() -> None:
    app, _ = serve()

    async def script(client: Client) -> None:
        with pytest.raises(Refused):
            await client.call_tool("run")
        app.add_toolset(Terminal(None), replace=True)
        assert text(await client.call_tool("run")) == "ran"
        assert (await client.request("resources/list"))["resources"][0]["uri"] == "terminal://screen"
        app.add_toolset(Terminal(), replace=True)
        with pytest.raises(Refused, match=WHY):
            await client.call_tool("run")

    converse(app, script)


def test_one_that_needs_no_start_is_not_stopped_either() -> None:
    stopped: list[str] = []

    class Stateless(Toolset):
        def available(self) -> str | None:
            return WHY

        def stop(self) -> None:
            stopped.append("stop")

        @tool
        def run(self) -> str:
            return "ran"

    app = Server("t")
    app.add_toolset(Stateless())
    with pytest.raises(Refused):
        call(app, "run")
    app.remove_toolset("stateless")
    assert stopped == []


def test_an_async_available_is_refused_at_registration() -> None:
    class Wrong(Toolset):
        async def available(self) -> str | None:  # type: ignore[override]
            return None

    with pytest.raises(RegistrationError, match="available is asked before anything runs, so it can't be async"):
        Server("t").add_toolset(Wrong())
