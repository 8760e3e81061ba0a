"""The type, encoding and line ends of a file are told by its first bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.sandbox.file_type import SAMPLE_BYTES, TextFormat, detect_type, printable

RIFF = b"RIFF\x24\0\0\0"


@pytest.mark.parametrize(
    ("sample", "mime"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a\1\0\1\0\x80", "image/gif"),
        (RIFF + b"WEBPVP8 ", "image/webp"),
        (RIFF + b"WAVEfmt ", "audio/wav"),
        (b"ID3\4\0\0\0\0\0\0", "audio/mpeg"),
        (b"\xff\xfb\x90\x64", "audio/mpeg"),
        (b"OggS\0\2", "audio/ogg"),
        (b"%PDF-1.7\n", "application/pdf"),
        (b"PK\3\4\x14\0", "application/zip"),
        (b"\x1f\x8b\x08\0", "application/gzip"),
        (b"\x7fELF\2\1\1\0", "application/x-elf"),
        (b"SQLite format 3\0", "application/vnd.sqlite3"),
        (b"name\0".ljust(257, b"\0") + b"ustar", "application/x-tar"),
        (b"\0\1\2\3", "application/octet-stream"),
        (b"text with a NUL \0", "application/octet-stream"),
        (b"\1\2\3 much noise", "application/octet-stream"),
        (b"\xff\xfe\0\0a\0\0\0", "application/octet-stream"),  # UTF-32
        (b"\xff\xfea\0\0\0\1\0", "application/octet-stream"),  # no text in spite of its mark
    ],
)
def test_binary_files_are_known_by_their_signature(sample: bytes, mime: str) -> None:
    found = detect_type(sample)
    assert (found.mime, found.text) == (mime, None)


@pytest.mark.parametrize(
    ("sample", "encoding", "newline", "bom"),
    [
        (b"", "utf-8", "none", b""),
        (b"a\nb\n", "utf-8", "LF", b""),
        (b"a\r\nb\r\n", "utf-8", "CRLF", b""),
        (b"a\r\nb\n", "utf-8", "mixed", b""),
        (b"a\rb\r", "utf-8", "CR", b""),
        ("é€😀".encode(), "utf-8", "none", b""),
        (b"\xef\xbb\xbfa\n", "utf-8", "LF", b"\xef\xbb\xbf"),
        ("\ufeffa\r\n".encode("utf-16-le"), "utf-16-le", "CRLF", b"\xff\xfe"),
        ("\ufeffa\n".encode("utf-16-be"), "utf-16-be", "LF", b"\xfe\xff"),
        (b"caf\xe9\n", "cp1252", "LF", b""),
        (b"\x81\x8d caf\xe9\n", "cp1252", "LF", b""),  # bytes that Windows-1252 does not define
        ("é€ ".encode() + b"\xff\n", "utf-8", "LF", b""),  # more characters are valid than not
        ("é ".encode() + b"\xff\n", "cp1252", "LF", b""),
        (b"\x1b[31mred\x1b[0m\n", "utf-8", "LF", b""),
        (b"BMW and MZ are no images\n", "utf-8", "LF", b""),
        (b"a" * (SAMPLE_BYTES - 1) + b"\xc3", "utf-8", "none", b""),  # the sample ends within a character
        (b"a" * (SAMPLE_BYTES - 2) + b"\xc3", "cp1252", "none", b""),  # the file does
    ],
)
def test_text_is_told_from_its_bytes(sample: bytes, encoding: str, newline: str, bom: bytes) -> None:
    text = detect_type(sample).text
    assert text is not None
    assert (text.encoding, text.newline, text.bom) == (encoding, newline, bom)


@given(st.binary(), st.sampled_from(["utf-8", "cp1252", "utf-16-le", "utf-16-be"]))
def test_every_byte_survives_decoding_and_encoding(data: bytes, encoding: str) -> None:
    text_format = TextFormat(encoding, "none")  # type: ignore[arg-type]
    text = text_format.decode(data)
    assert text_format.encode(text) == data[: len(data) // text_format.width * text_format.width]
    assert len(printable(text).encode()) >= len(text)
