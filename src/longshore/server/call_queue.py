"""The queue of calls that wait for a place, fair among callers.

A *caller* is one session or connection, and belongs to an *owner*: a principal, or without authentication an address.
The only peer of a server, as on stdio, is no caller: it may take every place, and its calls run in their order.

- A call starts while its caller runs fewer than three times as many calls as there are free places, and its owner fewer
  than seven times. Of 64 places one session takes at most 48, all sessions of one owner at most 56; the rest stays
  free for others.
- A free place goes to the owners in turn, and within one owner to its callers in turn.
- When the queue is full, the newest call of the caller with the most queued calls is refused in favour of a caller
  with fewer.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from longshore.limits import Limits

if TYPE_CHECKING:
    from longshore.server.call import Call

CALLER_SHARE: Final = 3
"""Places that a caller may hold for each free one: three quarters of all if it is the only one."""
OWNER_SHARE: Final = 7
"""The same for all callers of one owner: seven eighths."""
MOST_IDLE: Final = 1024
"""Callers without a call that stay in the table, so that a frequent caller is not added anew each time."""


class Counts:
    """The running calls and the share of the queue of one caller or owner."""

    __slots__ = ("asking", "queued", "running")

    def __init__(self) -> None:
        self.running: int = 0
        self.queued = 0
        self.asking = 0
        """Calls that wait for an answer from the client."""

    def taken(self, asking: bool) -> int:
        """How much of the queue it takes; `asking`: calls that wait for the client count too."""
        return self.queued + self.asking if asking else self.queued


@final
class Owner(Counts):
    """A principal or an address, and the calls of its callers."""

    __slots__ = ("callers", "waiting")

    def __init__(self) -> None:
        super().__init__()
        self.callers: set[Caller] = set()
        self.waiting: dict[Caller, None] = {}
        """Callers with queued calls, the next in turn first."""


@final
class Caller(Counts):
    """One session or connection of an owner."""

    __slots__ = ("owner", "suspended", "waiting")

    def __init__(self, owner: Owner) -> None:
        super().__init__()
        self.owner = owner
        self.waiting: dict[Call, None] = {}
        """Queued calls, the oldest first."""
        self.suspended: dict[Call, None] = {}
        """Calls that wait for an answer from the client."""

    def may_start(self, free: int) -> bool:
        """Whether it may take one of the free places."""
        return self.running < CALLER_SHARE * free and self.owner.running < OWNER_SHARE * free

    def started(self) -> None:
        self.running += 1
        self.owner.running += 1

    def stopped(self) -> None:
        self.running -= 1
        self.owner.running -= 1

    def begin_asking(self, call: Call) -> None:
        """Count a call that has given up its place and waits for the client."""
        self.suspended[call] = None
        self.asking += 1
        self.owner.asking += 1

    def end_asking(self, call: Call) -> None:
        """Stop counting a call that waited for the client."""
        if call in self.suspended:
            del self.suspended[call]
            self.asking -= 1
            self.owner.asking -= 1


@final
class CallQueue:
    """The queued calls of one server."""

    __slots__ = ("_alone", "_callers", "_owners", "_unit", "_waiting", "size")

    def __init__(self, limits: Limits) -> None:
        self._unit = max(1, limits.held_bytes // max(1, limits.parked))
        """A call counts as one more for each so many bytes of its frame."""
        self._owners: dict[str, Owner] = {}
        self._callers: dict[tuple[str, object], Caller] = {}
        self._alone: deque[Call] = deque()
        """Calls of a server's only peer."""
        self._waiting: dict[Owner, None] = {}
        """Owners with queued calls, the next in turn first."""
        self.size = 0

    def caller(self, name: tuple[str, object]) -> Caller:
        """The caller of this name: the owner, and the key of the session or connection."""
        caller = self._callers.get(name)
        if caller is None:
            if len(self._callers) >= MOST_IDLE:
                self._forget_idle()
            owner = self._owners.setdefault(name[0], Owner())
            caller = self._callers[name] = Caller(owner)
            owner.callers.add(caller)
        return caller

    def _forget_idle(self) -> None:
        for name, caller in list(self._callers.items()):
            if not (caller.running or caller.waiting or caller.suspended):
                del self._callers[name]
                caller.owner.callers.discard(caller)
                if not caller.owner.callers:
                    del self._owners[name[0]]

    # -- waiting

    def add(self, call: Call) -> None:
        self.size += 1
        caller = call.caller
        if caller is None:
            self._alone.append(call)
            return
        weight = self._weight(call)
        caller.waiting[call] = None
        caller.owner.waiting[caller] = None
        self._waiting[caller.owner] = None
        caller.queued += weight
        caller.owner.queued += weight

    def remove(self, call: Call) -> None:
        self.size -= 1
        caller = call.caller
        if caller is None:
            self._alone.remove(call)
            return
        weight, owner = self._weight(call), caller.owner
        del caller.waiting[call]
        if not caller.waiting:
            del owner.waiting[caller]
        if not owner.waiting:
            del self._waiting[owner]
        caller.queued -= weight
        owner.queued -= weight

    def next(self, free: int) -> Call | None:
        """Remove the next call: one whose caller may start it, and whose peer is not congested."""
        for call in self._alone:
            if not call.link.congested:
                self.remove(call)
                return call
        for owner in self._waiting:
            for caller in owner.waiting:
                if caller.may_start(free):
                    for call in caller.waiting:
                        if not call.link.congested:
                            self._take(call, caller, owner)
                            return call
        return None

    def _take(self, call: Call, caller: Caller, owner: Owner) -> None:
        """Remove a call, after which it is the turn of others."""
        self.remove(call)
        if owner.waiting:
            del self._waiting[owner]
            self._waiting[owner] = None
        if caller.waiting:
            del owner.waiting[caller]
            owner.waiting[caller] = None

    def giving_way(self, call: Call, *, asking: bool) -> Call | None:
        """The call to refuse in favour of this one. None: no caller has more queued than this one's would have.

        `asking`: calls that wait for their client count too, and may be chosen.
        """
        caller = call.caller
        if caller is None:
            return None
        owner = max(self._owners.values(), key=lambda each: each.taken(asking))
        greediest = max(owner.callers, key=lambda each: each.taken(asking))
        less: Counts
        less, most = (caller, greediest) if owner is caller.owner else (caller.owner, owner)
        if less.taken(asking) + self._weight(call) >= most.taken(asking):
            return None
        return next(reversed(greediest.waiting or greediest.suspended))

    def _weight(self, call: Call) -> int:
        return 1 + len(call.frame) // self._unit
