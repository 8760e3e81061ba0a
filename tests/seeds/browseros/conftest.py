"""The server of the document's entry point, and a page on loopback for its browser."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from process.conftest import Workshop
from process.peer import Peer
from toolsets.browser.conftest import browser_path as browser_path
from toolsets.browser.conftest import serve_pages as serve_pages
from waiting import PATIENCE

from .document import SERVER, TITLE


@pytest.fixture
def page(serve_pages: Callable[[dict[str, str]], str], browser_path: str) -> str:
    """The address of a page for a real browser."""
    return serve_pages({"/": f"<title>{TITLE}</title><p>For use in examples"}) + "/"


@pytest.fixture
def hanging() -> Iterator[str]:
    """The address of a page with an image, `/never`, that is not answered while the test runs."""
    over = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/":
                over.wait(PATIENCE)
            body = f"<title>{TITLE}</title><p>For use in examples<img src=/never>".encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as site:
        site.daemon_threads = True
        threading.Thread(target=site.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{site.server_port}"
        over.set()
        site.shutdown()


@pytest.fixture
def server(workshop: Workshop) -> Peer:
    """`python -m browseros.mcp.server` on stdio, in a folder of its own."""
    return workshop.spawn(*SERVER)
