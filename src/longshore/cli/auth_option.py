"""The credentials of a command for a URL: given by option or variable, from an earlier login, or by a login now."""

from __future__ import annotations

import os
from typing import Any, final

import click

from longshore.cli.options import SessionOptions
from longshore.cli.target import Destination
from longshore.client.auth.discovery import AuthServer
from longshore.client.auth.flow import TokenAuthorizer
from longshore.client.auth.oauth import OAuth
from longshore.client.auth.token_store import FileStorage
from longshore.client.auth.tokens import GrantContext, Identity, Tokens
from longshore.errors import AuthorizationError
from longshore.files import read_bounded
from longshore.http_client.urls import parse_url

TOKEN_BYTES = 64 << 10
"""Most bytes of a token file: servers accept no longer header."""
VARIABLE = "LONGSHORE_AUTH_TOKEN"
"""Holds the token of a Longshore server on this machine."""


def source(place: Destination, options: SessionOptions) -> str | None:
    """Where the token comes from: --auth, else the variable.

    The variable's token is sent to loopback URLs of the command line only, never to another host or a file's URL.
    """
    if options.auth is not None or not os.environ.get(VARIABLE) or not place.is_url:
        return options.auth
    return f"env:{VARIABLE}" if isinstance(place.target, str) and parse_url(place.target).is_loopback else None


def hint(place: Destination, options: SessionOptions) -> str:
    """Advice after credentials were refused, or missing."""
    if options.auth is not None:
        return ""
    if source(place, options) is not None:
        return f"\nThe token was that of {VARIABLE}; --auth gives another."
    if os.environ.get(VARIABLE):
        return f"\n{VARIABLE} is sent to URLs of this machine only; to send it there: --auth env:{VARIABLE}"
    return "\nIf you have a token: --auth env:NAME"


def choose(given: str | None, *, person: bool) -> Any:
    """The value for `Client(auth=…)`. Raises click.UsageError."""
    if given == "none":
        return None
    if given is not None:
        from longshore.client.auth.authorizer import Bearer

        try:
            return Bearer(read_token(given))
        except ValueError as problem:
            raise click.UsageError(f"--auth: {problem}") from None
    try:
        return OAuth() if person else Stored()
    except AuthorizationError:
        return None  # no folder for tokens; most servers need none


def read_token(given: str) -> str:
    """The token of `TOKEN`, `env:NAME` or `@FILE`. Raises click.UsageError."""
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


@final
class Stored(TokenAuthorizer):
    """The tokens of an earlier login, refreshed as needed. Without a terminal there is no new login."""

    needs_person = True

    def __init__(self) -> None:
        super().__init__(FileStorage(), "", None, "auto", None)
        self._login = OAuth()

    async def obtain(self, context: GrantContext) -> Tokens:
        if context.server.assumed:
            raise AuthorizationError("it wants a token, and says nowhere how to get one by OAuth")
        what = "it wants a login, which needs a terminal"
        raise AuthorizationError(f"{what}; log in with the same command on a terminal")

    def identify(self, server: AuthServer, client: Identity) -> Identity | None:
        return self._login.identify(server, client)

    async def refused(self, server: AuthServer, client_id: str, error: str) -> None:
        await self._login.refused(server, client_id, error)
