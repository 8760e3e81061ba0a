"""The function behind a callable that is neither a plain function nor a bound method."""

from __future__ import annotations

from functools import partial
from types import FunctionType, MethodType
from typing import Any

from longshore.schema.signature import Callee, SignatureProblem

_COROUTINE = 0x80

# A chain of wrappers longer than this is a loop.
_WRAPPERS = 100


def find(fn: Any) -> Callee:
    """Follow bound methods, partials, callable objects and `functools.wraps` to the function with the parameters.

    A wrapper counts as async if anything in the chain is: a plain `def` around an `async def` nearly always hands on
    the coroutine.
    """
    if isinstance(fn, type):
        raise SignatureProblem(f"{fn.__name__} is a class, not a function", "register a function or a bound method")
    callee = Callee(None)
    for _ in range(_WRAPPERS):
        if isinstance(fn, FunctionType):
            callee.is_async |= bool(fn.__code__.co_flags & _COROUTINE)
            if "__wrapped__" not in fn.__dict__:
                callee.function = fn
                return callee
        fn = _step(fn, callee)
    raise SignatureProblem("its __wrapped__ chain has no end", "remove the decorator that wraps itself")


def _step(fn: Any, callee: Callee) -> Any:
    if isinstance(fn, MethodType):
        callee.skip += 1
        return fn.__func__
    if issubclass(fn.__class__, partial):
        return _unbind(fn, callee)
    if (wrapped := getattr(fn, "__wrapped__", None)) is not None:
        return wrapped
    cls: Any = fn.__class__
    call = getattr(cls, "__call__", None)  # noqa: B004
    if isinstance(call, FunctionType):
        callee.skip += 1
        return call
    name = getattr(fn, "__name__", cls.__name__)
    raise SignatureProblem(f"the signature of {name} can't be read", "wrap it in a function with annotations")


def _unbind(fn: partial[Any], callee: Callee) -> Any:
    callee.skip += len(fn.args)
    callee.bound |= fn.keywords.keys()
    # What follows a parameter that is bound by name can't be passed by place any more.
    callee.by_name |= bool(fn.keywords)
    return fn.func
