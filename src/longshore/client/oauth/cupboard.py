"""What one authorizer keeps: registrations by issuer, tokens by issuer and resource, and which of them a server uses.

A storage that fails does not make a login fail: what could not be written is kept in memory, and said once on stderr.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import final

from longshore.client.oauth.addresses import split
from longshore.client.oauth.storage import MemoryStorage, Record, Storage
from longshore.client.oauth.tokens import Tokens, from_record
from longshore.errors import AuthorizationError


@final
class Cupboard:
    """`profile` is the client that the caller configured: another one shares no tokens with it."""

    def __init__(self, storage: Storage, profile: str) -> None:
        self._storage = storage
        self._profile = profile or "-"
        self._unwritten = MemoryStorage()
        self._warned = False

    async def read(self, key: str) -> Record | None:
        kept = self._unwritten.read(key)
        if kept is not None:
            return kept
        try:
            return await asyncio.to_thread(self._storage.read, key)
        except OSError as problem:
            self._warn("read", problem)
            return None

    async def write(self, key: str, record: Record | None) -> None:
        try:
            await asyncio.to_thread(self._storage.write, key, record)
            self._unwritten.write(key, None)
        except OSError as problem:
            self._unwritten.write(key, record)
            self._warn("written", problem)

    # -- the tokens of a server

    async def tokens(self, server: str) -> tuple[Tokens | None, bool]:
        """What is kept for a server, and whether it is one of 2025-03-26."""
        link = await self.read(self._server_key(server))
        issuer, resource = (link or {}).get("issuer"), (link or {}).get("resource")
        if link is None or not isinstance(issuer, str) or not isinstance(resource, (str, type(None))):
            return None, False
        found = from_record(await self.read(self._tokens_key(issuer, resource, server)))
        same = found is not None and found.issuer == issuer and found.resource == resource
        return found if same else None, link.get("old") is True

    async def keep(self, server: str, tokens: Tokens, *, old: bool) -> None:
        await self.write(self._tokens_key(tokens.issuer, tokens.resource, server), tokens.record())
        await self.write(self._server_key(server), {"issuer": tokens.issuer, "resource": tokens.resource, "old": old})

    async def drop(self, server: str, tokens: Tokens) -> None:
        await self.write(self._tokens_key(tokens.issuer, tokens.resource, server), None)

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """While tokens are renewed: two processes that use one refresh token at once lose it for both.

        Where the storage has no such lock, or it can't be had in time, it is done without.
        """
        take: Callable[[], Callable[[], None]] | None = getattr(self._storage, "alone", None)
        free = await self._taken(take) if take else None
        try:
            yield
        finally:
            if free is not None:
                free()

    async def _taken(self, take: Callable[[], Callable[[], None]]) -> Callable[[], None] | None:
        taking = asyncio.ensure_future(asyncio.to_thread(take))
        try:
            return await asyncio.shield(taking)
        except OSError:
            return None
        except asyncio.CancelledError:
            taking.add_done_callback(_free)  # the thread may get it yet
            raise

    def _server_key(self, server: str) -> str:
        return f"server {self._profile} {server}"

    def _tokens_key(self, issuer: str, resource: str | None, server: str) -> str:
        return f"tokens {self._profile} {issuer} {resource or server}"

    # -- the issuer of a client that was registered by hand

    async def bind(self, server: str, client_id: str, issuer: str) -> None:
        """A client's identifier belongs to the issuer that it was first used with. Raises AuthorizationError."""
        key = f"bound {client_id} {server}"
        bound = (await self.read(key) or {}).get("issuer")
        if bound is None:
            await self.write(key, {"issuer": issuer})
        elif bound != issuer:
            what = f"the server now names the authorization server {issuer}, and the client_id was used with {bound}"
            fix = "if the new one is right, give the client_id that it gave you, and issue its name by issuer="
            raise AuthorizationError(f"{what}; credentials of one are never shown to another. {fix}")

    def _warn(self, done: str, problem: OSError) -> None:
        if self._warned:
            return
        self._warned = True
        why = problem.strerror or str(problem) or type(problem).__name__
        where = f" ({problem.filename})" if problem.filename else ""
        line = f"longshore: the tokens could not be {done}{where}: {why}; you will have to log in again next time\n"
        try:
            sys.stderr.write(line)
        except (OSError, ValueError, AttributeError):
            pass  # nobody is there to read it


def _free(taking: asyncio.Future[Callable[[], None]]) -> None:
    if not taking.cancelled() and taking.exception() is None:
        taking.result()()


def server_key(url: str) -> str:
    """A server's URL as tokens are kept for it: without a query, for that may hold anything."""
    parts = split(url.partition("#")[0])
    if parts is None:
        raise AuthorizationError("the server's URL can't be used; give an absolute http(s) URL without a user")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path or '/'}"
