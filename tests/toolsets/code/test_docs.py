"""`docs/code-mode.md` is true: the code that it quotes is in the examples and runs, and its numbers are ours."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from longshore import Client, Server
from longshore.builtin import INDEX
from longshore.toolsets.code.options import CodeOptions
from longshore.toolsets.code.tools import INLINE_BYTES, MOST_SECONDS, Code

from .codes import run

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "code-mode.md").read_text()
QUOTE = re.compile(r"^```python\n# (examples/\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


async def test_the_quoted_code_counts_what_it_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (path, quoted), *_ = QUOTE.findall(PAGE)
    code = (ROOT / path).read_text()
    assert code == quoted
    folder = Path(os.path.realpath(tmp_path))
    (folder / "a.py").write_text("# TODO one\n# TODO two\n")
    (folder / "b.py").write_text("pass\n")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PWD", str(folder))
    app = Server("docs", catalog="code")
    app.add_indexed(INDEX, "filesystem")
    app.add_toolset(Code(CodeOptions(), app))
    async with Client(app) as client:
        assert await run(client, code) == "a.py 2"


def test_the_numbers_of_the_page_are_ours() -> None:
    options = CodeOptions()
    assert f"{options.run_seconds:g} s unless given, at most {MOST_SECONDS:g} s" in PAGE
    assert f"beyond {INLINE_BYTES >> 20} MiB" in PAGE
    assert options.idle_seconds == 1800 and "half an hour" in PAGE
    assert all(f"`{name}`" in PAGE for name in CodeOptions.__struct_fields__)
