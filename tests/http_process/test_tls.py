"""HTTPS with a certificate of our own making, and what is said about files that do not do."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from posting import call, encode, modern, modern_headers
from services import make_certificate
from serving import Exchange, request_head

from .bare import Bare, echo, listen
from .serverproc import PATIENCE, ServerProcess, eventually, start
from .servers import SOURCE
from .test_start import refusal


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = make_certificate(folder, "localhost", stem="own-")
    make_certificate(folder, "localhost", stem="other-")
    secret = serialization.load_pem_private_key(key.read_bytes(), None)
    locked = serialization.BestAvailableEncryption(b"secret")
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)
    (folder / "locked.pem").write_bytes(secret.private_bytes(*form))
    (folder / "both.pem").write_text(cert.read_text() + key.read_text())
    (folder / "junk").write_text("no PEM at all\n")
    return folder


@pytest.fixture(scope="module")
def server(files: Path) -> Iterator[ServerProcess]:
    flags = ("--tls-cert", str(files / "own-cert.pem"), "--tls-key", str(files / "own-key.pem"))
    config = "[limits]\nstall_seconds = 1\nheader_seconds = 1\n"
    with start(SOURCE, *flags, config=config) as running:
        yield running


def connect(server: ServerProcess, files: Path, **versions: ssl.TLSVersion) -> ssl.SSLSocket:
    context = ssl.create_default_context(cafile=str(files / "own-cert.pem"))
    context.set_ciphers("DEFAULT@SECLEVEL=0")  # or our own side would refuse the old versions
    for name, version in versions.items():
        setattr(context, name, version)
    wire = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
    try:
        return context.wrap_socket(wire, server_hostname="localhost")
    except BaseException:
        wire.close()
        raise


def post(wire: ssl.SSLSocket, server: ServerProcess, tool: str, **arguments: object) -> Exchange:
    message = modern(call(tool, dict(arguments)))
    body = encode(message)
    wire.sendall(request_head(server.port, "POST", "/mcp", modern_headers(message), body) + body)
    return Exchange(wire)


def test_it_speaks_https(server: ServerProcess, files: Path) -> None:
    assert server.url.startswith("https://127.0.0.1:")
    assert f"claude mcp add --transport http quay {server.url}" in server.stderr
    with connect(server, files) as wire:
        answer = post(wire, server, "add", a=1, b=2)
        raw = b""
        while not raw.endswith(b"}"):
            raw += wire.recv(1 << 16)
        assert json.loads(raw.partition(b"\r\n\r\n")[2])["result"]["content"][0]["text"] == "3"
        assert answer.wire.version() in ("TLSv1.2", "TLSv1.3")  # type: ignore[attr-defined]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_are_refused(server: ServerProcess, files: Path) -> None:
    # uvloop closes without the alert that the library has written; our own side's refusal would be neither.
    with pytest.raises(ssl.SSLError, match=r"alert protocol version|EOF"):
        connect(server, files, minimum_version=ssl.TLSVersion.TLSv1, maximum_version=ssl.TLSVersion.TLSv1_1)
    with connect(server, files, maximum_version=ssl.TLSVersion.TLSv1_2) as wire:
        assert wire.version() == "TLSv1.2"


def test_plain_http_and_silence_are_cut_off(server: ServerProcess, files: Path) -> None:
    for said in (b"GET / HTTP/1.1\r\n\r\n", b"", b"\x16\x03\x01"):
        with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as wire:
            wire.sendall(said)
            try:
                while wire.recv(1 << 16):
                    pass
            except ConnectionResetError:
                pass
    with connect(server, files) as wire:
        post(wire, server, "add", a=1, b=2)
        assert wire.recv(100).startswith(b"HTTP/1.1 200")
    assert len(server.stderr.splitlines()) == 4


def test_a_slow_head_is_cut_off_inside_tls(server: ServerProcess, files: Path) -> None:
    with connect(server, files) as wire:
        wire.sendall(b"GET / HTTP/1.1\r\n")
        said = b""
        while piece := wire.recv(1 << 16):
            said += piece
        assert said.startswith(b"HTTP/1.1 408")


def test_a_stalled_reader_is_cut_off_inside_tls(server: ServerProcess, files: Path) -> None:
    with connect(server, files) as wire:
        post(wire, server, "large", size=15_000_000)
        assert wire.recv(100).startswith(b"HTTP/1.1 200")
        assert holds(server, wire.getsockname()[1])
        eventually("the server lets go", lambda: not holds(server, wire.getsockname()[1]))


AHEAD = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + bytes(200_000)


@pytest.mark.parametrize("size", [131_073, 8_000_000])
@pytest.mark.parametrize("rest", [b"\r\n" + AHEAD, b"Connection: close\r\n\r\n"], ids=["sent ahead", "close"])
def test_the_last_answer_of_a_tls_connection_arrives_whole_though_its_reader_is_slow(
    files: Path, monkeypatch: pytest.MonkeyPatch, size: int, rest: bytes
) -> None:
    """Closing a socket with unread bytes resets it, and a deadline for closing must not cut what is being read."""
    monkeypatch.setattr("longshore.transports.http_server.connection.LINGER_SECONDS", 0.1)
    begun = threading.Event()

    async def late(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.to_thread(begun.wait, PATIENCE)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": bytes(size)})

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files / "own-cert.pem", files / "own-key.pem")
    trusting = ssl.create_default_context(cafile=str(files / "own-cert.pem"))
    with listen(late, tls=context) as server:
        plain = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
        with trusting.wrap_socket(plain, server_hostname="localhost") as wire:
            wire.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n" + rest)
            begun.set()

            def look_at_deadlines() -> float:
                server.listener._sweep()
                return server.loop.time()

            eventually("the answer is written", lambda: written(server) > size)
            late_by = server.look(server.loop.time) + 0.2
            eventually("the deadline is over", lambda: server.look(look_at_deadlines) > late_by)
            raw = b""
            while piece := wire.recv(1 << 16):
                raw += piece
    head, _, body = raw.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200") and b"connection: close" in head
    assert len(body) == size


def test_a_refused_tls_peer_that_stays_is_dropped_soon(files: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files / "own-cert.pem", files / "own-key.pem")
    trusting = ssl.create_default_context(cafile=str(files / "own-cert.pem"))
    with listen(echo, tls=context, stall_seconds=3600.0) as server:
        plain = socket.create_connection(("127.0.0.1", server.port), PATIENCE)
        with trusting.wrap_socket(plain, server_hostname="localhost") as wire:
            wire.sendall(b"no HTTP at all\r\n\r\n")
            assert wire.recv(100).startswith(b"HTTP/1.1 400")
            eventually("it is dropped", lambda: not server.look(lambda: len(server.listener.connections)))


def written(server: Bare) -> int:
    """Bytes of responses that were given to the transport."""
    return server.look(lambda: max((each.sent for each in server.listener.connections), default=0))


def holds(server: ServerProcess, port: int) -> bool:
    """Whether the server has an established connection to this port of ours."""
    own, peer = f":{server.port:04X} ", f":{port:04X} 01 "
    lines = Path("/proc/net/tcp").read_text().splitlines()
    return any(own in line and peer in line and line.index(own) < line.index(peer) for line in lines)


def test_one_file_may_hold_both(files: Path) -> None:
    with start(SOURCE, "--tls-cert", str(files / "both.pem")) as server, connect(server, files) as wire:
        post(wire, server, "add", a=1, b=2)
        assert wire.recv(100).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    ("cert", "key", "said"),
    [
        ("none-cert.pem", "own-key.pem", "http.tls_cert: {cert} can't be read: No such file or directory"),
        ("own-cert.pem", "none-key.pem", "http.tls_key: {key} can't be read: No such file or directory"),
        ("own-cert.pem", "other-key.pem", "http.tls_key: {key} is not the key of the certificate in {cert}"),
        ("own-cert.pem", "junk", "http.tls_key: {key} holds no private key in PEM form"),
        ("junk", "own-key.pem", "http.tls_cert: {cert} holds no certificate in PEM form"),
        ("own-cert.pem", None, "http.tls_cert: {cert} holds no private key in PEM form"),
        ("own-cert.pem", "locked.pem", "http.tls_key: {key} is encrypted"),
        (None, "own-key.pem", "http.tls_key: of no use without http.tls_cert"),
    ],
)
def test_files_that_do_not_do(files: Path, tmp_path: Path, cert: str | None, key: str | None, said: str) -> None:
    paths = {"--tls-cert": cert and str(files / cert), "--tls-key": key and str(files / key)}
    flags = [part for option, path in paths.items() if path for part in (option, path)]
    expected = said.format(cert=paths["--tls-cert"], key=paths["--tls-key"])
    assert refusal(tmp_path, *flags).startswith(expected)
