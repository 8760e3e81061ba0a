"""What one authorizer keeps: registrations by issuer, tokens by issuer and resource, and which of them a server uses.

A storage that fails does not make a login fail: what could not be written is kept in memory, and said once on stderr.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import final
from urllib.parse import urlunsplit

from longshore.client.oauth.addresses import shown, split, unusable
from longshore.client.oauth.storage import Record, Storage
from longshore.client.oauth.tokens import Tokens, from_record
from longshore.errors import AuthorizationError


@final
class Cupboard:
    """`profile` is the client that the caller configured: another one shares no tokens with it."""

    def __init__(self, storage: Storage, profile: str) -> None:
        self._storage = storage
        self._profile = profile or "-"
        self._unwritten: dict[str, Record | None] = {}
        """What the storage did not take, None where it did not forget."""
        self._bound: dict[str, str] = {}
        self._turns: tuple[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] | None = None
        self._warned = False

    async def read(self, key: str) -> Record | None:
        if key in self._unwritten:
            return self._unwritten[key]
        try:
            return await asyncio.to_thread(self._storage.read, key)
        except OSError as problem:
            self._warn("read", problem)
            return None

    async def write(self, key: str, record: Record | None) -> None:
        await self._write_all({key: record})

    async def _write_all(self, changed: dict[str, Record | None]) -> None:
        """As one, where the storage can do that."""
        try:
            await asyncio.to_thread(self._put, changed)
        except OSError as problem:
            self._unwritten.update(changed)
            self._warn("written", problem)
        else:
            for key in changed:
                self._unwritten.pop(key, None)

    def _put(self, changed: dict[str, Record | None]) -> None:
        write_all: Callable[[dict[str, Record | None]], None] | None = getattr(self._storage, "write_all", None)
        if write_all is not None:
            write_all(changed)
        else:
            for key, record in changed.items():
                self._storage.write(key, record)

    def turn(self, name: str) -> asyncio.Lock:
        """One at a time, of those in this process that do the same."""
        loop = asyncio.get_running_loop()
        if self._turns is None or self._turns[0] is not loop:
            self._turns = loop, {}
        return self._turns[1].setdefault(name, asyncio.Lock())

    # -- the tokens of a server

    async def tokens(self, server: str) -> tuple[Tokens | None, bool]:
        """What is kept for a server, and whether it is one of 2025-03-26."""
        link = await self.read(self._server_key(server))
        if link is None and "?" in server:
            link = await self.read(self._server_key(_plain(server)))
        issuer, resource = (link or {}).get("issuer"), (link or {}).get("resource")
        if link is None or not isinstance(issuer, str) or not isinstance(resource, (str, type(None))):
            return None, False
        found = from_record(await self.read(self._tokens_key(issuer, resource, server)))
        same = found is not None and found.issuer == issuer and found.resource == resource
        return found if same else None, link.get("old") is True

    async def keep(self, server: str, tokens: Tokens, *, old: bool) -> None:
        key = server if "?" in (tokens.resource or "") else _plain(server)
        await self._write_all(
            {
                self._tokens_key(tokens.issuer, tokens.resource, server): tokens.record(),
                self._server_key(key): {"issuer": tokens.issuer, "resource": tokens.resource, "old": old},
            }
        )

    async def drop(self, server: str, tokens: Tokens) -> None:
        """Forget these. Others that took their place stay: they are another process's, and may be good."""
        key = self._tokens_key(tokens.issuer, tokens.resource, server)
        stored = from_record(await self.read(key))
        if stored is None or stored.refresh == tokens.refresh:
            await self.write(key, None)

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
        plain, _, query = server.partition("?")
        # A query may hold a key of some kind, which has no place in a file.
        digest = f"?{sha256(query.encode()).hexdigest()[:32]}" if query else ""
        return f"server {self._profile} {plain}{digest}"

    def _tokens_key(self, issuer: str, resource: str | None, server: str) -> str:
        return f"tokens {self._profile} {issuer} {resource or _plain(server)}"

    # -- the issuer of credentials that the caller gave

    async def bind(self, client_id: str, issuer: str, *, insists: bool) -> None:
        """Credentials belong to the issuer that they were first used with, whichever server named it.

        `client_id` is empty for a workload, which has no name. `insists`: the caller named the issuer, which counts
        more than what was before. Raises AuthorizationError.
        """
        name = f"client_id {shown(client_id)}" if client_id else "assertion"
        key = f"bound {client_id or 'workload'}"
        bound = await self._first(key, issuer)
        if bound != issuer and not insists:
            what = f"the server names the authorization server {shown(issuer)}, and the {name} was used with"
            fix = "If it is for the new one too, give its name by issuer="
            raise AuthorizationError(f"{what} {shown(bound)}; what is for one is never shown to another. {fix}")

    async def _first(self, key: str, issuer: str) -> str:
        """The issuer that has this name already, else it is this one from now on."""
        bound = await self._read_bound(key)
        if bound is None:
            async with self.alone():  # two processes may have no issuer yet, and two different ones now
                bound = self._bound.setdefault(key, await self._read_bound(key) or issuer)
                await self.write(key, {"issuer": bound})
        return bound

    async def _read_bound(self, key: str) -> str | None:
        found = self._bound.get(key) or (await self.read(key) or {}).get("issuer")
        return found if isinstance(found, str) else None

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
    """A server's URL in one form, without a fragment."""
    bare = url.partition("#")[0]
    parts = split(bare)
    if parts is None:
        raise AuthorizationError(unusable(bare))
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path or "/", parts.query, ""))


def _plain(server: str) -> str:
    return server.partition("?")[0]
