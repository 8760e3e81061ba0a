"""How deeply a frame nests, told without a recursive parser.

The JSON parser recurses in C, and on a thread with a small stack 990 levels end the process. So depth is settled
before it sees a frame. Counting the opening brackets settles almost every frame at memory speed; only one with more
of them than the limit is looked at again, and that too without a Python loop over its bytes.
"""

from __future__ import annotations

from itertools import accumulate

_STEP = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_OTHERS = bytes(set(range(256)) - set(_STEP) - set(b'"'))
_SLICE = 1 << 16
_COUNTED_BYTES = 1 << 13
"""Beyond this, finding the first few brackets is faster than counting them all: `count` reads 4 GB/s, `find` 80."""


def too_deep(frame: bytes, limit: int) -> bool:
    """Whether arrays and objects in the frame nest more than `limit` levels."""
    if len(frame) <= 2 * limit:
        return False  # too short to open and close that many; if it only opens them, it is not JSON
    if len(frame) <= _COUNTED_BYTES:
        return frame.count(b"[") + frame.count(b"{") > limit and _deepest_over(frame, limit)
    return not shallow(frame, len(frame), limit) and _deepest_over(frame, limit)


def shallow(data: bytes | bytearray, end: int, limit: int) -> bool:
    """Whether the first `end` bytes hold too few opening brackets, even within strings, to nest too deep."""
    found = 0
    for bracket in (b"{", b"["):
        at = data.find(bracket, 0, end)
        while at >= 0:
            found += 1
            if found > limit:
                return False
            at = data.find(bracket, at + 1, end)
    return True


def _deepest_over(frame: bytes, limit: int) -> bool:
    """Slice by slice: a frame of short strings would otherwise become millions of objects, fifty times its own size."""
    level, inside, start = 0, 0, 0
    while start < len(frame):
        piece = frame[start : start + _SLICE]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = frame[start : start + _SLICE + 1]  # an escape is not cut in two
        start += len(piece)
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _OTHERS).split(b'"')
        brackets = b"".join(parts[inside::2])
        inside ^= (len(parts) - 1) % 2
        levels = list(accumulate(map(_STEP.__getitem__, brackets), initial=level))
        if max(levels) > limit:
            return True
        level = levels[-1]
    return False
