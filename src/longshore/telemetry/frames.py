"""Which frames of a stack are the author's own: tracebacks begin there, and reports point there."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def is_own(path: str) -> bool:
    """Whether a source file belongs to Longshore."""
    return path.startswith(_PACKAGE)


def format_trace(error: BaseException) -> str:
    """The traceback from the author's first frame on. One with no frame of theirs stays whole: the fault is ours."""
    trace: TracebackType | None = error.__traceback__
    while trace is not None and is_own(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return "".join(traceback.format_exception(type(error), error, trace or error.__traceback__))
