"""Repairs frames that are not JSON, or finds the id of the request to answer.

A client matches an error to its request by the id alone. An error with `id: null` leaves the client waiting, so null
is the last resort. Two faults that real clients produce are repaired: a byte order mark, and half of a surrogate pair,
which JavaScript writes where it cuts a text inside an emoji. For any other fault the id and the method are searched
where clients write them: before the first nested member (`jsonrpc`, `id`, `method`, then `params`) or after the last
one (`method`, `params`, then `jsonrpc`, `id`, as the TypeScript SDK does), not between two nested members.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from longshore.wire.framing import END_BYTES

MOST_HALVES: Final = 10_000
"""Surrogates replaced in one frame. A text that was cut has one or two; replacing a million would block the server."""
_BOM: Final = b"\xef\xbb\xbf"
_REPLACEMENT: Final = rb"\ufffd"
# A run of backslashes is read from its start, two by two: what follows an escaped backslash is no escape.
_SURROGATE: Final = re.compile(
    rb"(?<!\\)(?:\\\\)*+\\u[dD]"
    rb"(?:[89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|([89a-fA-F][0-9a-fA-F]{2}))"  # half of one
)
_SCALAR: Final = rb'"(?:[^"\\]|\\.)*+"|-?[0-9][0-9.eE+-]*+|true|false|null'
_MEMBER: Final = re.compile(rb'[\s,{]*+"([A-Za-z_]{1,16})"\s*+:\s*+(' + _SCALAR + rb")\s*+(?=[,}])", re.DOTALL)
_NESTED: Final = re.compile(rb'[\s,{]*+"(result|error)"\s*+:')
_TRAILING: Final = re.compile(rb",\s*+" + _MEMBER.pattern.removeprefix(rb"[\s,{]*+"), re.DOTALL)


class Outline(NamedTuple):
    """The scalar members at the ends of a frame, as they were written."""

    members: dict[bytes, bytes]
    is_response: bool


def repair(frame: bytes) -> bytes:
    """The frame without its byte order mark and with U+FFFD for lone surrogates; the same object if it has neither."""
    if frame.startswith(_BOM):
        frame = frame[len(_BOM) :]
    if rb"\ud" not in frame and rb"\uD" not in frame:
        return frame
    repaired: bytearray | None = None
    count = 0
    for found in _SURROGATE.finditer(frame):
        if found[1]:
            count += 1
            if count > MOST_HALVES:
                return frame
            repaired = repaired or bytearray(frame)
            repaired[found.end() - len(_REPLACEMENT) : found.end()] = _REPLACEMENT
    return frame if repaired is None else bytes(repaired)


def outline(head: bytes, tail: bytes) -> Outline:
    """Find the scalar members in the first and the last bytes of a frame."""
    members: dict[bytes, bytes] = {}
    head, position = head[:END_BYTES], 0
    if not head.lstrip().startswith(b"{"):
        return Outline(members, False)
    while (member := _MEMBER.match(head, position)) is not None:
        members[member[1]] = member[2]
        position = member.end()
    nested = _NESTED.match(head, position)
    members = _trailing(tail[-END_BYTES:]) | members  # what a cut-off frame ends with may be within its params
    has_result = nested is not None or b"result" in members or b"error" in members
    return Outline(members, has_result and b"method" not in members)


def _trailing(tail: bytes) -> dict[bytes, bytes]:
    """The members between the last nested one and the brace that ends the frame."""
    tail = tail.rstrip()
    members: dict[bytes, bytes] = {}
    end = -1
    for member in _TRAILING.finditer(tail):
        if member.start() != end:
            members = {}
        members[member[1]] = member[2]
        end = member.end()
    return members if end == len(tail) - 1 and tail.endswith(b"}") else {}
