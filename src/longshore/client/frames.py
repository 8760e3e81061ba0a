"""What a session reads of frames itself, beside their place in the protocol: errors, progress, and what is broken."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Raw, Struct

from longshore.wire.messages import ABSENT, Id


class Fault(Struct):
    code: int
    message: str = ""
    data: Any = None


class Advance(Struct):
    progressToken: Id  # noqa: N815 - as it is spelled there
    progress: float
    total: float | None = None
    message: str | None = None


read_fault = msgspec.json.Decoder(Fault).decode
read_progress = msgspec.json.Decoder(Advance).decode


class Broken(Struct):
    id: Id | None = None
    method: Raw = ABSENT
    error: Raw = ABSENT


NULL = Raw(b"null")
read_broken = msgspec.json.Decoder(Broken).decode


def shown(frame: bytes) -> str:
    return bytes(frame[:120]).decode("utf-8", "replace")
