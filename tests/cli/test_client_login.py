"""URLs that want a login: on a terminal a person logs in, elsewhere what they left is used."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.request import urlopen

import click
import pytest

from client.oauth.conftest import run
from client.oauth.town import Authority, Protected, living
from longshore.cli.login import TOKEN_BYTES, choose

from .conftest import Quay


@pytest.fixture
def server() -> Iterator[Protected]:
    place = Protected(Authority())
    with living(place.authorities[0], place):
        yield place


@pytest.fixture(autouse=True)
def no_browser(quay: Quay) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        quay.env.pop(name, None)


def log_in(quay: Quay, server: Protected) -> None:
    terminal = quay.terminal("call", server.mcp, "hello", "--era", "2025-11-25")
    terminal.until("to log in, open this page").until("code_challenge_method=S256")
    terminal.until("\r\n")
    found = re.search(r"http://\S+/authorize\?\S+", terminal.seen)
    assert found is not None
    with urlopen(found[0], timeout=20) as page:
        assert b"Thank you" in page.read()
    assert terminal.end() == 0, terminal.seen
    assert terminal.seen.endswith("hello\r\n")


def test_a_person_logs_in_once_and_scripts_use_it(quay: Quay, server: Protected) -> None:
    log_in(quay, server)
    done = quay.run("call", server.mcp, "hello", "--era", "2025-11-25")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hello\n", b"")
    assert server.authorities[0].count("/authorize") == 1


def test_a_script_is_told_how(quay: Quay, server: Protected) -> None:
    done = quay.run("call", server.mcp, "hello")
    assert (done.returncode, done.stdout) == (3, b"")
    assert b"it wants a login, and nobody is at a terminal; log in by the same command on a terminal" in done.stderr
    assert done.stderr.count(b"--auth env:NAME") == 1
    assert server.authorities[0].count("/register") == 0, "nothing was begun that nobody could end"


@pytest.mark.parametrize("way", ["wrong-token", "none"])
def test_a_token_that_is_refused(quay: Quay, server: Protected, way: str) -> None:
    done = quay.run("call", server.mcp, "hello", "--auth", way)
    assert done.returncode == 3
    assert b"--auth" in done.stderr and b"auth=" not in done.stderr
    assert way == "none" or b"wrong-token" not in done.stderr


def test_a_header_of_ones_own_wins(quay: Quay, server: Protected) -> None:
    done = quay.run("call", server.mcp, "hello", "--header", "Authorization: Bearer mine")
    assert done.returncode == 3
    sent = {each.headers.get("authorization") for each in server.asked if each.path == "/mcp"}
    assert sent == {"Bearer mine"}


@pytest.mark.parametrize("size", [TOKEN_BYTES - 1, TOKEN_BYTES, TOKEN_BYTES + 1])
def test_a_token_is_taken_whole_or_not_at_all(quay: Quay, size: int) -> None:
    path = quay.write("token", "x" * size)
    if size <= TOKEN_BYTES:
        assert run(lambda: choose(f"@{path}", person=False).headers("POST", "", b"")) == [
            ("Authorization", f"Bearer {'x' * size}")
        ]
    else:
        with pytest.raises(click.UsageError, match=r"--auth: .*token has more than 65,536 bytes, and no token has"):
            choose(f"@{path}", person=False)


def test_a_token_from_the_environment_or_a_file(quay: Quay, server: Protected) -> None:
    quay.env["TOKEN"] = "from-env"
    quay.run("call", server.mcp, "hello", "--auth", "env:TOKEN")
    quay.write("token", "from-file\n")
    quay.run("call", server.mcp, "hello", "--auth", "@token")
    sent = {each.headers.get("authorization") for each in server.asked if each.path == "/mcp"}
    assert sent == {"Bearer from-env", "Bearer from-file"}
