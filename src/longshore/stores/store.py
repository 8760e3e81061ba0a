"""The interface of a store: values and logs that expire, and a bus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

OnMessage: TypeAlias = Callable[[bytes], None]
Stop: TypeAlias = Callable[[], None]

MISSED = b""
"""The message that a listener gets when messages may have been missed."""


class Store(Protocol):
    """Keys, logs and topics are text. Every method may raise StoreError; none waits without a bound.

    - A key's *family* is what stands up to its first colon: `session:` of `session:42`. `count` takes one, and
      `find` a prefix that names at least one, because that is what backends can look up without reading everything.
    - A value and a log of one name are two things; only `delete` drops both.
    - `seconds` counts from now. An expired value or log does not exist: a new log begins at position 1.
    """

    shared: bool
    """Whether other processes may use the same one. False only for memory."""

    async def get(self, key: str) -> bytes | None: ...

    async def set(self, key: str, value: bytes, seconds: float) -> None: ...

    async def add(self, key: str, value: bytes, seconds: float) -> bool:
        """Set it unless it exists. False: it exists, and was not changed."""
        ...

    async def swap(self, key: str, old: bytes, new: bytes, seconds: float) -> bool:
        """Set it if it is exactly `old`. False: it has another value or does not exist; nothing was changed."""
        ...

    async def touch(self, key: str, seconds: float) -> bool:
        """Give a value a new expiry. False: it does not exist."""
        ...

    async def delete(self, *keys: str) -> None:
        """Drop the values and the logs of these names."""
        ...

    async def find(self, prefix: str) -> dict[str, bytes]:
        """All values whose keys begin so, the soonest to expire first. For families of few keys, or seldom."""
        ...

    async def count(self, family: str) -> int:
        """How many values a family has. Some may be counted that have expired and were not swept yet."""
        ...

    async def append(self, key: str, value: bytes, seconds: float, most: int) -> int:
        """Add to a log, which then expires in `seconds` and keeps its last `most` entries (at least one).

        Returns the position of the entry: 1, 2, 3 … and never the same twice while the log lives.
        """
        ...

    async def read(self, key: str, after: int, most: int = 100) -> list[tuple[int, bytes]]:
        """The first `most` entries of a log that come after a position, in order."""
        ...

    async def post(self, topic: str, message: bytes) -> None:
        """Give a message to every listener of a topic in every process, also our own.

        Each listener gets the messages of one process in their order. A process that loses its connection, or is
        blocked for a minute, misses the messages of that time, and its listeners get MISSED.
        """
        ...

    async def listen(self, topic: str, on_message: OnMessage) -> Stop:
        """Call `on_message` on the loop for each message posted from now on; the result stops that."""
        ...

    async def check(self) -> None:
        """Make one real round trip, with a write where there is a disk or a server."""
        ...

    async def close(self) -> None:
        """Close connections and files. Operations in flight complete or raise StoreError."""
        ...
