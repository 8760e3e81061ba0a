"""An authorizer that gets tokens by a grant, for as many servers as it is used with: no server sees another's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from longshore.client.oauth.addresses import Wall, is_inside
from longshore.client.oauth.asking import Asker
from longshore.client.oauth.authorizer import Headers
from longshore.client.oauth.challenge import read
from longshore.client.oauth.cupboard import Cupboard, server_key
from longshore.client.oauth.holder import Holder, Need, carried
from longshore.client.oauth.identity import Identity
from longshore.client.oauth.scopes import MOST, MOST_CHARS, clean
from longshore.client.oauth.storage import Storage
from longshore.client.oauth.tokens import Tokens
from longshore.errors import AuthorizationError

if TYPE_CHECKING:
    from longshore.http_client.pool import HttpClient

MOST_SERVERS = 256
"""Servers that one authorizer holds tokens for at once. Beyond, it forgets what it can read from its storage again."""


class Granter:
    """Subclasses say how a token is got; everything else is here."""

    refreshable = False
    """Whether a refresh token is of use."""

    def __init__(
        self, storage: Storage, profile: str, scopes: Iterable[str] | None, dpop: bool | str, issuer: str | None
    ) -> None:
        if dpop not in (True, False, "auto"):
            raise ValueError(f'dpop is True, False or "auto", not {dpop!r}')
        listed = scopes.split(" ") if isinstance(scopes, str) else list(scopes or ())
        given = len(set(listed) - {""})
        if given > MOST:
            raise ValueError(f"scopes: at most {MOST}, and there are {given}")
        self.scopes = clean(listed)
        if len(self.scopes) != given:
            what = f"scopes are texts of at most {MOST_CHARS} printable ASCII characters"
            raise ValueError(f"{what} without blanks and quotes")
        self.dpop = dpop
        self.issuer = issuer
        self.cupboard = Cupboard(storage, profile)
        self._holders: dict[str, Holder] = {}
        self._http: dict[tuple[asyncio.AbstractEventLoop, bool], HttpClient] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    async def obtain(self, need: Need) -> Tokens:
        """Get new tokens. Raises AuthorizationError."""
        raise NotImplementedError

    async def identify(self, need: Need) -> Identity | None:  # noqa: ARG002 - for those that can renew
        return None

    async def refused(self, need: Need, error: str) -> None:
        """A token endpoint said no."""

    # -- an Authorizer

    def waiting(self, server: str) -> bool:
        try:
            holder = self._holders.get(server_key(server)) if self.refreshable else None
        except AuthorizationError:  # a URL that can't be used; whoever asks for its headers is told
            return False
        return holder is not None and holder.waiting

    async def headers(self, method: str, url: str, body: bytes, server: str = "") -> Headers:
        return await self._holder(server or url).headers(method, url, body)

    def heard(self, answer_headers: Headers) -> None:
        known = carried()
        if known is not None and known.holder in self._holders.values():
            known.holder.heard(answer_headers)

    async def challenged(self, status: int, url: str, answer_headers: Headers) -> bool:
        return await self._holder(url).challenged(status, read(answer_headers))

    async def close(self) -> None:
        idle = await asyncio.gather(*(holder.close() for holder in self._holders.values()))
        if not all(idle):
            return  # it is shared, and the last to close ends it
        loop = asyncio.get_running_loop()
        made, self._http = [each for key, each in self._http.items() if key[0] is loop], {}
        for http in made:
            await http.close()

    def _holder(self, url: str) -> Holder:
        key = server_key(url)
        holder = self._holders.get(key)
        if holder is None:
            idle = [name for name, each in self._holders.items() if not each.waiting]
            for oldest in idle[: max(0, len(self._holders) - MOST_SERVERS + 1)]:
                del self._holders[oldest]
            holder = self._holders[key] = Holder(self, self.cupboard, key, self._asker)
        return holder

    def _asker(self, wall: Wall) -> Asker:
        return Asker(self._connecting, wall)

    def _connecting(self, public: bool) -> HttpClient:
        """What connects: to public addresses only, or to any. They share no connection."""
        key = asyncio.get_running_loop(), public
        if key not in self._http:
            from longshore.http_client.pool import HttpClient

            self._http = {each: http for each, http in self._http.items() if each[0] is key[0]}  # loops end
            self._http[key] = HttpClient(allow=_is_public if public else None)
        return self._http[key]


def _is_public(address: str) -> bool:
    return not is_inside(address)
