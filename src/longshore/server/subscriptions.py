"""Who is told when something changes: handshake-era peers on their link, modern ones on the listens that they
opened."""

from __future__ import annotations

from typing import Any, final

from msgspec import Struct

from longshore.errors import ProtocolError
from longshore.limits import Limits
from longshore.protocol.envelope import SUBSCRIPTION_ID
from longshore.server.link import Link
from longshore.wire.codec import INVALID_PARAMS, encode
from longshore.wire.messages import Id, Notification, Reply

PARTS = ("tools", "prompts", "resources")


class Filter(Struct, rename="camel", omit_defaults=True):
    """What a listen wants to hear of."""

    tools_list_changed: bool = False
    prompts_list_changed: bool = False
    resources_list_changed: bool = False
    resource_subscriptions: list[str] = []


class ListenParams(Struct):
    """Parameters of `subscriptions/listen`."""

    notifications: Filter


class Listen(Struct, eq=False):
    """One open `subscriptions/listen`, which is also its own row in the in-flight table."""

    link: Link
    id: Id
    filter: Filter

    def wants(self, part: str) -> bool:
        return bool(getattr(self.filter, f"{part}_list_changed"))

    def tell(self, method: str, params: dict[str, Any]) -> None:
        self.link.send(encode(Notification(method, {**params, "_meta": {SUBSCRIPTION_ID: self.id}})))


@final
class Subscriptions:
    """The links of one server, and the listens on them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.links: set[Link] = set()
        self.listens: set[Listen] = set()

    def listen(self, link: Link, id: Id, wanted: Filter, offered: set[str]) -> None:
        """Open a listen and acknowledge the part of it that this server honours."""
        mine = [each for each in self.listens if each.link.owner == link.owner]
        uris = sum(len(each.filter.resource_subscriptions) for each in mine) + len(wanted.resource_subscriptions)
        if len(mine) >= self._limits.listens or uris > self._limits.subscriptions:
            text = f"at most {self._limits.listens} listens and {self._limits.subscriptions} watched resources"
            raise ProtocolError(INVALID_PARAMS, f"too many subscriptions: {text}; end one first")
        honoured = Filter(
            tools_list_changed=wanted.tools_list_changed and "tools" in offered,
            prompts_list_changed=wanted.prompts_list_changed and "prompts" in offered,
            resources_list_changed=wanted.resources_list_changed and "resources" in offered,
            resource_subscriptions=wanted.resource_subscriptions if "resources" in offered else [],
        )
        listen = Listen(link, id, honoured)
        link.session.begin(id, listen)
        self.listens.add(listen)
        listen.tell("notifications/subscriptions/acknowledged", {"notifications": honoured})

    def close(self, listen: Listen) -> None:
        """The peer has ended a listen: nothing more is sent on it."""
        self.listens.discard(listen)

    def end_all(self, link: Link, server_meta: dict[str, Any]) -> None:
        """We end a link's listens: each gets its result, and then a cancel for clients that look for that."""
        for listen in [each for each in self.listens if each.link is link]:
            self.listens.discard(listen)
            if link.session.end(listen.id, listen):
                meta = server_meta | {SUBSCRIPTION_ID: listen.id}
                link.answer(encode(Reply(listen.id, {"resultType": "complete", "_meta": meta})))
                link.send(encode(Notification("notifications/cancelled", {"requestId": listen.id})))

    def list_changed(self, part: str) -> None:
        """Tell everyone who may want to know that a list is not what it was."""
        method = f"notifications/{part}/list_changed"
        frame = encode(Notification(method))
        for link in self.links:
            if link.session.initialized and part in link.session.declared:
                link.send(frame)
        for listen in self.listens:
            if listen.wants(part):
                listen.tell(method, {})

    def resource_changed(self, uri: str) -> None:
        """Tell whoever watches this resource, or one that it is a part of."""
        method = "notifications/resources/updated"
        for link in self.links:
            if any(_covers(watched, uri) for watched in link.session.subscriptions):
                link.send(encode(Notification(method, {"uri": uri})))
        for listen in self.listens:
            if any(_covers(watched, uri) for watched in listen.filter.resource_subscriptions):
                listen.tell(method, {"uri": uri})

    def watched(self) -> set[str]:
        """Every resource that somebody watches."""
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
