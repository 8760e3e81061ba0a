"""Tokens without a login: for programs that act for themselves, or for a person whom a company's login vouches for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias, final

from longshore.client.oauth.addresses import shown, trusted
from longshore.client.oauth.asking import refusal
from longshore.client.oauth.authorizer import TOKEN
from longshore.client.oauth.calling import call
from longshore.client.oauth.granter import Granter
from longshore.client.oauth.holder import Need
from longshore.client.oauth.identity import METHODS, Identity, basic
from longshore.client.oauth.storage import MemoryStorage, Storage
from longshore.client.oauth.tokens import GrantRefused, Tokens, ask
from longshore.errors import AuthorizationError

Source: TypeAlias = str | Callable[[], str | Awaitable[str]]
"""A token of somebody else's, or a function that gets a fresh one each time."""

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 - a name
_ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"


@final
class ClientCredentials(Granter):
    """A program that acts for itself, with a secret or, better, a private key (PEM or JWK) that signs for it.

    `issuer` names the authorization server that they are for; otherwise it is the first that a server names.
    """

    def __init__(
        self,
        client_id: str,
        client_secret: str | None = None,
        private_key: str | dict[str, Any] | None = None,
        algorithm: str = "ES256",
        scopes: Iterable[str] | None = None,
        *,
        storage: Storage | None = None,
        token_endpoint_auth_method: str | None = None,
        issuer: str | None = None,
        dpop: bool | str = "auto",
    ) -> None:
        if (client_secret is None) == (private_key is None):
            raise ValueError("ClientCredentials takes a client_secret or a private_key")
        if token_endpoint_auth_method not in (None, *METHODS):
            raise ValueError(f"token_endpoint_auth_method is one of {', '.join(METHODS)}")
        super().__init__(storage or MemoryStorage(), client_id, scopes, dpop, issuer)
        self._identity = Identity(client_id, client_secret, private_key, algorithm, token_endpoint_auth_method)

    async def obtain(self, need: Need) -> Tokens:
        await bind(self, need, self._identity)
        form = _scoped({"grant_type": "client_credentials"}, need)
        return await ask(need.asker, need.purpose, self._identity, form, "client credentials")


@final
class JwtBearer(Granter):
    """A workload that its platform vouches for: `assertion` is the platform's token (RFC 7523).

    An assertion that was refused is not tried again, and nothing else is. `issuer` names the authorization server that
    it is for; otherwise it is the first that a server names.
    """

    def __init__(
        self,
        assertion: Source,
        client_id: str | None = None,
        client_secret: str | None = None,
        scopes: Iterable[str] | None = None,
        *,
        storage: Storage | None = None,
        issuer: str | None = None,
        dpop: bool | str = "auto",
    ) -> None:
        if client_id is None and client_secret is not None:
            raise ValueError("client_secret needs the client_id that it belongs to")
        super().__init__(storage or MemoryStorage(), client_id or "", scopes, dpop, issuer)
        self._assertion = _checked(assertion, "assertion")
        self._identity = Identity(client_id, client_secret) if client_id else None
        self._refused: dict[str, str] = {}
        """By issuer, what it does not take."""

    async def obtain(self, need: Need) -> Tokens:
        await bind(self, need, self._identity)
        issuer, assertion = need.purpose.server.issuer, await fetch(self._assertion, "assertion")
        if assertion == self._refused.get(issuer):
            raise AuthorizationError("workload identity: this assertion was refused before; give a fresh one")
        form = _scoped({"grant_type": JWT_BEARER, "assertion": assertion}, need)
        try:
            return await ask(need.asker, need.purpose, self._identity, form, "workload identity")
        except GrantRefused as refused:
            if refused.error == "invalid_grant":
                self._refused[issuer] = assertion
            raise


@final
class EnterpriseManaged(Granter):
    """A person whom a company's login vouches for: `id_token` comes from that login, and nobody is asked again.

    The login's token endpoint exchanges it for a grant to the server's authorization server (RFC 8693), which gives the
    token (RFC 7523).
    """

    def __init__(
        self,
        *,
        id_token: Source,
        idp_token_endpoint: str,
        idp_client_id: str,
        client_id: str,
        client_secret: str | None = None,
        idp_client_secret: str | None = None,
        scopes: Iterable[str] | None = None,
        storage: Storage | None = None,
        issuer: str | None = None,
        dpop: bool | str = "auto",
    ) -> None:
        super().__init__(storage or MemoryStorage(), client_id, scopes, dpop, issuer)
        self._id_token = _checked(id_token, "id_token")
        self._idp = trusted(idp_token_endpoint, "idp_token_endpoint")
        self._idp_client = idp_client_id, idp_client_secret
        self._identity = Identity(client_id, client_secret)

    async def obtain(self, need: Need) -> Tokens:
        await bind(self, need, self._identity)
        grant = await self._exchange(need)
        form = _scoped({"grant_type": JWT_BEARER, "assertion": grant}, need)
        return await ask(need.asker, need.purpose, self._identity, form, "enterprise authorization")

    async def _exchange(self, need: Need) -> str:
        """The grant for this server's issuer, from the company's login."""
        step, subject = "enterprise login", await fetch(self._id_token, "id_token")
        form = {
            "grant_type": _EXCHANGE,
            "requested_token_type": _ID_JAG,
            "subject_token": subject,
            "subject_token_type": _ID_TOKEN,
            "audience": need.purpose.server.issuer,
        }
        if need.purpose.resource:
            form["resource"] = need.purpose.resource
        client_id, secret = self._idp_client
        headers = [] if secret is None else [basic(client_id, secret)]
        if secret is None:
            form["client_id"] = client_id
        reply = await need.asker.post_form_to(self._idp, _scoped(form, need), headers, f"{step}: the token endpoint")
        if reply.status != 200:
            said = refusal(reply, (subject, secret, *(value.partition(" ")[2] for _, value in headers)))
            raise AuthorizationError(f"{step}: {shown(self._idp)} refused: {said}; is the id_token still valid?")
        grant = reply.text("access_token")
        if reply.text("issued_token_type") != _ID_JAG or not TOKEN.fullmatch(grant):
            raise AuthorizationError(f"{step}: {shown(self._idp)} did not give the grant that was asked for")
        return grant


async def bind(granter: Granter, need: Need, identity: Identity | None) -> None:
    """See that credentials go to one issuer only: the one that the caller named, else the first."""
    client_id = identity.client_id if identity else ""
    await need.cupboard.bind(client_id, need.purpose.server.issuer, insists=granter.issuer is not None)


def _checked(source: Source, what: str) -> Source:
    if callable(source):
        from longshore.registry.arity import check_callback

        check_callback(source, what)
    return source


async def fetch(source: Source, what: str) -> str:
    """A token from the caller. What its function raises ends the authorization, and is the cause of its error."""
    found: Any = await call(source) if callable(source) else source
    text = found.strip() if isinstance(found, str) else ""
    if not TOKEN.fullmatch(text):
        raise AuthorizationError(f"{what}= gave no token; it must be a text, or a function that returns one")
    return text


def _scoped(form: dict[str, str], need: Need) -> dict[str, str]:
    return {**form, "scope": " ".join(need.purpose.scopes)} if need.purpose.scopes else form
