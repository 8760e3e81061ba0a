"""Code mode: twenty steps by a call of a tool each, by code, and by FastMCP's code mode.

The agent mends the order page of the sample project, and what it leaves behind is checked; `code_mode_task.py` has what
it sends. Counted are the list of tools, once, the names and arguments of the calls and their answers. Clients send the
list with every request to the model: the notes say the totals of that, too.

FastMCP's code mode is there twice, as a gateway. Over the servers that its users mount for such a task: the official
filesystem server, Desktop Commander and Playwright MCP. A user chooses between that and us, so the targets are against
it. And over our own server in full form, which its users don't have, so that only the code modes differ: there most of
the time is that of the same tools in both, so there is little to gain, and no target. Of its users' servers, Desktop
Commander waits a second for the output of the page's server, as it is told to. Some answers have a text twice, as text
and as structured content. `code_mode_seen` counts it once, and of the list what clients show a model.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

from benchmarks.agent_session import OFFICIAL as FILESYSTEM
from benchmarks.agents import SEEN, THINKING_SECONDS
from benchmarks.browser_agents import CHROMIUM, PLAYWRIGHT, Playwright, playwright_command
from benchmarks.browser_agents import PINS as PLAYWRIGHT_PINS
from benchmarks.claim import Claim, Target
from benchmarks.code_mode_task import CODE, CODE_BY_TOOLS, FOLDER, FULL, PEER, PEERS, REF, SITE_ADDRESS, Turn
from benchmarks.command import main
from benchmarks.desktop_commander import COMMANDER_PACKAGE, commander_command, without_network
from benchmarks.desktop_commander import PINS as COMMANDER_PINS
from benchmarks.environment import HERE, SetupFailed, installed, node_server, pinned, python
from benchmarks.load import LoadFailed, Session, measure_in_turns, precedence, progress
from benchmarks.order_page import find_faults, make_order_project
from benchmarks.stdio_server import Answer, StdioServer, count_tokens

OURS, BY_TOOLS, IN_FULL = "longshore, code", "longshore, code, files by tools", "longshore, a call for each step"
PEERS_NAME = "FastMCP's CodeMode, its users' servers"
FASTMCP = "FastMCP's CodeMode, our tools"
OF_FULL, OF_PEER = 0.3, 0.7
RUN_MS, INNER_MS = 30, 0.5
INNER_CALLS = 1000
LEVEL = ("toolsets.terminal.level", "workspace+net")
"""Commands serve the page on loopback, where the browser opens it."""
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")
MANY_CALLS = 100
MANY_CODE = f"""for number in range({MANY_CALLS}):
    value = tools.add(a=number, b=1)
value - {MANY_CALLS - 2}"""
MANY_PEER_CODE = f"""for number in range({MANY_CALLS}):
    value = await call_tool("add", {{"a": number, "b": 1}})
return value["result"] - {MANY_CALLS - 2} if isinstance(value, dict) else int(value) - {MANY_CALLS - 2}"""
INNER_CODE = f"""from statistics import median
from time import perf_counter

times = []
for number in range({INNER_CALLS}):
    began = perf_counter()
    value = tools.add(a=number, b=1)
    times.append(perf_counter() - began)
    assert value == number + 1
median(times) * 1e3"""


@dataclass(frozen=True)
class Contestant:
    """A form of the catalogue: the options or the program that make it, and what the model sends."""

    turns: Sequence[Turn]
    options: Sequence[str] = ()
    gateway: Sequence[str] = ()
    mounts_peers: bool = False
    """Whether the gateway is in front of other servers than ours."""

    def command(self, folder: Path, home: Path, interpreter: Path) -> list[str]:
        if self.mounts_peers:
            return [*without_network(), *self.gateway, "--servers", json.dumps(_peers(folder, home))]
        level = ["--set", "=".join(LEVEL)]
        ours = [str(interpreter), "-m", "longshore", "serve", "--root", str(folder), *level]
        return [*self.gateway, *ours, *self.options]


@dataclass
class Record:
    """What a session cost."""

    tokens: list[float] = field(default_factory=list)
    """Of the list, then of each turn."""
    seen: list[float] = field(default_factory=list)
    """The same of what clients show a model, where what is sent twice counts once."""
    milliseconds: list[float] = field(default_factory=list)
    """Of the list, for which a gateway may have to start the servers behind it, then of each turn."""
    faults: list[str] = field(default_factory=list)

    def with_list_at_each_turn(self) -> float:
        """The tokens seen, if the list is sent with each request to the model: before each call, and after the last."""
        return sum(self.seen) + self.seen[0] * (len(self.seen) - 1)

    def count(self, sent: Any, answer: Answer, seen: Any) -> None:
        request = count_tokens(sent) if sent else 0.0
        self.tokens.append(request + answer.tokens)
        self.seen.append(request + count_tokens(seen))
        self.milliseconds.append(answer.milliseconds)


def _peers(folder: Path, home: Path) -> dict[str, list[str]]:
    """The commands of the servers that FastMCP's users mount, by name."""
    return {
        "filesystem": [*node_server(FILESYSTEM), str(folder)],
        "commander": commander_command(folder, home),
        "playwright": [*playwright_command(), "--output-dir", str(home / "pages")],
    }


def contestants() -> dict[str, Contestant]:
    gateway = (str(python("fastmcp")), str(HERE / "servers" / "fastmcp_code_mode.py"))
    return {
        OURS: Contestant(CODE, ("--catalog", "code")),
        BY_TOOLS: Contestant(CODE_BY_TOOLS, ("--catalog", "code")),
        IN_FULL: Contestant(FULL),
        PEERS_NAME: Contestant(PEERS, gateway=gateway, mounts_peers=True),
        FASTMCP: Contestant(PEER, gateway=gateway),
    }


def measure(session: Session) -> list[Claim]:
    with precedence(session):
        return [*_task(session), *_calls(session)]


def _task(session: Session) -> list[Claim]:
    rounds = session.pick(full=5, quick=1)
    tokens = Claim("code_mode", "Twenty steps over files, terminal and browser: all that is sent", "tokens")
    seen = Claim("code_mode_seen", "The same, of what clients show a model", "tokens")
    time = Claim("code_mode_time", f"The same: time of all calls, median of {rounds}", "ms")
    tokens.targets = [Target(OURS, OF_FULL, against=IN_FULL), Target(OURS, OF_PEER, against=PEERS_NAME)]
    seen.targets = list(tokens.targets)
    time.targets = [Target(OURS, OF_PEER, against=PEERS_NAME)]
    records: dict[str, Record] = {}

    def work(name: str, contestant: Contestant) -> float:
        records[name] = record = _work_in_new_project(contestant)
        if record.faults:
            raise LoadFailed(f"{name}: {'; '.join(record.faults)}")
        return sum(record.milliseconds[1:])

    try:
        measure_in_turns(time, rounds, {name: partial(work, name, each) for name, each in contestants().items()})
    except (LoadFailed, SetupFailed) as failure:
        time.errors.append(str(failure))
        return [time]
    for claim in (tokens, seen, time):
        claim.base, claim.settings = IN_FULL, dict([LEVEL])
    for name, record in records.items():
        tokens.add(name, [sum(record.tokens)])
        seen.add(name, [sum(record.seen)])
        parts = f"list {record.seen[0]:,.0f}, {len(record.seen) - 1} calls {sum(record.seen[1:]):,.0f}"
        seen.notes.append(f"{name}: {parts}; with the list at each turn {record.with_list_at_each_turn():,.0f}.")
        rest = sum(record.milliseconds[1:]) - max(record.milliseconds[1:])
        time.notes.append(f"{name}: {rest:,.0f} ms in the last round without its longest call.")
    for claim in (tokens, seen, time):
        if (ratio := claim.ratio(OURS, FASTMCP)) is not None:
            claim.notes.append(f"{OURS}: {ratio:.3g} × {FASTMCP}, which has no target.")
    versions = f"filesystem {pinned(FILESYSTEM)}, Desktop Commander {pinned(COMMANDER_PACKAGE, COMMANDER_PINS)}"
    tokens.notes.append(f"{PEERS_NAME}: {versions}, Playwright MCP {pinned(PLAYWRIGHT, PLAYWRIGHT_PINS)}.")
    tokens.notes.append(f"FastMCP {installed('fastmcp', 'fastmcp')}; its answers have texts of its own tools twice.")
    time.notes.append("Most of it is that of the tools: tests, the start of the browser, waiting for the page.")
    time.notes.append("From the first call to the last answer, the start of the browser included.")
    return [tokens, seen, time]


def _work_in_new_project(contestant: Contestant) -> Record:
    with TemporaryDirectory() as temporary:
        return work_in(Path(os.path.realpath(temporary)), contestant, python("longshore"))


def work_in(temporary: Path, contestant: Contestant, interpreter: Path) -> Record:
    """Take all turns in a new project, and look at what they have left behind."""
    folder, home = temporary / "shop", temporary / "home"
    home.mkdir()
    make_order_project(folder)
    # A version manager's python3 would be sought in the home folder, which is another one here.
    path = f"{os.path.dirname(os.path.realpath(sys.executable))}:{os.environ['PATH']}"
    variables = {"PATH": path, "CHROME_PATH": CHROMIUM}
    command = contestant.command(folder, home, interpreter)
    with StdioServer(command, folder=folder, home=home, variables=variables) as server:
        record = _take(server, contestant.turns, folder)
    record.faults += find_faults(folder)
    return record


def _take(server: StdioServer, turns: Sequence[Turn], folder: Path) -> Record:
    record = Record()
    listed = server.ask("tools/list")
    tools = listed.result["tools"]
    record.count(None, listed, [{key: tool[key] for key in SEEN if key in tool} for tool in tools])
    known = {FOLDER: str(folder)}
    for number, turn in enumerate(turns, 1):
        answer = _call(server, record, turn.tool, _fill_in(turn.arguments, known))
        if turn.more is not None and not ADDRESS.search(answer.text):
            waiting = {key: value for key, value in turn.more.items() if key != "tool"}
            rest = _call(server, record, turn.more.get("tool", turn.tool), waiting)
            answer = replace(answer, result={"content": [*answer.result["content"], *rest.result["content"]]})
        if missing := [each for each in turn.shows if each not in answer.text]:
            record.faults.append(f"turn {number}, {turn.tool}: no {missing} in {answer.text[:500]!r}")
        known |= _learn(answer.text)
    return record


def _learn(text: str) -> dict[str, str]:
    """What later turns fill in: the address of the page, and the refs of its elements."""
    found = ADDRESS.search(text)
    refs = {REF.format(role=each["role"], name=each["name"]): each["ref"] for each in Playwright.element.finditer(text)}
    return refs if found is None else refs | {SITE_ADDRESS: found[0]}


def _call(server: StdioServer, record: Record, tool: str, arguments: Mapping[str, Any]) -> Answer:
    answer = server.call(tool, **arguments)
    record.count({"name": tool, "arguments": arguments}, answer, answer.result["content"])
    return answer


def _fill_in(arguments: Mapping[str, Any], known: Mapping[str, str]) -> dict[str, Any]:
    text = json.dumps(arguments)
    for name, value in known.items():
        text = text.replace(name, value)
    filled: dict[str, Any] = json.loads(text)
    return filled


def _calls(session: Session) -> list[Claim]:
    """`run_code` itself, and a tool that it calls."""
    rounds = session.pick(full=40, quick=5)
    run = Claim("code_mode_run", f"run_code('1+1'), after {THINKING_SECONDS:g} s of a model's thinking", "ms")
    again = Claim("code_mode_run_again", "run_code('1+1'), at once after the answer before", "ms", base=FASTMCP)
    kept = Claim("code_mode_run_session", "The same, in a session", "ms", base=FASTMCP)
    inner = Claim("code_mode_inner", f"A call of an inline tool from code, median of {INNER_CALLS:,}", "ms")
    many = Claim("code_mode_many", f"{MANY_CALLS} calls of that tool in one piece of code", "ms", base=FASTMCP)
    run.targets, inner.targets = [Target("longshore", RUN_MS)], [Target("longshore", INNER_MS)]
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        command = [str(python("longshore")), "-m", "longshore", "serve", str(HERE / "servers/longshore_code_mode.py")]
        gateway = [*contestants()[FASTMCP].gateway, *command, "--set", "server.catalog=full"]
        with (
            StdioServer(command, folder=folder, home=folder) as ours,
            StdioServer(gateway, folder=folder, home=folder) as peer,
        ):
            one = partial(_run, ours, "run_code", code="1+1")
            two = partial(_run, peer, "execute", code="return 1+1")
            measure_in_turns(run, rounds, {"longshore": partial(_think, one), FASTMCP: partial(_think, two)})
            measure_in_turns(again, rounds, {"longshore": one, FASTMCP: two})
            measure_in_turns(kept, rounds, {"longshore": partial(one, session="a"), FASTMCP: two})
            manies = {
                "longshore": partial(_run, ours, "run_code", code=MANY_CODE),
                FASTMCP: partial(_run, peer, "execute", code=MANY_PEER_CODE),
            }
            measure_in_turns(many, session.pick(full=9, quick=2), manies)
            codes = {"longshore": partial(_time_inner, ours)}
            measure_in_turns(inner, session.pick(full=9, quick=2), codes)
    progress("")
    return [run, again, kept, inner, many]


def _run(server: StdioServer, tool: str, **arguments: Any) -> float:
    answer = server.call(tool, **arguments)
    if answer.text.split("\n")[0] != "2":  # a new session is announced below it
        raise LoadFailed(f"{tool}: 1+1 is {answer.text[:500]!r}")
    return answer.milliseconds


def _think(call: partial[float]) -> float:
    sleep(THINKING_SECONDS)
    return call()


def _time_inner(server: StdioServer) -> float:
    """Milliseconds, as the code itself measures them."""
    return float(server.call("run_code", code=INNER_CODE).text)


if __name__ == "__main__":
    sys.exit(main([measure]))
