"""What a server tells without being asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, final

import msgspec
from msgspec import Raw, Struct, field

from longshore.client.cache import Cache
from longshore.client.records import Change, LogMessage
from longshore.client.session import Session
from longshore.client.watching import Watch
from longshore.protocol.peer import SUBSCRIPTION_ID
from longshore.protocol.revisions import LOG_LEVELS
from longshore.wire.codec import BROKEN
from longshore.wire.messages import Id

_LISTS = {
    "notifications/tools/list_changed": ("tools", ("tools/list",)),
    "notifications/resources/list_changed": ("resources", ("resources/list", "resources/templates/list")),
    "notifications/prompts/list_changed": ("prompts", ("prompts/list",)),
}


class _Meta(Struct):
    subscription: Id | None = field(name=SUBSCRIPTION_ID, default=None)


class _Params(Struct, rename="camel"):
    uri: str | None = None
    level: str = "info"
    logger: str | None = None
    data: Any = None
    request_id: Id | None = None
    notifications: Any = None
    meta: _Meta = field(name="_meta", default_factory=_Meta)


_read = msgspec.json.Decoder(_Params).decode


@final
class Hearing:
    """Sorts notifications: the cache forgets, watchers are told, handlers are called. A handler's fault is noted."""

    def __init__(
        self,
        cache: Cache,
        watches: Iterable[Watch],
        on_log: Callable[[LogMessage], Any] | None,
        cancelled: Callable[[Session, Id], None],
    ) -> None:
        self._cache = cache
        self._watches = watches
        self.on_log, self._cancelled = on_log, cancelled
        self.log_level: str | None = None
        """From which level on the log is wanted. A server without `logging` can't be told, and may log all the same."""

    def hear(self, session: Session, method: str, raw: Raw) -> None:
        try:
            params = _read(raw)
        except BROKEN:
            session.note(f"the parameters of {method[:100]} can't be read")
            return
        if method in _LISTS:
            kind, methods = _LISTS[method]
            for each in methods:
                self._cache.drop(each)
            self._tell(session, Change(kind), params.meta.subscription)
        elif method == "notifications/resources/updated" and params.uri is not None:
            self._cache.drop("resources/read", params.uri)
            self._tell(session, Change("resource", params.uri), params.meta.subscription)
        elif method == "notifications/message" and self.on_log is not None:
            if self._is_wanted(params.level):
                session.tell("on_log", self.on_log, LogMessage(params.level, params.data, params.logger))
        elif method == "notifications/cancelled" and params.request_id is not None:
            self._cancelled(session, params.request_id)
            for watch in self._watches:
                watch.cancelled(session, params.request_id)
        elif method == "notifications/subscriptions/acknowledged":
            for watch in self._watches:
                watch.acknowledged(session, params.meta.subscription, params.notifications)

    def _is_wanted(self, level: str) -> bool:
        lowest = self.log_level
        if lowest not in LOG_LEVELS or level not in LOG_LEVELS:
            return True
        return LOG_LEVELS.index(level) >= LOG_LEVELS.index(lowest)

    def _tell(self, session: Session, change: Change, subscription: Id | None) -> None:
        for watch in self._watches:
            watch.hear(session, change, subscription)
