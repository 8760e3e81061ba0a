"""Calls that wait for a place, in turns, and how many places one caller may take.

A *caller* is one session or connection, and belongs to an *owner*: a principal, or an address where nobody has to show
who it is. A peer that is alone, as on stdio, is no caller: it may take every place, and its calls go in their order.

- A call starts while its caller runs fewer than three times as many calls as there are free places, and its owner fewer
  than seven times. Of 64 places one session takes at most 48, all sessions of one owner at most 56, and the rest is
  there for whoever comes next.
- A place that comes free goes to the owners in turn, and within one owner to its callers in turn.
- When there is no room to wait, the newest waiting call of whoever has the most gives way to one of whoever has less.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from longshore.limits import Limits

if TYPE_CHECKING:
    from longshore.server.call import Call

CALLER_SHARE: Final = 3
"""Places that a caller may hold for each one that is free: three quarters of all when it is alone."""
OWNER_SHARE: Final = 7
"""The same for all callers of one owner: seven eighths."""
MOST_IDLE: Final = 1024
"""Callers without a call that are remembered, so that one who calls again and again is not made anew each time."""


@final
class Owner:
    """A principal or an address, and what its callers run and have waiting."""

    __slots__ = ("callers", "queued", "running", "waiting", "weight")

    def __init__(self) -> None:
        self.running = 0
        self.callers: set[Caller] = set()
        self.waiting: dict[Caller, None] = {}
        """Callers whose calls wait for a place, the next in turn first."""
        self.queued = 0
        self.weight = 0


@final
class Caller:
    """One session or connection of an owner."""

    __slots__ = ("asking", "owner", "queued", "running", "waiting", "weight")

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.running = 0
        self.waiting: dict[Call, None] = {}
        """Calls that wait for a place, the oldest first."""
        self.asking: dict[Call, None] = {}
        """Calls that wait for an answer of the client."""
        self.queued = 0
        """How much of the room to wait for a place it takes."""
        self.weight = 0
        """The same, and one for each call that waits for the client."""

    def may_start(self, free: int) -> bool:
        """Whether it may take one of the free places."""
        return self.running < CALLER_SHARE * free and self.owner.running < OWNER_SHARE * free

    def started(self) -> None:
        self.running += 1
        self.owner.running += 1

    def stopped(self) -> None:
        self.running -= 1
        self.owner.running -= 1

    def asks(self, call: Call) -> None:
        """The call has given up its place and waits for the client."""
        self.asking[call] = None
        self._weigh(1)

    def asked(self, call: Call) -> None:
        """It waits no more."""
        if call in self.asking:
            del self.asking[call]
            self._weigh(-1)

    def queue(self, call: Call, weight: int) -> None:
        self.waiting[call] = None
        self.owner.waiting[self] = None
        self._queue(weight)

    def unqueue(self, call: Call, weight: int) -> None:
        del self.waiting[call]
        if not self.waiting:
            del self.owner.waiting[self]
        self._queue(-weight)

    def newest(self) -> Call:
        """The call that gives way first."""
        return next(reversed(self.waiting or self.asking))

    @property
    def idle(self) -> bool:
        return not (self.running or self.waiting or self.asking)

    def _queue(self, weight: int) -> None:
        self.queued += weight
        self.owner.queued += weight
        self._weigh(weight)

    def _weigh(self, weight: int) -> None:
        self.weight += weight
        self.owner.weight += weight


@final
class Turns:
    """The calls of one server that wait for a place."""

    __slots__ = ("_alone", "_callers", "_owners", "_unit", "_waiting", "size")

    def __init__(self, limits: Limits) -> None:
        self._unit = max(1, limits.held_bytes // max(1, limits.parked))
        """A call takes as much of the room as one more for each so many bytes of its frame."""
        self._owners: dict[str, Owner] = {}
        self._callers: dict[tuple[str, object], Caller] = {}
        self._alone: deque[Call] = deque()
        """Calls of peers that share with nobody."""
        self._waiting: dict[Owner, None] = {}
        """Owners whose calls wait, the next in turn first."""
        self.size = 0

    def caller(self, name: tuple[str, object]) -> Caller:
        """Who is called so: the name of the owner, and what tells its sessions or connections apart."""
        found = self._callers.get(name)
        return self._enter(name) if found is None else found

    def _enter(self, name: tuple[str, object]) -> Caller:
        if len(self._callers) >= MOST_IDLE:
            self._forget_idle()
        owner = self._owners.get(name[0])
        if owner is None:
            owner = self._owners[name[0]] = Owner()
        caller = self._callers[name] = Caller(owner)
        owner.callers.add(caller)
        return caller

    def _forget_idle(self) -> None:
        for name, caller in list(self._callers.items()):
            if caller.idle:
                del self._callers[name]
                caller.owner.callers.discard(caller)
                if not caller.owner.callers:
                    del self._owners[name[0]]

    # -- waiting

    def add(self, call: Call) -> None:
        self.size += 1
        if call.caller is None:
            self._alone.append(call)
        else:
            call.caller.queue(call, self._weight(call))
            self._waiting[call.caller.owner] = None

    def remove(self, call: Call) -> None:
        self.size -= 1
        if call.caller is None:
            self._alone.remove(call)
            return
        call.caller.unqueue(call, self._weight(call))
        if not call.caller.owner.waiting:
            del self._waiting[call.caller.owner]

    def next(self, free: int) -> Call | None:
        """Take out the call whose turn it is: one whose caller may start it, and whose peer takes what it is sent."""
        for call in self._alone:
            if not call.link.congested:
                self.remove(call)
                return call
        for owner in self._waiting:
            for caller in owner.waiting:
                if caller.may_start(free):
                    for call in caller.waiting:
                        if not call.link.congested:
                            self._take(call, caller)
                            return call
        return None

    def _take(self, call: Call, caller: Caller) -> None:
        owner = caller.owner
        self.remove(call)
        if owner.waiting:
            del self._waiting[owner]
            self._waiting[owner] = None
        if caller.waiting:
            del owner.waiting[caller]
            owner.waiting[caller] = None

    # -- giving way

    def giving_way(self, call: Call, *, asking: bool) -> Call | None:
        """The call that has to make room for this one. None: nobody has more waiting than its caller would have.

        `asking`: calls that wait for their client count too, and may be chosen.
        """
        caller, measure = call.caller, _weight if asking else _queued
        if caller is None:
            return None
        owner = max(self._owners.values(), key=measure)
        greediest = max(owner.callers, key=measure)
        less, most = (caller, greediest) if owner is caller.owner else (caller.owner, owner)
        return greediest.newest() if measure(less) + self._weight(call) < measure(most) else None

    def _weight(self, call: Call) -> int:
        return 1 + len(call.frame) // self._unit


def _weight(each: Owner | Caller) -> int:
    return each.weight


def _queued(each: Owner | Caller) -> int:
    return each.queued
