"""Transcripts: what a client sends and what it must get back, in a text file.

    @server tools                 which fixture
    @let V "2025-11-25"           $V stands for that text in the lines below; some are there from the start (MACROS)
    > {"jsonrpc": …}              send this line, as it is
    < {"jsonrpc": …}              the next line must be this
    <| …                          such lines, one after another, may come in any order
    >= / <= / <|= expression      the same with a Python expression that gives the value
    --                            by now nothing else may have come

The form is that of `longshore.testing`, which also says what `"…"` means in an expected line. `@server`, the marks with
`=` and `--` are our own.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

from longshore.testing.transcript import matches as matches
from longshore.testing.transcript import read_marked, read_pattern, take

SENTINEL = '{"jsonrpc":"2.0","id":"sentinel","method":"ping"}'
SENTINEL_ANSWER = {"jsonrpc": "2.0", "id": "sentinel", "result": {}}
PREFIX = "io.modelcontextprotocol/"
MACROS = {
    "J": '"jsonrpc":"2.0"',
    "PREFIX": PREFIX,
    "MODERN": f'"_meta":{{"{PREFIX}protocolVersion":"2026-07-28","{PREFIX}clientCapabilities":{{}}}}',
    "SERVER": f'"_meta":{{"{PREFIX}serverInfo":"…"}}',
    "COMPLETE": '"resultType":"complete"',
    "CACHE": '"ttlMs":0,"cacheScope":"private"',
    "READY": '{"jsonrpc":"2.0","method":"notifications/initialized"}',
    "TEXT": '"type":"text","text"',
}


class Send(NamedTuple):
    line: str
    number: int


class Expect(NamedTuple):
    """Values of which each must come, in any order."""

    values: list[Any]
    number: int


class Quiet(NamedTuple):
    number: int


Step = Send | Expect | Quiet


class Script(NamedTuple):
    server: str
    steps: list[Step]


def fill(line: str, kept: dict[str, Any]) -> str:
    """The line with what was kept in the place of its tokens."""
    return re.sub(r'"…(\w+)"', lambda found: json.dumps(kept[found[1]]), line)


def ping(id: int | str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "ping"}


def empty(id: int | str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": {}}


_NAMES = {"ping": ping, "empty": empty}


def parse(path: Path) -> Script:
    server, steps = "", list[Step]()
    for line in read_marked(path.read_text(), MACROS, path.name):
        if line.mark == "@server":
            server = line.text
        else:
            _add(steps, line.mark, line.text, line.number)
    assert server, f"{path.name} names no server"
    return Script(server, [*steps, Quiet(0)])


def _add(steps: list[Step], mark: str, text: str, number: int) -> None:
    if mark == "--":
        steps.append(Quiet(number))
    elif mark == ">":
        steps.append(Send(text, number))
    elif mark == ">=":
        steps.append(Send(json.dumps(eval(text, dict(_NAMES))), number))
    else:
        assert mark in ("<", "<=", "<|", "<|="), f"line {number}: what is {mark!r}?"
        value = eval(text, dict(_NAMES)) if mark.endswith("=") else read_pattern(text)
        last = steps[-1] if steps else None
        if "|" in mark and isinstance(last, Expect) and last.number < 0:
            last.values.append(value)
        else:
            steps.append(Expect([value], -number if "|" in mark else number))


class Checker:
    """Follows a script: says what to send, and is told what came."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.kept: dict[str, Any] = {}

    def check(self, step: Expect, lines: list[str]) -> None:
        left = [json.loads(line) for line in lines]
        for value in step.values:
            assert take(value, left, self.kept), (
                f"line {abs(step.number)} expects\n  {json.dumps(value, ensure_ascii=False)}\nand there came\n  "
                + "\n  ".join(json.dumps(one, ensure_ascii=False) for one in left)
            )

    def check_quiet(self, step: Quiet, line: str) -> None:
        assert json.loads(line) == SENTINEL_ANSWER, f"line {step.number}: nothing should have come, but\n  {line}"
