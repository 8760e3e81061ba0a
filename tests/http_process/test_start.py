"""Starting: what is printed, what is refused and with which words, and whom the server lets in."""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from longshore.config.sections import HttpConfig
from longshore.transports.http_server import endpoint as binding
from posting import ask_modern, call, modern, post_modern
from services import skip
from waiting import eventually

from .serverproc import LONGSHORE, environment, launch, start
from .servers import SOURCE

ROOT = Path(__file__).parents[2]


def refusal(folder: Path, *flags: str, config: str = "", env: dict[str, str] | None = None) -> str:
    """What a server says that does not start."""
    server = launch(folder, SOURCE, *flags, config=config, env=env)
    try:
        assert server.wait() == 2, server.stderr
        assert "Traceback" not in server.stderr
        assert "serves MCP" not in server.stderr
        return server.stderr
    finally:
        server.close()


def run_script(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    """A Python file, run to its end with nothing on its stdin."""
    (folder / "own.py").write_text(source)
    return subprocess.run(
        [sys.executable, "own.py"],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        text=True,
    )


# -- what is printed


def test_the_address_and_the_line_to_paste() -> None:
    with start(SOURCE) as server:
        lines = server.stderr.splitlines()
        assert lines[0] == f"quay serves MCP at http://127.0.0.1:{server.port}/mcp (Ctrl-C ends it)"
        assert re.fullmatch(rf"The console:  http://127\.0\.0\.1:{server.port}/console#token=[\w-]{{43}}", lines[1])
        assert lines[2] == (
            f"To connect Claude Code:  claude mcp add --transport http quay http://127.0.0.1:{server.port}/mcp"
        )
        assert lines[3].startswith("The console's token is kept in ")
        assert len(lines) == 4
        assert ask_modern(server, call("add", {"a": 1, "b": 2})).json["result"]["content"][0]["text"] == "3"


def test_the_built_in_server_asks_for_a_token_of_its_own() -> None:
    with start(None) as server:
        assert f'--header "Authorization: Bearer {server.token}"' in server.stderr
        message = modern(call("hello"))
        refused = post_modern(server, message).finish()
        assert refused.status == 401 and refused.headers["www-authenticate"].startswith("Bearer")
        assert post_modern(server, message, ("Authorization", "Bearer wrong")).finish().status == 401
        assert post_modern(server, message, ("Authorization", f"Bearer {server.token}")).finish().status == 200


@pytest.mark.parametrize("workers", ["1", "2"])
def test_the_token_of_the_built_in_server_outlives_a_restart(tmp_path: Path, workers: str) -> None:
    path = tmp_path / "state" / "longshore" / "http" / "token"
    with start(None, folder=tmp_path) as server:
        token = server.token
        assert path.read_text() == f"{token}\n"
        assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert f"The token is kept in {path}: delete that for another" in server.stderr
    with start(None, "--workers", workers, "--toolsets", "discovery", folder=tmp_path) as server:
        assert server.token == token
        for _ in range(4):
            message = modern(call("hello"))
            assert post_modern(server, message, ("Authorization", f"Bearer {token}")).finish().status == 200
    path.unlink()
    with start(None, folder=tmp_path) as server:
        assert server.token != token


def test_two_servers_that_start_at_once_have_the_same_token(tmp_path: Path) -> None:
    servers = [launch(tmp_path, None) for _ in range(2)]
    try:
        for server in servers:
            server.wait_until_up()
        assert servers[0].token == servers[1].token
    finally:
        for server in servers:
            server.close()


def test_a_token_that_others_may_know_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "state" / "longshore" / "http" / "token"
    path.parent.mkdir(parents=True)
    path.write_text("x" * 43)
    path.chmod(0o644)
    server = launch(tmp_path, None)
    try:
        assert server.wait() == 2
        assert server.stderr.startswith(f"{path}, the token file of this server: other users may open it")
    finally:
        server.close()


def test_where_nothing_can_be_kept_the_token_is_new_at_each_start(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("a file, where a folder is wanted")
    with start(None, folder=tmp_path) as server:
        assert "The token is new at each start" in server.stderr
        message = modern(call("hello"))
        assert post_modern(server, message, ("Authorization", f"Bearer {server.token}")).finish().status == 200


def test_a_token_can_be_switched_off_or_configured() -> None:
    with start(None, "--auth", "off") as server:
        assert "Bearer" not in server.stderr
        assert ask_modern(server, call("hello")).status == 200
    with start(None, env={"LONGSHORE_AUTH_TOKEN": "a-token-that-is-long-enough-to-be-one"}) as server:
        assert '--header "Authorization: Bearer TOKEN"' in server.stderr
        assert "a-token-that" not in server.stderr
        assert post_modern(server, modern(call("hello"))).finish().status == 401


def test_a_configuration_that_is_not_trusted_is_reported_once(tmp_path: Path) -> None:
    flags = ("--root", str(tmp_path), "--toolsets", "filesystem", "--workers", "2")
    with start(None, *flags, folder=tmp_path, config="[http]\npath = '/other'\n") as server:
        assert server.url.endswith("/mcp")
        said = f"{tmp_path / 'longshore.toml'}: not read, because tools of this server can write it"
        eventually(said, lambda: said in server.stderr)
        assert server.stderr.count(said) == 1


def test_a_public_address_is_the_one_that_is_shown() -> None:
    with start(SOURCE, "--public-url", "https://mcp.example.com") as server:
        assert "claude mcp add --transport http quay https://mcp.example.com/mcp\n" in server.stderr


def test_a_server_may_run_itself(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SOURCE + "\napp.run(http=True, port=0)\n")
    with start(None, folder=tmp_path, argv=(sys.executable, "own.py")) as server:
        assert ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200


def test_run_takes_every_key_of_http(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(SOURCE + "\napp.run(http=True, port=0, workers=2, path='/here')\n")
    with start(None, folder=tmp_path, argv=(sys.executable, "own.py")) as server:
        assert len(server.workers) == 2 and server.url.endswith("/here")


@pytest.mark.parametrize("command", ["run", "serve"])
@pytest.mark.parametrize("auth", ['"{token}"', '{{"token": "{token}", "key_header": ""}}'])
def test_a_server_says_in_its_code_who_may_use_it(tmp_path: Path, command: str, auth: str) -> None:
    token = "token-of-the-owner-0123456789"
    source = SOURCE.replace('Server("quay"', f'Server("quay", auth={auth.format(token=token)}')
    if command == "run":
        (tmp_path / "own.py").write_text(f"{source}\napp.run(http=True, port=0)\n")
        started = start(None, folder=tmp_path, argv=(sys.executable, "own.py"))
    else:
        started = start(source)
    with started as server:
        message = modern(call("add", {"a": 1, "b": 2}))
        assert post_modern(server, message).finish().status == 401
        assert post_modern(server, message, ("Authorization", f"Bearer {token}")).finish().status == 200
        assert token not in server.stderr


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("app.run(workers=2)", "run: workers: keys of [http] are for HTTP; write app.run(http=True, …)"),
        ("app.run(prot=1)", "http.prot: no such key; did you mean port?"),
        ("app.run(http=True, wrkers=2)", "http.wrkers: no such key; did you mean workers?"),
        ('Server("x", auth={"isuer": "y"}).run()', "auth.isuer: no such key; did you mean issuer?"),
        ('Server("x", auth=object())', "write auth={"),
    ],
)
def test_a_wrong_way_to_run_says_what_to_write(tmp_path: Path, line: str, says: str) -> None:
    done = run_script(tmp_path, f"{SOURCE}\n{line}\n")
    assert done.returncode != 0 and says in done.stderr


@pytest.mark.parametrize("arguments", ["", "http=True, port=0"])
def test_run_inside_a_running_loop_says_what_to_write(tmp_path: Path, arguments: str) -> None:
    body = f"async def main():\n    app.run({arguments})\nimport asyncio\nasyncio.run(main())\n"
    done = run_script(tmp_path, f"{SOURCE}\n{body}")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("RuntimeError: app.run() starts an event loop of its own, and one is running here.")
    assert "Client(app)" in last and "app.asgi()" in last


def test_a_port_without_http_is_a_mistake(tmp_path: Path) -> None:
    done = run_script(tmp_path, SOURCE + "\napp.run(port=0)\n")
    assert done.returncode == 2 and "app.run(http=True" in done.stderr
    (tmp_path / "served.py").write_text(SOURCE)
    argv = [*LONGSHORE, "serve", "served.py", "--port", "0"]
    done = subprocess.run(argv, cwd=tmp_path, env=environment(tmp_path), capture_output=True, timeout=30, text=True)
    assert done.returncode == 2 and "--port is for HTTP; add --http" in done.stderr


# -- where it listens


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_under_any_name(host: str) -> None:
    """A name may stand for two addresses, and clients may take either."""
    if host == "::1" and not _has_ipv6():
        skip("this kernel has no IPv6; enable it for the loopback interface to see this test", by_kernel=True)
    with start(SOURCE, "--host", host) as server:
        for address in {found[4][0] for found in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)}:
            if address == "::1" and not _has_ipv6():
                continue
            with socket.create_connection((address, server.port), 10) as wire:
                shown = f"[{host}]" if ":" in host else host
                wire.sendall(f"GET /health HTTP/1.1\r\nHost: {shown}:{server.port}\r\n\r\n".encode())
                assert wire.recv(100).startswith(b"HTTP/1.1 200")


def _has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def test_the_defaults() -> None:
    assert (HttpConfig().host, HttpConfig().port) == ("127.0.0.1", 9100)
    done = subprocess.run(["make", "-n", "serve"], cwd=ROOT, capture_output=True, timeout=30, text=True)
    assert "longshore serve --http" in done.stdout


def test_a_family_that_the_machine_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    both = [(socket.AF_INET6, ("::1", 0, 0, 0)), (socket.AF_INET, ("127.0.0.1", 0))]
    real = socket.socket

    def make(family: int, *rest: int) -> socket.socket:
        if family == socket.AF_INET6:
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
        return real(family, *rest)

    for addresses in (both, both[::-1]):
        monkeypatch.setattr(binding, "find_addresses", lambda *_, found=addresses: found)
        with monkeypatch.context() as patched:
            patched.setattr(socket, "socket", make)
            (bound,) = binding.bind("localhost", 0)
        with bound:
            assert bound.family == socket.AF_INET


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refusal(tmp_path, "--port", str(port))
    assert said == (
        f"http.port: 127.0.0.1:{port} is in use: another program listens there; stop it, or choose another port with "
        "--port (0: any free one)\n"
    )


def test_an_address_that_is_not_ours(tmp_path: Path) -> None:
    said = refusal(tmp_path, "--host", "192.0.2.1", "--allow-unauthenticated-remote")
    assert said.startswith("http.host: 192.0.2.1 is no address of this machine")


def test_a_port_can_be_taken_again_at_once() -> None:
    with start(SOURCE) as server:
        port = server.port
        assert ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200
    with start(SOURCE, "--port", str(port)) as server:
        assert ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200


# -- who may reach it


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_others_may_not_reach_a_server_that_asks_nobody(tmp_path: Path, host: str) -> None:
    said = refusal(tmp_path, "--host", host)
    assert said.startswith(f"http.host: {host} can be reached from other machines")
    assert "--allow-unauthenticated-remote" in said and "LONGSHORE_AUTH_TOKEN" in said


def test_others_may_reach_one_that_asks_or_says_so() -> None:
    with start(SOURCE, "--host", "0.0.0.0", "--allow-unauthenticated-remote") as server:
        assert server.url == f"http://127.0.0.1:{server.port}/mcp"
        assert ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200
    with start(None, "--host", "0.0.0.0") as server:
        assert post_modern(server, modern(call("hello"))).finish().status == 401
    with start(SOURCE, "--host", "0.0.0.0", env={"LONGSHORE_AUTH_TOKEN": "t" * 40}) as server:
        token = ("Authorization", "Bearer " + "t" * 40)
        assert post_modern(server, modern(call("add", {"a": 1, "b": 2})), token).finish().status == 200


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--workers", "2", "--store", "memory://"), "http.store: 2 workers can't share memory://"),
        (("--workers", "2", "--store", "MEMORY://"), "http.store: 2 workers can't share MEMORY://"),
        (("--store", "Redis://127.0.0.1:1"), "http.state_key: several hosts may share this store"),
        (("--store", "mysql://x"), "store: no store is called 'mysql'"),
        (("--port", "70000"), "--port: expected a whole number from 0 to 65535"),
        (("--host", "no such host"), "http.host: 'no such host' can't be used"),
        (("--auth", "sometimes"), "--auth: expected auto, required, optional or off"),
        (("--auth", "required"), 'auth.mode is "required", but nothing says who may come in'),
    ],
)
def test_settings_that_make_no_sense(tmp_path: Path, flags: tuple[str, ...], said: str) -> None:
    assert said in refusal(tmp_path, *flags)


def test_lines_and_tokens_do_not_go_together(tmp_path: Path) -> None:
    said = refusal(tmp_path, "--lines", env={"LONGSHORE_AUTH_TOKEN": "t" * 40})
    assert said.startswith("http.lines: lines carry no token")


def test_no_header_tells_what_serves() -> None:
    with start(SOURCE) as server:
        headers = ask_modern(server, call("add", {"a": 1, "b": 2})).headers
        assert "server" not in headers and headers["date"].endswith(" GMT")


def test_a_body_over_the_limit_is_refused_without_being_read() -> None:
    with start(SOURCE, config="[limits]\nframe_bytes = 100_000\n") as server:
        head = [("Content-Length", "99999999999")]
        answer = server.send("POST", "/mcp", head, b"{").finish()
        assert answer.status == 413 and answer.headers["connection"] == "close"
        connection = server.connect()
        answer = connection.send("POST", "/mcp", [("Transfer-Encoding", "chunked")], b"")
        chunk = b"%x\r\n%b\r\n" % (50_000, b"x" * 50_000)
        for _ in range(10):
            connection.write(chunk)
        assert answer.finish().status == 413
        assert ask_modern(server, call("add", {"a": 1, "b": 2})).status == 200


def test_the_limit_of_open_files_is_raised_as_far_as_it_may(tmp_path: Path) -> None:
    argv = ("sh", "-c", f"ulimit -Sn 256; exec {sys.executable} -m longshore serve --http --port 0 --auth off")
    with start(None, folder=tmp_path, argv=argv) as server:
        limits = Path(f"/proc/{server.pid}/limits").read_text()
        soft = next(int(line.split()[3]) for line in limits.splitlines() if line.startswith("Max open files"))
        assert soft >= 2000
        assert os.path.exists(f"/proc/{server.pid}")


STUCK = """
from pathlib import Path
from longshore import Server
app = Server("stuck")

@app.tool
async def download() -> str:
    return Path("pipe").read_text()
"""


def test_an_async_tool_that_blocks_is_named_while_it_does() -> None:
    with start(STUCK) as server:
        os.mkfifo(server.folder / "pipe")
        answer = post_modern(server, modern(call("download")))
        eventually("the report", lambda: "download has blocked the event loop for 1 s at " in server.stderr)
        assert ":8 download: " in server.stderr
        (server.folder / "pipe").write_text("unblocked")
        answer.finish()
        assert answer.messages[-1]["result"]["content"][0]["text"] == "unblocked"


# -- toolsets whose state lives in one process

STATEFUL = """
    from longshore import Server, Toolset, tool
    app = Server("quay")

    class Terminal(Toolset):
        stateful = True
        @tool
        def run(self) -> str: return "ran"

    class Browser(Toolset):
        stateful = True
        def available(self): return "no Chromium; install it: apt install chromium"
        @tool
        def navigate(self) -> str: return "there"

    app.add_toolset(Terminal())
    app.add_toolset(Browser())
"""
REFUSED = """\
--workers: http.workers: 2 processes can't share the state of 'terminal'. Do one of these:
- serve with one process: --workers 1, or in longshore.toml
    [http]
    workers = 1
- switch 'terminal' off, in longshore.toml
    [toolsets.terminal]
    enabled = false
- serve 'terminal' in a process of its own (--port 9101 --workers 1), switch it off here as above, and mount it:
    app.mount("http://127.0.0.1:9101/mcp", prefix="terminal")
"""


def test_several_workers_are_refused_with_a_stateful_toolset(tmp_path: Path) -> None:
    server = launch(tmp_path, STATEFUL, "--workers", "2")
    assert server.wait() == 2
    assert server.stderr == REFUSED


@pytest.mark.parametrize(
    ("workers", "config"), [("1", ""), ("2", "[toolsets.terminal]\nenabled = false\n")], ids=["one", "switched off"]
)
def test_a_stateful_toolset_is_served_by_one_process_or_switched_off(tmp_path: Path, workers: str, config: str) -> None:
    with start(STATEFUL, "--workers", workers, folder=tmp_path, config=config) as server:
        assert server.stderr.count("the toolset 'browser' is unavailable: no Chromium; install it") == 1
