"""OAuth: a person logs in, in a browser."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, final

from longshore.client.oauth.addresses import shown, split, trusted
from longshore.client.oauth.flow import authorization_url, begin, check, read_code
from longshore.client.oauth.granter import Granter
from longshore.client.oauth.holder import Need
from longshore.client.oauth.identity import METHODS, NONE, PRIVATE_KEY, Identity
from longshore.client.oauth.redirect import ELSEWHERE, Given, Late, Listener, Redirect, check_uri
from longshore.client.oauth.registration import Application, Registered, doubt, forget, recall, register
from longshore.client.oauth.storage import FileStorage, Storage
from longshore.client.oauth.tokens import GrantRefused, Tokens, ask
from longshore.errors import AuthorizationError

_UNKNOWN = ("invalid_client", "unauthorized_client")
"""What an issuer says to a client that it does not know."""


@final
class OAuth(Granter):
    """Logs a person in where a server asks for it: `Client(url, auth=OAuth())`.

    - `client_id`, `client_secret` or `private_key`: a registration that somebody made by hand. `issuer` says with
      whom, and should be given with them; otherwise it is the first authorization server that a server names.
    - `client_metadata_url`: a document on the web that describes the client, where the authorization server takes that.
    - With neither, the client registers itself, as `client_name` and `application_type`.
    - `scopes`: asked for beside those that the server asks for.
    - `redirect`: a function from the URL to open to the URL that it led back to, in place of browser and listener.
    - `storage`: where registrations and tokens are kept; a file in the user's config folder.
    - `dpop`: whether tokens are bound to a key: "auto" where the server takes such tokens.
    """

    refreshable = True

    def __init__(
        self,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        private_key: str | dict[str, Any] | None = None,
        algorithm: str = "ES256",
        client_metadata_url: str | None = None,
        client_name: str = "Longshore",
        scopes: Iterable[str] | None = None,
        redirect: Callable[[str], Any] | None = None,
        redirect_uri: str | None = None,
        storage: Storage | None = None,
        token_endpoint_auth_method: str | None = None,
        application_type: str = "native",
        issuer: str | None = None,
        dpop: bool | str = "auto",
    ) -> None:
        if application_type not in ("native", "web"):
            raise ValueError(f'application_type is "native" or "web", not {application_type!r}')
        if token_endpoint_auth_method not in (None, *METHODS):
            raise ValueError(f"token_endpoint_auth_method is one of {', '.join(METHODS)}")
        if client_id is None and client_secret is not None:
            raise ValueError("client_secret needs the client_id that it belongs to")
        if client_id is None and client_metadata_url is None and private_key is not None:
            raise ValueError("private_key needs the client_id or the client_metadata_url that it belongs to")
        super().__init__(storage or FileStorage(), client_id or client_metadata_url or "", scopes, dpop, issuer)
        self._given = client_id, client_secret, private_key, algorithm
        self._document = _document(client_metadata_url)
        self._method = token_endpoint_auth_method
        self._application = Application(client_name, application_type, token_endpoint_auth_method)
        if redirect is not None:
            from longshore.registry.arity import check_callback

            check_callback(redirect, "redirect", "url")
        self._redirect = redirect
        self._redirect_uri = check_uri(redirect_uri, listens=redirect is None) if redirect_uri else None

    async def obtain(self, need: Need) -> Tokens:
        check(need.purpose.server)
        found = await self._log_in(need, anew=False)
        if found is None:
            found = await self._log_in(need, anew=True)
        assert found is not None  # a new registration is never one of old
        return found

    async def identify(self, need: Need) -> Identity | None:
        known = await self._known(need)
        if known is not None:
            return known
        registered = await recall(need.cupboard, need.purpose.server.issuer)
        return next((each.identity for each in registered if each.client_id == need.client_id), None)

    async def refused(self, need: Need, error: str) -> None:
        if error in _UNKNOWN and need.client_id != self._given[0]:
            await forget(need.cupboard, need.purpose.server.issuer, need.client_id)

    async def _log_in(self, need: Need, *, anew: bool) -> Tokens | None:
        """One login. None: it came out that the issuer does not know an earlier registration any more.

        `anew`: earlier registrations are not used.
        """
        redirect = await self._open_redirect(need)
        try:
            identity, recalled = await self._introduce(need, redirect.uri, anew=anew)
            try:
                return await _ask_person(need, identity, redirect)
            except (GrantRefused, Late) as problem:
                if not recalled:
                    raise
                await _blame(need, identity.client_id, problem)
                return None
        finally:
            await redirect.close()

    async def _introduce(self, need: Need, redirect: str, *, anew: bool) -> tuple[Identity, bool]:
        """Who we are to this issuer: as somebody registered us, by a document, as we registered before, or anew.

        Also whether it is an earlier registration of our own, which the issuer may have forgotten.
        """
        known = await self._known(need)
        if known is not None:
            return known, False
        server = need.purpose.server
        async with need.cupboard.turn(f"register {server.issuer}"):
            for registered in await self._suiting(need):
                if registered.redirect == redirect and not anew:
                    return registered.identity, True
            if not server.registration_endpoint:
                what = f"registration: {shown(server.issuer)} lets no client register itself"
                raise AuthorizationError(f"{what}; register with it by hand and give OAuth(client_id=…)")
            scopes = need.purpose.scopes
            return await register(need.asker, need.cupboard, server, self._application, redirect, scopes), False

    async def _suiting(self, need: Need) -> list[Registered]:
        known = await recall(need.cupboard, need.purpose.server.issuer)
        return [each for each in known if each.suits(self._application, need.purpose.scopes)]

    async def _known(self, need: Need) -> Identity | None:
        """Who we are without registering."""
        client_id, secret, key, algorithm = self._given
        server = need.purpose.server
        if client_id is not None:
            await need.cupboard.bind(client_id, server.issuer, insists=self.issuer is not None)
            return Identity(client_id, secret, key, algorithm, self._method)
        if self._document is not None and server.takes_documents:
            signs = key is not None and PRIVATE_KEY in (server.auth_methods or (PRIVATE_KEY,))
            return Identity(self._document, None, key, algorithm, PRIVATE_KEY if signs else NONE)
        return None

    async def _open_redirect(self, need: Need) -> Redirect:
        if self._redirect is not None:
            return Given(self._redirect, self._redirect_uri or ELSEWHERE)
        before = await self._suiting(need)
        return await Listener.open(self._redirect_uri, before[0].redirect if before else None)


async def _ask_person(need: Need, identity: Identity, redirect: Redirect) -> Tokens:
    """Send the browser off, and give the code that it comes back with for tokens."""
    server = need.purpose.server
    attempt = begin(server, identity.client_id, redirect.uri)
    why = f"{need.server.partition('?')[0]} wants a login at {server.issuer}"
    back = await redirect.follow(authorization_url(attempt, need.purpose), attempt.state, why)
    form = {
        "grant_type": "authorization_code",
        "code": read_code(attempt, back),
        "redirect_uri": attempt.redirect,
        "code_verifier": attempt.verifier,
    }
    return await ask(need.asker, need.purpose, identity, form, "exchanging the code")


async def _blame(need: Need, client_id: str, problem: GrantRefused | Late) -> None:
    """See whether an earlier registration is why a login failed; what else it may be is raised again."""
    issuer = need.purpose.server.issuer
    if isinstance(problem, Late):
        await doubt(need.cupboard, issuer, client_id)
        what = "; if the page said that this client is not known, the next try registers it anew"
        raise Late(problem.what + what) from None
    if problem.error not in _UNKNOWN:
        raise problem
    await forget(need.cupboard, issuer, client_id)


def _document(url: str | None) -> str | None:
    if url is None:
        return None
    parts = split(trusted(url, "client_metadata_url"))
    if parts is None or parts.scheme != "https" or parts.path in ("", "/"):
        raise ValueError("client_metadata_url: expected an https URL with a path")
    return url
