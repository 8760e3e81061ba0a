"""TokenStore: registrations by issuer, tokens by issuer and resource, and which of them a server uses.

A storage that fails does not make a login fail: records that could not be written stay in memory, with one warning on
stderr.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import final
from urllib.parse import urlunsplit

import msgspec

from longshore.client.auth.token_endpoint import Tokens, read_tokens
from longshore.client.auth.token_storage import Record, Storage
from longshore.client.auth.url_policy import explain_server_url, plain_url, shown
from longshore.errors import AuthorizationError


@final
class TokenStore:
    """The records of one configured client. `profile` names it: another client shares no tokens with it."""

    def __init__(self, storage: Storage, profile: str) -> None:
        self._storage = storage
        self._profile = profile or "-"
        self._unwritten: dict[str, Record | None] = {}
        """Records that the storage failed to write, None where it failed to delete."""
        self._bound: dict[str, str] = {}
        self._locks: tuple[asyncio.AbstractEventLoop, dict[str, asyncio.Lock]] | None = None
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
        """Write several records, in one step if the storage can do that."""
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

    def lock(self, name: str) -> asyncio.Lock:
        """A lock within this process and event loop."""
        loop = asyncio.get_running_loop()
        if self._locks is None or self._locks[0] is not loop:
            self._locks = loop, {}
        return self._locks[1].setdefault(name, asyncio.Lock())

    @asynccontextmanager
    async def process_lock(self) -> AsyncGenerator[None]:
        """A lock among all processes that share the storage: two that use one refresh token at once lose it.

        If the storage has no such lock, or it can't be taken in time, the work is done without.
        """
        take: Callable[[], Callable[[], None]] | None = getattr(self._storage, "alone", None)
        release = await _take_lock(take) if take else None
        try:
            yield
        finally:
            if release is not None:
                release()

    # -- the tokens of a server

    async def tokens(self, server: str) -> tuple[Tokens | None, bool]:
        """The tokens for a server, and whether it is a server without metadata (2025-03-26)."""
        link = await self.read(self._server_key(server))
        if link is None and "?" in server:
            link = await self.read(self._server_key(_without_query(server)))
        issuer, resource = (link or {}).get("issuer"), (link or {}).get("resource")
        if link is None or not isinstance(issuer, str) or not isinstance(resource, (str, type(None))):
            return None, False
        found = read_tokens(await self.read(self._tokens_key(issuer, resource, server)))
        same = found is not None and found.issuer == issuer and found.resource == resource
        return found if same else None, link.get("old") is True

    async def save_tokens(self, server: str, tokens: Tokens, *, without_metadata: bool) -> None:
        key = server if "?" in (tokens.resource or "") else _without_query(server)
        link = {"issuer": tokens.issuer, "resource": tokens.resource, "old": without_metadata}
        tokens_key = self._tokens_key(tokens.issuer, tokens.resource, server)
        await self._write_all({tokens_key: msgspec.to_builtins(tokens), self._server_key(key): link})

    async def delete_tokens(self, server: str, tokens: Tokens) -> None:
        """Delete these tokens, but not newer ones of another process."""
        key = self._tokens_key(tokens.issuer, tokens.resource, server)
        stored = read_tokens(await self.read(key))
        if stored is None or stored.refresh == tokens.refresh:
            await self.write(key, None)

    def _server_key(self, server: str) -> str:
        plain, _, query = server.partition("?")
        # A query may hold a secret, which must not be in a file.
        digest = f"?{sha256(query.encode()).hexdigest()[:32]}" if query else ""
        return f"server {self._profile} {plain}{digest}"

    def _tokens_key(self, issuer: str, resource: str | None, server: str) -> str:
        return f"tokens {self._profile} {issuer} {resource or _without_query(server)}"

    # -- the issuer of credentials that the caller gave

    async def bind(self, client_id: str, issuer: str, *, given: bool) -> None:
        """Bind the caller's credentials to the issuer that they are first used with, whichever server names it.

        `client_id` is empty for a workload. `given`: the caller named the issuer, which overrides an earlier one.
        Raises AuthorizationError.
        """
        name = f"client_id {shown(client_id)}" if client_id else "assertion"
        bound = await self._first_issuer(f"bound {client_id or 'workload'}", issuer)
        if bound != issuer and not given:
            what = f"the server names the authorization server {shown(issuer)}, and the {name} was used with"
            fix = "If it is for the new one too, give its name by issuer="
            raise AuthorizationError(f"{what} {shown(bound)}; what is for one is never shown to another. {fix}")

    async def _first_issuer(self, key: str, issuer: str) -> str:
        bound = await self._read_bound(key)
        if bound is None:
            async with self.process_lock():  # another process may bind it at the same time
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
            pass  # stderr is closed


async def _take_lock(take: Callable[[], Callable[[], None]]) -> Callable[[], None] | None:
    taking = asyncio.ensure_future(asyncio.to_thread(take))
    try:
        return await asyncio.shield(taking)
    except OSError:
        return None
    except asyncio.CancelledError:
        taking.add_done_callback(_release)  # the thread may still get it
        raise


def _release(taking: asyncio.Future[Callable[[], None]]) -> None:
    if not taking.cancelled() and taking.exception() is None:
        taking.result()()


def server_key(url: str) -> str:
    """A server's URL in one form, without a fragment."""
    bare = url.partition("#")[0]
    parts = plain_url(bare)
    if parts is None:
        raise AuthorizationError(explain_server_url(bare))
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path or "/", parts.query, ""))


def _without_query(server: str) -> str:
    return server.partition("?")[0]
