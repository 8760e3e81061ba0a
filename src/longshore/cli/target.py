"""`longshore serve TARGET`: find somebody's server in a file or a module."""

from __future__ import annotations

import os
import sys
from types import ModuleType
from typing import Any

from longshore.app import Server
from longshore.errors import TargetError

_USUAL = ("app", "server", "mcp")


def load(target: str) -> Server:
    """The server at `path/to/server.py[:name]` or `module:name`."""
    place, colon, name = target.rpartition(":")
    if not colon or os.sep in name or name.endswith(".py"):
        place, name = target, ""
    is_file = place.endswith(".py") or os.sep in place or os.path.isfile(place)
    module = _import_file(place) if is_file else _import_module(place)
    return _pick(module, name, target)


def _import_file(path: str) -> ModuleType:
    from importlib.machinery import SourceFileLoader

    if not os.path.isfile(path):
        raise TargetError(f"{path}: there is no such file")
    path = os.path.abspath(path)
    sys.path.insert(0, os.path.dirname(path))
    name = os.path.splitext(os.path.basename(path))[0]
    loader = SourceFileLoader(name, path)
    module = ModuleType(name)
    module.__file__, module.__loader__ = path, loader
    sys.modules.setdefault(name, module)
    _execute(lambda: loader.exec_module(module), path)
    return module


def _import_module(name: str) -> ModuleType:
    from importlib import import_module

    sys.path.insert(0, os.getcwd())
    found: list[ModuleType] = []

    def step() -> None:
        try:
            found.append(import_module(name))
        except ModuleNotFoundError as problem:
            if problem.name and (name == problem.name or name.startswith(problem.name + ".")):
                raise TargetError(f"{name}: there is no such module; a file is given as path/to/{name}.py") from None
            raise

    _execute(step, name)
    return found[0]


def _execute(step: Any, where: str) -> None:
    """Run somebody's top-level code. What it raises is shown whole: it is theirs to mend."""
    from longshore.errors import LongshoreError

    try:
        step()
    except LongshoreError:
        raise
    except SystemExit as problem:
        raise TargetError(f"{where}: it called sys.exit({problem.code!r}) while it was imported") from None
    except Exception as problem:
        import traceback

        trace = "".join(traceback.format_exception(problem.with_traceback(_theirs(problem))))
        raise TargetError(f"{where} could not be imported:\n{trace.rstrip()}") from None


def _theirs(problem: BaseException) -> Any:
    """The trace without our own frames and the import machinery's."""
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None:
        file = trace.tb_frame.f_code.co_filename
        if not file.startswith("<frozen") and not file.startswith(os.path.dirname(__file__)):
            break
        trace = trace.tb_next
    return trace


def _pick(module: ModuleType, name: str, target: str) -> Server:
    servers = {key: value for key, value in vars(module).items() if isinstance(value, Server)}
    if name:
        if name in servers:
            return servers[name]
        from longshore.registry.names import hint

        what = "is no Server" if hasattr(module, name) else "is not there"
        raise TargetError(f"{target}: {name} {what}{hint(name, servers)}")
    for usual in _USUAL:
        if usual in servers:
            return servers[usual]
    if len(servers) == 1:
        return next(iter(servers.values()))
    if not servers:
        raise TargetError(f'{target}: no Server there; it needs a line like: app = Server("name")')
    raise TargetError(f"{target}: it has several servers; say which: {target}:{' or :'.join(servers)}")
