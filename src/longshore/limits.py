"""Every limit, in one frozen record. A limit has a name with its unit, a default and the reason for it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

FOREVER = float("inf")

CountOrZero: TypeAlias = Annotated[int, Meta(ge=0)]
"""A count of which zero means none. Of the others the least is 1: zero would stop the server."""
SecondsOrZero: TypeAlias = Annotated[float, Meta(ge=0)]
"""Seconds of which zero means at once. Of the others the least is 0.1: zero would make a loop spin."""


class Limits(Struct, frozen=True, kw_only=True):
    """The limits of one server. `longshore.toml` sets each under `[limits]` by the same name."""

    frame_bytes: int = 16 << 20
    """One message. A 10 MB file in base64 or escaped JSON fits; a runaway line does not."""

    depth: Annotated[int, Meta(le=512)] = 128
    """Nesting of one message. The JSON parser recurses in C and overflows small thread stacks at about 1,000."""

    batch: int = 100
    """Messages in one 2025-03-26 batch array."""

    running: int = 64
    """Calls that run at once. More are queued."""

    parked: CountOrZero = 1024
    """Calls that wait, for a free place or for their client. More are refused: reading never stops for calls."""

    held_bytes: CountOrZero = 12 << 20
    """Frames of calls that run or wait, added up; over HTTP at least `upload_bytes`. A lone one may be larger."""

    output_bytes: int = 2 << 20
    """Unread output, or requests that wait for earlier ones. Beyond it we stop reading and start no queued call."""

    notes: CountOrZero = 1000
    """Log messages that one call may have waiting for a slow reader; older ones are dropped and counted."""

    abandoned: CountOrZero = 64
    """Threads of calls that timed out or were cancelled and did not stop. Beyond it calls are refused."""

    listens: CountOrZero = 64
    """Open `subscriptions/listen` streams of one peer."""

    subscriptions: CountOrZero = 1024
    """Resource URIs that one peer watches."""

    page: int = 2000
    """Entries of one list page."""

    questions: CountOrZero = 8
    """Rounds of questions that one call may ask the client."""

    state_bytes: int = 32 << 10
    """A signed `requestState`, which the client carries for us."""

    state_seconds: float = 600.0
    """How long an asked client may take before its `requestState` expires."""

    timeout_seconds: float = 30.0
    """The time limit of a tool that declares none."""

    eof_grace_seconds: float = 3.0
    """After end of input, calls in flight may finish for this long, so that `echo … | longshore serve` answers."""

    term_grace_seconds: SecondsOrZero = 0.3
    """What a child process gets between SIGTERM and SIGKILL when the server ends."""

    stop_seconds: SecondsOrZero = 0.7
    """From a stop signal to a certain end of the process, clean or not. A toolset's `stop_seconds` may extend it."""

    header_bytes: int = 64 << 10
    """The head of one HTTP request: 100 headers with room for a long token."""

    header_seconds: float = 10.0
    """From the first byte of an HTTP request to the end of its headers. Slower clients hold connections open."""

    body_seconds: float = 15.0
    """How long an HTTP body may take over `body_bytes` of it, or over its end."""

    body_bytes: int = 1 << 10
    """A body that brings less than this in `body_seconds` is no slow network but a held place."""

    upload_bytes: int = 64 << 20
    """HTTP bodies that have not ended, all of one process together: three of 16 MiB, and a quarter for small ones."""

    upload_seconds: float = 20.0
    """How long a body may wait for room among them. Longer than `body_seconds`, after which the slow ones make some."""

    idle_seconds: float = 75.0
    """An idle HTTP connection. Longer than the minute after which most proxies close theirs."""

    stall_seconds: float = 30.0
    """How long an HTTP client may read nothing of its waiting output."""

    connections: int = 2000
    """HTTP connections at once."""

    peer_connections: int = 1000
    """HTTP connections of one address, half of all. This machine's are not counted: a proxy is all clients."""

    stream_after_seconds: SecondsOrZero = 2.0
    """A call over HTTP that runs longer is answered as a stream, which proxies keep open and clients can resume."""

    keep_alive_seconds: float = 15.0
    """Between two comments on a silent HTTP stream: half of what impatient proxies allow."""

    handshakes: int = 1000
    """Handshakes of one caller over HTTP, at once or in ten seconds. A test suite with a client per test has fewer."""

    sessions: int = 10_000
    """Handshake-era HTTP sessions. Unused ones are dropped first, then those of the caller with the most."""

    live_sessions: int = 512
    """Sessions that one process holds decoded. Others are read from the store when they are used."""

    session_bytes: int = 64 << 10
    """One stored session: the capabilities and name of its client, and the URIs that it watches."""

    session_state_bytes: int = 64 << 10
    """What the calls of one session keep (`ctx.session.state`), all keys together. Each change writes it whole."""

    streams: int = 64
    """Open HTTP streams of one session."""

    events: int = 1000
    """Events of one HTTP stream that can be replayed."""

    event_seconds: float = 300.0
    """How long they can be replayed."""

    kept_bytes: int = 64 << 20
    """Events of ended HTTP streams that one process holds: six answers of 10 MB. The oldest are dropped."""

    retry_seconds: float = 1.0
    """After this long a client should reconnect to a stream that we closed early."""


DEFAULT_LIMITS = Limits()
