"""Grants without a login in a browser: for programs, workloads, and users of a company's single sign-on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias, final

from longshore.client.auth.authorizer import TOKEN
from longshore.client.auth.oauth_http import explain_refusal
from longshore.client.auth.server_credentials import GrantContext
from longshore.client.auth.token_authorizer import TokenAuthorizer, call_user
from longshore.client.auth.token_endpoint import METHODS, GrantRefused, Identity, Tokens, basic_header, request_tokens
from longshore.client.auth.token_storage import MemoryStorage, Storage
from longshore.client.auth.url_policy import check_given_url, shown
from longshore.errors import AuthorizationError

Source: TypeAlias = str | Callable[[], str | Awaitable[str]]
"""A token, or a function that returns a fresh one each time."""

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
_ID_TOKEN = "urn:ietf:params:oauth:token-type:id_token"  # noqa: S105 - a name
_ID_JAG = "urn:ietf:params:oauth:token-type:id-jag"


@final
class ClientCredentials(TokenAuthorizer):
    """The client credentials grant: a program with a secret or, better, a private key (PEM or JWK).

    `issuer` names the authorization server that they are for; without it, the first that a server names.
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

    async def obtain(self, context: GrantContext) -> Tokens:
        await _bind(self, context, self._identity)
        form = _scoped({"grant_type": "client_credentials"}, context)
        return await request_tokens(context.http, context.purpose, self._identity, form, "client credentials")


@final
class JwtBearer(TokenAuthorizer):
    """Workload identity: `assertion` is a token of the platform that the workload runs on (RFC 7523).

    A refused assertion is not sent again. `issuer` names the authorization server that it is for; without it, the
    first that a server names.
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
        """The refused assertion of each issuer."""

    async def obtain(self, context: GrantContext) -> Tokens:
        await _bind(self, context, self._identity)
        issuer, assertion = context.purpose.server.issuer, await get_token(self._assertion, "assertion")
        if assertion == self._refused.get(issuer):
            raise AuthorizationError("workload identity: this assertion was refused before; give a fresh one")
        form = _scoped({"grant_type": JWT_BEARER, "assertion": assertion}, context)
        try:
            return await request_tokens(context.http, context.purpose, self._identity, form, "workload identity")
        except GrantRefused as refused:
            if refused.error == "invalid_grant":
                self._refused[issuer] = assertion
            raise


@final
class EnterpriseManaged(TokenAuthorizer):
    """A user of a company's single sign-on, whose `id_token` is exchanged without another login.

    The identity provider exchanges it for a grant to the server's authorization server (RFC 8693), which issues the
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
        self._idp = check_given_url(idp_token_endpoint, "idp_token_endpoint")
        self._idp_client = idp_client_id, idp_client_secret
        self._identity = Identity(client_id, client_secret)

    async def obtain(self, context: GrantContext) -> Tokens:
        await _bind(self, context, self._identity)
        grant = await self._exchange(context)
        form = _scoped({"grant_type": JWT_BEARER, "assertion": grant}, context)
        return await request_tokens(context.http, context.purpose, self._identity, form, "enterprise authorization")

    async def _exchange(self, context: GrantContext) -> str:
        """The identity provider's grant to this server's issuer."""
        step, subject = "enterprise login", await get_token(self._id_token, "id_token")
        form = {
            "grant_type": _EXCHANGE,
            "requested_token_type": _ID_JAG,
            "subject_token": subject,
            "subject_token_type": _ID_TOKEN,
            "audience": context.purpose.server.issuer,
        }
        if context.purpose.resource:
            form["resource"] = context.purpose.resource
        client_id, secret = self._idp_client
        headers = [] if secret is None else [basic_header(client_id, secret)]
        if secret is None:
            form["client_id"] = client_id
        response = await context.http.post_form_to(
            self._idp, _scoped(form, context), headers, f"{step}: the token endpoint"
        )
        if response.status != 200:
            said = explain_refusal(response, (subject, secret, *(value.partition(" ")[2] for _, value in headers)))
            raise AuthorizationError(f"{step}: {shown(self._idp)} refused: {said}; is the id_token still valid?")
        grant = response.text("access_token")
        if response.text("issued_token_type") != _ID_JAG or not TOKEN.fullmatch(grant):
            raise AuthorizationError(f"{step}: {shown(self._idp)} did not give the grant that was asked for")
        return grant


async def _bind(grant: TokenAuthorizer, context: GrantContext, identity: Identity | None) -> None:
    """Ensure that credentials go to one issuer only: the one that the caller named, else the first."""
    client_id = identity.client_id if identity else ""
    await context.store.bind(client_id, context.purpose.server.issuer, given=grant.issuer is not None)


def _checked(source: Source, what: str) -> Source:
    if callable(source):
        from longshore.registry.function import check_callback

        check_callback(source, what)
    return source


async def get_token(source: Source, what: str) -> str:
    """A token from the caller. An exception of its function ends the authorization, and is the cause of its error."""
    found: Any = await call_user(source) if callable(source) else source
    text = found.strip() if isinstance(found, str) else ""
    if not TOKEN.fullmatch(text):
        raise AuthorizationError(f"{what}= gave no token; it must be a text, or a function that returns one")
    return text


def _scoped(form: dict[str, str], context: GrantContext) -> dict[str, str]:
    return {**form, "scope": " ".join(context.purpose.scopes)} if context.purpose.scopes else form
