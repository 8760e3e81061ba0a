"""The pages that the browser benchmark visits, and the small server on loopback that has them."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep
from urllib.parse import parse_qs, urlsplit

from benchmarks.browser_pages import plain, shop

FETCH_SECONDS = 0.3


class Site:
    """Where the pages are, and the orders that the shop has got."""

    def __init__(self, origin: str, orders: list[dict[str, str]]) -> None:
        self.origin, self.orders = origin, orders

    def url(self, path: str) -> str:
        return f"{self.origin}/{path}"


@contextmanager
def serve() -> Generator[Site]:
    """The pages, for as long as the `with` lasts."""
    orders: list[dict[str, str]] = []

    class Handler(_Handler):
        placed = orders

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Site(f"http://127.0.0.1:{server.server_port}", orders)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    placed: list[dict[str, str]]

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(address.query).items()}
        if address.path == "/slow":
            sleep(FETCH_SECONDS)
            self._answer(f"Loaded {query['n']}", "text/plain")
        elif page := plain.PAGES.get(address.path):
            self._answer(page())
        elif page_of_shop := shop.get(address.path, query, self.placed):
            self._answer(page_of_shop)
        else:
            self._answer(f"<title>Not found</title><p>There is no {escape(address.path)}</p>", status=404)

    def do_POST(self) -> None:
        """Both forms of the shop lead to another page."""
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        fields = {key: values[0] for key, values in parse_qs(body).items()}
        self.send_response(303)
        self.send_header("Location", shop.post(urlsplit(self.path).path, fields, self.placed))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _answer(self, text: str, kind: str = "text/html", status: int = 200) -> None:
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
