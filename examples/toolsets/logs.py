"""A toolset with options, a check of what it needs, an unlisted tool, token budgets and artifacts.

`longshore serve examples/toolsets/logs.py --root /var/log`; `[toolsets.logs]` in longshore.toml sets its options.
"""

import shutil
import subprocess
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from longshore import Context, MaxTokens, ResourceLink, Server, Text, ToolError, Toolset, fit_ends, fit_lines, tool

Offset = Annotated[int, Meta(ge=0, le=100_000, description="how many to skip, for the next page")]


class LogsOptions(Struct, frozen=True, kw_only=True):
    pattern: str = "*.log"
    """Which files are logs."""

    program: str = "grep"
    """The program that searches them."""


class Logs(Toolset):
    """The log files in the server's folders."""

    name = "logs"
    Options = LogsOptions
    uses_folders = True

    def __init__(self, options: LogsOptions) -> None:
        self.options = options

    def available(self) -> str | None:
        if shutil.which(self.options.program) is None:
            return f"{self.options.program} is not installed; install it, or set toolsets.logs.program"
        return None

    @tool(effects="read")
    def list_logs(self, ctx: Context, offset: Offset = 0, max_tokens: MaxTokens = 6000) -> str:
        """List the log files with their sizes."""
        files = [path for folder in ctx.folders() for path in sorted(Path(folder).rglob(self.options.pattern))]
        lines = [f"{path} ({path.stat().st_size:,} bytes)" for path in files[offset:]]
        page = fit_lines(lines, max_tokens, lambda end: f"{len(files) - end} more: offset={end}", offset)
        return page.text or "no log"

    @tool(effects="read", artifacts=True)
    def search_logs(self, words: str, ctx: Context, max_tokens: MaxTokens = 2000) -> list[Text | ResourceLink]:
        """Find the lines that hold these words. The answer has the first and last ones; a link has all."""
        found = self._grep(words, *ctx.folders())
        shown = fit_ends(found, max_tokens, "the link has them all")
        if shown == found:
            return [Text(found or "no line")]
        lines = found.count("\n") + 1
        return [Text(shown), ctx.save_artifact("lines.txt", found, description=f"{lines:,} lines with {words!r}")]

    @tool(effects="read", listed=False)
    def count_lines(self, words: str, ctx: Context) -> int:
        """Count the lines that hold these words. For scripts: it can be called, and no model reads of it."""
        found = self._grep(words, *ctx.folders())
        return found.count("\n") + 1 if found else 0

    def _grep(self, words: str, *folders: str) -> str:
        command = [self.options.program, "-rhF", f"--include={self.options.pattern}", "-e", words, "--", *folders]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode > 1:
            raise ToolError(f"{self.options.program} failed: {done.stderr.strip()[:200]}")
        return done.stdout.removesuffix("\n")


app = Server("logs", version="1.0.0")
app.add_toolset(Logs)

if __name__ == "__main__":
    app.run()
