"""How a command gets credentials for a URL: as it was told, from an earlier login, or by one now."""

from __future__ import annotations

import os
from typing import Any, final

import click

from longshore.client.oauth.granter import Granter
from longshore.client.oauth.holder import Need
from longshore.client.oauth.identity import Identity
from longshore.client.oauth.login import OAuth
from longshore.client.oauth.storage import FileStorage
from longshore.client.oauth.tokens import Tokens
from longshore.errors import AuthorizationError
from longshore.files import read_bounded

TOKEN_BYTES = 64 << 10
"""A file that holds a token. One goes into a header of each request, where servers take no more than that."""
HOW = "log in by the same command on a terminal, or give a token: --auth env:NAME"


class NobodyToLogIn(AuthorizationError):
    """Somebody would have to log in, and nobody is there. It says how to go on."""

    def __init__(self) -> None:
        super().__init__(f"it wants a login, and nobody is at a terminal; {HOW}")


def choose(given: str | None, *, person: bool) -> Any:
    """What `Client(auth=…)` takes. Raises click.UsageError."""
    if given == "none":
        return None
    if given is not None:
        return _bearer(_token(given))
    try:
        return OAuth() if person else Stored()
    except AuthorizationError:
        return None  # there is no folder to keep tokens in; most servers ask for none


def _token(given: str) -> str:
    if given.startswith("env:"):
        name = given.removeprefix("env:")
        found = os.environ.get(name)
        if found is None:
            raise click.UsageError(f"--auth: the variable {name} is not set")
        return found
    if given.startswith("@"):
        try:
            data = read_bounded(given[1:], TOKEN_BYTES)
            if len(data) <= TOKEN_BYTES:
                return data.decode()
        except (OSError, ValueError) as problem:
            raise click.UsageError(f"--auth: {given[1:]} can't be read: {problem}") from None
        raise click.UsageError(f"--auth: {given[1:]} has more than {TOKEN_BYTES:,} bytes, and no token has")
    return given


def _bearer(token: str) -> Any:
    from longshore.client.oauth.authorizer import Bearer

    try:
        return Bearer(token)
    except ValueError as problem:
        raise click.UsageError(f"--auth: {problem}") from None


@final
class Stored(Granter):
    """The tokens of an earlier login, renewed as they were meant to be. Nobody is there to log in anew."""

    refreshable = True

    def __init__(self) -> None:
        super().__init__(FileStorage(), "", None, "auto", None)
        self._login = OAuth()

    async def obtain(self, need: Need) -> Tokens:  # noqa: ARG002 - whatever it is
        raise NobodyToLogIn

    async def identify(self, need: Need) -> Identity | None:
        return await self._login.identify(need)

    async def refused(self, need: Need, error: str) -> None:
        await self._login.refused(need, error)
