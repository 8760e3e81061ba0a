"""Resources of a mounted server that clients of ours watch: it is asked to tell of them, and they are told.

A server of the handshake era is asked for each of them, so one that it refuses takes none of the others with it. A
stateless one has one stream for all; only if it refuses that is it asked for each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import final

from longshore.client.client import Client
from longshore.errors import ClientError
from longshore.protocol.revisions import MODERN

FOLLOWED = 1000
"""Resources of one server that are watched there. Each caller of ours may watch as many."""
STREAMS = 32
"""Streams to a stateless server that refuses to tell of all on one."""

Group = frozenset[str]


@final
class Following:
    """`changed` hears of each resource that should be read again, `told` what whoever runs us should know."""

    def __init__(self, client: Client, changed: Callable[[str], None], told: Callable[[str], None]) -> None:
        self._client, self._changed, self._told = client, changed, told
        self._loop = asyncio.get_running_loop()
        self._uris: Group = frozenset()
        self._refused: set[Group] = set()
        self._hearing: dict[Group, asyncio.Task[None]] = {}
        self._begun: set[Group] = set()
        self._before = False

    def follow(self, uris: Group) -> None:
        """From now on, hear of these."""
        if uris != self._uris:
            self._uris = uris
            self._settle()

    def begin(self) -> None:
        """There is a connection. If there was one before, nobody knows what has changed in between."""
        self.stop()
        self._refused.clear()
        if self._before:
            for uri in sorted(self._uris):
                self._changed(uri)
        self._before = True
        self._settle()

    def stop(self) -> None:
        for task in self._hearing.values():
            task.cancel()
        self._hearing.clear()
        self._begun.clear()

    def _settle(self) -> None:
        """Begin what is wanted and not heard yet. What is heard and not wanted ends when the new has begun."""
        wanted = self._wanted()
        for group in wanted:
            if group not in self._hearing:
                self._hearing[group] = self._loop.create_task(self._hear(group))
        if all(group in self._begun for group in wanted):
            for group in [each for each in self._hearing if each not in wanted]:
                self._begun.discard(group)
                self._hearing.pop(group).cancel()

    def _wanted(self) -> list[Group]:
        client = self._client
        if not self._uris or not client.connected or not client.server.can("resources", "subscribe"):
            return []
        uris = sorted(self._uris)[:FOLLOWED]
        whole = frozenset(uris)
        if client.server.revision in MODERN:
            if whole not in self._refused:
                return [whole]
            uris = uris[:STREAMS]
        return [group for group in map(_alone, uris) if group not in self._refused]

    async def _hear(self, group: Group) -> None:
        try:
            async with self._client.watch(uris=sorted(group)) as changes:
                self._begun.add(group)
                self._settle()
                async for change in changes:
                    if change.uri is not None:
                        self._changed(change.uri)
        except ClientError as problem:
            self._refuse(group, problem)

    def _refuse(self, group: Group, problem: ClientError) -> None:
        """The server will not tell of these. If it is gone, it is asked again when it is back."""
        if not self._client.connected or self._hearing.get(group) is not asyncio.current_task():
            return
        self._refused.add(group)
        self._begun.discard(group)
        del self._hearing[group]
        if len(group) == 1:
            self._told(f"changes of {min(group)[:200]!r} are not told: {problem.what[:200]}")
        self._settle()


def _alone(uri: str) -> Group:
    return frozenset((uri,))
