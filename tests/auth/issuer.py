"""A real authorization server of our own, on loopback: a key set, an introspection endpoint, and bad days."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ssl import SSLContext
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs

from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

Key = RSAKey | ECKey | OKPKey
Answer = Callable[[BaseHTTPRequestHandler], None]


class Clock:
    """The time, as the test sets it."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def ec(kid: str | None, curve: str = "P-256", **parameters: Any) -> ECKey:
    return ECKey.generate_key(curve, {**({"kid": kid} if kid else {}), **parameters})


@cache
def rsa() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "rsa"})


@cache
def short_rsa() -> dict[str, Any]:
    """A key that can be broken. The library warns when it makes one, so it is made below it."""
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

    numbers = generate_private_key(65537, 1024).public_key().public_numbers()
    return {"kty": "RSA", "kid": "short", "n": b64(numbers.n.to_bytes(128, "big")), "e": "AQAB"}


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def jwt(key: Key, alg: str, claims: dict[str, Any], **header: Any) -> str:
    """A token signed with the key, whatever its header says. `signer=` signs by another algorithm than it claims."""
    fields = {"alg": alg, "kid": key.get("kid"), "typ": "JWT", **header}
    signed = join({name: value for name, value in fields.items() if value is not None}, claims)
    return signed + "." + b64(JWSRegistry.algorithms[alg].sign(signed.encode(), key))


def join(header: dict[str, Any], claims: Any) -> str:
    return ".".join(b64(json.dumps(part).encode()) for part in (header, claims))


class Issuer:
    """Its answers can be set at any time; it records the requests."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.keys: list[Any] = []
        self.answer: Answer | None = None
        """In place of everything below."""
        self.tokens: dict[str, Any] = {}
        """What introspection says of each token; an unknown one is inactive."""
        self.asked: list[tuple[str, str]] = []
        self.forms: list[tuple[str | None, dict[str, list[str]]]] = []
        self.release = Event()
        """Set when the test is over: a handler that waits stops."""

    @property
    def jwks(self) -> str:
        return f"{self.url}/jwks"

    @property
    def introspection(self) -> str:
        return f"{self.url}/introspect"

    def publish(self, *keys: Key | dict[str, Any]) -> None:
        self.keys = [key if isinstance(key, dict) else key.as_dict(private=False) for key in keys]

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        self.asked.append((request.command, request.path))
        if request.command == "POST":
            body = request.rfile.read(int(request.headers["Content-Length"])).decode()
            self.forms.append((request.headers["Authorization"], parse_qs(body)))
        if self.answer is not None:
            self.answer(request)
        elif request.path == "/jwks":
            send(request, {"keys": self.keys})
        elif request.path == "/introspect":
            send(request, self.tokens.get(self.forms[-1][1]["token"][0], {"active": False}))
        else:
            send(request, {}, 404)


def send(request: BaseHTTPRequestHandler, answer: Any, status: int = 200, **headers: str) -> None:
    body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    request.send_response(status)
    for name, value in {"Content-Length": str(len(body)), **headers}.items():
        request.send_header(name, value)
    request.end_headers()
    request.wfile.write(body)


@contextmanager
def serving(tls: SSLContext | None = None) -> Iterator[Issuer]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                issuer.handle(self)
            except OSError:
                pass  # the other side left, which some tests make it do

        do_POST = do_GET

        def log_message(self, format: str, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        def handle_error(self, request: Any, client_address: Any) -> None:
            pass  # a handshake that the other side refused

    with Server(("127.0.0.1", 0), Handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        issuer = Issuer(f"{scheme}://127.0.0.1:{server.server_address[1]}")
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield issuer
        finally:
            issuer.release.set()
            server.shutdown()
            thread.join(10)
