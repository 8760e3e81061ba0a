"""Checks that may never end, because an author has waived E13. A stop signal ends the process even during one.

Python runs a signal handler between two bytecodes, and such a check is a single call into C that keeps the interpreter.
So the kernel's own handling of the stop signals applies while one runs: it ends the process at once, without clean-up.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any, Final, TypeVar

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

Value = TypeVar("Value")
Outcome = TypeVar("Outcome")


def interruptible(check: Callable[[Value], Outcome]) -> Callable[[Value], Outcome]:
    """The same check, during which a stop signal ends the process. Only the main thread can have that."""

    def run(value: Value) -> Outcome:
        handlers: dict[int, Any] = {each: signal.getsignal(each) for each in _SIGNALS}
        replaced = {each: handler for each, handler in handlers.items() if callable(handler)}
        try:
            for each in replaced:
                signal.signal(each, signal.SIG_DFL)
        except ValueError:  # another thread
            return check(value)
        try:
            return check(value)
        finally:
            for each, handler in replaced.items():
                signal.signal(each, handler)

    return run
