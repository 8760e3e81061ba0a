"""Where registrations and tokens are stored: in memory, in a file, or in the system's keyring.

A record is a JSON object under a key that names its issuer. The file is the default: readable by its owner only,
replaced as a whole, and changed under a lock, because several processes of one user log in at once.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from os import PathLike
from typing import Any, Protocol, TypeAlias, final

import msgspec

from longshore.errors import AuthorizationError
from longshore.files import read_regular, user_directory, write_atomic

Record: TypeAlias = dict[str, Any]

LOCK_SECONDS = 5.0
"""For another process to release the file: it writes a few KiB."""
RENEW_SECONDS = 25.0
"""For another process to renew tokens."""
MOST_BYTES = 4 << 20
"""Of the file. A login takes a few KiB, so a larger file is not ours, and none is written."""
_FILE = "oauth.json"


class Storage(Protocol):
    """Stores records. Its methods may block; they are called on a thread. They raise OSError on failure.

    Optional methods: `alone()` of a storage that processes share waits until no other process renews tokens, and
    returns a function that releases that lock; `write_all(records)` writes several records in one step.
    """

    def read(self, key: str) -> Record | None: ...

    def write(self, key: str, record: Record | None) -> None:
        """Write a record; None deletes it."""
        ...


@final
class MemoryStorage:
    """Stores records until the process ends."""

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
        self.path: str = os.path.abspath(os.fspath(path)) if path is not None else _default_path()

    def read(self, key: str) -> Record | None:
        return self._load().get(key)

    def write(self, key: str, record: Record | None) -> None:
        self.write_all({key: record})

    def write_all(self, changed: Mapping[str, Record | None]) -> None:
        """Write or delete several records, all or none of them."""
        with self._locked():
            records = {**self._load(repair=True), **changed}
            self._save({key: record for key, record in records.items() if record is not None})

    def _load(self, *, repair: bool = False) -> dict[str, Record]:
        """All records. A malformed file counts as empty; `repair` renames it before it is replaced."""
        try:
            data, status = read_regular(self.path, MOST_BYTES)
        except FileNotFoundError:
            return {}
        _check(status, self.path)
        try:
            if len(data) <= MOST_BYTES:
                return _decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            pass
        if repair:
            os.replace(self.path, self.path + ".broken")
        return {}

    def _save(self, records: Mapping[str, Record]) -> None:
        data = msgspec.json.format(msgspec.json.encode(records), indent=2) + b"\n"
        if len(data) > MOST_BYTES:
            raise OSError(errno.EFBIG, f"it would have more than {MOST_BYTES >> 20} MiB", self.path)
        write_atomic(self.path, data, 0o600)

    def alone(self) -> Callable[[], None]:
        """Wait until no other process renews tokens."""
        return self._lock(".renew", RENEW_SECONDS)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """Lock the file among all processes."""
        release = self._lock(".lock", LOCK_SECONDS)
        try:
            yield
        finally:
            release()

    def _lock(self, suffix: str, seconds: float) -> Callable[[], None]:
        """Take a lock, and return a function that releases it. It is a separate file: the other one is replaced."""
        from fcntl import LOCK_EX, LOCK_NB, flock

        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        descriptor = os.open(self.path + suffix, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        deadline = time.monotonic() + seconds
        while True:
            try:
                flock(descriptor, LOCK_EX | LOCK_NB)
                return lambda: os.close(descriptor)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    os.close(descriptor)
                    raise TimeoutError(f"{self.path}{suffix} is held by another process") from None
                time.sleep(0.01)
            except BaseException:
                os.close(descriptor)
                raise


_decode: Callable[[bytes], dict[str, Record]] = msgspec.json.Decoder(dict[str, Record]).decode


def _check(status: os.stat_result, path: str) -> None:
    """Check that it is a file of this user, and make it private. Raises OSError.

    With a file of another user we would use their tokens, or send ours to their issuer.
    """
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "it is no file", path)
    if status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "it belongs to another user", path)
    if status.st_mode & 0o077:  # it may have been copied with another mode
        os.chmod(path, 0o600)


def _default_path() -> str:
    """The file in the user's config directory."""
    folder = user_directory("config")
    if folder is None:
        raise AuthorizationError("there is no home folder to keep tokens in; give storage=FileStorage(path)")
    return os.path.join(folder, _FILE)


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
