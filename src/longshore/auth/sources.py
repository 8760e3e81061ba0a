"""Sources: what the configuration offers to check a token with, and whether that makes sense as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from longshore.auth.metadata import trusted
from longshore.auth.verdict import Verified
from longshore.config.sections import AuthConfig
from longshore.errors import ConfigError

_HOW = "set auth.token_file, [tokens.NAME], or auth.issuer and auth.jwks"


class Verifier(Protocol):
    """Checks access tokens of an authorization server; `takes` tells whether a token looks like one for it."""

    def takes(self, token: bytes) -> bool: ...
    async def verify(self, token: bytes) -> Verified: ...
    def close(self) -> None: ...


def has_server(auth: AuthConfig) -> bool:
    """Whether an authorization server is configured."""
    return auth.jwks is not None or auth.introspection_url is not None


def check(auth: AuthConfig, any_source: bool) -> None:
    """Raise for settings that would leave a door open or a wall without one."""
    if auth.mode == "required" and not any_source:
        raise ConfigError(f'auth.mode is "required", but nothing says who may come in; {_HOW}')
    if auth.jwks is not None and auth.issuer is None:
        raise ConfigError("auth.issuer: not set; auth.jwks needs it, to be compared with the `iss` of tokens")
    idle = [key for key in ("issuer", "audience", "authorization_servers") if getattr(auth, key)]
    if idle and not has_server(auth):
        raise ConfigError(f"auth.{idle[0]}: no access token can be checked; set auth.jwks or auth.introspection_url")
    for key in ("introspection_client", "introspection_secret"):
        if getattr(auth, key) is not None and auth.introspection_url is None:
            raise ConfigError(f"auth.{key}: of no use without auth.introspection_url")
    if auth.scopes and not any_source:
        raise ConfigError(f"auth.scopes: nothing checks who has them; {_HOW}")


def check_scopes(auth: AuthConfig) -> frozenset[str]:
    """The scopes that every request needs. A scope is a word."""
    for scope in auth.scopes:
        if not scope.isascii() or not scope.isprintable() or not scope or set(scope) & set(' "\\'):
            raise ConfigError('auth.scopes: a scope is printable ASCII without blanks, " and \\')
    return frozenset(auth.scopes)


def servers(auth: AuthConfig) -> list[str]:
    """The authorization servers that clients are sent to."""
    if auth.issuer is not None:
        trusted("auth.issuer", auth.issuer)
    for url in auth.authorization_servers:
        trusted("auth.authorization_servers", url)
    return auth.authorization_servers or ([auth.issuer] if auth.issuer else [])


def verifiers(auth: AuthConfig, audience: str, lost: Callable[[], None], clock: Callable[[], float]) -> list[Verifier]:
    """Who checks access tokens, in the order in which they are asked whether they take one."""
    found: list[Verifier] = []
    if auth.jwks is not None:
        found.append(_jwt(auth, audience, lost, clock))
    if auth.introspection_url is not None:
        from longshore.auth.introspection import Introspection

        found.append(Introspection(auth, audience, clock))
    return found


def _jwt(auth: AuthConfig, audience: str, lost: Callable[[], None], clock: Callable[[], float]) -> Verifier:
    # Its library is an extra.
    try:
        from longshore.auth.jwt import Jwt
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("joserfc", "cryptography"):
            raise
        raise ConfigError("auth.jwks: checking a JWT needs a package more: pip install 'longshore[jwt]'") from None
    return Jwt(auth, auth.issuer or "", audience, lost, clock)
