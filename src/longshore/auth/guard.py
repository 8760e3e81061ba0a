"""Guard: headers in, a Principal or a refusal out."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from typing import Any, final
from urllib.parse import urlsplit

from longshore.auth import sources
from longshore.auth.challenge import Challenges, Refusal
from longshore.auth.credentials import Headers, Malformed, Reader, Strange
from longshore.auth.metadata import WELL_KNOWN, canonical, document, metadata_url
from longshore.auth.sources import Verifier
from longshore.auth.tokens import Tokens
from longshore.auth.verdict import Known, Rejected, Unavailable, Verified
from longshore.config.sections import AuthConfig, TokenConfig
from longshore.protocol.peer import Principal
from longshore.single_flight import SingleFlight

ANYONE = Principal()
"""Who comes in where nobody is asked."""

MOST_LOOK_UPS = 32
"""Tokens that are looked up at once, each on a thread. More are put off: they may all be made up."""

COOKIE_SECONDS = 30 * 86_400
"""How long a browser keeps a cookie whose token does not expire by itself."""

_FOREVER = float("inf")
_UNKNOWN = "the token is not one that this server knows"


@final
class Guard:
    """Checks the credential of each request.

    - `required` says whether one is asked for at all.
    - `warnings` is what the owner should be told at the start. `trouble` is why tokens can't be checked now; `report`,
      which the app sets, is called with it when it changes.
    - `known_scopes` and `resource_name` go into the metadata; the app sets them. `metadata_paths` is where it is.
    """

    def __init__(
        self,
        auth: AuthConfig,
        tokens: dict[str, TokenConfig],
        *,
        resource: str,
        extra_token: str | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.warnings: list[str] = []
        self.trouble: str | None = None
        self.report: Callable[[str], object] | None = None
        self.known_scopes: Callable[[], frozenset[str]] = frozenset
        self.resource_name: str | None = None
        self._clock = clock
        self._known = Known()
        self._lookups: SingleFlight[bytes, Principal | Refusal] = SingleFlight()
        self._closed = False
        self.metadata_paths = frozenset({WELL_KNOWN})
        self._scopes: frozenset[str] = frozenset()
        self._servers: list[str] = []
        self._verifiers: list[Verifier] = []
        self._challenges = Challenges(None, self._scopes)
        self.required = auth.mode != "off" and self._configure(auth, tokens, resource, extra_token)
        if auth.mode == "off" and (tokens or auth.token or auth.token_file or sources.has_server(auth)):
            self.warnings.append('auth.mode is "off": everyone is let in, the configured credentials are not asked for')

    def _configure(
        self, auth: AuthConfig, tokens: dict[str, TokenConfig], resource: str, extra_token: str | None
    ) -> bool:
        """Take the settings in; whether there is anything to check a credential with."""
        self._static = Tokens(auth, tokens, extra_token)
        self.warnings += self._static.warnings
        any_source = len(self._static) > 0 or sources.has_server(auth)
        sources.check(auth, any_source)
        if not any_source:
            return False
        self._resource = canonical("http.public_url", resource)
        self.metadata_paths |= {urlsplit(metadata_url(self._resource)).path}
        self._servers = sources.servers(auth)
        self._scopes = sources.check_scopes(auth)
        self._challenges = Challenges(metadata_url(self._resource) if self._servers else None, self._scopes)
        self._reader = Reader(auth.key_header, auth.cookie)
        self._cookie = auth.cookie
        audience = auth.audience or self._resource
        self._verifiers = sources.verifiers(auth, audience, self._known.forget_expiring, self._clock)
        return True

    def check(self, headers: Headers, same_origin: bool) -> Principal | Refusal | None:
        """Who this is, or why not; None if that takes a while: then `look_up` tells."""
        if not self.required:
            return ANYONE
        try:
            token = self._reader.find(headers, same_origin)
        except Strange as error:
            return self._challenges.strange(str(error))
        except Malformed as error:
            return self._challenges.malformed(str(error))
        if token is None:
            return self._challenges.missing
        digest = sha256(token).digest()
        verified = self._recall(digest)
        if verified is not None:
            if verified.expires is not None and verified.fresh <= self._clock():
                self._check_again(token, digest)
            return self._admit(verified)
        return None if self._verifier(token) else self._challenges.invalid(_UNKNOWN)

    async def look_up(self, headers: Headers, same_origin: bool) -> Principal | Refusal:
        """The same, asking the authorization server where it must."""
        settled = self.check(headers, same_origin)
        if settled is not None:
            return settled
        token = self._reader.find(headers, same_origin) or b""
        digest = sha256(token).digest()
        if self._crowded and digest not in self._lookups:
            return self._challenges.uncheckable
        return await self._lookups.run(digest, partial(self._verify, token, digest))

    def malformed(self, why: str) -> Refusal:
        """400: what was sent is no credential."""
        return self._challenges.malformed(why)

    def forbid(self, principal: Principal, needed: frozenset[str]) -> Refusal:
        """403: the caller lacks scopes. The challenge names every scope that the operation needs."""
        needed |= self._scopes
        return self._challenges.insufficient(needed, principal.lacks(needed))

    def metadata(self) -> dict[str, Any] | None:
        """The protected-resource metadata; None if no authorization server is configured."""
        if not self._servers:
            return None
        return document(self._resource, self._servers, self._scopes | self.known_scopes(), self.resource_name)

    def cookie(self, headers: Headers) -> str | Refusal:
        """The Set-Cookie value for a browser that showed a good credential in a header.

        An access token must have been let in by `look_up` before. A cookie that came along is not looked at: it may be
        the old one that this one replaces.
        """
        if not self.required or not self._cookie:
            return Refusal(404, "", "this server keeps no credentials in cookies")
        outcome = self.check(headers, same_origin=False)
        if isinstance(outcome, Refusal):
            return outcome
        token = self._reader.find(headers, same_origin=False) or b""
        verified = self._recall(sha256(token).digest())
        if verified is None:
            return self._challenges.uncheckable
        age = COOKIE_SECONDS if verified.expires is None else min(COOKIE_SECONDS, verified.expires - self._clock())
        secure = "; Secure" if self._resource.startswith("https:") else ""
        return f"{self._cookie}={token.decode()}; HttpOnly; SameSite=Strict; Path=/; Max-Age={int(age)}{secure}"

    async def close(self) -> None:
        """Let go of what is under way; whoever waits is told to try again."""
        self._closed = True
        for verifier in self._verifiers:
            verifier.close()
        await self._lookups.wait_all()

    def _recall(self, digest: bytes) -> Verified | None:
        verified = self._known.get(digest, self._clock())
        if verified is not None:
            return verified
        principal = self._static.find(digest)
        if principal is None:
            return None
        verified = Verified(principal, -_FOREVER, _FOREVER)
        self._known.keep(digest, verified)
        return verified

    @property
    def _crowded(self) -> bool:
        return self._closed or len(self._lookups) >= MOST_LOOK_UPS

    def _check_again(self, token: bytes, digest: bytes) -> None:
        """Whether the key of a known token is still there. Nobody waits: if its issuer is down, the token goes on."""
        if not self._crowded:
            self._lookups.start(digest, partial(self._verify, token, digest))

    def _admit(self, verified: Verified) -> Principal | Refusal:
        principal = verified.principal
        return self.forbid(principal, self._scopes) if self._scopes and principal.lacks(self._scopes) else principal

    def _verifier(self, token: bytes) -> Verifier | None:
        return next((verifier for verifier in self._verifiers if verifier.takes(token)), None)

    def _note(self, trouble: str) -> None:
        changed, self.trouble = trouble != self.trouble, trouble
        if changed and self.report is not None:
            self.report(trouble)

    async def _verify(self, token: bytes, digest: bytes) -> Principal | Refusal:
        verifier = self._verifier(token)
        assert verifier is not None
        try:
            verified = await verifier.verify(token)
        except Rejected as error:
            return self._challenges.invalid(str(error))
        except Unavailable as error:
            self._note(str(error))
            return self._challenges.uncheckable
        self.trouble = None
        self._known.keep(digest, verified)
        return self._admit(verified)
