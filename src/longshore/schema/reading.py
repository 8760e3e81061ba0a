"""What a second look at refused arguments came to: what they mean, why they can't be taken, what was mended."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Reading(Struct, frozen=True):
    """Arguments as the handler takes them, or the faults that keep them from it."""

    arguments: Any = None
    faults: tuple[str, ...] = ()
    """One line each, for the model. None: the arguments were understood after all."""
    notes: tuple[str, ...] = ()
    """What was not as declared and was taken all the same, such as JSON inside a string. Paths, never values."""


def say_why(_: Any, problem: Exception) -> Reading:
    """The second look of what never mends anything."""
    return Reading(faults=(str(problem),))
