"""Notifies peers of changes: handshake-era peers on their link, modern ones on the listens that they opened."""

from __future__ import annotations

from typing import Any, final

from msgspec import Struct

from longshore.errors import ProtocolError
from longshore.limits import Limits
from longshore.protocol.peer import SUBSCRIPTION_ID
from longshore.server.content_methods import Filter
from longshore.server.link import Link
from longshore.wire.codec import INVALID_PARAMS, encode
from longshore.wire.messages import Id, Notification, Reply

PARTS = ("tools", "prompts", "resources")


class Listen(Struct, eq=False):
    """One open `subscriptions/listen`, which is also its own row in the in-flight table."""

    link: Link
    id: Id
    filter: Filter

    def wants(self, part: str) -> bool:
        return bool(getattr(self.filter, f"{part}_list_changed"))

    def notify(self, method: str, params: dict[str, Any]) -> None:
        self.link.send(encode(Notification(method, {**params, "_meta": {SUBSCRIPTION_ID: self.id}})))


@final
class Subscriptions:
    """The links of one server, and the listens on them."""

    def __init__(self, limits: Limits, links: set[Link]) -> None:
        self._limits = limits
        self.links = links
        self.listens: set[Listen] = set()

    def listen(self, link: Link, id: Id, wanted: Filter, offered: set[str]) -> None:
        """Open a listen and acknowledge the part of it that this server supports."""
        mine = [each for each in self.listens if each.link.owner == link.owner]
        uris = sum(len(each.filter.resource_subscriptions) for each in mine) + len(wanted.resource_subscriptions)
        if len(mine) >= self._limits.listens or uris > self._limits.subscriptions:
            text = f"at most {self._limits.listens} listens and {self._limits.subscriptions} watched resources"
            raise ProtocolError(INVALID_PARAMS, f"too many subscriptions: {text}; end one first")
        accepted = Filter(
            tools_list_changed=wanted.tools_list_changed and "tools" in offered,
            prompts_list_changed=wanted.prompts_list_changed and "prompts" in offered,
            resources_list_changed=wanted.resources_list_changed and "resources" in offered,
            resource_subscriptions=wanted.resource_subscriptions if "resources" in offered else [],
        )
        listen = Listen(link, id, accepted)
        link.session.begin(id, listen)
        self.listens.add(listen)
        listen.notify("notifications/subscriptions/acknowledged", {"notifications": accepted})

    def close(self, listen: Listen) -> None:
        """Close a listen that the peer has ended."""
        self.listens.discard(listen)

    def end_all(self, link: Link, server_meta: dict[str, Any]) -> None:
        """End a link's listens: each gets its result, and then a cancel for clients that expect one."""
        for listen in [each for each in self.listens if each.link is link]:
            self.listens.discard(listen)
            if link.session.end(listen.id, listen):
                meta = server_meta | {SUBSCRIPTION_ID: listen.id}
                link.answer(encode(Reply(listen.id, {"resultType": "complete", "_meta": meta})))
                link.send(encode(Notification("notifications/cancelled", {"requestId": listen.id})))

    def list_changed(self, part: str) -> None:
        """Notify subscribers that a list has changed."""
        method = f"notifications/{part}/list_changed"
        frame = encode(Notification(method))
        for link in self.links:
            if link.session.initialized and part in link.session.declared:
                link.send(frame)
        for listen in self.listens:
            if listen.wants(part):
                listen.notify(method, {})

    def resource_changed(self, uri: str) -> None:
        """Notify subscribers of this resource, and of those that contain it."""
        method = "notifications/resources/updated"
        for link in self.links:
            if any(_covers(watched, uri) for watched in link.session.subscriptions):
                link.send(encode(Notification(method, {"uri": uri})))
        for listen in self.listens:
            if any(_covers(watched, uri) for watched in listen.filter.resource_subscriptions):
                listen.notify(method, {"uri": uri})

    def watched(self) -> set[str]:
        """Every watched resource."""
        by_link = (link.session.subscriptions for link in self.links)
        return set[str]().union(*by_link, *(listen.filter.resource_subscriptions for listen in self.listens))

    def subscribe(self, link: Link, uri: str) -> None:
        if len(link.session.subscriptions) >= self._limits.subscriptions:
            raise ProtocolError(
                INVALID_PARAMS, f"at most {self._limits.subscriptions} watched resources; unsubscribe one"
            )
        link.session.subscriptions.add(uri)


def _covers(watched: str, uri: str) -> bool:
    return uri == watched or uri.startswith(watched.rstrip("/") + "/")
