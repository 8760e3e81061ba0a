"""Longshore without what only Linux has: its modules are imported, and its files are served."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from longshore import Client
from talk import WAIT_SECONDS

SCRIPT = str(Path(__file__).with_name("without_linux.py"))


def test_every_module_is_imported() -> None:
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert done.returncode == 0 and done.stdout.endswith("imported\n"), done.stderr


def test_the_built_in_server_reads_writes_moves_and_searches_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")

    async def script() -> list[str]:
        command = [sys.executable, SCRIPT, "serve", "--root", str(tmp_path)]
        async with Client(command, timeout=WAIT_SECONDS) as client:
            calls = (
                ("fs_read", {"paths": ["a.txt"]}),
                ("fs_write", {"path": "b.txt", "content": "x"}),
                ("fs_move", {"path": "b.txt", "to": "c.txt"}),
                ("fs_list", {}),
                ("fs_search", {"pattern": "hello"}),
            )
            return [(await client.call_tool(tool, arguments)).text for tool, arguments in calls]

    read, wrote, moved, listed, found = asyncio.run(asyncio.wait_for(script(), WAIT_SECONDS))
    assert "hello" in read and wrote.startswith("wrote b.txt") and moved == "moved b.txt to c.txt"
    assert "c.txt 1" in listed and "1:hello" in found
