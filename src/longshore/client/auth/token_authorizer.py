"""TokenAuthorizer: gets tokens by a grant, for any number of servers. No server sees the token of another."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import TYPE_CHECKING, Any

from longshore.client.auth.authorizer import AuthRequest, Headers
from longshore.client.auth.scopes import MOST, MOST_CHARS, valid_scopes
from longshore.client.auth.server_credentials import GrantContext, ServerCredentials
from longshore.client.auth.token_endpoint import Identity, Tokens
from longshore.client.auth.token_storage import Storage
from longshore.client.auth.token_store import TokenStore, server_key
from longshore.client.tasks import on_thread

if TYPE_CHECKING:
    from longshore.http_client.response import HttpResponse

MOST_SERVERS = 256
"""Servers whose tokens are in memory. Beyond, the oldest are dropped; the storage still has them."""


class TokenAuthorizer:
    """An Authorizer; subclasses implement `obtain`."""

    needs_person = False

    def __init__(
        self, storage: Storage, profile: str, scopes: Iterable[str] | None, dpop: bool | str, issuer: str | None
    ) -> None:
        if dpop not in (True, False, "auto"):
            raise ValueError(f'dpop is True, False or "auto", not {dpop!r}')
        self.scopes = _check_scopes(scopes)
        self.dpop = dpop
        self.issuer = issuer
        self.store = TokenStore(storage, profile)
        self._servers: dict[str, ServerCredentials] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(…)"

    async def obtain(self, context: GrantContext) -> Tokens:
        """Get new tokens. Raises AuthorizationError."""
        raise NotImplementedError

    async def identify(self, context: GrantContext) -> Identity | None:  # noqa: ARG002 - for grants with refresh tokens
        return None

    async def refused(self, context: GrantContext, error: str) -> None:
        """A token endpoint refused to renew."""

    def auth_flow(self, request: AuthRequest) -> AsyncGenerator[Headers, HttpResponse]:
        return self._credentials(request.server).auth_flow(request)

    async def close(self) -> None:
        await asyncio.gather(*(credentials.close() for credentials in self._servers.values()))

    def _credentials(self, url: str) -> ServerCredentials:
        key = server_key(url)
        found = self._servers.get(key)
        if found is None:
            unused = [name for name, each in self._servers.items() if not each.in_use]
            for oldest in unused[: max(0, len(self._servers) - MOST_SERVERS + 1)]:
                del self._servers[oldest]
            found = self._servers[key] = ServerCredentials(self, self.store, key)
        return found


def _check_scopes(scopes: Iterable[str] | None) -> tuple[str, ...]:
    listed = scopes.split(" ") if isinstance(scopes, str) else list(scopes or ())
    given = len(set(listed) - {""})
    if given > MOST:
        raise ValueError(f"scopes: at most {MOST}, and there are {given}")
    found = valid_scopes(listed)
    if len(found) != given:
        what = f"scopes are texts of at most {MOST_CHARS} printable ASCII characters"
        raise ValueError(f"{what} without blanks and quotes")
    return found


async def call_user(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of the caller's. A plain one may block, so it runs on a daemon thread."""
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):  # noqa: B004
        return await function(*arguments)
    return await on_thread(function)(*arguments)
