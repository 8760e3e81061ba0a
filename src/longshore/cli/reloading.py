"""Reloading a server's file while it is served: the new declarations replace the old ones, and sessions stay.

The file is watched, and the modules beside it that it imports. After a change they are imported again, as new modules.
If that fails, the last good version goes on, and the error is reported: on stderr, in the console, and in the answer to
a call of a tool that is not there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import final

from longshore.app import Server
from longshore.errors import LongshoreError, TargetError
from longshore.loader import load_server
from longshore.toolsets.filesystem.watching import FileWatcher


@final
class Reloader:
    """Keeps a server up to date with the file that declares it."""

    def __init__(self, target: str, reloaded: Callable[[], None] = lambda: None) -> None:
        """Load the file, also if it has an error. `reloaded` is called after each attempt to load it again."""
        sys.dont_write_bytecode = True  # a file that is saved twice in a second would be taken for the same one
        path, _, name = target.rpartition(":") if not target.endswith(".py") else (target, "", "")
        if not os.path.isfile(path):
            raise TargetError(f"{path}: there is no such file; longshore dev takes a file: path/to/server.py")
        self._path = os.path.realpath(path)
        self._target = f"{self._path}:{name}" if name else self._path
        self._reloaded = reloaded
        self._others = set(sys.modules)
        """What was imported before the file was: only later modules are imported again."""
        self._watcher = FileWatcher(self._on_change)
        problem = ""
        try:
            self.server = load_server(self._target)
        except LongshoreError as error:
            problem = str(error)
            self.server = Server(os.path.splitext(os.path.basename(self._path))[0])
        self._report(problem)

    def start(self) -> None:
        """Watch the file and the modules beside it."""
        for path in {self._path, *self._local_modules().values()}:
            self._watcher.add(path)

    def close(self) -> None:
        """Watch no more."""
        self._watcher.close()

    def _local_modules(self) -> dict[str, str]:
        """The modules that came with the file and lie below its folder, each with its path."""
        folder = os.path.dirname(self._path) + os.sep
        found: dict[str, str] = {}
        for name, module in list(sys.modules.items()):
            place = os.path.realpath(getattr(module, "__file__", None) or "")
            if name not in self._others and place.startswith(folder) and "site-packages" not in place:
                found[name] = place
        return found

    def _on_change(self, _: str) -> None:
        """Import the file again. Runs on the watcher's thread, so that calls go on meanwhile."""
        before: dict[str, ModuleType] = {name: sys.modules.pop(name) for name in self._local_modules()}
        try:
            made = load_server(self._target)
        except LongshoreError as problem:
            sys.modules.update(before)
            self._report(str(problem))
            self._reloaded()
            return
        for path in self._local_modules().values():
            self._watcher.add(path)
        self.server.engine.executor.post(lambda: self._adopt(made))

    def _adopt(self, made: Server) -> None:
        """Take over the new declarations, on the thread that serves."""
        try:
            self.server.adopt(made)
        except LongshoreError as problem:
            self._report(str(problem))
        else:
            self._report("")
            self.server.recorder.problem("info", f"{os.path.basename(self._path)} was loaded again")
        self._reloaded()

    def _report(self, problem: str) -> None:
        """Note the error that the file has now; none if it is empty."""
        self.server.catalog.trouble = (
            f"{os.path.basename(self._path)} has an error, fix it and save:\n{problem}" if problem else ""
        )
        if problem:
            text = f"{self._path} can't be loaded, so its last good version goes on:\n{problem}"
            self.server.recorder.problem("error", text)
