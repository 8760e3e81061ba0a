"""Decodes frames into messages and encodes messages into frames.

`read` never raises for anything that a peer sends. A valid frame costs one typed pass; only an invalid one is decoded
again, with its members kept raw, so that a hostile 16 MB frame does not become a million objects just to be refused.
Invalid JSON is repaired where that is safe, and otherwise refused under the id found in it (`wire/salvage.py`).

The JSON parser recurses in C: on a thread with a small stack, 990 levels of nesting crash the process. So the depth of
a frame is checked before it is parsed (`too_deep`).
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from functools import cache
from itertools import accumulate
from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw, Struct

from longshore.wire.messages import (
    ABSENT,
    MAX_ID_CHARACTERS,
    Batch,
    Blank,
    ErrorReply,
    Fault,
    Id,
    Malformed,
    Message,
    Repaired,
    UnreadableResponse,
)

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603

BROKEN: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)
"""What decoding a frame can raise: bad JSON or shape, bad UTF-8, too many digits."""

_decode = msgspec.json.Decoder(Message).decode
_encode = msgspec.json.Encoder().encode
_MAX_ID_BYTES: Final = 6 * MAX_ID_CHARACTERS + 2  # each character escaped, and the quotes
_MAX_DIGITS: Final = MAX_ID_CHARACTERS
_BLANK: Final = Blank()
_PIECE_BYTES: Final = 1 << 16
# Line separators that JSON allows raw but that str.splitlines() of a careless peer would cut a frame at.
_SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))


class _Loose(Struct):
    jsonrpc: Raw = ABSENT
    method: Raw = ABSENT
    id: Raw = ABSENT
    params: Raw = ABSENT
    result: Raw = ABSENT
    error: Raw = ABSENT


_decode_loose = msgspec.json.Decoder(_Loose).decode
_decode_id = msgspec.json.Decoder(int | str).decode
_decode_text = msgspec.json.Decoder(str).decode
_decode_raw = msgspec.json.Decoder(Raw).decode


def read(frame: bytes, depth: int, batch: int) -> Message | Malformed | Batch | Blank:
    """Decode one frame. `depth` and `batch` limit nesting and the length of a batch."""
    message = _read_once(frame, depth, batch)
    if message.__class__ is Message or isinstance(message, (Batch, Blank)):
        return message
    return _read_repaired(frame, depth, batch) or message


def _read_once(frame: bytes, depth: int, batch: int) -> Message | Malformed | Batch | Blank:
    if too_deep(frame, depth):
        return refuse(f"nesting is deeper than {depth} levels", frame, frame)
    try:
        if not frame.isascii():
            _check_utf8(frame)  # the parser does not check members that it skips
        message = _decode(frame)
    except BROKEN as error:
        return _diagnose(frame, batch, error)
    if message.method == "" and (message.id is UNSET or (message.result == ABSENT) == (message.error == ABSENT)):
        return _diagnose(frame, batch, None)
    return message


def refuse(text: str, head: bytes, tail: bytes, code: int = PARSE_ERROR) -> Malformed | UnreadableResponse:
    """Refuse an unreadable frame, given its first and last bytes, under the id found in them.

    An unreadable response becomes an error response for the call that waits for it: a response is never answered.
    """
    from longshore.wire.salvage import outline

    members, is_response = outline(head, tail)
    id, _ = _read_id(Raw(members.get(b"id", b"")))
    if is_response and isinstance(id, (int, str)):
        return UnreadableResponse("2.0", id=id, error=Raw(_encode(Fault(code, f"the response can't be read: {text}"))))
    return Malformed(code, text, id, _string(Raw(members.get(b"method", b""))) or "")


def _read_repaired(frame: bytes, depth: int, batch: int) -> Message | Malformed | Batch | Blank | None:
    """Decode a frame without its byte order mark and halves of surrogate pairs. None: it has neither."""
    from longshore.wire.salvage import repair

    repaired = repair(frame)
    if repaired is frame:
        return None
    message = _read_once(repaired, depth, batch)
    if message.__class__ is not Message:
        return message
    surrogates = not frame.endswith(repaired)  # a byte order mark alone leaves the rest as it was
    return Repaired(**msgspec.structs.asdict(message), frame=repaired, surrogates=surrogates)


def is_utf8(frame: bytes | memoryview) -> bool:
    """Whether the bytes are UTF-8."""
    try:
        _check_utf8(frame)
    except UnicodeDecodeError:
        return False
    return True


def _check_utf8(frame: bytes | memoryview) -> None:
    """Raise UnicodeDecodeError unless the bytes are UTF-8.

    Long frames are decoded piece by piece: a str with one emoji takes four bytes for each of its characters.
    """
    if len(frame) <= _PIECE_BYTES:
        str(frame, "utf-8")
        return
    decoder = getincrementaldecoder("utf-8")()
    for start in range(0, len(frame), _PIECE_BYTES):
        begun = len(decoder.getstate()[0])
        end = start + _PIECE_BYTES
        try:
            decoder.decode(frame[start:end], end >= len(frame))
        except UnicodeDecodeError as problem:
            problem.start += start - begun
            raise


def encode(message: Any) -> bytes:
    """Encode a message as one frame without its newline, and without any other line separator."""
    frame = _encode(message)
    if not frame.isascii():
        for separator, escaped in _SEPARATORS:
            if separator in frame:
                frame = frame.replace(separator, escaped)
    return frame


class ErrorFrame(bytes):
    """An encoded error response that carries its code, for transports that map it to a status."""

    code: int
    cause: object = None
    """The exception that it was made from, if any."""


def error(id: Id | Raw | None, code: int, text: str, data: Any = UNSET, cause: object = None) -> ErrorFrame:
    """Encode an error response."""
    frame = ErrorFrame(encode(ErrorReply(id, Fault(code, text, data))))
    frame.code = code
    frame.cause = cause
    return frame


def _diagnose(frame: bytes, batch: int, error: Exception | None) -> Malformed | Message | Batch | Blank:
    if not frame.strip():
        return _BLANK
    if isinstance(error, UnicodeDecodeError):
        return refuse(f"not UTF-8 at byte {error.start}", frame, frame)
    try:
        loose = _decode_loose(frame)
    except msgspec.ValidationError:
        if frame.lstrip()[:1] == b"[":
            return _read_batch(frame, batch)
        try:
            _decode_raw(frame)
        except BROKEN as broken:
            return Malformed(PARSE_ERROR, _why_not_json(broken))
        return Malformed(INVALID_REQUEST, "a message is a JSON object")
    except BROKEN as broken:
        return refuse(_why_not_json(broken), frame, frame)
    return _find_fault(loose)


def _why_not_json(error: Exception) -> str:
    if isinstance(error, msgspec.DecodeError):
        return f"not JSON: {str(error).removeprefix('JSON is malformed: ').replace('Input data', 'input')}"
    return "not JSON"


def _find_fault(loose: _Loose) -> Malformed | Blank:
    id, id_fault = _read_id(loose.id)
    if loose.method == ABSENT and (loose.result != ABSENT or loose.error != ABSENT):
        return _BLANK  # a response is never answered, however malformed it is
    method = _string(loose.method)
    if _string(loose.jsonrpc) != "2.0":
        return Malformed(INVALID_REQUEST, 'jsonrpc must be "2.0"', id)
    if not method:
        return Malformed(INVALID_REQUEST, "method must be a non-empty string", id)
    if id_fault:
        return Malformed(INVALID_REQUEST, id_fault, id)
    return Malformed(INVALID_PARAMS, "params must be an object", id)


def _string(raw: Raw) -> str | None:
    try:
        return _decode_text(raw)
    except BROKEN:
        return None


def _read_id(raw: Raw) -> tuple[Id | Raw | None, str]:
    """The id to echo, and its fault. An integer too large for 64 bits is echoed as it was written."""
    text = bytes(raw)
    if not text:
        return None, ""
    too_long = f"id is longer than {MAX_ID_CHARACTERS} characters"
    if len(text) > _MAX_ID_BYTES:
        return None, too_long
    try:
        id = _decode_id(raw)
        if isinstance(id, str) and len(id) > MAX_ID_CHARACTERS:
            return None, too_long
    except BROKEN:
        return None, "id must be a string or an integer"
    if isinstance(id, int) and not -(2**63) <= id < 2**63:
        return (Raw(text) if len(text) <= _MAX_DIGITS else None), "id must fit in 64 bits"
    return id, ""


@cache
def _batch_decoder(items: int) -> Any:
    # A struct decoded from an array stops making objects after its last field, however long the array is.
    fields: list[Any] = [(f"m{n}", Raw, ABSENT) for n in range(items)]
    return msgspec.json.Decoder(msgspec.defstruct("BatchItems", fields, array_like=True)).decode


def _read_batch(frame: bytes, batch: int) -> Malformed | Batch:
    try:
        items = msgspec.structs.astuple(_batch_decoder(batch + 1)(frame))
    except BROKEN as broken:
        return Malformed(PARSE_ERROR, _why_not_json(broken))
    return Batch([item for item in items if item != ABSENT])


# -- how deeply a frame nests

_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_OTHERS: Final = bytes(set(range(256)) - set(_STEP) - set(b'"'))
_SLICE_BYTES: Final = 1 << 16
_COUNTED_BYTES: Final = 1 << 13
"""In longer frames, finding a few brackets is faster than counting them all: `count` reads 4 GB/s, `find` 80."""


def too_deep(frame: bytes, limit: int) -> bool:
    """Whether arrays and objects in the frame nest more than `limit` levels.

    Counting the opening brackets decides almost every frame at memory speed. Only a frame with more of them than the
    limit is scanned, and that without a Python loop over its bytes.
    """
    if len(frame) <= 2 * limit:
        return False  # too short to open and close that many; if it only opens them, it is not JSON
    if len(frame) <= _COUNTED_BYTES:
        return frame.count(b"[") + frame.count(b"{") > limit and _exceeds(frame, limit)
    return not is_shallow(frame, len(frame), limit) and _exceeds(frame, limit)


def is_shallow(data: bytes | bytearray, end: int, limit: int) -> bool:
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


def _exceeds(frame: bytes, limit: int) -> bool:
    """Scans slice by slice: split at once, a frame of short strings would become objects of fifty times its size."""
    level, inside, start = 0, 0, 0
    while start < len(frame):
        piece = frame[start : start + _SLICE_BYTES]
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece = frame[start : start + _SLICE_BYTES + 1]  # an escape is not cut in two
        start += len(piece)
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _OTHERS).split(b'"')
        brackets = b"".join(parts[inside::2])
        inside ^= (len(parts) - 1) % 2
        levels = list(accumulate(map(_STEP.__getitem__, brackets), initial=level))
        if max(levels) > limit:
            return True
        level = levels[-1]
    return False
