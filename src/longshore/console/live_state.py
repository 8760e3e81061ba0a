"""The calls in flight and the sessions of a server, as the console shows them."""

from __future__ import annotations

from itertools import count, islice
from time import monotonic
from typing import Any, Final, final

from longshore.console.usage import Usage
from longshore.server.call import Call
from longshore.server.link import Link
from longshore.transports.http.parts import PartHost
from longshore.transports.http.sessions import NotificationStream

MOST_CALLS: Final = 200
"""Shown at once, those that began first."""
MOST_SESSIONS: Final = 200
"""Shown at once, those that were used last."""
COLOURED: Final = ("browser", "filesystem", "terminal")
"""The toolsets that the indicator of running tools tells apart."""


@final
class LiveState:
    """Looks at a server. A call gets its number when it is shown first, and keeps it."""

    def __init__(self, host: PartHost, usage: Usage) -> None:
        self._host, self._usage = host, usage
        self._executor = host.engine.executor
        self._numbers = count(1)

    def take(self) -> dict[str, Any]:
        """The state, now."""
        calls = sorted(self._executor.live, key=lambda call: call.received or call.started)
        shown = [self._describe_call(call) for call in calls[:MOST_CALLS]]
        sessions = self._list_sessions()
        return {
            "calls": shown,
            "more_calls": len(calls) - len(shown),
            "sessions": sessions[:MOST_SESSIONS],
            "more_sessions": max(0, len(sessions) - MOST_SESSIONS),
            "tools_running": _running(calls),
        }

    def cancel(self, key: str) -> bool:
        """End a call with an answer that says why. False: it has ended."""
        for call in self._executor.live:
            if call.number and key == f"c{call.number}":
                text = f"{call.entry.name} was stopped by the operator, from the console"
                self._executor.fail(call, "cancelled", text, "cancelled")
                return True
        return False

    def _describe_call(self, call: Call) -> dict[str, Any]:
        link, began = call.link, call.received or call.started
        call.number = call.number or next(self._numbers)
        source = link.source or link.describe()
        context = call.made_context
        reported = None if context is None else context.reported
        progress = None if reported is None else dict(zip(("done", "total", "message"), reported, strict=True))
        return {
            "key": f"c{call.number}",
            "tool": call.entry.name,
            "method": call.method,
            "session": source.session,
            "principal": source.principal,
            "transport": source.transport,
            "seconds": round(monotonic() - began, 1) if began else 0.0,
            "waits": not call.running,
            "parent": source.parent,
            "progress": progress,
        }

    # -- sessions

    def _list_sessions(self) -> list[dict[str, Any]]:
        now = monotonic()
        loaded = islice(reversed(self._host.sessions.loaded.values()), MOST_SESSIONS + 1)
        listed = [self._describe_session(each.notifications, "http", now - each.used) for each in loaded]
        others = [link for link in self._host.engine.links if not isinstance(link, NotificationStream)]
        return listed + [self._describe_session(link, link.transport, None) for link in others]

    def _describe_session(self, link: Link, transport: str, idle: float | None) -> dict[str, Any]:
        session = link.session
        if not session.label:
            link.describe()
        peer, usage = session.peer, self._usage.session(session.label)
        client = {} if peer is None else peer.client
        return {
            "key": session.label,
            "client": str(client.get("title") or client.get("name") or "")[:100],
            "version": str(client.get("version") or "")[:100],
            "revision": "" if peer is None else peer.revision.name,
            "transport": transport,
            "principal": link.principal.name,
            "idle_seconds": None if idle is None else int(idle),
            "calls": 0 if usage is None else usage.calls,
            "tokens": 0 if usage is None else usage.tokens_in + usage.tokens_out,
        }


def _running(calls: list[Call]) -> dict[str, int]:
    """How many tools of each kind run."""
    counts: dict[str, int] = dict.fromkeys((*COLOURED, "other"), 0)
    for call in calls:
        if call.running and call.entry.kind == "tool":
            toolset = call.entry.toolset.name if call.entry.toolset is not None else ""
            counts[toolset if toolset in COLOURED else "other"] += 1
    return counts
