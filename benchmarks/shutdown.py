"""How long a server takes to end, with everything in flight that could hold it.

64 calls run, 48 over HTTP: coroutines, a `def` in time.sleep(60), and one whose child process ignores SIGTERM. On
stdio the promise is one second; over HTTP, where streams are open too, it is the grace and one second more. It holds
on any machine, so there is no peer to compare with. The exit code is looked at, and that no child survives.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.environment import HERE, python
from benchmarks.http_messages import Connection, Unexpected, encode, request, request_headers, session_headers
from benchmarks.http_server import Serving, changed_settings, on_longshore
from benchmarks.load import LoadFailed, Session

MODULE = "longshore_holding"
PROMISED_SECONDS = 1.0
GRACE_SECONDS = 0.2
ON_STDIO = {"LONGSHORE_SERVER_EOF_GRACE": "0"}
OVER_HTTP_SERVER = on_longshore("longshore", module=MODULE, LONGSHORE_HTTP_GRACE=f"{GRACE_SECONDS:g}")
GIVE_UP_SECONDS = 20.0
CALLS = ["sleep", "stubborn", *["wait"] * 62]
HTTP_CALLS = CALLS[:48]  # one caller leaves the other places to others
STREAMS = 16  # of each kind
ENDS: dict[str, tuple[int | None, int]] = {
    "SIGTERM": (signal.SIGTERM, 143),
    "SIGINT": (signal.SIGINT, 130),
    "end of input, no grace": (None, 0),
}
"""A signal, or the end of the input; and the exit code that belongs to it."""
OVER_HTTP = f"SIGTERM over HTTP, grace {GRACE_SECONDS:g} s"


def measure(session: Session) -> list[Claim]:
    claim = Claim("shutdown", f"Signal to end of process, {len(CALLS)} calls in flight", "s")
    claim.settings = changed_settings(ON_STDIO) | OVER_HTTP_SERVER.settings
    rounds = session.pick(full=5, quick=2)
    for name in ENDS:
        _collect(claim, name, rounds, partial(_time_on_stdio, *ENDS[name]))
    _collect(claim, OVER_HTTP, rounds, partial(_time_over_http, session))
    claim.targets = [Target(name, PROMISED_SECONDS) for name in ENDS]
    claim.targets.append(Target(OVER_HTTP, GRACE_SECONDS + PROMISED_SECONDS))
    return [claim]


def _collect(claim: Claim, name: str, rounds: int, time_one: Callable[[], float]) -> None:
    try:
        claim.add(name, [time_one() for _ in range(rounds)])
    except (LoadFailed, Unexpected, OSError, subprocess.TimeoutExpired) as failure:
        claim.errors.append(f"{name}: {failure}")


# -- on stdio


def _time_on_stdio(signum: int | None, code: int) -> float:
    """Seconds from the signal to the end of the process."""
    command = [str(python("longshore")), str(HERE / "servers" / f"{MODULE}.py")]
    environment = {**ON_STDIO, "LANG": "C.UTF-8"}
    server = subprocess.Popen(command, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, env=environment)
    try:
        children = _burden(server)
        began = time.monotonic()
        if signum is None:
            assert server.stdin is not None
            server.stdin.close()
        else:
            server.send_signal(signum)
        server.wait(GIVE_UP_SECONDS)
        seconds = time.monotonic() - began
    finally:
        server.kill()
        server.wait()
    _check_end(server.returncode, code, children)
    return seconds


def _burden(server: subprocess.Popen[bytes]) -> list[int]:
    """Have all calls run. Gives the children that ignore SIGTERM."""
    for n, name in enumerate(CALLS):
        _write(server, request(n, "tools/call", name=name))
    return _wait_for_calls(len(CALLS), lambda n: _ask_on_stdio(server, n))


def _ask_on_stdio(server: subprocess.Popen[bytes], n: int) -> Any:
    assert server.stdout is not None
    _write(server, request(n, "tools/call", name="state"))
    line = server.stdout.readline()
    if not line:
        raise LoadFailed("it ended before it was told to")
    return json.loads(line)["result"]


def _write(server: subprocess.Popen[bytes], message: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(encode(message) + b"\n")
    server.stdin.flush()


# -- over HTTP


def _time_over_http(session: Session) -> float:
    """The same calls, each on a connection of its own, and open streams of both eras."""
    with Serving(session, OVER_HTTP_SERVER) as serving, Connection(serving.port) as asking:
        held = [_open_stream(serving.port, n) for n in range(2 * STREAMS)]
        for n, name in enumerate(HTTP_CALLS):
            message = request(n, "tools/call", name=name)
            held.append(Connection(serving.port))
            held[-1].send("POST", request_headers(message), encode(message))
        children = _wait_for_calls(len(HTTP_CALLS), lambda n: asking.ask(n, "tools/call", name="state"))
        seconds, code = serving.end(signal.SIGTERM, GIVE_UP_SECONDS)
        for each in held:
            each.close()
    _check_end(code, 143, children)
    return seconds


def _open_stream(port: int, n: int) -> Connection:
    """A session's stream, or one that listens."""
    connection = Connection(port)
    if n % 2:
        headers = session_headers(connection.open_session())
        connection.begin("GET", {**headers, "Accept": "text/event-stream"})
    else:
        message = request(n, "subscriptions/listen", notifications={"toolsListChanged": True})
        connection.begin("POST", request_headers(message), encode(message))
    return connection


# -- either way


def _wait_for_calls(count: int, ask: Callable[[int], Any]) -> list[int]:
    """Until all calls run and the child ignores SIGTERM."""
    deadline = time.monotonic() + GIVE_UP_SECONDS
    for n in range(1000, 1_000_000):
        state = ask(n)["structuredContent"]
        if state["running"] == count and state["children"]:
            return list(state["children"])
        if time.monotonic() > deadline:
            break
        time.sleep(0.005)
    raise LoadFailed(f"{state['running']} calls run and {len(state['children'])} children ignore SIGTERM, not all")


def _check_end(code: int, wanted: int, children: list[int]) -> None:
    if code != wanted:
        raise LoadFailed(f"it ended with {code} in place of {wanted}")
    left = [pid for pid in children if Path(f"/proc/{pid}").exists()]
    if left:
        raise LoadFailed(f"its child processes {left} are still there")


if __name__ == "__main__":
    sys.exit(main([measure]))
