"""Static tokens: from the configuration, the environment, a file, or as a SHA-256. Only digests stay in memory."""

from __future__ import annotations

import hmac
import os
import re
import stat
from hashlib import sha256
from typing import final

from longshore.auth.credentials import MOST_BYTES, TOKEN
from longshore.config.sections import ENV_MARK, AuthConfig, TokenConfig, dotted, env_form
from longshore.errors import ConfigError
from longshore.files import read_regular
from longshore.protocol.peer import Principal

LEAST_CHARACTERS = 16
"""A shorter token can be guessed: 16 characters of hex hold 64 bits."""

OWNER = "token"
"""The caller of `auth.token`."""

_RESERVED = (OWNER, "local")
_NAME = re.compile(r"[A-Za-z0-9_.@+-]{1,64}")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_MAKE_ONE = "make one with: openssl rand -hex 32"


@final
class StaticTokens:
    """The static tokens of a server. `warnings` are for its operator."""

    def __init__(self, auth: AuthConfig, tokens: dict[str, TokenConfig], extra: str | None) -> None:
        self.warnings: list[str] = []
        self._tokens: dict[bytes, Principal] = {}
        """Callers by the digests of their tokens."""
        self._keys: dict[bytes, str] = {}
        if extra is not None:
            self._add("the token of this start", OWNER, _digest("the token of this start", extra), None)
        self._read_owner(auth)
        for name, token in tokens.items():
            if not _is_spelled_out(name, tokens):
                self._read(name, token)

    def __len__(self) -> int:
        return len(self._tokens)

    def find(self, digest: bytes) -> Principal | None:
        """The caller of the token with this digest. Every one is compared, so the time says nothing about any."""
        found: Principal | None = None
        for known, principal in self._tokens.items():
            if hmac.compare_digest(known, digest):
                found = principal
        return found

    def _read_owner(self, auth: AuthConfig) -> None:
        if auth.token is not None and auth.token_file is not None:
            raise ConfigError("auth.token and auth.token_file are both set; keep one")
        if auth.token is not None:
            self._add("auth.token", OWNER, _digest("auth.token", auth.token), None)
        if auth.token_file is not None:
            self._add("auth.token_file", OWNER, self._from_file("auth.token_file", auth.token_file), None)

    def _read(self, name: str, token: TokenConfig) -> None:
        table = dotted(("tokens", name))
        given = [key for key in ("token", "token_file", "sha256") if getattr(token, key) is not None]
        if len(given) != 1:
            what = f"{' and '.join(given)} are set; keep one" if given else "no token; set token_file, sha256 or token"
            raise ConfigError(f"{table}: {what}")
        key = f"{table}.{given[0]}"
        if token.token is not None:
            digest = _digest(key, token.token)
        elif token.token_file is not None:
            digest = self._from_file(key, token.token_file)
        else:
            digest = _from_hex(key, token.sha256 or "")
        self._add(key, _caller(table, name), digest, token.scopes)

    def _add(self, key: str, name: str, digest: bytes, scopes: list[str] | None) -> None:
        twin = self._keys.setdefault(digest, key)
        if twin != key:
            raise ConfigError(f"{key}: the same token as {twin}; each caller needs one of their own")
        self._tokens[digest] = Principal(name, None if scopes is None else frozenset(scopes))

    def _from_file(self, key: str, path: str) -> bytes:
        data, open_to_all = read_file(key, path, MOST_BYTES + 2)
        if open_to_all:
            self.warnings.append(f"{key}: everyone on this machine can read {path!r}; chmod 600 it")
        text = data.decode("ascii", "replace").rstrip("\r\n")
        if not text:
            raise ConfigError(f"{key}: {path!r} is empty; {_MAKE_ONE}")
        return _digest(f"{key}: {path!r}", text)


def _is_spelled_out(name: str, tokens: dict[str, TokenConfig]) -> bool:
    """Whether the table of a variable is there under its real name too, which has the scopes."""
    if not name.startswith(ENV_MARK):
        return False
    return any(ENV_MARK + env_form(other) == name for other in tokens if not other.startswith(ENV_MARK))


def _caller(table: str, name: str) -> str:
    name = name.removeprefix(ENV_MARK).lower() if name.startswith(ENV_MARK) else name
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{table}: a caller's name has up to 64 letters, digits and any of _ . @ + -")
    if name in _RESERVED:
        raise ConfigError(f"{table}: the name is taken; choose another")
    return name


def _digest(where: str, token: str) -> bytes:
    raw = token.encode("utf-8", "replace")
    if len(token) < LEAST_CHARACTERS:
        raise ConfigError(f"{where}: shorter than {LEAST_CHARACTERS} characters; {_MAKE_ONE}")
    if len(raw) > MOST_BYTES:
        raise ConfigError(f"{where}: longer than {MOST_BYTES} bytes; {_MAKE_ONE}")
    if not TOKEN.fullmatch(raw):
        raise ConfigError(f"{where}: a token has letters, digits and any of - . _ ~ + /; {_MAKE_ONE}")
    return sha256(raw).digest()


def _from_hex(key: str, text: str) -> bytes:
    if not _SHA256.fullmatch(text):
        raise ConfigError(f"{key}: expected 64 hex digits; make them with: printf %s TOKEN | sha256sum")
    return bytes.fromhex(text)


def read_file(key: str, path: str, most: int) -> tuple[bytes, bool]:
    """Read a regular file of at most `most` bytes; also whether every user may read it.

    Raises a ConfigError that names key and file.
    """
    try:
        data, found = read_regular(os.path.expanduser(path), most)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = (getattr(error, "strerror", None) or "not a path").lower()
        raise ConfigError(f"{key}: {path!r} can't be read: {reason}") from None
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{key}: {path!r} is not a file")
    if len(data) > most:
        raise ConfigError(f"{key}: {path!r} is larger than {most} bytes")
    return data, bool(found.st_mode & stat.S_IROTH)
