"""A tap on the frames of all transports: watchers see the frames in both directions.

Without watchers a frame, or a chunk of frames on stdio, costs one test of `watchers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias, final

if TYPE_CHECKING:
    from longshore.server.link import Link

Direction: TypeAlias = Literal["in", "out"]
Watcher: TypeAlias = "Callable[[Direction, Link | None, bytes], None]"
"""Called with each frame, on the loop. It must be quick and not raise."""


@final
class FrameTap:
    """The watchers of one server's frames. A transport shows what it passes to the engine, and what it sends."""

    __slots__ = ("watchers",)

    def __init__(self) -> None:
        self.watchers: tuple[Watcher, ...] = ()

    def add(self, watcher: Watcher) -> Callable[[], None]:
        """Show every frame to a watcher from now on; the result is a function that stops it."""
        self.watchers = (*self.watchers, watcher)
        return lambda: self._remove(watcher)

    def _remove(self, watcher: Watcher) -> None:
        self.watchers = tuple(each for each in self.watchers if each is not watcher)

    def show(self, direction: Direction, link: Link | None, frame: bytes) -> None:
        """Show a frame to the watchers."""
        for watcher in self.watchers:
            watcher(direction, link, frame)
