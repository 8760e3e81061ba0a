"""What holds for all tests."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts what it runs in the background so, and every process that a test starts would inherit it: their
    # Ctrl-C would do nothing.
    signal.signal(signal.SIGINT, signal.default_int_handler)
