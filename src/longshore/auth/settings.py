"""The checks of the [auth] settings, and the URLs of the server as a protected resource (RFC 9728)."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit, urlunsplit

from longshore.addresses import is_loopback, split_url
from longshore.config.sections import AuthConfig
from longshore.errors import ConfigError

WELL_KNOWN = "/.well-known/oauth-protected-resource"
_HOW = "set auth.token_file, [tokens.NAME], or auth.issuer and auth.jwks"


def has_server(auth: AuthConfig) -> bool:
    """Whether an authorization server is configured."""
    return auth.jwks is not None or auth.introspection_url is not None


def check(auth: AuthConfig, any_verifier: bool, is_own: bool = False) -> None:
    """Refuse settings that check nothing, or that nothing could pass. Raises ConfigError.

    `is_own`: the server's author checks tokens.
    """
    if auth.mode == "required" and not any_verifier:
        raise ConfigError(f'auth.mode is "required", but nothing says who may come in; {_HOW}')
    if auth.jwks is not None and auth.issuer is None:
        raise ConfigError("auth.issuer: not set; auth.jwks needs it, to be compared with the `iss` of tokens")
    idle = [key for key in ("issuer", "audience", "authorization_servers") if getattr(auth, key)]
    if idle and not (has_server(auth) or is_own):
        raise ConfigError(f"auth.{idle[0]}: no access token can be checked; set auth.jwks or auth.introspection_url")
    for key in ("introspection_client", "introspection_secret"):
        if getattr(auth, key) is not None and auth.introspection_url is None:
            raise ConfigError(f"auth.{key}: of no use without auth.introspection_url")
    if auth.scopes and not any_verifier:
        raise ConfigError(f"auth.scopes: nothing checks who has them; {_HOW}")
    for scope in auth.scopes:
        if not scope.isascii() or not scope.isprintable() or not scope or set(scope) & set(' "\\'):
            raise ConfigError('auth.scopes: a scope is printable ASCII without blanks, " and \\')
    if auth.issuer is not None:
        trusted("auth.issuer", auth.issuer)
    for url in auth.authorization_servers:
        trusted("auth.authorization_servers", url)


def canonical(key: str, url: str) -> str:
    """A server's address in canonical form, as in `aud`: lower-case scheme and host, no fragment, no final slash."""
    parts = _split(key, url)
    return urlunsplit((parts.scheme, parts.netloc.lower(), parts.path.rstrip("/"), parts.query, ""))


def metadata_url(resource: str) -> str:
    """The URL of a resource's metadata: https://h/a/mcp → https://h/.well-known/oauth-protected-resource/a/mcp."""
    parts = urlsplit(resource)
    return urlunsplit((parts.scheme, parts.netloc, WELL_KNOWN + parts.path, parts.query, ""))


def trusted(key: str, url: str) -> SplitResult:
    """The parts of a URL for keys and secrets: https, or http on this machine. Raises ConfigError."""
    parts = _split(key, url)
    if parts.scheme != "https" and not is_loopback(parts.hostname or ""):
        raise ConfigError(f"{key}: expected an https URL; http is for loopback only")
    return parts


def _split(key: str, url: str) -> SplitResult:
    parts = split_url(url)
    if parts is None:
        raise ConfigError(f"{key}: expected an absolute http(s) URL without a user, like https://mcp.example.com/mcp")
    return parts
