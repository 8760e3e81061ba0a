"""Against our own server, in both eras: it asks the authorization server whose each token is."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from longshore.client import Client
from longshore.client.channel import TransportOptions
from longshore.client.mcp_endpoint import McpEndpoint
from longshore.errors import AuthorizationError

from .conftest import login, run
from .oauth_servers import AuthorizationServer, ProtectedServer, Received, Reply, running

APP = """
from longshore import Server

app = Server("harbour")

@app.tool(scopes=["read"])
def hello() -> str:
    return "hello"

@app.tool(scopes=["write"])
def change() -> str:
    return "changed"
"""


class Knowing(AuthorizationServer):
    """It says whose a token is (RFC 7662)."""

    def handle(self, received: Received) -> Reply:
        if received.path != "/introspect":
            return super().handle(received)
        held = self.tokens.get(received.form["token"])
        if held is None:
            return Reply(200, {"active": False})
        about = {"active": True, "iss": self.issuer, "sub": "person", "aud": held["resource"], "scope": held["scope"]}
        return Reply(200, about)


@pytest.fixture
def authority() -> Iterator[Knowing]:
    place = Knowing()
    with running(place):
        yield place


@pytest.fixture
def url(authority: Knowing, tmp_path: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "longshore.toml").write_text(
        f"""
        [auth]
        mode = "required"
        introspection_url = "{authority.url}/introspect"
        introspection_client = "server"
        introspection_secret = "s3cret"
        authorization_servers = ["{authority.issuer}"]
        """
    )
    command = [sys.executable, "-m", "longshore", "serve", "app.py", "--http", "--port", str(port)]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        assert child.stderr is not None
        said = ""
        while f"127.0.0.1:{port}" not in said:
            line = child.stderr.readline()
            assert line, said
            said += line
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        child.terminate()
        child.communicate(timeout=10)


@pytest.mark.parametrize("era", ["auto", "modern", "2025-11-25", "2025-06-18"])
def test_a_login_and_a_step_up_at_our_own_server(authority: Knowing, url: str, era: str) -> None:
    async def work() -> list[str]:
        async with Client(url, auth=login(scopes=["read"]), era=era, timeout=15) as client:
            assert {tool.name for tool in await client.list_tools()} >= {"hello"}
            return [(await client.call_tool(name)).text for name in ("hello", "change", "hello")]

    assert run(work) == ["hello", "changed", "hello"]
    asked = [set(each.query["scope"].split()) for each in authority.asked if each.path == "/authorize"]
    assert asked == [{"read"}, {"read", "write"}]


def test_an_unknown_token_is_refused(authority: Knowing, url: str) -> None:
    async def work() -> None:
        with pytest.raises(AuthorizationError, match="refused the bearer token"):
            async with Client(url, auth="made-up", timeout=15):
                pass

    run(work)


def test_the_post_url_of_an_sse_server_gets_the_server_s_token() -> None:
    authority = AuthorizationServer()
    server = ProtectedServer(authority)
    server.elsewhere = lambda received: Reply(200, {"token": received.headers.get("authorization")})  # type: ignore[method-assign]

    async def work() -> None:
        logins: list[bool] = []
        endpoint = McpEndpoint(server.mcp, TransportOptions(auth=login()), logins.append)
        body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
        await (await endpoint.send("POST", (), body)).read(1000)
        answer = await endpoint.send("POST", (), body, url=f"{server.url}/messages")
        assert b"Bearer access-" in await answer.read(1000)
        await endpoint.close(print)
        assert logins[:2] == [True, False] and not logins[-1]

    with running(authority, server):
        run(work)
