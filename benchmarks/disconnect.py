"""How soon a call knows that its client has gone.

Modern calls, each on a connection of its own, are dropped one after the other. The tool notes when it was cancelled and
the generator when it hung up, by the same clock (CLOCK_MONOTONIC). The promise is a tenth of a second for the worst of
them; a peer would have to be told what to note, so there is none.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.http_messages import Connection, Unexpected, encode, request, request_headers
from benchmarks.http_server import Serving, on_longshore
from benchmarks.load import LoadFailed, Session

CALLS = 50
PROMISED_MS = 100
GIVE_UP_SECONDS = 20.0
MEDIAN, WORST = "median", "worst"


def measure(session: Session) -> list[Claim]:
    claim = Claim("disconnect", f"A client drops its call: until the tool is cancelled, {CALLS} calls", "ms")
    claim.targets = [Target(WORST, PROMISED_MS)]
    server = on_longshore("longshore", module="longshore_holding")
    try:
        with Serving(session, server) as serving, Connection(serving.port) as asking:
            times = sorted(_time_one(serving, asking, f"call {n}") for n in range(CALLS))
    except (LoadFailed, Unexpected, OSError) as failure:
        claim.errors.append(str(failure))
    else:
        claim.add(MEDIAN, times)
        claim.add(WORST, times[-1:])
    return [claim]


def _time_one(serving: Serving, asking: Connection, name: str) -> float:
    """Milliseconds from the drop of a call that runs to its cancellation."""
    message = request(1, "tools/call", name="wait", arguments={"name": name})
    with Connection(serving.port) as dropped:
        dropped.send("POST", request_headers(message), encode(message))
        _wait_for(asking, lambda state: state["running"] == 1, "the call to run")
        began = time.monotonic()
    state = _wait_for(asking, lambda state: name in state["cancelled"], "the call to be cancelled")
    return (float(state["cancelled"][name]) - began) * 1e3


def _wait_for(asking: Connection, condition: Callable[[Any], bool], what: str) -> Any:
    deadline = time.monotonic() + GIVE_UP_SECONDS
    while time.monotonic() < deadline:
        state = asking.ask(1, "tools/call", name="state")["structuredContent"]
        if condition(state):
            return state
        time.sleep(0.002)
    raise LoadFailed(f"{GIVE_UP_SECONDS:g} s were not enough for {what}")


if __name__ == "__main__":
    sys.exit(main([measure]))
