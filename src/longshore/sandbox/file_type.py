"""The kind of a file, from its first bytes: the MIME type, and for text the encoding and line ends."""

from __future__ import annotations

import codecs
import os
import re
from typing import Final, Literal

from msgspec import Struct

SAMPLE_BYTES: Final = 65_536
"""The part of a file that decides. Enough to meet a character that is not ASCII in most texts, and read in 20 µs."""
_MOST_CONTROLS: Final = 0.1
"""The share of control characters that a text has at most. Logs with colours have some."""

Encoding = Literal["utf-8", "utf-16-le", "utf-16-be", "cp1252"]
Newline = Literal["LF", "CRLF", "CR", "mixed", "none"]

_BOMS: Final[tuple[tuple[bytes, Encoding], ...]] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS: Final = bytes({*range(32), 127} - set(b"\t\n\r\f\b\x1b"))
_PLAIN: Final = bytes({*range(32, 127)} | set(b"\t\n"))
_LONE_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_MAGIC: Final = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (0, b"BM", "image/bmp"),
    (0, b"II*\0", "image/tiff"),
    (0, b"MM\0*", "image/tiff"),
    (0, b"\0\0\1\0", "image/x-icon"),
    (4, b"ftypavif", "image/avif"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftyp", "video/mp4"),
    (8, b"WAVE", "audio/wav"),
    (8, b"AVI ", "video/x-msvideo"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"\xff\xf2", "audio/mpeg"),
    (0, b"\xff\xf1", "audio/aac"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"\x1aE\xdf\xa3", "video/webm"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\3\4", "application/zip"),
    (0, b"PK\5\6", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\0", "application/x-xz"),
    (0, b"(\xb5/\xfd", "application/zstd"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (257, b"ustar", "application/x-tar"),
    (0, b"\x7fELF", "application/x-elf"),
    (0, b"MZ", "application/vnd.microsoft.portable-executable"),
    (0, b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (0, b"\xca\xfe\xba\xbe", "application/java-vm"),
    (0, b"\0asm", "application/wasm"),
    (0, b"SQLite format 3\0", "application/vnd.sqlite3"),
    (0, b"wOF2", "font/woff2"),
    (0, b"wOFF", "font/woff"),
)
_SURE: Final = (b"%PDF-",)
"""Signatures in ASCII that no text begins with. Others are believed only in a file that is binary anyway."""


class TextFormat(Struct, frozen=True):
    """How the characters of a text file are stored."""

    encoding: Encoding
    newline: Newline
    """Of the sample. Lines end with a line feed, after a carriage return or not."""
    bom: bytes = b""

    @property
    def name(self) -> str:
        """The encoding in words."""
        if self.encoding == "cp1252":
            return "Windows-1252"
        return self.encoding.upper() + (" with BOM" if self.encoding == "utf-8" and self.bom else "")

    @property
    def width(self) -> int:
        """The bytes of the smallest character."""
        return 2 if self.encoding.startswith("utf-16") else 1

    def decode(self, data: bytes) -> str:
        """The text, with lone surrogates for bytes invalid in this encoding: `encode` restores every byte.

        Half a character at the end of UTF-16 is left out.
        """
        if self.width == 1:
            return data.decode(self.encoding, "surrogateescape")
        return data[: len(data) // 2 * 2].decode(self.encoding, "surrogatepass")

    def encode(self, text: str) -> bytes:
        """The bytes of a text from `decode`. Raises UnicodeEncodeError."""
        return text.encode(self.encoding, "surrogateescape" if self.width == 1 else "surrogatepass")


class FileType(Struct, frozen=True):
    """The kind of a file."""

    mime: str
    text: TextFormat | None
    """None for a binary file."""


def printable(text: str) -> str:
    """A decoded text in valid Unicode: a replacement character for each lone surrogate."""
    return text if text.isascii() else _LONE_SURROGATE.sub("\ufffd", text)


def detect_file_type(content: int | bytes) -> FileType:
    """The kind of a file, given its descriptor or all of its bytes."""
    return detect_type(content[:SAMPLE_BYTES] if isinstance(content, bytes) else os.pread(content, SAMPLE_BYTES, 0))


def detect_type(sample: bytes) -> FileType:
    """The kind of a file that begins with these bytes."""
    encoding, bom = _marked_encoding(sample)
    if encoding is None:
        signature, mime = _signature(sample)
        if signature in _SURE or not signature.isascii() or _is_binary(sample):
            return FileType(mime or "application/octet-stream", None)
        encoding = _unmarked_encoding(sample)
    text = TextFormat(encoding, "none", bom)
    decoded = text.decode(sample[len(bom) :])
    if text.width == 2 and _is_binary(decoded.encode("utf-8", "replace")):
        return FileType("application/octet-stream", None)
    return FileType("text/plain", TextFormat(encoding, newline_style(decoded), bom))


def plain_text(content: bytes) -> str | None:
    """The text of a whole file, if it is of printable ASCII, tabs and line feeds only, and not empty."""
    is_plain = content and not content.translate(None, _PLAIN) and not content.startswith(_SURE)
    return content.decode() if is_plain else None


def newline_style(text: str) -> Newline:
    """The style of line ends in a text."""
    crlf = text.count("\r\n")
    alone = text.count("\n") - crlf
    if crlf and alone:
        return "mixed"
    if crlf:
        return "CRLF"
    if alone:
        return "LF"
    return "CR" if "\r" in text else "none"


def _marked_encoding(sample: bytes) -> tuple[Encoding | None, bytes]:
    """The encoding of a byte order mark."""
    if sample.startswith(codecs.BOM_UTF32_LE):
        return None, b""  # begins like UTF-16
    for bom, encoding in _BOMS:
        if sample.startswith(bom):
            return encoding, bom
    return None, b""


def _unmarked_encoding(sample: bytes) -> Encoding:
    """UTF-8 if the bytes are valid, except a character cut by the sample and a few damaged ones."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=len(sample) < SAMPLE_BYTES)
    except UnicodeDecodeError:
        # In a text of another encoding, few bytes happen to be valid UTF-8.
        text = sample.decode("utf-8", "surrogateescape")
        damaged = len(_LONE_SURROGATE.findall(text))
        valid = len(text) - len(text.encode("ascii", "ignore")) - damaged
        return "utf-8" if valid > damaged else "cp1252"
    return "utf-8"


def _is_binary(sample: bytes) -> bool:
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return b"\0" in sample or controls > len(sample) * _MOST_CONTROLS


def _signature(sample: bytes) -> tuple[bytes, str]:
    """The known signature at the beginning of the file, and its MIME type."""
    for position, signature, mime in _MAGIC:
        if sample.startswith(signature, position):
            return signature, mime
    return b"", ""
