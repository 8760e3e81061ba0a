"""The official SDK's server, which is its own authorization server: `python official.py PORT`."""

from __future__ import annotations

import secrets
import sys
import time
from typing import Any

import uvicorn
from mcp.server.auth import provider as oauth
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthToken


class Provider:
    """Everybody who asks is let in, once they have shown what the SDK checks."""

    def __init__(self, resource: str) -> None:
        self.resource = resource
        self.clients: dict[str, Any] = {}
        self.codes: dict[str, Any] = {}
        self.access: dict[str, Any] = {}
        self.refresh: dict[str, Any] = {}

    async def get_client(self, client_id: str) -> Any:
        return self.clients.get(client_id)

    async def register_client(self, client_info: Any) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: Any, params: Any) -> str:
        code = oauth.AuthorizationCode(
            code=secrets.token_urlsafe(24),
            client_id=client.client_id,
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return oauth.construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client: Any, code: str) -> Any:
        return self.codes.get(code)

    async def exchange_authorization_code(self, client: Any, code: Any) -> OAuthToken:
        del self.codes[code.code]
        return self._issue(client, code.scopes, code.resource)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> Any:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: Any, scopes: list[str]) -> OAuthToken:
        del self.refresh[refresh_token.token]
        return self._issue(client, scopes, self.resource)

    async def load_access_token(self, token: str) -> Any:
        return self.access.get(token)

    async def revoke_token(self, token: Any) -> None:
        self.access.pop(token.token, None)

    def _issue(self, client: Any, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.access[access] = oauth.AccessToken(
            token=access, client_id=client.client_id, scopes=scopes, expires_at=int(time.time()) + 60, resource=resource
        )
        self.refresh[refresh] = oauth.RefreshToken(token=refresh, client_id=client.client_id, scopes=scopes)
        return OAuthToken(access_token=access, expires_in=60, scope=" ".join(scopes), refresh_token=refresh)


def main(port: int) -> None:
    url = f"http://127.0.0.1:{port}"
    provider = Provider(f"{url}/mcp")
    auth = AuthSettings(
        issuer_url=url,  # type: ignore[arg-type]
        resource_server_url=f"{url}/mcp",  # type: ignore[arg-type]
        required_scopes=["user"],
        validate_token_resource=True,
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["user"], default_scopes=["user"]
        ),
    )
    server: Any = MCPServer("official", auth=auth, auth_server_provider=provider)  # type: ignore[arg-type]

    @server.tool()  # type: ignore[untyped-decorator]
    def hello() -> str:
        provider.access.clear()  # the next request must renew its token
        return "hello"

    uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=port, log_level="error")


if __name__ == "__main__":
    main(int(sys.argv[1]))
