"""Sessions that clients open and never come back to: what they cost in memory, and whether it is given back.

Each is a whole handshake of the handshake era, and none is deleted: the idle limit has to end them. Resident memory is
read before any request, after a warm-up, with all sessions open, and when they have expired.

The base is the figure after a warm-up, not the first: the first requests import modules, fill caches and give malloc
its first pages, which no session ever gives back or should. So a few sessions, a twentieth of the number, are opened
and expire, and what the many that follow leave behind is compared with that. The growth since the very start is printed
too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.claim import Claim, Target
from benchmarks.command import main
from benchmarks.http_messages import Connection, Unexpected, call, session_headers
from benchmarks.http_server import HttpServer, Serving, on_longshore, on_uvicorn
from benchmarks.load import LoadFailed, Session, progress

WARMUP = 20  # one session for the warm-up for so many later
SETTLE_SECONDS = 12  # after the idle limit: the slowest sweep comes every five seconds
LIMIT = 1.10
FIRST, BASE, PEAK, AFTER = "before any request", "base, after a warm-up", "all open", "all expired"


@dataclass(frozen=True)
class Plan:
    """How many sessions a server gets and after how long it should forget them.

    The idle limit is longer than opening them takes, or the first would be gone before the last is there.
    """

    server: HttpServer
    count: int
    seconds: int


def _plans(session: Session) -> Iterator[Plan]:
    count, seconds = session.pick(full=10_000, quick=1_000), session.pick(full=20, quick=6)
    # One caller may not make so many handshakes at once.
    ours = {"LONGSHORE_HTTP_SESSION_TTL": str(seconds), "LONGSHORE_LIMITS_HANDSHAKES": str(2 * count)}
    yield Plan(on_longshore("longshore", **ours), count, seconds)
    # A session costs it milliseconds and twenty times our memory, so it gets fewer; what one costs can be compared.
    count, seconds = session.pick(full=2_000, quick=500), session.pick(full=20, quick=8)
    yield Plan(on_uvicorn("mcp", "mcp", "mcp_http", SESSION_TTL=str(seconds)), count, seconds)


def measure(session: Session) -> list[Claim]:
    claims = [_measure(session, plan) for plan in _plans(session)]
    progress("")
    return claims


def _measure(session: Session, plan: Plan) -> Claim:
    name = plan.server.name
    claim = Claim(
        f"sessions_{name}",
        f"{plan.count:,} sessions opened and dropped, {name}, idle limit {plan.seconds} s",
        "MB",
        base=BASE,
        targets=[Target(AFTER, LIMIT, against=BASE)] if name == "longshore" else [],
        settings=plan.server.settings,
    )
    try:
        with Serving(session, plan.server) as serving:
            _follow(claim, plan, serving)
    except (LoadFailed, Unexpected, OSError) as failure:
        claim.errors.append(f"{name}: {failure}")
    return claim


def _follow(claim: Claim, plan: Plan, serving: Serving) -> None:
    name = plan.server.name
    first = serving.memory()
    claim.add(FIRST, [first])
    progress(f"sessions  {name}: warm-up")
    _open(serving, plan.count // WARMUP)
    base = _expired(serving, plan.seconds)
    claim.add(BASE, [base])
    progress(f"sessions  {name}: {plan.count:,}")
    began = time.monotonic()
    kept = _open(serving, plan.count)
    took = time.monotonic() - began
    peak = serving.memory()
    claim.add(PEAK, [peak])
    if took > plan.seconds:
        claim.errors.append(f"{name}: opening took {took:.0f} s, so the first sessions had expired before the last")
    _check(serving, kept[0], alive=True)
    progress(f"sessions  {name}: until they expire")
    after = _expired(serving, plan.seconds)
    claim.add(AFTER, [after])
    _check(serving, kept[0], alive=False)
    cost = (peak - base) * 1e3 / plan.count
    claim.notes.append(
        f"An open session costs about {cost:.1f} KB; they were opened at {plan.count / took:,.0f} a second."
    )
    claim.notes.append(f"What is left after them is {after / first:.2f} × the figure before any request.")


def _open(serving: Serving, count: int) -> list[str]:
    """Open sessions one after another on one connection, which closes then."""
    with Connection(serving.port) as connection:
        return [connection.open_session() for _ in range(count)]


def _expired(serving: Serving, seconds: int) -> float:
    """Memory when the idle limit and the sweeps after it have passed, and nobody has asked for anything."""
    time.sleep(seconds + SETTLE_SECONDS)
    return serving.memory()


def _check(serving: Serving, kept: str, alive: bool) -> None:
    """Whether the first session is there as long as it should be, and gone when it should be."""
    with Connection(serving.port) as connection:
        answer = connection.post(call(1, modern=False), session_headers(kept))
    if (answer.status == 200) is not alive or (not alive and answer.status != 404):
        state = "open" if alive else "expired"
        raise Unexpected(
            f"a call in a session that should be {state} was answered {answer.status} {answer.body[:200]!r}"
        )


if __name__ == "__main__":
    sys.exit(main([measure]))
