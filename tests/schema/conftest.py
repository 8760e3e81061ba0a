"""Helpers of the tests of this package: a context class, a marker class and a short way to read a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from longshore.schema.signature import Signature, read


class Context:
    """Stands for the server's Context."""


class Ask:
    """Stands for the server's Ask."""

    def __init__(self, question: str) -> None:
        self.question = question


def read_fn(fn: Callable[..., Any]) -> Signature:
    return read(fn, context_type=Context, marker_type=Ask)


def taking(annotation: Any, *default: Any) -> Signature:
    """The signature of a function with one parameter `x`."""

    def fn(x: Any) -> None: ...

    fn.__annotations__["x"] = annotation
    fn.__defaults__ = default or None
    return read_fn(fn)
