"""The number of arguments that a callable takes: raw handlers, completions and callbacks."""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from types import CodeType
from typing import Any

from msgspec import Struct

from longshore.errors import RegistrationError
from longshore.registry.source_location import caller, refuse

_VARARGS, _COROUTINE = 0x04, 0x80


class Arity(Struct, frozen=True):
    """How many positional arguments a callable takes, and whether it is async.

    `fewest` is infinite if a keyword-only parameter has no default.
    """

    fewest: float
    most: float
    is_async: bool


def read_arity(fn: Callable[..., Any]) -> Arity:
    """The arity of a function, a method, a partial or a callable object; any number where it can't be read."""
    function: Any = getattr(fn, "__func__", fn)
    skip = int(function is not fn and not isinstance(fn, staticmethod))
    bound: frozenset[str] = frozenset()
    is_async = False
    if not isinstance(getattr(function, "__code__", None), CodeType) or hasattr(function, "__wrapped__"):
        from longshore.schema.signature import SignatureProblem, find_callee

        try:
            callee = find_callee(fn)
        except SignatureProblem:
            return Arity(0, inf, False)
        function, skip, bound, is_async = callee.function, callee.skip, callee.bound, callee.is_async
    code, defaults = function.__code__, function.__defaults__ or ()
    names = code.co_varnames[skip : code.co_argcount]
    free = [name for name in names if name not in bound]
    optional = set(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount])
    fewest: float = sum(name not in optional for name in free)
    by_name = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    if any(name not in bound and name not in (function.__kwdefaults__ or ()) for name in by_name):
        fewest = inf
    most = inf if code.co_flags & _VARARGS else len(free)
    return Arity(fewest, most, is_async or bool(code.co_flags & _COROUTINE))


def check_callback(callback: Any, name: str, *given: str) -> None:
    """Raise RegistrationError for a callback that can't be called with these arguments."""
    fix = f"def {name}({', '.join(('self', *given) if hasattr(callback, '__self__') else given)})"
    if not callable(callback):
        raise RegistrationError(caller(), f"{name} is no function: {callback!r:.100}", fix)
    arity = read_arity(callback)
    if not arity.fewest <= len(given) <= arity.most:
        refuse(callback, f"{name} is called with {_listed(given)}, which this function does not take", fix)


def _listed(given: tuple[str, ...]) -> str:
    if not given:
        return "no arguments"
    return f"{len(given)} argument{'s' if len(given) > 1 else ''} ({', '.join(given)})"
