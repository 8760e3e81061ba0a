"""The commands of all principals, by id: a few may run at once, and the last finished ones stay readable."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from time import monotonic
from typing import Final, final

from longshore.errors import QuotaReached
from longshore.registry.handles import HandleTable
from longshore.telemetry.recorder import Started, ignore_process
from longshore.toolsets.terminal.command import Command

MOST_RUNNING: Final = 8
"""At once, for one principal: more than an agent keeps track of."""
MOST_FINISHED: Final = 32
"""Of one principal, with their output. The oldest are dropped."""
IDLE_SECONDS: Final = 3600.0
"""A command that no call has used for so long is ended, or forgotten if it has finished."""


@final
class Commands:
    """A table of commands. Ids are only valid for their owner, a principal's name."""

    def __init__(
        self,
        *,
        most_running: int = MOST_RUNNING,
        most_finished: int = MOST_FINISHED,
        idle_seconds: float = IDLE_SECONDS,
        clock: Callable[[], float] = monotonic,
        started: Started = ignore_process,
    ) -> None:
        """`started` is the recorder's `process_started`."""
        self._started = started
        self._most_running, self._most_finished = most_running, most_finished
        self._table: HandleTable[Command] = HandleTable(
            "command",
            Command.close,
            quota=most_running + most_finished,
            idle_seconds=idle_seconds,
            close_tool="terminal_kill",
            clock=clock,
        )

    async def start(self, owner: str, start: Callable[[], Command]) -> tuple[str, Command]:
        """Start a command for this owner, if the limit allows another one. Raises ToolError."""
        await self._forget_oldest(owner)
        running = [id for id, each in self._table.all(owner).items() if each.is_running]
        if len(running) >= self._most_running:
            raise QuotaReached(
                f"no more than {self._most_running} commands may run at once: {', '.join(running)}; "
                "wait for one with terminal_read, or end one with terminal_kill"
            )
        self._table.check_quota(owner)
        command = start()
        command.ended_by(self._started("command", command.pid, owner))
        return self._table.add(owner, command), command

    def use(self, owner: str, id: str) -> AbstractContextManager[Command]:
        """`with commands.use(owner, id) as command:`; it does not become idle meanwhile. Raises ToolError."""
        return self._table.use(owner, id)

    def all(self, owner: str) -> dict[str, Command]:
        """The commands of this owner by id, the oldest first."""
        return self._table.all(owner)

    def everything(self) -> list[tuple[str, str, Command]]:
        """The commands of all owners, each with its owner and id."""
        return self._table.everything()

    async def expire(self) -> None:
        """Close all that are idle, and wait until they are closed."""
        await self._table.expire()

    async def close_all(self) -> None:
        """End all, and refuse new ones."""
        await self._table.close_all()

    async def _forget_oldest(self, owner: str) -> None:
        finished = [id for id, each in self._table.all(owner).items() if not each.is_running]
        for id in finished[: max(0, len(finished) - self._most_finished + 1)]:
            await self._table.remove(owner, id)
