"""Kills processes on their way into the trash and out of it, and looks for the file: `ROOT TRASH PATH TIMES`.

A child is killed before one of the lines of Longshore that a `put` or `restore` runs; TIMES of them by chance.
"""

from __future__ import annotations

import os
import random
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.roots import Roots
from longshore.sandbox.trees import DRAFT_PREFIX
from longshore.toolsets.filesystem.trash import Trash, TrashEntry


class Killing:
    """One file, folder or link that goes into the trash and out of it, in processes that are killed."""

    def __init__(self, root: str, folder: str, path: str) -> None:
        self._root, self._folder, self._path = root, folder, path
        self._files = ConfinedFiles(Roots((root,)))
        self._place = os.path.join(root, path)
        self._content = self._read()

    def put(self) -> None:
        self._trash().put(self._files, self._path)

    def restore(self) -> None:
        self._trash().restore(self._files, self._list()[0].id)

    def check(self, prepare: Callable[[], None], action: Callable[[], None], line: int) -> int:
        """Kill the action before a line. The file is then in its place or can be restored; see `run_and_kill`."""
        prepare()
        left = run_and_kill(action, line)
        entries = self._list()
        assert drafts_in(self._folder) == []
        if not os.path.lexists(self._place):
            assert len(entries) == 1, (line, entries)
            self._trash().restore(self._files, entries[0].id)
        assert self._read() == self._content, (line, self._read())
        for entry in self._list():  # it was in both: a copy on another file system
            self._files.delete(self._path, tree=True)
            self._trash().restore(self._files, entry.id)
            assert self._read() == self._content, (line, self._read())
        assert os.listdir(self._folder) == ["lock"], (line, os.listdir(self._folder))
        return left

    def sweep(self) -> None:
        """Make the next write in the root, which deletes the drafts in it."""
        self._files.write("sweep", b"")
        assert drafts_in(self._root) == []

    def _trash(self) -> Trash:
        return Trash(self._folder, most_bytes=1000, most_days=1)

    def _list(self) -> list[TrashEntry]:
        return self._trash().list(self._files)

    def _read(self) -> object:
        if os.path.islink(self._place):
            return os.readlink(self._place)
        if os.path.isfile(self._place):
            return read(self._place)
        paths = [os.path.join(at, name) for at, _, names in os.walk(self._place) for name in names]
        return sorted((os.path.relpath(path, self._place), read(path)) for path in paths)


def read(path: str) -> str:
    with open(path) as file:
        return file.read()


def drafts_in(folder: str) -> list[str]:
    return [name for name in os.listdir(folder) if name.startswith(DRAFT_PREFIX)]


def run_and_kill(action: Callable[[], None], line: int) -> int:
    """Run an action in a child that is killed before that line; how many lines it ran if it had fewer, else 0."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        if "longshore" not in frame.f_code.co_filename:
            return None
        lines += event == "line"
        if lines == line:
            os.kill(os.getpid(), signal.SIGKILL)
        return trace

    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        sys.settrace(trace)
        try:
            action()
            os.write(writer, str(lines).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader) as file:
        text = file.read()
    assert os.waitpid(child, 0)[1] == (0 if text else signal.SIGKILL)
    return int(text or 0)


def main(root: str, folder: str, path: str, times: str) -> None:
    killing = Killing(root, folder, path)
    killing.put()  # what is cached now takes no lines later
    killing.restore()
    chance = random.Random(7)
    for prepare, action in ((lambda: None, killing.put), (killing.put, killing.restore)):
        lines = killing.check(prepare, action, 1_000_000)
        for line in chance.sample(range(1, lines + 1), min(lines, int(times))):
            assert killing.check(prepare, action, line) == 0
    killing.sweep()


if __name__ == "__main__":
    main(*sys.argv[1:])
