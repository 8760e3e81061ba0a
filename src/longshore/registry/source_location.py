"""The source location of a declaration, for error messages: `server.py:12 add(*nums)`."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

from longshore.errors import RegistrationError

_VARARGS, _VARKEYWORDS = 0x04, 0x08


def locate(fn: Callable[..., Any]) -> str:
    """The file, line and head of a function."""
    code = _code(fn)
    if code is None:
        return repr(fn)
    return f"{_short(code.co_filename)}:{_line(code)} {code.co_name}({', '.join(_parameters(code))})"


class SourceLocation:
    """The location of a function as a lazy text: finding a line reads the source."""

    __slots__ = ("_fn",)

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn

    def __str__(self) -> str:
        return locate(self._fn)


def caller() -> str:
    """The line of the first caller outside this package, for errors before there is a function."""
    import sys

    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  (inspect costs 14 ms to import)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] == "longshore":
        frame = frame.f_back
    return locate_frame(frame)


def locate_frame(frame: FrameType) -> str:
    """The file, line and function of a frame."""
    return f"{_short(frame.f_code.co_filename)}:{frame.f_lineno} {frame.f_code.co_name}"


def raised_at(problem: BaseException, fn: Callable[..., Any]) -> str:
    """Where an exception was raised in a call of `fn`; the function itself if it could not be called."""
    trace = problem.__traceback__ and problem.__traceback__.tb_next
    if trace is None:
        return locate(fn)
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{_short(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"


def refuse(fn: Callable[..., Any], what: str, fix: str) -> NoReturn:
    """Raise a RegistrationError that names the function's location."""
    raise RegistrationError(locate(fn), what, fix) from None


def _code(fn: Any) -> Any:
    while not hasattr(fn, "__code__"):
        called = vars(type(fn)).get("__call__")  # pyright: ignore[reportUnknownArgumentType]
        inner = getattr(fn, "__wrapped__", None) or getattr(fn, "func", None) or called
        if inner is None or inner is fn or not callable(inner) or type(inner).__name__ == "method-wrapper":
            return None
        fn = inner
        if type(fn).__name__ == "wrapper_descriptor":
            return None
    return fn.__code__


def _short(path: str) -> str:
    here = os.getcwd() + os.sep
    return path[len(here) :] if path.startswith(here) else path


def _line(code: Any) -> int:
    """The line of the `def`; the code object has only that of the first decorator."""
    import linecache

    if code.co_name == "<lambda>":
        return int(code.co_firstlineno)
    for line in range(code.co_firstlineno, code.co_firstlineno + 50):
        if linecache.getline(code.co_filename, line).lstrip().startswith(("def ", "async def ", "class ")):
            return line
    return int(code.co_firstlineno)


def _parameters(code: Any) -> list[str]:
    count = code.co_argcount + code.co_kwonlyargcount
    names = list(code.co_varnames[:count])
    if code.co_flags & _VARARGS:
        names.append("*" + code.co_varnames[count])
        count += 1
    if code.co_flags & _VARKEYWORDS:
        names.append("**" + code.co_varnames[count])
    return names
