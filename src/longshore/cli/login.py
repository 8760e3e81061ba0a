"""How a command gets credentials for a URL: as it was told, from an earlier login, or by one now."""

from __future__ import annotations

import os
from typing import Any, final

import click

from longshore.cli.options import Options
from longshore.cli.target import Destination
from longshore.client.auth.oauth import OAuth
from longshore.client.auth.server_credentials import GrantContext
from longshore.client.auth.token_authorizer import TokenAuthorizer
from longshore.client.auth.token_endpoint import Identity, Tokens
from longshore.client.auth.token_storage import FileStorage
from longshore.errors import AuthorizationError
from longshore.files import read_bounded
from longshore.http_client.urls import parse_url

TOKEN_BYTES = 64 << 10
"""A file that holds a token. One goes into a header of each request, where servers take no more than that."""
VARIABLE = "LONGSHORE_AUTH_TOKEN"
"""Holds the token of a server of ours, for the server and for the commands that visit it."""


def source(place: Destination, options: Options) -> str | None:
    """Where the token comes from: --auth, else the variable.

    That token is a secret of a server on this machine. No other host gets it unasked, nor a URL that a file names.
    """
    if options.auth is not None or not os.environ.get(VARIABLE) or not place.is_url:
        return options.auth
    return f"env:{VARIABLE}" if isinstance(place.target, str) and parse_url(place.target).is_loopback else None


def hint(place: Destination, options: Options) -> str:
    """What to do about credentials that were refused, or missing."""
    if options.auth is not None:
        return ""
    if source(place, options) is not None:
        return f"\nThe token was that of {VARIABLE}; --auth gives another."
    if os.environ.get(VARIABLE):
        return f"\n{VARIABLE} is sent to URLs of this machine only; to send it there: --auth env:{VARIABLE}"
    return "\nWith a token at hand: --auth env:NAME"


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
    from longshore.client.auth.authorizer import Bearer

    try:
        return Bearer(token)
    except ValueError as problem:
        raise click.UsageError(f"--auth: {problem}") from None


@final
class Stored(TokenAuthorizer):
    """The tokens of an earlier login, renewed as they were meant to be. Nobody is there to log in anew."""

    needs_person = True

    def __init__(self) -> None:
        super().__init__(FileStorage(), "", None, "auto", None)
        self._login = OAuth()

    async def obtain(self, context: GrantContext) -> Tokens:
        if context.purpose.server.assumed:
            raise AuthorizationError("it wants a token, and says nowhere how to get one by OAuth")
        what = "it wants a login, and nobody is at a terminal"
        raise AuthorizationError(f"{what}; log in by the same command on a terminal")

    async def identify(self, context: GrantContext) -> Identity | None:
        return await self._login.identify(context)

    async def refused(self, context: GrantContext, error: str) -> None:
        await self._login.refused(context, error)
