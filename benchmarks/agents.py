"""Coding agents that work on a project: each verb by the calls that a model would make with its servers' tools."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from pathlib import Path
from time import sleep
from typing import Any

from benchmarks.desktop_commander import TIMEOUT_MS
from benchmarks.load import LoadFailed
from benchmarks.stdio_server import StdioServer, count_tokens

THINKING_SECONDS = 0.5  # a model takes longer to ask for the results of a search; they are there by then
SEEN = ("name", "description", "inputSchema")
"""What clients show a model of a tool."""

Change = tuple[str, str]


class Agent(ABC):
    """Someone who works on a project with the tools of one or two servers."""

    def __init__(self, folder: Path, *servers: StdioServer) -> None:
        self.folder, self._servers = folder, servers
        self.tokens = 0.0
        """Of all requests and results so far."""
        self.seen_tokens = 0.0
        """The same without what most clients don't show a model."""

    def list_tools(self) -> str:
        names: list[str] = []
        for server in self._servers:
            answer = server.ask("tools/list")
            tools = answer.result["tools"]
            self._spend(
                answer.tokens, count_tokens([{key: tool[key] for key in SEEN if key in tool} for tool in tools])
            )
            names += [tool["name"] for tool in tools]
        return f"{len(names)} tools"

    @abstractmethod
    def list_files(self) -> str: ...

    @abstractmethod
    def search(self, pattern: str) -> str: ...

    @abstractmethod
    def read(self, path: str) -> str: ...

    @abstractmethod
    def read_lines(self, path: str, first: int, count: int) -> str: ...

    @abstractmethod
    def edit(self, path: str, *changes: Change) -> str: ...

    @abstractmethod
    def write(self, path: str, content: str) -> str: ...

    @abstractmethod
    def run(self, command: str) -> str: ...

    def _call(self, server: StdioServer, name: str, **arguments: Any) -> str:
        answer = server.call(name, **arguments)
        request = count_tokens({"name": name, "arguments": arguments})
        self._spend(request + answer.tokens, request + count_tokens(answer.result["content"]))
        return answer.text

    def _spend(self, tokens: float, seen: float) -> None:
        self.tokens += tokens
        self.seen_tokens += seen


class LongshoreAgent(Agent):
    def __init__(self, folder: Path, server: StdioServer) -> None:
        super().__init__(folder, server)
        self._server = server

    def list_files(self) -> str:
        return self._call(self._server, "fs_list")

    def search(self, pattern: str) -> str:
        return self._call(self._server, "fs_search", pattern=pattern)

    def read(self, path: str) -> str:
        return self._call(self._server, "fs_read", path=path)

    def read_lines(self, path: str, first: int, count: int) -> str:
        return self._call(self._server, "fs_read", path=path, offset=first, limit=count)

    def edit(self, path: str, *changes: Change) -> str:
        return self._call(self._server, "fs_edit", path=path, edits=[{"old": old, "new": new} for old, new in changes])

    def write(self, path: str, content: str) -> str:
        return self._call(self._server, "fs_write", path=path, content=content)

    def run(self, command: str) -> str:
        return self._call(self._server, "terminal_run", command=command)


class CommanderAgent(Agent):
    """Everything by Desktop Commander. Its descriptions ask for absolute paths, and for an edit a call."""

    def __init__(self, folder: Path, commander: StdioServer, *others: StdioServer) -> None:
        super().__init__(folder, *others, commander)
        self._commander = commander

    def list_files(self) -> str:
        return self._call(self._commander, "list_directory", path=str(self.folder))

    def search(self, pattern: str) -> str:
        started = self._call(
            self._commander, "start_search", path=str(self.folder), pattern=pattern, searchType="content"
        )
        found = re.search(r"session: (\S+)", started)
        if found is None:
            raise LoadFailed(f"no session of a search in {started[:500]!r}")
        sleep(THINKING_SECONDS)
        return self._call(self._commander, "get_more_search_results", sessionId=found[1])

    def read(self, path: str) -> str:
        return self._call(self._commander, "read_file", path=self._absolute(path))

    def read_lines(self, path: str, first: int, count: int) -> str:
        return self._call(self._commander, "read_file", path=self._absolute(path), offset=first - 1, length=count)

    def edit(self, path: str, *changes: Change) -> str:
        file = self._absolute(path)
        calls = [
            self._call(self._commander, "edit_block", file_path=file, old_string=old, new_string=new)
            for old, new in changes
        ]
        return "\n".join(calls)

    def write(self, path: str, content: str) -> str:
        return self._call(self._commander, "write_file", path=self._absolute(path), content=content, mode="rewrite")

    def run(self, command: str) -> str:
        command = f"cd {self.folder} && {command}"
        return self._call(self._commander, "start_process", command=command, timeout_ms=TIMEOUT_MS)

    def _absolute(self, path: str) -> str:
        return str(self.folder / path)


class PeersAgent(CommanderAgent):
    """Files by the official filesystem server. It neither searches contents nor reads lines from the middle."""

    def __init__(self, folder: Path, files: StdioServer, commander: StdioServer) -> None:
        super().__init__(folder, commander, files)
        self._files = files

    def list_files(self) -> str:
        return self._call(self._files, "directory_tree", path=str(self.folder), excludePatterns=[".git"])

    def read(self, path: str) -> str:
        return self._call(self._files, "read_text_file", path=self._absolute(path))

    def read_lines(self, path: str, first: int, count: int) -> str:
        if first > 1:
            return super().read_lines(path, first, count)
        return self._call(self._files, "read_text_file", path=self._absolute(path), head=count)

    def edit(self, path: str, *changes: Change) -> str:
        edits = [{"oldText": old, "newText": new} for old, new in changes]
        return self._call(self._files, "edit_file", path=self._absolute(path), edits=edits)

    def write(self, path: str, content: str) -> str:
        return self._call(self._files, "write_file", path=self._absolute(path), content=content)
