"""Grants without a login in a browser: for programs, workloads, and users of a company's single sign-on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeAlias, final

from longshore.client.auth.authorizer import TOKEN
from longshore.client.auth.flow import TokenAuthorizer, call_user
from longshore.client.auth.oauth_http import check_given_url, explain_refusal, shown
from longshore.client.auth.token_store import MemoryStorage, Storage
from longshore.client.auth.tokens import (
    METHODS,
    GrantContext,
    GrantRefused,
    Identity,
    Tokens,
    basic_header,
    request_tokens,
)
from longshore.errors import AuthorizationError

Source: TypeAlias = str | Callable[[], str | Awaitable[str]]
"""A token, or a function that returns a fresh one each time."""

JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
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
        super().__init__(storage or MemoryStorage(), client_id, scopes, dpop, issuer, client_id)
        self._identity = Identity(client_id, client_secret, private_key, algorithm, token_endpoint_auth_method)

    async def obtain(self, context: GrantContext) -> Tokens:
        form = {"grant_type": "client_credentials", **_scope(context)}
        return await request_tokens(context, self._identity, form, "client credentials")


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
        super().__init__(storage or MemoryStorage(), client_id or "", scopes, dpop, issuer, client_id or "")
        self._assertion = _checked(assertion, "assertion")
        self._identity = Identity(client_id, client_secret) if client_id else None
        self._refused: dict[str, str] = {}
        """The refused assertion of each issuer."""

    async def obtain(self, context: GrantContext) -> Tokens:
        assertion = await _get_token(self._assertion, "assertion")
        if assertion == self._refused.get(context.server.issuer):
            raise AuthorizationError("workload identity: this assertion was refused before; give a fresh one")
        form = {"grant_type": JWT_BEARER, "assertion": assertion, **_scope(context)}
        try:
            return await request_tokens(context, self._identity, form, "workload identity")
        except GrantRefused as refused:
            if refused.error == "invalid_grant":
                self._refused[context.server.issuer] = assertion
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
        super().__init__(storage or MemoryStorage(), client_id, scopes, dpop, issuer, client_id)
        self._id_token = _checked(id_token, "id_token")
        self._idp = check_given_url(idp_token_endpoint, "idp_token_endpoint")
        self._idp_client = idp_client_id, idp_client_secret
        self._identity = Identity(client_id, client_secret)

    async def obtain(self, context: GrantContext) -> Tokens:
        form = {"grant_type": JWT_BEARER, "assertion": await self._exchange(context), **_scope(context)}
        return await request_tokens(context, self._identity, form, "enterprise authorization")

    async def _exchange(self, context: GrantContext) -> str:
        """The identity provider's grant to this server's issuer."""
        step, subject = "enterprise login", await _get_token(self._id_token, "id_token")
        client_id, secret = self._idp_client
        form = {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "requested_token_type": _ID_JAG,
            "subject_token": subject,
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "audience": context.server.issuer,
            **({"resource": context.resource} if context.resource else {}),
            **({"client_id": client_id} if secret is None else {}),
            **_scope(context),
        }
        headers = [] if secret is None else [basic_header(client_id, secret)]
        response = await context.http.post_form(self._idp, f"{step}: the token endpoint", form, headers, given=True)
        if response.status != 200:
            said = explain_refusal(response, (subject, secret, *(value.partition(" ")[2] for _, value in headers)))
            raise AuthorizationError(f"{step}: {shown(self._idp)} refused: {said}; is the id_token still valid?")
        grant = response.text("access_token")
        if response.text("issued_token_type") != _ID_JAG or not TOKEN.fullmatch(grant):
            raise AuthorizationError(f"{step}: {shown(self._idp)} did not give the grant that was asked for")
        return grant


def _checked(source: Source, what: str) -> Source:
    if callable(source):
        from longshore.registry.function import check_callback

        check_callback(source, what)
    return source


async def _get_token(source: Source, what: str) -> str:
    """A token from the caller. An exception of its function ends the authorization, and is the cause of its error."""
    found: Any = await call_user(source) if callable(source) else source
    text = found.strip() if isinstance(found, str) else ""
    if not TOKEN.fullmatch(text):
        raise AuthorizationError(f"{what}= gave no token; it must be a text, or a function that returns one")
    return text


def _scope(context: GrantContext) -> dict[str, str]:
    return {"scope": " ".join(context.scopes)} if context.scopes else {}
