"""Runs `async def` tests, with a real Chromium and pages on loopback."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

import pytest
from tests.services import skip
from tests.waiting import eventually

from counts import SOAK
from longshore.toolsets.browser.executable import BrowserUnavailable, find_browser, install_line
from longshore.toolsets.browser.launch import BrowserProcess, LaunchOptions, launch

WAIT_SECONDS = 120.0 * SOAK


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test of this folder that is a coroutine, on the loop that its fixtures use."""
    if not iscoroutinefunction(pyfuncitem.function):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    runner = pyfuncitem.funcargs["runner"]
    runner.run(asyncio.wait_for(pyfuncitem.function(**arguments), WAIT_SECONDS))
    return True


@pytest.fixture(autouse=True)
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of a test and of its fixtures."""
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="session")
def browser_path() -> str:
    """The program of a real browser."""
    try:
        return find_browser()
    except BrowserUnavailable:
        skip(f"there is no Chromium; install it ({install_line()}) to run this test")


@pytest.fixture
def chromium(runner: asyncio.Runner, browser_path: str) -> Iterator[BrowserProcess]:
    """A browser that was started for this test, and ends with it."""
    process = runner.run(launch(LaunchOptions(executable=browser_path)))
    yield process
    runner.run(process.end())


def _says_its_port(profile: Path) -> bool:
    """Whether the file is there and written: it is empty at first."""
    file = profile / "DevToolsActivePort"
    return file.is_file() and len(file.read_text().split()) == 2


@pytest.fixture
def listening(browser_path: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A browser that somebody else started, with a port, and its profile."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o777)
        profile = Path(folder) / "chromium"
        argv = [
            browser_path,
            "--headless=new",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            "--host-resolver-rules=MAP metadata.google.internal 127.0.0.1, MAP 169.254.169.254 127.0.0.1, "
            "MAP elsewhere.test 127.0.0.9",
            "about:blank",
        ]
        options: dict[str, Any] = {}
        if os.geteuid() == 0:
            options = {"user": "nobody", "group": "nogroup", "extra_groups": []}
        env = {"PATH": os.environ["PATH"], "HOME": folder, "TMPDIR": folder}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(argv, env=env, start_new_session=True, **quiet, **options)
        try:
            eventually("a port", lambda: _says_its_port(profile) or process.poll() is not None)
            yield process, profile
        finally:
            os.killpg(process.pid, 9)
            process.wait()


Pages = Mapping[str, str]


@pytest.fixture
def serve_pages() -> Iterator[Callable[[Pages], str]]:
    """Serves pages, path to HTML, on loopback: `serve_pages({"/": "<h1>Hello</h1>"})` gives "http://127.0.0.1:PORT"."""
    servers: list[ThreadingHTTPServer] = []

    def serve(pages: Pages) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(pages))
        server.daemon_threads = True
        servers.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def _handler(pages: Pages) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path.partition("?")[0])
            body = (page if page is not None else "not found").encode()
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler
