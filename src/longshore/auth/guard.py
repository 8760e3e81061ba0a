"""The guard of an HTTP server: the headers of a request in, a Principal or a Refusal out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any, final
from urllib.parse import urlsplit

from longshore.auth import settings
from longshore.auth.credentials import (
    OFFLINE,
    Challenges,
    CredentialReader,
    Headers,
    MalformedCredential,
    OtherScheme,
    Refusal,
)
from longshore.auth.settings import WELL_KNOWN, canonical, metadata_url
from longshore.auth.static_tokens import StaticTokens
from longshore.auth.verifiers import (
    IssuerUnavailable,
    RejectedToken,
    TokenVerifier,
    Verified,
    VerifiedTokens,
    Verifier,
    make_verifiers,
)
from longshore.config.sections import AuthConfig, TokenConfig
from longshore.protocol.peer import ANONYMOUS, Principal
from longshore.single_flight import SingleFlight

ANYONE = Principal()
"""The caller where no credential is required."""

MOST_LOOK_UPS = 32
"""Tokens that are looked up at once. More are refused with 503: they may all be invented."""

COOKIE_SECONDS = 30 * 86_400
"""How long a browser keeps the cookie of a token without an expiry."""

_FOREVER = float("inf")
_UNKNOWN = "the token is not one that this server knows"


@final
class Guard:
    """Checks the credential of each request.

    - `required`: whether a credential is required; `optional`: whether one is checked, and callers without are let in.
    - `anyone`: the caller without a credential, where none is required.
    - `warnings`: for the operator, at the start.
    - `trouble`: why tokens can't be checked now. `report` is called with it when it changes.
    - `known_scopes` and `resource_name` go into the metadata, which is served at `metadata_paths`.
    """

    def __init__(
        self,
        auth: AuthConfig,
        tokens: dict[str, TokenConfig],
        *,
        resource: str,
        extra_token: str | None = None,
        verifier: TokenVerifier | None = None,
        resource_name: str | None = None,
        known_scopes: Callable[[], frozenset[str]] = frozenset,
        report: Callable[[str], object] = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.warnings: list[str] = []
        self.trouble: str | None = None
        self._report, self._known_scopes, self._resource_name = report, known_scopes, resource_name
        self._clock = clock
        self._verified = VerifiedTokens()
        self._lookups: SingleFlight[bytes, Principal | Refusal] = SingleFlight()
        self._closed = False
        self.metadata_paths = frozenset({WELL_KNOWN})
        self._scopes: frozenset[str] = frozenset()
        self._servers: list[str] = []
        self._verifiers: list[Verifier] = []
        self._own = verifier
        self._challenges = Challenges(None, self._scopes)
        checked = auth.mode != "off" and self._configure(auth, tokens, resource, extra_token)
        self.optional = checked and auth.mode == "optional"
        self.required = checked and not self.optional
        self.anyone = ANONYMOUS if auth.mode == "optional" else ANYONE
        if auth.mode == "off" and (tokens or auth.token or auth.token_file or settings.has_server(auth)):
            self.warnings.append('auth.mode is "off": everyone is let in, the configured credentials are not asked for')

    def _configure(
        self, auth: AuthConfig, tokens: dict[str, TokenConfig], resource: str, extra_token: str | None
    ) -> bool:
        """Apply the settings; False if there is nothing to check a credential with."""
        self._static = StaticTokens(auth, tokens, extra_token)
        self.warnings += self._static.warnings
        any_verifier = len(self._static) > 0 or settings.has_server(auth) or self._own is not None
        settings.check(auth, any_verifier, self._own is not None)
        if not any_verifier:
            return False
        self._resource = canonical("http.public_url", resource)
        self.metadata_paths |= {urlsplit(metadata_url(self._resource)).path}
        self._servers = auth.authorization_servers or ([auth.issuer] if auth.issuer else [])
        self._scopes = frozenset(auth.scopes)
        self._challenges = Challenges(metadata_url(self._resource) if self._servers else None, self._scopes)
        self._reader = CredentialReader(auth.key_header, auth.cookie)
        self._cookie = auth.cookie
        audience = auth.audience or self._resource
        self._verifiers = make_verifiers(auth, audience, self._verified.clear_expiring, self._clock, self._own)
        return True

    def check(self, headers: Headers, same_origin: bool, is_local: bool = True) -> Principal | Refusal | None:
        """The caller, or why not; None if that needs the authorization server: then call `look_up`.

        An optional credential is one for callers on this machine (`is_local`).
        """
        if not (self.required or self.optional):
            return self.anyone
        try:
            token = self._reader.find(headers, same_origin)
        except OtherScheme as error:
            return self._challenges.other_scheme(str(error))
        except MalformedCredential as error:
            return self._challenges.malformed(str(error))
        if token is None:
            return self.anyone if self.optional and is_local else self._challenges.missing
        digest = sha256(token).digest()
        verified = self._find(digest)
        if verified is not None:
            if verified.expires is not None and verified.fresh <= self._clock():
                self._check_again(token, digest)
            return self._admit(verified)
        return None if self._verifier(token) else self._challenges.invalid(_UNKNOWN)

    async def look_up(self, headers: Headers, same_origin: bool) -> Principal | Refusal:
        """The same, asking the authorization server if necessary."""
        found = self.check(headers, same_origin)
        if found is not None:
            return found
        token = self._reader.find(headers, same_origin) or b""
        digest = sha256(token).digest()
        if self._crowded and digest not in self._lookups:
            return self._challenges.uncheckable
        try:
            return await self._lookups.run(digest, partial(self._verify, token, digest))
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if self._closed and not (current and current.cancelling()):
                return self._challenges.uncheckable
            raise

    def malformed(self, why: str) -> Refusal:
        """400: the request holds no well-formed credential."""
        return self._challenges.malformed(why)

    def forbid(self, principal: Principal, needed: frozenset[str]) -> Refusal:
        """403: the caller lacks scopes. The challenge names every scope that the operation needs."""
        needed |= self._scopes
        return self._challenges.insufficient(needed, principal.lacks(needed))

    def metadata(self) -> dict[str, Any] | None:
        """The protected-resource metadata; None if no authorization server is configured."""
        if not self._servers:
            return None
        scopes = sorted((self._scopes | self._known_scopes()) - {OFFLINE})
        return {
            "resource": self._resource,
            "authorization_servers": self._servers,
            "bearer_methods_supported": ["header"],
            **({"scopes_supported": scopes} if scopes else {}),
            **({"resource_name": self._resource_name} if self._resource_name else {}),
        }

    def cookie(self, headers: Headers) -> str | Refusal:
        """The Set-Cookie value for a browser that sent a valid credential in a header.

        `look_up` must have accepted an access token before. A cookie of the request is ignored: it may be the old one
        that this one replaces.
        """
        if not (self.required or self.optional) or not self._cookie:
            return Refusal(404, "", "this server keeps no credentials in cookies")
        outcome = self.check(headers, same_origin=False)
        if isinstance(outcome, Refusal):
            return outcome
        token = self._reader.find(headers, same_origin=False) or b""
        verified = self._find(sha256(token).digest())
        if verified is None:
            return self._challenges.uncheckable if token else self._challenges.missing
        age = COOKIE_SECONDS if verified.expires is None else min(COOKIE_SECONDS, verified.expires - self._clock())
        secure = "; Secure" if self._resource.startswith("https:") else ""
        return f"{self._cookie}={token.decode()}; HttpOnly; SameSite=Strict; Path=/; Max-Age={int(age)}{secure}"

    async def close(self) -> None:
        """End the look-ups that are running; their callers get 503."""
        self._closed = True
        await self._lookups.cancel_all()

    def _find(self, digest: bytes) -> Verified | None:
        verified = self._verified.get(digest, self._clock())
        if verified is not None:
            return verified
        principal = self._static.find(digest)
        if principal is None:
            return None
        verified = Verified(principal, -_FOREVER, _FOREVER)
        self._verified.add(digest, verified)
        return verified

    @property
    def _crowded(self) -> bool:
        return self._closed or len(self._lookups) >= MOST_LOOK_UPS

    def _check_again(self, token: bytes, digest: bytes) -> None:
        """Verify a cached token again in the background: while its issuer is down, it is still accepted."""
        if not self._crowded:
            self._lookups.start(digest, partial(self._verify, token, digest))

    def _admit(self, verified: Verified) -> Principal | Refusal:
        principal = verified.principal
        return self.forbid(principal, self._scopes) if self._scopes and principal.lacks(self._scopes) else principal

    def _verifier(self, token: bytes) -> Verifier | None:
        return next((verifier for verifier in self._verifiers if verifier.takes(token)), None)

    def _note(self, trouble: str) -> None:
        changed, self.trouble = trouble != self.trouble, trouble
        if changed:
            self._report(trouble)

    async def _verify(self, token: bytes, digest: bytes) -> Principal | Refusal:
        verifier = self._verifier(token)
        assert verifier is not None
        try:
            verified = await verifier.verify(token)
        except RejectedToken as error:
            return self._challenges.invalid(str(error))
        except IssuerUnavailable as error:
            self._note(str(error))
            return self._challenges.uncheckable
        self.trouble = None
        self._verified.add(digest, verified)
        return self._admit(verified)
