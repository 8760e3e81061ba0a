"""Reading files for a model: text by lines or bytes, pictures and sound as they are, several files in one answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct
from msgspec.json import encode

from longshore.errors import ToolError, WouldBlock
from longshore.protocol.content import Audio, Contents, Image, Text
from longshore.registry.token_budget import CHARACTERS_PER_TOKEN, LEAST_TOKENS, MOST_TOKENS, count_tokens, cut_line
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError, explain
from longshore.sandbox.file_type import FileType, TextFormat, detect_file_type, printable
from longshore.sandbox.roots import Roots
from longshore.toolsets.filesystem.file_info import HASH_CHARACTERS, hash_bytes, hash_file, read_whole
from longshore.toolsets.filesystem.shown_paths import show_path
from longshore.toolsets.filesystem.text_file import CHEAP_BYTES, TextFile, whole_text

CACHED_BYTES: Final = 32_768
"""The most that is read on the serving thread. More would hardly fit the usual budget, and takes milliseconds."""
MEDIA_BYTES: Final = 3_750_000
"""Of a picture or sound. In base64 these are 5 MB, more than models take."""
MEDIA_BYTES_IN_ALL: Final = 3 * MEDIA_BYTES
"""Of one answer. In base64 these are 15 MB, and a result has at most 16 MiB."""
MOST_PATHS: Final = 20
"""Files of one answer. Each needs a share of its budget."""
PICTURES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The types that models can see."""

_ALL: Final = (None,) * 5
_REHEARSALS: Final = 10
_HASH_TOKENS: Final = 10
"""Of the line with the hash."""

Block = Text | Image | Audio


class ReadQuery(Struct, frozen=True, kw_only=True):
    """The part of a file to read, and how to show it."""

    offset: int | None = None
    limit: int | None = None
    tail: int | None = None
    byte_offset: int | None = None
    byte_limit: int | None = None
    line_numbers: bool = False
    max_tokens: int
    max_file_size: int

    @property
    def is_part(self) -> bool:
        """Whether a part of a file is asked for, or numbers of lines."""
        parts = (self.offset, self.limit, self.tail, self.byte_offset, self.byte_limit)
        return self.line_numbers or parts != _ALL

    def check(self) -> None:
        """Raise FileError if several parts are asked for at once."""
        parts = {
            "offset and limit": self.offset is not None or self.limit is not None,
            "tail": self.tail is not None,
            "byte_offset and byte_limit": self.byte_offset is not None or self.byte_limit is not None,
        }
        if sum(parts.values()) > 1:
            asked = [name for name, is_asked in parts.items() if is_asked]
            raise FileError("", "invalid", f"{', '.join(asked)} mean different parts of a file", "give one of these")


def read_files(
    files: ConfinedFiles, paths: Sequence[str], query: ReadQuery, check: Callable[[], object]
) -> list[Block]:
    """The content of one or several files. Of several, one that can't be read is an error in its place."""
    query.check()
    if len(paths) == 1:
        return [read_file(files, paths[0], query, query.max_tokens, check)]
    if not paths:
        raise FileError("", "invalid", "no path is given", "give path, or several paths")
    most = max(1, min(MOST_PATHS, query.max_tokens // (2 * LEAST_TOKENS)))
    if len(paths) > most:
        raise FileError("", "invalid", f"{len(paths)} paths", f"give at most {most} in one call")
    blocks, left, media = list[Block](), query.max_tokens, 0
    for number, path in enumerate(paths):
        heading = f"== {show_path(path)} ==\n"
        share = left // (len(paths) - number) - count_tokens(heading) - 1
        try:
            block = read_file(files, path, query, share, check)
            media += _count_media(block, media, path)
        except ToolError as problem:
            block = Text(cut_line(str(problem), CHARACTERS_PER_TOKEN * share))
        text = heading + (block.text if isinstance(block, Text) else block.mime_type)
        left -= count_tokens(text) + 1
        _add_text(blocks, text)
        if not isinstance(block, Text):
            blocks.append(block)
    return blocks


def _count_media(block: Block, others: int, path: str) -> int:
    """The bytes of a picture or sound. Raises FileError if they don't fit an answer with those of others."""
    size = 0 if isinstance(block, Text) else len(block.data)
    if size + others > MEDIA_BYTES_IN_ALL:
        what = f" for this answer: it has {size:,} bytes, and all pictures and sounds at most {MEDIA_BYTES_IN_ALL:,}"
        raise FileError(path, "too_large", what, "read it in another call")
    return size


def _add_text(blocks: list[Block], text: str) -> None:
    """Add a text below the last one, if that is a text."""
    last = blocks[-1] if blocks else None
    if isinstance(last, Text):
        last.text += f"\n{text}"
    else:
        blocks.append(Text(text))


def read_file(files: ConfinedFiles, path: str, query: ReadQuery, max_tokens: int, check: Callable[[], object]) -> Block:
    """The content of a file, or of the part that is asked for."""
    with explain(path), files.open_file(path) as file:
        return _read_content(file.fileno(), query, max_tokens, check)


def read_cached_file(files: ConfinedFiles, path: str, query: ReadQuery) -> Block:
    """Return what `read_file` does, without waiting. Raises WouldBlock unless it is a short file that is in memory."""
    content = files.read_cached(path, min(CACHED_BYTES, query.max_file_size))
    if not query.is_part and query.max_tokens >= LEAST_TOKENS + _HASH_TOKENS:
        text = whole_text(content, f"[hash {hash_bytes(content)[:HASH_CHARACTERS]}]\n", query.max_tokens)
        if text is not None:
            return Text(text)
    try:
        query.check()
        return _read_content(content, query, query.max_tokens, lambda: None)
    except FileError:
        raise WouldBlock from None  # `read_files` says what is wrong


def rehearse() -> None:
    """Read a file of this package as `read_cached_file` does, so that the first read of a session is as fast as others.

    A first SHA-256 initialises OpenSSL, and CPython optimises code that has run a few times: 0.3 ms in all.
    """
    path = os.path.realpath(__file__)
    files = ConfinedFiles(Roots((os.path.dirname(path),)))
    query = ReadQuery(max_tokens=MOST_TOKENS, max_file_size=CACHED_BYTES)
    with suppress(WouldBlock):
        for _ in range(_REHEARSALS):
            read_cached_file(files, path, query)


def _read_content(content: int | bytes, query: ReadQuery, max_tokens: int, check: Callable[[], object]) -> Block:
    """The part of a file that is asked for, given its descriptor or all of its bytes."""
    file_type = detect_file_type(content)
    if file_type.text is None:
        return _read_media(content, file_type)
    return Text(_read_text(TextFile(content, file_type, check), content, query, max_tokens))


def read_contents(files: ConfinedFiles, path: str, max_file_size: int) -> Contents:
    """A whole file as the contents of the resource that was asked for. Raises FileError."""
    with explain(path), files.open_file(path, max_file_size) as file:
        file_type = detect_file_type(file.fileno())
        data = read_whole(file.fileno(), max_file_size)
    if file_type.text is None:
        return Contents("", blob=data, mime_type=file_type.mime)
    return Contents("", text=_decode(data, file_type.text), mime_type=file_type.mime)


def read_whole_file(files: ConfinedFiles, path: str, max_file_size: int, most_json: int) -> Block:
    """All of a file, for a program. Raises FileError if its text takes more than `most_json` bytes in a result."""
    with explain(path), files.open_file(path, max_file_size) as file:
        file_type = detect_file_type(file.fileno())
        if file_type.text is None:
            return _read_media(file.fileno(), file_type)
        text = _decode(read_whole(file.fileno(), max_file_size), file_type.text)
    size = len(encode(text))
    if size > most_json:
        what = f" for one result: {size:,} bytes as JSON, and at most {most_json:,} fit (limits.frame_bytes)"
        raise FileError(path, "too_large", what, "read it in parts with fs_read", size=size, most=most_json)
    return Text(text)


def _decode(data: bytes, text: TextFormat) -> str:
    return printable(text.decode(data[len(text.bom) :]))


def _read_media(content: int | bytes, file_type: FileType) -> Image | Audio:
    """A picture or sound. Raises FileError for another binary file, and for one that is too large."""
    size = len(content) if isinstance(content, bytes) else os.fstat(content).st_size
    mime = file_type.mime
    if mime in PICTURES or mime.startswith("audio/"):
        if size > MEDIA_BYTES:
            what = f": {mime} of {size:,} bytes, at most {MEDIA_BYTES:,} are shown"
            raise FileError("", "too_large", what, "make a smaller one of it", size=size, most=MEDIA_BYTES)
        data = content if isinstance(content, bytes) else read_whole(content, MEDIA_BYTES)
        return Image(data, mime) if mime in PICTURES else Audio(data, mime)
    raise FileError("", "binary", f" {mime} ({size:,} bytes)", mime=mime, size=size)


def _read_text(file: TextFile, content: int | bytes, query: ReadQuery, max_tokens: int) -> str:
    heading = ""
    if file.size <= min(query.max_file_size, CHEAP_BYTES) and max_tokens >= LEAST_TOKENS + _HASH_TOKENS:
        # Taken first: if somebody writes meanwhile, it is of no content that this hash lets a client replace.
        hashed = hash_bytes(content) if isinstance(content, bytes) else hash_file(content, query.max_file_size)
        heading = f"[hash {hashed[:HASH_CHARACTERS]}{'' if file.size else ', empty'}]\n"
    room = max_tokens - count_tokens(heading)
    if query.byte_offset is not None or query.byte_limit is not None:
        page = file.read_bytes(query.byte_offset or 0, query.byte_limit, max_tokens=room)
    elif query.tail is not None:
        page = file.read_tail(query.tail, max_tokens=room, numbered=query.line_numbers)
    else:
        page = file.read_lines(
            1 if query.offset is None else query.offset, query.limit, max_tokens=room, numbered=query.line_numbers
        )
    return heading + page.text
