"""A file is described from its descriptor, and its hash tells whether it was changed."""

from __future__ import annotations

import hashlib
import os

import pytest
from tests.toolsets.filesystem.open_bytes import open_bytes

from longshore.sandbox.file_errors import FileError
from longshore.toolsets.filesystem.file_info import (
    HASH_CHARACTERS,
    FileInfo,
    check_hash,
    describe_file,
    hash_bytes,
    read_whole,
)


def describe(data: bytes, most_bytes: int = 1_000) -> FileInfo:
    with open_bytes(data) as descriptor:
        os.fchmod(descriptor, 0o640)
        os.utime(descriptor, (0, 1_785_231_000.9))
        return describe_file(descriptor, most_bytes)


def test_a_text_file_is_described() -> None:
    data = "\ufeffa\r\né".encode()
    assert describe(data) == FileInfo(
        size=8,
        modified="2026-07-28T09:30:00Z",
        mode="-rw-r-----",
        mime="text/plain",
        encoding="utf-8",
        bom=True,
        newline="CRLF",
        lines=2,
        sha256=hashlib.sha256(data).hexdigest(),
    )


def test_a_binary_file_has_neither_lines_nor_encoding() -> None:
    found = describe(b"PK\3\4\0\n")
    assert (found.mime, found.encoding, found.newline, found.lines) == ("application/zip", None, None, None)
    assert found.sha256 == hash_bytes(b"PK\3\4\0\n")


@pytest.mark.parametrize(("size", "small"), [(999, True), (1_000, True), (1_001, False)])
def test_a_large_file_is_neither_hashed_nor_read_whole(size: int, small: bool) -> None:
    data = b"x" * size
    found = describe(data)
    assert (found.size, found.lines, found.sha256) == (size, *((1, hash_bytes(data)) if small else (None, None)))
    with open_bytes(data) as descriptor:
        if small:
            assert read_whole(descriptor, 1_000) == data
        else:
            with pytest.raises(FileError, match=r"1,001 bytes, more than the limit of 1,000 \(max_file_size\)"):
                read_whole(descriptor, 1_000)


def test_a_file_that_was_changed_is_refused() -> None:
    actual = hash_bytes(b"now")
    check_hash(actual, actual)
    check_hash(actual, f" {actual[:HASH_CHARACTERS].upper()}\n")
    with pytest.raises(FileError, match="it was changed since you read it; read it again") as raised:
        check_hash(actual, hash_bytes(b"before"))
    assert raised.value.facts["actual"] == actual
    with pytest.raises(FileError, match="expected_hash has 11 characters; give at least the first 12"):
        check_hash(actual, actual[: HASH_CHARACTERS - 1])
