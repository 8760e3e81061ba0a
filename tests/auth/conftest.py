"""An authorization server, a clock, and a guard made of a few settings."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from longshore.auth import Guard, Refusal
from longshore.config.sections import AuthConfig, TokenConfig
from longshore.errors import ConfigError
from longshore.protocol.peer import Principal

from .issuer import Clock, Issuer, serving

RESOURCE = "https://mcp.example.com/mcp"
METADATA = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp"


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with serving() as found:
        yield found


@pytest.fixture
def clock() -> Clock:
    return Clock()


def guard(
    tokens: dict[str, TokenConfig] | None = None,
    *,
    resource: str = RESOURCE,
    extra_token: str | None = None,
    clock: Clock | None = None,
    **settings: Any,
) -> Guard:
    hooks = {name: settings.pop(name) for name in ("report", "known_scopes", "resource_name") if name in settings}
    auth = AuthConfig(**settings)
    return Guard(auth, tokens or {}, resource=resource, extra_token=extra_token, clock=clock or Clock(), **hooks)


def error(tokens: dict[str, TokenConfig] | None = None, **settings: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        guard(tokens, **settings)
    return str(caught.value)


def bearer(token: str) -> dict[bytes, bytes]:
    return {b"authorization": b"Bearer " + token.encode()}


def look_up(found: Guard, headers: dict[bytes, bytes], same_origin: bool = True) -> Principal | Refusal:
    """As a server would: at once if that works, else by waiting."""

    async def main() -> Principal | Refusal:
        async with asyncio.timeout(20):
            settled = found.check(headers, same_origin)
            return await found.look_up(headers, same_origin) if settled is None else settled

    return asyncio.run(main())


def principal(outcome: object) -> Principal:
    assert isinstance(outcome, Principal), outcome
    return outcome


def refusal(outcome: object) -> Refusal:
    assert isinstance(outcome, Refusal), outcome
    return outcome
