"""fs_read on the serving thread: when it is, and that its answers are those of a thread."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from counts import count
from longshore import Server, WouldBlock
from longshore.registry.token_budget import LEAST_TOKENS, MOST_TOKENS
from longshore.sandbox import cached_reads
from longshore.sandbox.cached_reads import local_devices
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.roots import Roots
from longshore.toolsets.filesystem.reading import CACHED_BYTES, ReadQuery, read_cached_file, read_file
from longshore.toolsets.filesystem.tools import Filesystem
from talk import ERAS, Client, converse, text

from .file_server import serve

CONTENTS: dict[str, bytes] = {
    "empty": b"",
    "line feed": b"\n",
    "line feeds": b"\n\n\n",
    "word": b"word",
    "lines": b"one\ntwo\n",
    "empty last line": b"one\n\n",
    "CRLF": b"one\r\ntwo\r\n",
    "CR": b"one\rtwo",
    "tabs and quotes": b'\t"one"\\\n' * 50,
    "long line": b"x" * 3_000 + b"\ny\n",
    "long line of quotes": b'"' * 1_500 + b"\ny\n",
    "more than the budget": b"some words of a line\n" * 1_500,
    "colours": b"\x1b[31mred\x1b[0m\n" * 20,
    "UTF-8": "naïve café\n".encode() * 20,
    "UTF-8 with BOM": b"\xef\xbb\xbfone\n",
    "UTF-16": "one\ntwo\n".encode("utf-16"),
    "Windows-1252": b"caf\xe9\n",
    "PDF": b"%PDF-1.7\n",
    "PNG": b"\x89PNG\r\n\x1a\n\0\0",
    "binary": b"\0\1\2\3" * 10,
    "controls": b"\1\2\3\4" * 10 + b"text",
}
QUERIES: list[dict[str, Any]] = [
    {},
    {"max_tokens": LEAST_TOKENS},
    {"max_tokens": LEAST_TOKENS + 10},
    {"max_tokens": 150},
    {"max_tokens": MOST_TOKENS},
    {"max_file_size": 4},
    {"line_numbers": True},
    {"offset": 2},
    {"limit": 1},
    {"tail": 1},
    {"byte_offset": 1},
    {"offset": 1, "tail": 1},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = Path(os.path.realpath(tmp_path))
    monkeypatch.chdir(folder)
    if not local_devices((str(folder),)):
        pytest.skip("the kernel or the file system can't say what is in memory")
    return folder


def make_query(**fields: Any) -> ReadQuery:
    return ReadQuery(**{"max_tokens": 6_000, "max_file_size": 10_000_000, **fields})


def compare(folder: Path, content: bytes, query: ReadQuery) -> bool:
    """Whether a file is read on the serving thread; if so, its answer is compared."""
    (folder / "file").write_bytes(content)
    files = ConfinedFiles(Roots((str(folder),)))
    try:
        found = read_cached_file(files, "file", query)
    except WouldBlock:
        return False
    query.check()
    assert found == read_file(files, "file", query, query.max_tokens, lambda: None)
    return True


@pytest.mark.parametrize("query", QUERIES, ids=str)
@pytest.mark.parametrize("name", CONTENTS)
def test_the_answers_are_those_of_a_thread(folder: Path, name: str, query: dict[str, Any]) -> None:
    compare(folder, CONTENTS[name], make_query(**query))


def test_text_and_pictures_are_read_at_once_and_errors_are_left_to_the_thread(folder: Path) -> None:
    left = {name for name, content in CONTENTS.items() if not compare(folder, content, make_query())}
    assert left == {"PDF", "binary", "controls"}


@settings(max_examples=count(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.lists(
        st.sampled_from([b"\n", b"\t", b'"', b"word ", b"x" * 170, b"x" * 1_990, b"\r\n", "é".encode(), b"\x1b"])
    ).map(b"".join),
    max_tokens=st.integers(LEAST_TOKENS, 300) | st.integers(LEAST_TOKENS, 6_000),
)
@example(content=b"x" * 178, max_tokens=110)
def test_the_answers_are_those_of_a_thread_for_any_text_and_budget(
    folder: Path, content: bytes, max_tokens: int
) -> None:
    compare(folder, content, make_query(max_tokens=max_tokens))


def test_longer_files_are_left_to_the_thread(folder: Path) -> None:
    lines = b"x" * 99 + b"\n"
    for size, expected in ((CACHED_BYTES - 1, True), (CACHED_BYTES, True), (CACHED_BYTES + 1, False)):
        assert compare(folder, (lines * 400)[:size], make_query()) is expected


# -- through a server


def read(app: Server, revision: str = ERAS[0], /, **arguments: Any) -> tuple[str, int]:
    """The answer of fs_read, and how many threads were used for it."""

    async def script(client: Client) -> tuple[str, int]:
        app.engine.executor.dismiss_threads()
        answer = text(await client.call_tool("fs_read", **arguments))
        return answer, app.engine.executor.threads

    return converse(app, script, revision)


@pytest.mark.parametrize("revision", ERAS)
def test_a_short_file_is_read_without_a_thread(folder: Path, revision: str) -> None:
    (folder / "a.txt").write_text("one\n")
    app = serve()
    first, threads = read(app, revision, path="a.txt")
    assert threads == 0 and first.endswith("]\none")
    (folder / "a.txt").write_text("two\n")
    second, threads = read(app, revision, path=str(folder / "a.txt"))
    assert threads == 0 and second.endswith("]\ntwo")
    assert read(app, revision, path="a.txt", limit=1) == (second, 0)


def test_everything_else_is_read_on_a_thread(folder: Path) -> None:
    (folder / "a.txt").write_text("one\n")
    (folder / "link").symlink_to("a.txt")
    app = serve()
    expected = read(app, path="a.txt")[0]
    assert read(app, path="link") == (expected, 1)
    assert read(app, path="./a.txt") == (expected, 1)
    assert read(app, path="missing")[1] == 1
    assert read(app, paths=["a.txt"])[1] == 1


def test_where_the_kernel_can_not_say_what_is_in_memory_a_thread_reads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.txt").write_text("one\n")
    expected, threads = read(serve(), path="a.txt")
    assert threads == 0
    monkeypatch.setattr(cached_reads, "has_cached_open", lambda: False)
    assert read(serve(), path="a.txt") == (expected, 1)


def test_a_server_that_was_not_warmed_up_reads_its_first_file_on_a_thread(folder: Path) -> None:
    (folder / "a.txt").write_text("one\n")
    app = Server("files")
    app.add_toolset(Filesystem)
    expected, threads = read(app, path="a.txt")
    assert threads == 1
    assert read(app, path="a.txt") == (expected, 0)


def test_a_file_that_is_too_large_to_be_hashed_is_left_to_the_thread(folder: Path) -> None:
    (folder / "a.txt").write_text("one two\n")
    app = serve(max_file_size=4)
    answer, threads = read(app, path="a.txt")
    assert (answer, threads) == ("one two", 1)


def test_a_file_that_can_not_be_read_is_named(folder: Path) -> None:
    (folder / "a.bin").write_bytes(b"\0\1")
    answer, threads = read(serve(), path="a.bin")
    assert answer.startswith("'a.bin' is no text but application/octet-stream") and threads == 1
