"""How a callable without declared parameters can be called: raw handlers and completions."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Any

from msgspec import Struct

_VARARGS, _COROUTINE = 0x04, 0x80


class Shape(Struct, frozen=True):
    """How many values it takes by position, at the least and at the most, and whether it is async."""

    fewest: float
    most: float
    is_async: bool


def read_shape(fn: Callable[..., Any]) -> Shape:
    """The shape of a function, a method, a partial or an object that is called. What can't be read takes anything."""
    function: Any = getattr(fn, "__func__", fn)
    skip = int(function is not fn)
    bound: frozenset[str] = frozenset()
    is_async = False
    if not hasattr(function, "__code__") or hasattr(function, "__wrapped__"):
        from longshore.schema.callee import find
        from longshore.schema.signature import SignatureProblem

        try:
            callee = find(fn)
        except SignatureProblem:
            return Shape(0, inf, False)
        function, skip, bound, is_async = callee.function, callee.skip, callee.bound, callee.is_async
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[skip : code.co_argcount]
    free = [name for name in names if name not in bound]
    optional = set(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount])
    fewest = sum(name not in optional for name in free)
    most = inf if code.co_flags & _VARARGS else len(free)
    return Shape(fewest, most, is_async or bool(code.co_flags & _COROUTINE))
