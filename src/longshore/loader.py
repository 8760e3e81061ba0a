"""Loading the `Server` object of a file or a module."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from longshore.app import Server
from longshore.errors import LongshoreError, TargetError

_USUAL = ("app", "server", "mcp")


def load_server(target: str, folder: str | os.PathLike[str] = "") -> Server:
    """The server at `path/to/server.py[:name]` or `module[:name]`, relative to a folder.

    A module is imported once, under the name that other imports use, so these get the same server. Raises TargetError.
    """
    place, name = _split(target)
    path = os.path.join(folder, place)
    if _is_path(place, path):
        return pick(_execute(lambda: _import_file(path), path), name, target)
    _add_path(os.path.abspath(folder))
    return pick(_execute(lambda: _import_module(place), place), name, target)


def absolute(target: str) -> str:
    """A loaded target by the absolute path of its file."""
    place, name = _split(target)
    if not _is_path(place, place):
        place = getattr(sys.modules.get(place), "__file__", None) or place
    path = os.path.abspath(place) if _is_path(place, place) else place
    return f"{path}:{name}" if name else path


def _split(target: str) -> tuple[str, str]:
    """The file or module, and the server's name in it or an empty text."""
    place, colon, name = target.rpartition(":")
    if not colon or os.sep in name or name.endswith(".py"):
        return target, ""
    return place, name


def _is_path(place: str, path: str) -> bool:
    return place.endswith(".py") or os.sep in place or os.path.isfile(path)


def pick(module: ModuleType, name: str, target: str) -> Server:
    """The server called `name`, or by default `app`, `server`, `mcp` or the only one. `target` is for errors."""
    servers = {key: value for key, value in vars(module).items() if isinstance(value, Server)}
    if name:
        if name in servers:
            return servers[name]
        from longshore.registry.tool import hint

        what = "is no Server" if hasattr(module, name) else "is not there"
        raise TargetError(f"{target}: {name} {what}{hint(name, servers)}")
    for usual in _USUAL:
        if usual in servers:
            return servers[usual]
    if len(servers) == 1:
        return next(iter(servers.values()))
    if not servers:
        what = f'{target}: no Server there; it needs a line like: app = Server("name")'
        command = f"{sys.executable} {target}"
        fix = f"If it is a program that serves by itself: longshore … '{command}', or longshore … -- {command}"
        raise TargetError(f"{what}\n{fix}")
    raise TargetError(f"{target}: it has several servers; say which: {target}:{' or :'.join(servers)}")


def _import_module(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name and (name == problem.name or name.startswith(problem.name + ".")):
            raise TargetError(f"{name}: there is no such module; a file is given as path/to/{name}.py") from None
        raise


def _import_file(path: str) -> ModuleType:
    if not os.path.isfile(path):
        raise TargetError(f"{path}: there is no such file")
    path = os.path.realpath(path)
    folder, file = os.path.split(path)
    stem = os.path.splitext(file)[0]
    root, name = folder, stem
    while os.path.isfile(os.path.join(root, "__init__.py")) and os.path.basename(root).isidentifier():
        root, package = os.path.split(root)
        name = package if name == "__init__" else f"{package}.{name}"
    _add_path(root)
    if root != folder and "." not in stem:
        sys.path.append(folder)  # last: a file of a package may have the name of a standard module
        module = import_module(name)
        if _is(module, path):
            return module
    for name in (stem, f"longshore_{stem}"):  # another module may have the name
        known = sys.modules.get(name)
        if known is None:
            return _execute_file(name, path)
        if _is(known, path):
            return known
    return _execute_file("", path)


def _is(module: ModuleType, path: str) -> bool:
    return os.path.realpath(getattr(module, "__file__", None) or "") == path


def _execute_file(name: str, path: str) -> ModuleType:
    from importlib.machinery import SourceFileLoader

    loader = SourceFileLoader(name, path)
    module = ModuleType(name)
    module.__file__, module.__loader__ = path, loader
    if name:
        sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _add_path(folder: str) -> None:
    """Put a folder first on the import path, as Python does for a script."""
    if sys.path[:1] != [folder]:
        sys.path.insert(0, folder)


def _execute(step: Callable[[], ModuleType], where: str) -> ModuleType:
    """Import the author's module. Its exceptions are shown with their traceback."""
    try:
        return step()
    except LongshoreError:
        raise
    except SystemExit as problem:
        raise TargetError(f"{where}: it called sys.exit({problem.code!r}) while it was imported") from None
    except Exception as problem:
        import traceback

        trace = "".join(traceback.format_exception(problem.with_traceback(_author_traceback(problem))))
        raise TargetError(f"{where} could not be imported:\n{trace.rstrip()}") from None


def _author_traceback(problem: BaseException) -> Any:
    """The traceback without the frames of Longshore and of the import system."""
    ours = ("<frozen", os.path.dirname(__file__), os.path.dirname(import_module.__code__.co_filename))
    trace = problem.__traceback__
    while trace is not None and trace.tb_next is not None and trace.tb_frame.f_code.co_filename.startswith(ours):
        trace = trace.tb_next
    return trace
