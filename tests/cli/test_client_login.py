"""URLs that want a login: on a terminal the user logs in, elsewhere stored tokens are used."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from urllib.request import urlopen

import click
import pytest

from client.auth.conftest import first_headers, run
from client.auth.oauth_servers import AuthorizationServer, ProtectedServer, Reply, running
from longshore.cli.auth_option import TOKEN_BYTES, choose, hint, source
from longshore.cli.options import SessionOptions
from longshore.cli.target import locate

from .conftest import Workspace


@pytest.fixture
def server() -> Iterator[ProtectedServer]:
    place = ProtectedServer(AuthorizationServer())
    with running(place.authorities[0], place):
        yield place


@pytest.fixture(autouse=True)
def no_browser(workspace: Workspace) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        workspace.env.pop(name, None)


def log_in(workspace: Workspace, server: ProtectedServer) -> None:
    terminal = workspace.terminal("call", server.mcp, "hello", "--era", "2025-11-25")
    terminal.until("to log in, open this page").until("code_challenge_method=S256")
    terminal.until("\r\n")
    found = re.search(r"http://\S+/authorize\?\S+", terminal.seen)
    assert found is not None
    with urlopen(found[0], timeout=20) as page:
        assert b"Thank you" in page.read()
    assert terminal.end() == 0, terminal.seen
    assert terminal.seen.endswith("hello\r\n")


def test_a_person_logs_in_once_and_scripts_use_it(workspace: Workspace, server: ProtectedServer) -> None:
    log_in(workspace, server)
    done = workspace.run("call", server.mcp, "hello", "--era", "2025-11-25")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hello\n", b"")
    assert server.authorities[0].count("/authorize") == 1


def test_without_a_terminal_the_error_says_how_to_log_in(workspace: Workspace, server: ProtectedServer) -> None:
    done = workspace.run("call", server.mcp, "hello")
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"it wants a login, which needs a terminal; log in with the same command on a terminal" in done.stderr
    assert done.stderr.count(b"--auth env:NAME") == 1
    assert server.authorities[0].count("/register") == 0, "nothing was begun that nobody could end"


@pytest.mark.parametrize("way", ["wrong-token", "none"])
def test_a_refused_token_exits_with_three(workspace: Workspace, server: ProtectedServer, way: str) -> None:
    done = workspace.run("call", server.mcp, "hello", "--auth", way)
    assert done.returncode == 3
    assert b"--auth" in done.stderr and b"auth=" not in done.stderr
    assert way == "none" or b"wrong-token" not in done.stderr


def test_an_authorization_header_replaces_the_login(workspace: Workspace, server: ProtectedServer) -> None:
    done = workspace.run("call", server.mcp, "hello", "--header", "Authorization: Bearer mine")
    assert done.returncode == 3
    sent = {each.headers.get("authorization") for each in server.asked if each.path == "/mcp"}
    assert sent == {"Bearer mine"}


@pytest.mark.parametrize("size", [TOKEN_BYTES - 1, TOKEN_BYTES, TOKEN_BYTES + 1])
def test_the_size_of_a_token_file_is_limited(workspace: Workspace, size: int) -> None:
    path = workspace.write("token", "x" * size)
    if size <= TOKEN_BYTES:
        found = run(lambda: first_headers(choose(f"@{path}", person=False), ""))
        assert found == [("Authorization", f"Bearer {'x' * size}")]
    else:
        with pytest.raises(click.UsageError, match=r"--auth: .*token has more than 65,536 bytes, and no token has"):
            choose(f"@{path}", person=False)


def test_a_token_from_the_environment_or_a_file(workspace: Workspace, server: ProtectedServer) -> None:
    workspace.env["TOKEN"] = "from-env"
    workspace.run("call", server.mcp, "hello", "--auth", "env:TOKEN")
    workspace.write("token", "from-file\n")
    workspace.run("call", server.mcp, "hello", "--auth", "@token")
    sent = {each.headers.get("authorization") for each in server.asked if each.path == "/mcp"}
    assert sent == {"Bearer from-env", "Bearer from-file"}


EXPIRED = "the access token has expired"


@pytest.mark.parametrize("how", ["challenge", "JSON-RPC error", "detail"])
@pytest.mark.parametrize("auth", [("--auth", "stale-token"), ("--header", "Authorization: Bearer stale-token")])
def test_a_refused_token_is_reported_with_the_reason_of_the_server(
    workspace: Workspace, server: ProtectedServer, how: str, auth: tuple[str, str]
) -> None:
    said = {
        "challenge": server.challenge(401, error="invalid_token", error_description=EXPIRED),
        "JSON-RPC error": Reply(401, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": EXPIRED}}),
        "detail": Reply(401, {"detail": EXPIRED}),
    }
    server.refused = lambda heard, method: said[how]  # type: ignore[method-assign]
    done = workspace.run("call", server.mcp, "hello", *auth)
    assert done.returncode == 3
    assert EXPIRED.encode() in done.stderr and done.stderr.count(EXPIRED.encode()) == 1
    assert b"--auth" in done.stderr and b"log in" not in done.stderr and b"env:NAME" not in done.stderr
    assert b"stale-token" not in done.stderr


def test_a_token_that_does_not_allow_a_call_is_reported_with_the_reason(
    workspace: Workspace, server: ProtectedServer
) -> None:
    said = server.challenge(403, error="insufficient_scope", error_description="this needs the scope notes:write")
    server.refused = lambda heard, method: said  # type: ignore[method-assign]
    done = workspace.run("call", server.mcp, "hello", "--auth", "narrow")
    assert done.returncode == 3
    assert b"HTTP status 403: this needs the scope notes:write; the credentials" in done.stderr


def test_a_server_without_a_login_is_not_reported_as_wanting_one(workspace: Workspace, server: ProtectedServer) -> None:
    server.metadata = None
    done = workspace.run("call", server.mcp, "hello")
    assert done.returncode == 3
    assert b"says nowhere how to get one by OAuth" in done.stderr and b"log in" not in done.stderr
    assert b"--auth env:NAME" in done.stderr


def test_the_variable_of_the_server_is_sent_to_a_url_of_this_machine(
    workspace: Workspace, server: ProtectedServer
) -> None:
    workspace.env["LONGSHORE_AUTH_TOKEN"] = "from-the-variable"
    done = workspace.run("call", server.mcp, "hello")
    assert authorizations(server) == {"Bearer from-the-variable"}
    assert b"The token was that of LONGSHORE_AUTH_TOKEN" in done.stderr


@pytest.mark.parametrize("given", [("--auth", "mine"), ("--header", "Authorization: Bearer mine")])
def test_a_token_of_the_command_line_wins_over_the_variable(
    workspace: Workspace, server: ProtectedServer, given: tuple[str, str]
) -> None:
    workspace.env["LONGSHORE_AUTH_TOKEN"] = "from-the-variable"
    workspace.run("call", server.mcp, "hello", *given)
    assert authorizations(server) == {"Bearer mine"}


def test_the_variable_is_not_sent_to_a_url_that_a_file_names(workspace: Workspace, server: ProtectedServer) -> None:
    workspace.env["LONGSHORE_AUTH_TOKEN"] = "from-the-variable"
    workspace.write(".mcp.json", json.dumps({"mcpServers": {"theirs": {"url": server.mcp}}}))
    workspace.run("call", "theirs", "hello")
    workspace.run("call", "theirs", "hello", "--config", ".mcp.json")
    assert authorizations(server) == {None}


def test_the_variable_is_not_sent_to_another_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LONGSHORE_AUTH_TOKEN", "from-the-variable")
    for url in ("https://mcp.example.com/mcp", "http://127.0.0.1.example.com/mcp", "http://192.0.2.1/mcp"):
        assert source(locate(url), SessionOptions()) is None
        assert "--auth env:LONGSHORE_AUTH_TOKEN" in hint(locate(url), SessionOptions())
    for url in ("http://localhost:9100/mcp", "http://127.0.0.2/mcp", "http://[::1]:9100/mcp"):
        assert source(locate(url), SessionOptions()) == "env:LONGSHORE_AUTH_TOKEN"


def authorizations(server: ProtectedServer) -> set[str | None]:
    return {each.headers.get("authorization") for each in server.asked if each.path == "/mcp"}
