"""The checks of `longshore doctor TARGET` for any server on stdio: it is started four times, and watched.

1. A handshake of 2025-11-25, lists, malformed input, then the end of its input.
2. A handshake of 2025-06-18, then SIGTERM.
3. A handshake of 2024-11-05, then SIGINT.
4. A request of 2026-07-28, without a handshake.
"""

from __future__ import annotations

import re
import shlex
import shutil
import signal
from collections.abc import Generator, Iterator, Mapping
from functools import partial
from time import monotonic
from typing import Any, Final

import msgspec
from msgspec import Struct

from longshore.cli.check import Check
from longshore.cli.exchange import Json, request
from longshore.cli.screen import many, short
from longshore.cli.server_process import Clock, ServerProcess, TooMuchOutput
from longshore.cli.tool_checks import check_tools
from longshore.errors import TargetError
from longshore.install.clients import CLIENTS
from longshore.protocol.peer import OWN_ENVELOPE
from longshore.protocol.revisions import LEGACY, MODERN
from longshore.schema.kinds import as_array, as_object, is_array
from longshore.schema.lint.tool_list import ToolList
from longshore.wire.codec import INVALID_REQUEST, METHOD_NOT_FOUND, PARSE_ERROR

_CHARACTERS: Final = 200
"""Characters that are shown of what a server wrote."""
_MOST_PAGES: Final = 100
_INITIALIZE, _LIST, _UNKNOWN, _NO_METHOD, _MODERN = 1, "tools", 3, 4, 5
"""The ids of requests: numbers and a text, since a server must answer with the very same."""
_NO_MODULE: Final = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


class Command(Struct, frozen=True):
    """How a server is started."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    cwd: str | None = None
    name: str = ""
    """The server's name in a client's file, or what the user typed."""

    @property
    def shown(self) -> str:
        return short(shlex.join(self.argv), _CHARACTERS)


class Patience(Struct, frozen=True):
    """How long is waited, in seconds."""

    start: float = 60.0
    """For the first answer: twice as long as the most patient client whose deadline is known."""
    answer: float = 5.0
    exit: float = 5.0
    """After the end of input and after a signal. Clients kill after two to five seconds."""


def check_server(command: Command, patience: Patience, clock: Clock = monotonic) -> Iterator[Check]:
    """All checks; the first one alone if the server does not start."""
    try:
        with ServerProcess(command.argv, command.env, command.cwd, clock) as server:
            started = yield from _check_start(server, command, patience)
            if not started:
                return
            yield from _check_tools(server, command, patience)
            yield from _check_malformed(server, patience)
            server.end_input()
            ended = server.wait(lambda: server.has_ended, patience.exit)
            server.drain()
            yield _check_end_of_input(server, patience, ended=bool(ended))
            yield _check_stdout(server)
            if ended:
                yield _check_left(server)
        yield from _check_signal(command, signal.SIGTERM, LEGACY[2], patience, clock)
        yield from _check_signal(command, signal.SIGINT, LEGACY[0], patience, clock)
        yield _check_modern(command, patience, clock)
    except TargetError as problem:
        flooded = isinstance(problem, TooMuchOutput)
        fix = "write only the answers to requests on stdout" if flooded else _fix_command(command)
        yield Check("start", "failed", str(problem), fix)


def _initialize(version: str) -> Json:
    info = {"name": "longshore-doctor", "version": "1"}
    return request(_INITIALIZE, "initialize", protocolVersion=version, capabilities={}, clientInfo=info)


_STARTED: Final[Json] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


# -- the start


def _check_start(server: ServerProcess, command: Command, patience: Patience) -> Generator[Check, None, bool]:
    server.send(_initialize(LEGACY[-1]))
    server.wait(lambda: server.answers, patience.start)
    seconds = server.clock() - server.started_at
    result = as_object(server.answer(_INITIALIZE).get("result"))
    if not result:
        if server.stray:
            yield _check_stdout(server)
        yield _not_started(server, command, patience)
        return False
    info = as_object(result.get("serverInfo"))
    said = f"{info.get('name', 'a server')} {info.get('version', '')}".strip()
    yield Check("start", "ok", f"{short(said, 80)} answered after {seconds:.2f} s")
    yield from judge_start(seconds)
    yield _check_version(LEGACY[-1], result)
    server.send(_STARTED)
    return True


def judge_start(seconds: float) -> Iterator[Check]:
    """A check for each deadline of a client."""
    fix = "start faster: import and connect at the first call, not at the start; or give the client a longer limit"
    for client in CLIENTS:
        for deadline in client.deadlines:
            name, limit = f"start in {client.title}", f"{deadline.seconds:g} s ({deadline.known})"
            if seconds <= deadline.seconds:
                yield Check(name, "ok", f"within {limit}")
            else:
                yield Check(name, "failed", f"{seconds:.1f} s, and after {limit} {deadline.otherwise}", fix)


def _not_started(server: ServerProcess, command: Command, patience: Patience) -> Check:
    if server.answers:
        wrong = server.answers[0]
        if "error" in wrong and wrong.get("id") == _INITIALIZE:
            said = short(str(as_object(wrong["error"]).get("message", "")), _CHARACTERS)
            return Check("start", "failed", f"it refuses initialize: {said}", "answer initialize; see `longshore lint`")
        what = f"it answered a request with the id {_INITIALIZE} under the id {_json(wrong.get('id'))}"
        return Check("ids", "failed", what, "answer with the id of the request as it came, of the same type")
    last = short(server.stderr.splitlines()[-1], _CHARACTERS) if server.stderr else "nothing on stderr"
    if not server.has_ended:
        what = f"no answer to initialize within {patience.start:g} s; stderr: {last}"
        return Check("start", "failed", what, f"run it by itself and see what it waits for: {command.shown}")
    missing = _NO_MODULE.search(server.stderr)
    if missing is not None:
        module, python = missing[1].partition(".")[0], command.argv[0]
        what = f"{server.how_it_ended()}: {python} has no module {module!r}"
        fix = f"install it there ({python} -m pip install {module}), or name the Python that has it, by its full path"
        return Check("start", "failed", what, fix)
    kind = "it crashed" if "Traceback (most recent call last)" in server.stderr else server.how_it_ended()
    return Check("start", "failed", f"{kind} before it answered: {last}", f"mend that, then try it: {command.shown}")


def _fix_command(command: Command) -> str:
    program = command.argv[0]
    found = shutil.which(program)
    if found is not None and found != program:
        return f"write its full path: {found}"
    return f"install {program}, or write the full path of the program; clients have a shorter PATH than your shell"


def _check_version(asked: str, result: Json) -> Check:
    name, answered = f"MCP {asked}", result.get("protocolVersion")
    if answered == asked:
        return Check(name, "ok", "spoken")
    if not isinstance(answered, str) or answered > asked:
        what = f"asked for {asked}, it answered {_json(answered)}; Gemini CLI ends such a connection"
        return Check(name, "failed", what, "answer with the version of the client, or with an older one")
    return Check(name, "missing", f"it speaks {answered} instead, which clients accept")


# -- tools


def _check_tools(server: ServerProcess, command: Command, patience: Patience) -> Iterator[Check]:
    tools, cursor = list[Any](), None
    result = as_object(server.answer(_INITIALIZE)["result"])
    if "tools" not in as_object(result.get("capabilities")):
        yield Check("tools", "missing", "it declares no tools, so clients ask for none")
        return
    for page in range(_MOST_PAGES):
        id = f"{_LIST}{page}"
        server.send(request(0, "tools/list", **({"cursor": cursor} if cursor else {})) | {"id": id})
        known = len(server.answers)
        server.wait(partial(server.answer, id), patience.answer)
        listed = as_object(server.answer(id).get("result"))
        if not listed:
            yield _not_listed(server, known, id, patience)
            return
        tools += as_array(listed.get("tools"))
        cursor = listed.get("nextCursor")
        if not cursor:
            break
    info, instructions = as_object(result.get("serverInfo")), result.get("instructions")
    name = command.name or str(info.get("name") or "server")
    text = instructions if isinstance(instructions, str) else None
    yield from check_tools(ToolList(name=name, tools=tuple(tools), instructions=text))


def _not_listed(server: ServerProcess, known: int, id: str, patience: Patience) -> Check:
    fix = "answer with the id of the request as it came, of the same type"
    others = server.answers[known:]
    if others:
        return Check("ids", "failed", f"the request {id!r} was answered under the id {_json(others[0].get('id'))}", fix)
    if server.answer(id):
        return Check(
            "tools", "failed", f"tools/list is refused: {_json(server.answer(id).get('error'))}", "list the tools"
        )
    return Check("tools", "failed", f"tools/list is not answered within {patience.answer:g} s", "answer every request")


# -- malformed input


def _check_malformed(server: ServerProcess, patience: Patience) -> Iterator[Check]:
    server.send(request(_UNKNOWN, "longshore/unknown"))
    server.wait(lambda: server.answer(_UNKNOWN), patience.answer)
    found = as_object(server.answer(_UNKNOWN).get("error")).get("code")
    fix = f"answer it with the error {METHOD_NOT_FOUND}"
    yield _judge("unknown method", found, METHOD_NOT_FOUND, fix, bool(server.answer(_UNKNOWN)))
    server.send({"jsonrpc": "2.0", "id": _NO_METHOD})
    server.wait(lambda: server.answer(_NO_METHOD), _SILENCE)
    code = as_object(server.answer(_NO_METHOD).get("error")).get("code")
    yield _judge("request without method", code, INVALID_REQUEST, f"answer it with {INVALID_REQUEST}", code is not None)
    known = len(server.answers)
    server.send(b"{no json")
    server.wait(lambda: server.answers[known:] or server.has_ended, _SILENCE)
    codes = [as_object(each.get("error")).get("code") for each in server.answers[known:]]
    code = codes[0] if codes else None
    if server.has_ended:
        what = f"a line that is no JSON ends it: {server.how_it_ended()}"
        yield Check("malformed line", "failed", what, f"answer it with the error {PARSE_ERROR} and the id null")
    else:
        yield _judge(
            "malformed line", code, PARSE_ERROR, f"answer it with the error {PARSE_ERROR} and the id null", bool(codes)
        )


_SILENCE: Final = 1.0
"""Seconds for an answer to malformed input: most servers never answer it."""


def _judge(name: str, code: Any, wanted: int, fix: str, answered: bool) -> Check:
    if code == wanted:
        return Check(name, "ok", f"answered with {code}")
    what = f"answered with {_json(code)}, not {wanted}" if answered else "not answered, so a caller waits for ever"
    return Check(name, "missing", what, fix)


# -- stdout, the end, and what is left


def _check_stdout(server: ServerProcess) -> Check:
    if not server.stray:
        return Check("stdout", "ok", f"nothing but messages ({len(server.frames):,})")
    first = short(server.stray[0].decode("utf-8", "replace"), 80)
    what = f"{many(len(server.stray), 'line')} which no client can read, such as {first!r}: some end the connection"
    return Check("stdout", "failed", what, "write it to stderr: print(…, file=sys.stderr), or use logging")


def _check_end_of_input(server: ServerProcess, patience: Patience, *, ended: bool) -> Check:
    if ended:
        return Check("end of input", "ok", server.how_it_ended())
    what = f"it runs on {patience.exit:g} s after its input has ended, so a client that closes leaves it behind"
    return Check("end of input", "failed", what, "end when reading stdin gives nothing more")


def _check_left(server: ServerProcess) -> Check:
    left = server.left_behind()
    if not left:
        return Check("processes left", "ok", "none")
    shown = short(server.command_of(left[0]), 80)
    what = f"still there after its end: {shown}" + (f", and {len(left) - 1} more" if len(left) > 1 else "")
    return Check("processes left", "failed", what, "end what you start: terminate and wait for child processes at exit")


def _check_signal(
    command: Command, number: signal.Signals, version: str, patience: Patience, clock: Clock
) -> Iterator[Check]:
    with ServerProcess(command.argv, command.env, command.cwd, clock) as server:
        server.send(_initialize(version))
        result = as_object(server.wait(lambda: server.answer(_INITIALIZE), patience.start).get("result"))
        if not result:
            yield Check(
                f"MCP {version}", "failed", f"initialize with {version} is not answered", "answer every version"
            )
            return
        yield _check_version(version, result)
        server.signal(number)
        if server.wait(lambda: server.has_ended, patience.exit):
            yield Check(number.name, "ok", server.how_it_ended())
            return
        fix = f"end on {number.name}: leave its default handler, or end the loop in yours"
        runs_on = f"it runs on {patience.exit:g} s after {number.name}"
        if number is signal.SIGINT:  # clients that send it first send SIGTERM next
            yield Check(number.name, "missing", f"{runs_on}, so Claude Code waits for that long when it closes it", fix)
        else:
            yield Check(number.name, "failed", f"{runs_on}, so clients have to kill it", fix)


def _check_modern(command: Command, patience: Patience, clock: Clock) -> Check:
    name, older = f"MCP {MODERN[-1]}", "not spoken; clients fall back to initialize"
    with ServerProcess(command.argv, command.env, command.cwd, clock) as server:
        server.send(request(_MODERN, "server/discover", _meta=msgspec.Raw(OWN_ENVELOPE)))
        answer = server.wait(lambda: server.answer(_MODERN), patience.answer)
        spoken = as_array(as_object(as_object(answer).get("result")).get("supportedVersions"))
        return Check(name, "ok", "spoken" if MODERN[-1] in spoken else older)


def _json(value: Any) -> str:
    return short(msgspec.json.encode(value).decode(), _CHARACTERS)


def command_of_target(target: Any, name: str) -> Command | None:
    """The command of a target of `Client`; None for a URL."""
    if isinstance(target, str):
        return None
    if is_array(target):
        return Command(tuple(map(str, target)))
    entry = as_object(target)
    program = entry.get("command")
    if not isinstance(program, str) or not program:
        return None
    args = tuple(str(each) for each in as_array(entry.get("args")))
    env = {str(key): str(value) for key, value in as_object(entry.get("env")).items()}
    return Command((program, *args), env, entry.get("cwd"), name)
