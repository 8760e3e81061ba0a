"""Introspection (RFC 7662): opaque tokens are looked up at the authorization server."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import final
from urllib.parse import quote_plus, urlencode

import msgspec

from longshore.auth.claims import Claims, check_audience, check_times, principal
from longshore.auth.fetch import Fetcher
from longshore.auth.verdict import Rejected, Unavailable, Verified
from longshore.config.sections import AuthConfig
from longshore.errors import ConfigError

KNOWN_SECONDS = 60.0
"""How long an answer holds. A revoked token works for at most this long after."""

_claims = msgspec.json.Decoder(Claims)


@final
class Introspection:
    """Looks tokens up at one endpoint."""

    def __init__(self, auth: AuthConfig, audience: str, clock: Callable[[], float]) -> None:
        if not auth.introspection_client or not auth.introspection_secret:
            missing = "introspection_secret" if auth.introspection_client else "introspection_client"
            raise ConfigError(f"auth.{missing}: not set; auth.introspection_url needs a client id and its secret")
        # RFC 6749 has both form-encoded before they are joined.
        pair = f"{quote_plus(auth.introspection_client)}:{quote_plus(auth.introspection_secret)}"
        headers = {
            "Authorization": "Basic " + b64encode(pair.encode()).decode(),
            "Content-Type": "application/x-www-form-urlencoded",
        }
        self._fetcher = Fetcher("auth.introspection_url", auth.introspection_url or "", headers)
        self._issuer = auth.issuer
        self._audience = audience
        self._clock = clock

    def takes(self, token: bytes) -> bool:  # noqa: ARG002  (a Verifier)
        """Any token can be looked up."""
        return True

    async def verify(self, token: bytes) -> Verified:
        """Whose token it is. Raises Rejected or Unavailable."""
        body = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        return self._judge(self._read(await self._fetcher.fetch(body)))

    def close(self) -> None:
        self._fetcher.close()

    def _read(self, answer: bytes) -> Claims:
        try:
            claims = _claims.decode(answer)
        except (ValueError, RecursionError):
            raise Unavailable(f"{self._fetcher.url} answered with something else than RFC 7662 says") from None
        if claims.active is None:
            raise Unavailable(f"{self._fetcher.url} did not say whether the token is active")
        return claims

    def _judge(self, claims: Claims) -> Verified:
        now = self._clock()
        if not claims.active:
            raise Rejected("the access token is unknown, has expired or was revoked")
        if self._issuer is not None and claims.iss not in (None, self._issuer):
            raise Rejected("the access token comes from another issuer")
        check_audience(claims, self._audience)
        check_times(claims, now)
        expires = now + KNOWN_SECONDS if claims.exp is None else claims.exp
        who = principal(claims, claims.iss or self._issuer or self._fetcher.origin)
        return Verified(who, now, min(now + KNOWN_SECONDS, expires), expires)
