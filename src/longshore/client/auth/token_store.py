"""Where registrations and tokens are stored: in memory, in a file, or in the system's keyring.

A record is a JSON object under a key. The file is the default: readable by its owner only, replaced as a whole, and
changed under a lock, because several processes of one user log in at once.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
import sys
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from contextlib import asynccontextmanager
from functools import partial
from hashlib import sha256
from importlib import import_module
from os import PathLike
from typing import Any, Protocol, TypeAlias, final
from weakref import WeakKeyDictionary

import msgspec

from longshore.client.auth.oauth_http import shown
from longshore.client.auth.tokens import Tokens, read_tokens
from longshore.errors import AuthorizationError
from longshore.files import read_regular, user_directory, write_atomic

Record: TypeAlias = dict[str, Any]
Release: TypeAlias = Callable[[], None]

LOCK_SECONDS = 5.0
"""For another process to release the file: it writes a few KiB."""
RENEW_SECONDS = 25.0
"""For another process to renew tokens."""
_POLL_SECONDS = 0.01
MOST_BYTES = 4 << 20
"""Of the file. A login takes a few KiB, so a larger file is not ours, and none is written."""


class Storage(Protocol):
    """Stores records. Its methods may block; they are called on a thread. They raise OSError on failure.

    Optional: `try_lock()` of a storage that processes share takes the lock for renewing tokens, without waiting for
    its holder, and returns a function that releases it and does not block; None if another process has it.
    """

    def read(self, key: str) -> Record | None:
        """The record of a key; None if there is none."""
        ...

    def write(self, key: str, record: Record | None) -> None:
        """Write a record; None deletes it."""
        ...


@final
class MemoryStorage:
    """Stores records in the memory of the process."""

    def __init__(self) -> None:
        self._records: dict[str, Record] = {}

    def read(self, key: str) -> Record | None:
        return self._records.get(key)

    def write(self, key: str, record: Record | None) -> None:
        if record is None:
            self._records.pop(key, None)
        else:
            self._records[key] = record


@final
class FileStorage:
    """Stores records in one JSON file of mode 600: `path`, else `longshore/oauth.json` in the user's config folder."""

    def __init__(self, path: str | PathLike[str] | None = None) -> None:
        folder = user_directory("config") if path is None else ""
        if folder is None:
            raise AuthorizationError("there is no home folder to keep tokens in; give storage=FileStorage(path)")
        self.path: str = os.path.abspath(os.path.join(folder, path or "oauth.json"))

    def read(self, key: str) -> Record | None:
        return (self._load() or {}).get(key)

    def write(self, key: str, record: Record | None) -> None:
        deadline = time.monotonic() + LOCK_SECONDS
        while (release := self.try_lock(".lock")) is None:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.path}.lock is held by another process")
            time.sleep(_POLL_SECONDS)
        try:
            records = self._load()
            if records is None:
                os.replace(self.path, self.path + ".broken")
            records = {**(records or {}), key: record}
            left = {name: each for name, each in records.items() if each is not None}
            data = msgspec.json.format(msgspec.json.encode(left), indent=2) + b"\n"
            if len(data) > MOST_BYTES:
                raise OSError(errno.EFBIG, f"it would have more than {MOST_BYTES >> 20} MiB", self.path)
            write_atomic(self.path, data, 0o600)
        finally:
            release()

    def _load(self) -> dict[str, Record | None] | None:
        """All records; None if the file is malformed. Raises OSError.

        With a file of another user we would use their tokens, or send ours to their issuer.
        """
        try:
            data, status = read_regular(self.path, MOST_BYTES)
        except FileNotFoundError:
            return {}
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "it is no file", self.path)
        if status.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, "it belongs to another user", self.path)
        if status.st_mode & 0o077:  # it may have been copied with another mode
            os.chmod(self.path, 0o600)
        try:
            return msgspec.json.decode(data, type=dict[str, Record | None]) if len(data) <= MOST_BYTES else None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def try_lock(self, suffix: str = ".renew") -> Release | None:
        """Take a lock, a separate file since the other one is replaced. It ends with the process at the latest."""
        from fcntl import LOCK_EX, LOCK_NB, flock

        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        descriptor = os.open(self.path + suffix, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            flock(descriptor, LOCK_EX | LOCK_NB)
        except OSError as problem:
            os.close(descriptor)
            if isinstance(problem, BlockingIOError):
                return None
            raise
        return partial(os.close, descriptor)


@final
class KeyringStorage:
    """Stores records in the system's keyring. Needs the library `keyring`."""

    def __init__(self, service: str = "longshore") -> None:
        try:
            self._keyring: Any = import_module("keyring")
        except ImportError:
            fix = "install it with: pip install keyring, or leave storage= out to keep tokens in a file"
            raise AuthorizationError(f"KeyringStorage needs the library keyring; {fix}") from None
        self._service = service

    def read(self, key: str) -> Record | None:
        try:
            found: Any = self._keyring.get_password(self._service, key)
        except Exception as problem:  # each backend has its own
            raise OSError(f"the keyring can't be read: {type(problem).__name__}") from None
        try:
            return msgspec.json.decode(found, type=dict[str, Any]) if isinstance(found, str) else None
        except (msgspec.MsgspecError, RecursionError):
            return None

    def write(self, key: str, record: Record | None) -> None:
        try:
            if record is not None:
                self._keyring.set_password(self._service, key, msgspec.json.encode(record).decode())
            elif self._keyring.get_password(self._service, key) is not None:
                self._keyring.delete_password(self._service, key)
        except Exception as problem:
            raise OSError(f"the keyring can't be written: {type(problem).__name__}") from None


@final
class TokenStore:
    """The tokens and registrations of one configured client. `profile` names it: no other shares tokens with it.

    A storage that fails does not make a login fail: records that could not be written stay in memory, with one
    warning on stderr.
    """

    def __init__(self, storage: Storage, profile: str) -> None:
        self._storage = storage
        self._profile = profile or "-"
        self._unwritten: dict[str, Record | None] = {}
        """Records that the storage failed to write, None where it failed to delete."""
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
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
        try:
            await asyncio.to_thread(self._storage.write, key, record)
        except OSError as problem:
            self._unwritten[key] = record
            self._warn("written", problem)
        else:
            self._unwritten.pop(key, None)

    def _warn(self, done: str, problem: OSError) -> None:
        if not self._warned:
            self._warned = True
            where = f" ({problem.filename})" if problem.filename else ""
            why = f"{problem.strerror or problem}; you will have to log in again next time"
            try:
                sys.stderr.write(f"longshore: the tokens could not be {done}{where}: {why}\n")
            except (OSError, ValueError, AttributeError):
                pass  # stderr is closed

    def lock(self) -> asyncio.Lock:
        """A lock within this process and event loop."""
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    @asynccontextmanager
    async def process_lock(self) -> AsyncGenerator[None]:
        """A lock among all processes that share the storage: two that use one refresh token at once lose it.

        If the storage has no such lock, or it can't be taken in time, the work is done without.
        """
        take: Callable[[], Release | None] | None = getattr(self._storage, "try_lock", None)
        release: Release | None = None
        deadline = time.monotonic() + RENEW_SECONDS
        try:
            while take and (release := await _take_lock(take)) is None and time.monotonic() < deadline:
                await asyncio.sleep(_POLL_SECONDS)
        except OSError:
            pass
        try:
            yield
        finally:
            if release is not None:
                release()

    # -- the tokens of a server

    async def tokens(self, server: str) -> Tokens | None:
        """The tokens for a server: those for its very query, else those for any."""
        found = read_tokens(await self.read(self._key(server)))
        return found or read_tokens(await self.read(self._key(server.partition("?")[0])))

    async def save_tokens(self, server: str, tokens: Tokens) -> None:
        """Save tokens, for any query of the server unless their resource has one."""
        await self.write(self._key(server, tokens), msgspec.to_builtins(tokens))

    async def delete_tokens(self, server: str, tokens: Tokens) -> None:
        """Delete these tokens, but not newer ones of another process."""
        key = self._key(server, tokens)
        stored = read_tokens(await self.read(key))
        if stored is None or stored.refresh == tokens.refresh:
            await self.write(key, None)

    def _key(self, server: str, tokens: Tokens | None = None) -> str:
        plain, _, query = server.partition("?")
        if not query or (tokens is not None and "?" not in (tokens.resource or "")):
            return f"tokens {self._profile} {plain}"
        # A query may hold a secret, which must not be in a file.
        return f"tokens {self._profile} {plain}?{sha256(query.encode()).hexdigest()[:32]}"

    # -- the issuer of credentials that the caller gave

    async def bind(self, credential: str, issuer: str, *, given: bool) -> None:
        """Bind the caller's credentials to the issuer that they are first used with, whichever server names it.

        `credential` is a client_id, or empty for the assertion of a workload. `given`: the caller named the issuer,
        which overrides an earlier one. Raises AuthorizationError.
        """
        key = f"bound {credential or 'workload'}"
        bound = (await self.read(key) or {}).get("issuer")
        if bound is None:
            async with self.lock(), self.process_lock():  # another server or process may bind it at the same time
                bound = (await self.read(key) or {}).get("issuer", issuer)
                await self.write(key, {"issuer": bound})
        if bound != issuer and not given:
            name = f"client_id {shown(credential)}" if credential else "assertion"
            what = f"the server names the authorization server {shown(issuer)}, and the {name} was used with"
            fix = "If it is for the new one too, give its name by issuer="
            raise AuthorizationError(f"{what} {shown(str(bound))}; what is for one is never shown to another. {fix}")


async def _take_lock(take: Callable[[], Release | None]) -> Release | None:
    """Take a lock on a thread. If the caller is cancelled meanwhile, the lock is released once it is taken."""
    taken: Future[Release | None] = Future()
    try:
        await asyncio.to_thread(lambda: taken.set_result(take()))
    except asyncio.CancelledError:
        taken.add_done_callback(_release)
        raise
    return taken.result()


def _release(taken: Future[Release | None]) -> None:
    release = taken.result()
    if release is not None:
        release()
