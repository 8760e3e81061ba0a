"""The issuer's keys: fetching, rotation, and failures of the issuer."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from longshore.auth import Guard, Refusal, verifiers
from longshore.auth.jwt import MOST_KEYS
from longshore.protocol.peer import Principal
from services import make_certificate

from .conftest import RESOURCE, bearer, guard, look_up, principal, refusal
from .issuer import Answer, Clock, Issuer, ec, jwt, send, serving

ISSUER = "https://login.example.com"
OLD, NEW = ec("old"), ec("new")


def _guard(issuer: Issuer, clock: Clock, **settings: Any) -> Guard:
    return guard(issuer=ISSUER, jwks=issuer.jwks, clock=clock, **settings)


def _token(clock: Clock, key: Any = OLD, subject: str = "alice", seconds: float = 3600) -> dict[bytes, bytes]:
    claims = {"iss": ISSUER, "sub": subject, "aud": RESOURCE, "exp": clock.now + seconds}
    return bearer(jwt(key, "ES256", claims))


def _status(found: Guard, headers: dict[bytes, bytes]) -> int:
    outcome = look_up(found, headers)
    return outcome.status if isinstance(outcome, Refusal) else 200


def test_nothing_is_fetched_before_it_is_needed(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD)
    found = _guard(issuer, clock, token="s3cret-s3cret-s3cret")
    look_up(found, bearer("s3cret-s3cret-s3cret"))
    look_up(found, bearer("opaque-opaque-opaque"))
    look_up(found, bearer("eyJhbGciOiJub25lIn0.e30."))
    assert issuer.asked == []


def test_a_key_set_is_used_for_ten_minutes(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD)
    found = _guard(issuer, clock)
    for subject in "abc":
        assert _status(found, _token(clock, subject=subject)) == 200
        clock.now += 299
    assert len(issuer.asked) == 1
    clock.now += 2
    assert _status(found, _token(clock, subject="d")) == 200
    assert len(issuer.asked) == 2


def test_a_rotated_key_is_fetched_when_it_is_first_seen(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD)
    found = _guard(issuer, clock)
    assert _status(found, _token(clock)) == 200
    issuer.publish(OLD, NEW)
    clock.now += 30
    assert _status(found, _token(clock, NEW)) == 200
    assert len(issuer.asked) == 2


def test_unknown_keys_trigger_two_fetches_a_minute_at_most(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD)
    found = _guard(issuer, clock)
    assert _status(found, _token(clock)) == 200
    issuer.publish(OLD, NEW)
    clock.now += 29
    for number in range(20):
        assert _status(found, _token(clock, ec(f"forged{number}"))) == 401
        assert _status(found, _token(clock, NEW)) == 401, "it has to wait for its turn too"
    assert len(issuer.asked) == 1
    clock.now += 1
    assert _status(found, _token(clock, ec("forged"))) == 401
    assert _status(found, _token(clock, NEW)) == 200
    assert len(issuer.asked) == 2


def test_a_withdrawn_key_ends_the_tokens_that_it_signed(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD, NEW)
    found = _guard(issuer, clock, token="s3cret-s3cret-s3cret")
    stolen, static = _token(clock), bearer("s3cret-s3cret-s3cret")
    assert (_status(found, stolen), _status(found, static)) == (200, 200)
    issuer.publish(NEW)
    assert found.check(stolen, False) == Principal("login.example.com:alice", frozenset())
    clock.now += 600
    assert _status(found, _token(clock, NEW, "bob")) == 200
    assert found.check(stolen, False) is None
    assert _status(found, stolen) == 401
    assert _status(found, static) == 200


def test_a_withdrawn_key_ends_the_tokens_that_it_signed_also_if_none_but_these_come(
    issuer: Issuer, clock: Clock
) -> None:
    issuer.publish(OLD, NEW)
    found = _guard(issuer, clock)
    stolen, known = _token(clock), Principal("login.example.com:alice", frozenset())

    async def main() -> Any:
        async with asyncio.timeout(20):
            assert await found.look_up(stolen, False) == known
            issuer.publish(NEW)
            clock.now += 599
            assert found.check(stolen, False) == known
            assert len(issuer.asked) == 1
            clock.now += 1
            assert found.check(stolen, False) == known, "nobody waits for it"
            while found.check(stolen, False) is not None:
                await asyncio.sleep(0)
            return await found.look_up(stolen, False)

    assert refusal(asyncio.run(main())).status == 401
    assert len(issuer.asked) == 2


def test_cached_tokens_are_checked_again_with_each_key_set(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD)
    found = _guard(issuer, clock)
    tokens = [_token(clock, subject=f"s{number}") for number in range(5)]

    async def main() -> None:
        async with asyncio.timeout(20):
            for fetched in range(1, 4):
                for each in tokens * 3:
                    assert isinstance(await found.look_up(each, False), Principal)
                await found._lookups.wait_all()
                assert len(issuer.asked) == fetched
                clock.now += 600

    asyncio.run(main())


def test_a_clock_that_was_set_back_fetches_again(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD)
    found = _guard(issuer, clock)
    assert _status(found, _token(clock)) == 200
    issuer.publish(NEW)
    clock.now -= 3000
    assert _status(found, _token(clock, NEW)) == 200


def test_many_tokens_at_once_fetch_once(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD)
    found = _guard(issuer, clock)
    headers = [_token(clock, subject=f"s{number}") for number in range(10)] * 3

    async def main() -> list[Any]:
        async with asyncio.timeout(20):
            return await asyncio.gather(*(found.look_up(each, False) for each in headers))

    assert len({principal(outcome).name for outcome in asyncio.run(main())}) == 10
    assert len(issuer.asked) == 1


def test_a_guard_outlives_its_loop(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD)
    found = _guard(issuer, clock)
    for subject in "abc":  # each look_up of these tests is a loop of its own
        assert _status(found, _token(clock, subject=subject)) == 200


def test_keys_of_unknown_kinds_are_skipped(issuer: Issuer, clock: Clock) -> None:
    strange: list[dict[str, Any]] = [
        {},
        {"kty": "AKP", "alg": "ML-DSA-44"},
        {"kty": "EC", "crv": "P-0", "x": "", "y": ""},
    ]
    issuer.publish(*strange, OLD)
    assert _status(_guard(issuer, clock), _token(clock)) == 200


def test_one_key_may_have_two_names(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD, {**OLD.as_dict(private=False), "kid": "alias"})
    found = _guard(issuer, clock)
    claims = {"iss": ISSUER, "sub": "alice", "aud": RESOURCE, "exp": clock.now + 9}
    for kid in ("old", "alias", None):
        assert _status(found, bearer(jwt(OLD, "ES256", claims, kid=kid))) == 200


def test_the_number_of_keys_is_bounded(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(*[{"kty": "AKP"}] * (MOST_KEYS - 1), OLD, NEW)
    found = _guard(issuer, clock)
    assert (_status(found, _token(clock)), _status(found, _token(clock, NEW))) == (200, 401)


def test_a_private_key_in_the_set_is_used_as_a_public_one(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD.as_dict(private=True))
    assert _status(_guard(issuer, clock), _token(clock)) == 200


# Failures of the issuer


def _huge(request: BaseHTTPRequestHandler) -> None:
    send(request, b'{"keys": [' + b" " * verifiers.MOST_BYTES + b"]}")


def _huge_in_chunks(request: BaseHTTPRequestHandler) -> None:
    request.protocol_version = "HTTP/1.1"
    request.send_response(200)
    request.send_header("Transfer-Encoding", "chunked")
    request.end_headers()
    while True:
        request.wfile.write(b"10000\r\n" + b" " * 65536 + b"\r\n")


def _redirect(request: BaseHTTPRequestHandler) -> None:
    send(request, b"", 302, Location="/elsewhere")


def _cut_short(request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.send_header("Content-Length", "1000")
    request.end_headers()
    request.wfile.write(b'{"keys"')


def _rubbish(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n\r\n")


def _long_header(request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000 + b"\r\n\r\n")


FAILURES: list[tuple[Answer, str]] = [
    (_huge, "answered with more than 262,144 bytes"),
    (_huge_in_chunks, "answered with more than 262,144 bytes"),
    (_redirect, "answered with status 302; redirects are not followed"),
    (lambda request: send(request, b"", 500), "answered with status 500"),
    (lambda request: send(request, b"", 204), "answered with status 204"),
    (lambda request: send(request, b"<html>"), "/jwks is not a JWKS document"),
    (lambda request: send(request, b"\xff\xfe"), "/jwks is not a JWKS document"),
    (lambda request: send(request, {"keys": []}), "/jwks holds no key that can be used"),
    (_cut_short, "it closed the connection in the middle of its answer"),
    (_rubbish, "its answer is no HTTP"),
    (_long_header, "its answer has more than 65,536 bytes beside the body"),
    (lambda request: request.connection.close(), "it closed the connection without an answer"),
]


@pytest.mark.parametrize(("answer", "why"), FAILURES, ids=[why for _, why in FAILURES])
def test_no_token_is_accepted_while_the_issuer_fails(issuer: Issuer, clock: Clock, answer: Answer, why: str) -> None:
    issuer.answer = answer
    found = _guard(issuer, clock)
    refused = refusal(look_up(found, _token(clock)))
    assert (refused.status, refused.challenge) == (503, "")
    assert refused.text == "the credential can't be checked now; try again in a moment"
    assert why in (found.trouble or "")
    assert [path for _, path in issuer.asked] == ["/jwks"]


def test_tokens_are_checked_again_after_an_issuer_failure(issuer: Issuer, clock: Clock) -> None:
    issuer.answer = lambda request: send(request, b"", 500)
    found = _guard(issuer, clock)
    headers = _token(clock)
    assert [_status(found, headers) for _ in range(5)] == [503] * 5
    assert len(issuer.asked) == 1, "a failing server is left alone for a while"
    issuer.answer = None
    issuer.publish(OLD)
    clock.now += 5
    assert _status(found, headers) == 200
    assert found.trouble is None


def test_trouble_is_reported_when_it_changes(issuer: Issuer, clock: Clock) -> None:
    heard: list[str] = []
    found = _guard(issuer, clock, report=heard.append)
    for status in (500, 500, 503, None, 500):
        issuer.publish(OLD)
        issuer.answer = None if status is None else lambda request, status=status: send(request, b"", status)
        clock.now += 601
        look_up(found, _token(clock))
    statuses = [text.rpartition(" ")[2] for text in heard]
    assert statuses == ["500", "503", "500"]


def test_an_issuer_failure_does_not_affect_cached_tokens(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD)
    found = _guard(issuer, clock, token="s3cret-s3cret-s3cret")
    known = _token(clock)
    assert _status(found, known) == 200
    issuer.answer = lambda request: send(request, b"", 500)
    clock.now += 601
    assert _status(found, known) == 200
    assert _status(found, bearer("s3cret-s3cret-s3cret")) == 200
    assert _status(found, _token(clock, subject="new")) == 503


def test_an_unknown_key_gets_503_while_the_issuer_fails(issuer: Issuer, clock: Clock) -> None:
    issuer.publish(OLD)
    found = _guard(issuer, clock)
    assert _status(found, _token(clock)) == 200
    issuer.answer = lambda request: send(request, b"", 500)
    clock.now += 30
    assert [_status(found, _token(clock, NEW)) for _ in range(3)] == [503] * 3
    assert _status(found, _token(clock, subject="bob")) == 200


def test_an_issuer_that_is_down_is_reported(clock: Clock) -> None:
    with serving() as gone:
        pass
    found = _guard(gone, clock)
    assert _status(found, _token(clock)) == 503
    assert "(connection refused)" in (found.trouble or "")


# Slow peers


@contextmanager
def _slow(issuer: Issuer, start: bytes, drop: bytes) -> Iterator[None]:
    """Answers that never end."""

    def answer(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(start)
        while not issuer.release.wait(0.01):
            request.wfile.write(drop)

    issuer.answer = answer
    yield
    issuer.release.set()


@pytest.mark.parametrize(
    ("start", "drop"),
    [
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\nX: ", b"y"),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    ],
)
def test_a_slow_server_is_cut_at_the_deadline(
    issuer: Issuer, clock: Clock, monkeypatch: pytest.MonkeyPatch, start: bytes, drop: bytes
) -> None:
    monkeypatch.setattr(verifiers, "SECONDS", 0.2)
    found = _guard(issuer, clock)
    with _slow(issuer, start, drop):
        assert _status(found, _token(clock)) == 503
        assert found.trouble == f"{issuer.jwks}: it did not answer within 0.2 s"


def test_closing_ends_running_look_ups(issuer: Issuer, clock: Clock) -> None:
    asked = threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.set()
        issuer.release.wait(20)

    issuer.answer = answer
    found = _guard(issuer, clock)

    async def main() -> Any:
        async with asyncio.timeout(20):
            waiting = asyncio.create_task(found.look_up(_token(clock), False))
            await asyncio.to_thread(asked.wait, 10)
            await found.close()
            return await waiting, await found.look_up(_token(clock, subject="late"), False)

    assert [refusal(outcome).status for outcome in asyncio.run(main())] == [503, 503]


def test_a_cancelled_caller_does_not_cancel_the_others(issuer: Issuer, clock: Clock) -> None:
    asked = threading.Event()
    go = threading.Event()

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.set()
        go.wait(20)
        send(request, {"keys": issuer.keys})

    issuer.publish(OLD)
    issuer.answer = answer
    found = _guard(issuer, clock)
    headers = _token(clock)

    async def main() -> Any:
        async with asyncio.timeout(20):
            first, second = (asyncio.create_task(found.look_up(headers, False)) for _ in range(2))
            await asyncio.to_thread(asked.wait, 10)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            go.set()
            return await second

    assert principal(asyncio.run(main())).name == "login.example.com:alice"
    assert len(issuer.asked) == 1


# TLS


def test_over_tls_the_certificate_counts(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, private = make_certificate(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, private)
    with serving(tls) as issuer:
        issuer.publish(OLD)
        named = issuer.jwks.replace("127.0.0.1", "127.1")  # the same address, by another name
        stranger = _guard(issuer, clock)
        assert _status(stranger, _token(clock)) == 503
        assert "certificate" in (stranger.trouble or "")
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        wrong_name = guard(issuer=ISSUER, jwks=named, clock=clock)
        assert _status(wrong_name, _token(clock)) == 503
        assert "mismatch" in (wrong_name.trouble or "")
        assert issuer.asked == []
        assert _status(_guard(issuer, clock), _token(clock)) == 200


def test_closing_during_the_handshake_sends_no_request(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    cert, private = make_certificate(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(cert))
    monkeypatch.setattr(verifiers, "SECONDS", 60.0)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, private)
    tls.num_tickets = 0  # who hangs up before reading one resets the connection, and nothing can be heard of it
    connected, closed = threading.Event(), threading.Event()
    heard: list[bytes] = []

    def answer() -> None:
        peer, _ = listener.accept()
        peer.recv(1, socket.MSG_PEEK)  # the handshake has begun
        connected.set()
        closed.wait(10)
        try:
            with tls.wrap_socket(peer, server_side=True) as secured:
                secured.settimeout(10)
                heard.append(secured.recv(1000))
        except OSError:
            peer.close()  # the client hung up before the handshake ended

    with socket.create_server(("127.0.0.1", 0)) as listener:
        answering = threading.Thread(target=answer)
        answering.start()
        found = guard(issuer=ISSUER, jwks=f"https://127.0.0.1:{listener.getsockname()[1]}/jwks", clock=clock)

        async def main() -> Any:
            async with asyncio.timeout(20):
                waiting = asyncio.create_task(found.look_up(_token(clock), False))
                await asyncio.to_thread(connected.wait, 10)
                await found.close()
                closed.set()
                return await waiting

        assert refusal(asyncio.run(main())).status == 503
        answering.join(10)
    assert heard in ([], [b""])
