"""Who sent a modern request, remembered from one to the next."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from longshore.errors import ProtocolError
from longshore.protocol.peer import CACHED_BYTES, PREFIX, Envelope
from longshore.protocol.session import Session

_read = msgspec.json.Decoder(Envelope).decode


def _envelope(*, version: str = "2026-07-28", **more: Any) -> Envelope:
    client = more.pop("client", "one")
    return _read(
        msgspec.json.encode(
            {
                PREFIX + "protocolVersion": version,
                PREFIX + "clientCapabilities": more.pop("capabilities", {}),
                PREFIX + "clientInfo": {"name": client, "version": "1"},
                **more,
            }
        )
    )


def test_an_equal_envelope_gives_the_cached_peer() -> None:
    session: Session[Any] = Session()
    first = session.sender(_envelope())
    assert first.client["name"] == "one"
    assert session.sender(_envelope()) is first


def test_whatever_differs_counts() -> None:
    session: Session[Any] = Session()
    first = session.sender(_envelope())
    assert session.sender(_envelope(client="two")).client["name"] == "two"
    assert session.sender(_envelope(capabilities={"sampling": {}})).can("sampling")
    assert session.sender(_envelope(**{PREFIX + "logLevel": "error"})).log_level is not None
    assert session.sender(_envelope()) == first


def test_a_bad_envelope_is_refused_also_after_a_good_one() -> None:
    session: Session[Any] = Session()
    first = session.sender(_envelope())
    with pytest.raises(ProtocolError):
        session.sender(_envelope(version="2099-01-01"))
    with pytest.raises(ProtocolError):
        session.sender(Envelope())
    assert session.sender(_envelope()) is first


def test_an_envelope_with_a_progress_token_does_not_replace_the_cached_one() -> None:
    session: Session[Any] = Session()
    first = session.sender(_envelope())
    assert session.sender(_envelope(progressToken=7)) == first
    assert session.sender(_envelope()) is first


def test_a_cached_envelope_does_not_reference_its_frame() -> None:
    memory = bytearray(
        msgspec.json.encode({PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}})
    )
    session: Session[Any] = Session()
    first = session.sender(_read(memoryview(memory)))
    again = bytes(memory)
    memory[:] = b"x" * len(memory)  # as a transport does that reads the next frame into the same place
    assert session.sender(_read(again)) is first


@pytest.mark.parametrize("over", [-1, 0, 1])
def test_large_envelopes_are_not_cached(over: int) -> None:
    session: Session[Any] = Session()
    bare = len(b'{}{"name":"","version":"1"}')
    name = "x" * (CACHED_BYTES + over - bare)
    first = session.sender(_envelope(client=name))
    assert (session.sender(_envelope(client=name)) is first) == (over <= 0)
