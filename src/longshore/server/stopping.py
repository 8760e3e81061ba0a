"""How a stop signal leaves the code that it interrupts."""

from __future__ import annotations


class Stopped(SystemExit):
    """Raised in the main thread by a stop signal. A SystemExit: asyncio lets nothing else pass its callbacks."""
