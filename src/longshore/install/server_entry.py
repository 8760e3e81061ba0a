"""The server to install: a program with its arguments, or a URL with its headers."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Program(Struct, frozen=True):
    """A server that the client starts."""

    command: str
    """An absolute path: clients start programs with a minimal PATH."""
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


class Address(Struct, frozen=True):
    """A server that is already running at a URL."""

    url: str
    headers: Mapping[str, str] = {}
    token_variable: str = ""
    """The environment variable that holds the bearer token, so that the file holds none."""


ServerEntry = Program | Address
