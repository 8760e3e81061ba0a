"""StoreErrors for Redis' errors, in our own words: a server's text may repeat secrets of the request."""

from __future__ import annotations

import os
import re
import socket
import ssl
from typing import final

from redis import exceptions

from longshore.errors import StoreError

_ANSWERS = {
    "NOAUTH": ("asks for a password", "put it into http.store: redis://:password@host"),
    "WRONGPASS": ("does not accept this user and password", "correct them in http.store"),
    "NOPERM": ("does not let this user do what a store needs", "grant it: ~longshore:* &longshore:* +@all"),
    "OOM": ("is out of memory", "raise its maxmemory"),
    "MISCONF": ("can't write its data to disk", "see its log, and make room there"),
    "READONLY": ("is a replica that takes no writes", "name the primary in http.store"),
    "LOADING": ("is still loading its data", "wait until it has"),
    "BUSY": ("is busy with a script", "end that with SCRIPT KILL"),
    "MOVED": ("is part of a cluster", "name a server on its own in http.store"),
    "CROSSSLOT": ("is part of a cluster", "name a server on its own in http.store"),
}
"""By the word that the server's answer begins with."""

_CLASSES: dict[type[BaseException], str] = {
    exceptions.OutOfMemoryError: "OOM",
    exceptions.BusyLoadingError: "LOADING",
    exceptions.ReadOnlyError: "READONLY",
    exceptions.NoPermissionError: "NOPERM",
    exceptions.MovedError: "MOVED",
    exceptions.ClusterCrossSlotError: "CROSSSLOT",
}
"""Answers from which the library removes that word."""

FULL = "max number of clients"


@final
class RedisErrors:
    """Makes StoreErrors for one server, from its address without the password."""

    def __init__(self, where: str, seconds: float) -> None:
        self._where, self._seconds = where, seconds

    def explain(self, error: BaseException) -> StoreError:
        if isinstance(error, exceptions.AuthenticationError):
            return self._answer("NOAUTH" if "required" in str(error) else "WRONGPASS")
        code = _CLASSES.get(type(error))
        if code is not None:
            return self._answer(code)
        if isinstance(error, exceptions.ResponseError):
            words = [word.strip("-:") for word in str(error).split()]
            return self._answer(next((word for word in words if word in _ANSWERS), ""))
        return StoreError(
            self._where, f"Redis can't be reached ({self._reason(error)})", "start it, or correct http.store"
        )

    def closed(self) -> StoreError:
        return StoreError(self._where, "the store is closed", "open a new one")

    def _answer(self, code: str) -> StoreError:
        what, fix = _ANSWERS.get(
            code, ("refuses a command", "see whether it is Redis 5 or newer, and what its log says")
        )
        return StoreError(self._where, f"Redis {what}", fix)

    def _reason(self, error: BaseException) -> str:
        """The system's reason, found among the causes of the library's exception."""
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, (TimeoutError, exceptions.TimeoutError)):
                return f"no answer within {self._seconds:g} s"
            if isinstance(cause, ssl.SSLCertVerificationError):
                return f"its certificate is not valid: {cause.verify_message}"
            if isinstance(cause, ssl.SSLError):
                return "it does not speak TLS as we do"
            if isinstance(cause, OSError) and (reason := _system_reason(cause)):
                return reason
            cause = cause.__cause__ or cause.__context__
        return "it has too many clients" if FULL in str(error) else "the connection was lost"


def _system_reason(error: OSError) -> str | None:
    """The text of the error number; asyncio puts addresses into its text, and several errors into one."""
    if isinstance(error, socket.gaierror):
        return error.strerror
    number = re.search(r"\[Errno (\d+)\]", str(error))
    return os.strerror(int(number[1])) if number else None
