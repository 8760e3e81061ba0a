"""A model mends a small program in code mode. Its part is played by the calls; each prints only what the next needs."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from longshore import SyncClient

PRICES = "def total(prices, voucher=0):\n    return sum(prices)\n"
TEST = """import unittest
from prices import total

class TotalTest(unittest.TestCase):
    def test_a_voucher_is_taken_off(self):
        self.assertEqual(total([4, 3], voucher=2), 5)
"""
LOOK = """tests = tools.terminal_run(command="python3 -m unittest 2>&1")
print(next(line for line in tests.splitlines() if "Error" in line))
for path in tools.fs_search(pattern="def total", output="files").split():
    print(path, tools.fs_read(path=path), sep="\\n")"""
MEND = """change = {"old": "return sum(prices)", "new": "return sum(prices) - voucher"}
tools.fs_edit(path="prices.py", edits=[change])
tests = tools.terminal_run(command="python3 -m unittest 2>&1")
print(tests.splitlines()[-2])"""

with TemporaryDirectory() as folder:
    Path(folder, "prices.py").write_text(PRICES)
    Path(folder, "test_prices.py").write_text(TEST)
    command = [sys.executable, "-m", "longshore", "serve", "--root", folder, "--catalog", "code"]
    with SyncClient(command) as client:

        def ask(tool: str, **arguments: Any) -> None:
            print(f"> {tool}", client.call_tool(tool, arguments).text, sep="\n")

        print(*(tool.name for tool in client.list_tools()))
        ask("search_tools", query="run a command", limit=1)
        ask("tool_api", names=["fs_edit"])
        ask("run_code", code=LOOK)
        ask("run_code", code=MEND)
