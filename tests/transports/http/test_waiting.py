"""Calls that take longer than a moment, but not so long that a stream is called for."""

from __future__ import annotations

from typing import Any

import pytest

from longshore import Limits
from posting import Session, call, modern, post_modern
from serving import Exchange, Served

from .fixture import Rig, rigged

PATIENT = Limits(stream_after_seconds=600.0)


def post(server: Served, session: Session | None, id: int) -> Exchange:
    message = call("hold", id=id)
    return post_modern(server, modern(message)) if session is None else session.post(message)


def waits(rig: Rig, id: int) -> Any:
    """Whether a call has waited long enough for its client to be watched."""
    return any(each.id == id and each.link.slow for each in rig.executor.live)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_call_is_no_stream_before_its_time(era: str) -> None:
    with rigged(PATIENT) as (rig, server):
        session = Session(server).open() if era == "legacy" else None
        held: list[Exchange] = []
        for n in range(4):  # each begins after the one before was looked at, so that this one is looked at again
            held.append(post(server, session, n))
            server.until(lambda n=n: waits(rig, n), "the look at the call")
        server.settle()
        assert [each.drain().status for each in held] == [0] * 4
        server.look(rig.gate.set)
        assert [each.finish().type for each in held] == ["application/json"] * 4
