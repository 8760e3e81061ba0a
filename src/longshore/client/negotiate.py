"""Detecting the era of a server, and negotiating a revision with it.

A modern server answers `server/discover`; any other refuses it, each in its own way, or stays silent. So the handshake
follows a refusal at once and silence after a while, without cancelling the probe: a server that takes ten seconds to
start answers the one that it knows, and the first good answer decides. The process remembers the result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from longshore.client.clock import PausableClock
from longshore.client.models import ServerInfo
from longshore.client.session import ClientSession, Sent
from longshore.errors import BadAnswer, CallTimeout, ConnectError, ConnectionLost, HttpRefused, ServerError
from longshore.protocol.peer import PREFIX, SERVER_INFO, UNSUPPORTED_VERSION
from longshore.protocol.revisions import LEGACY, MODERN, REVISIONS
from longshore.schema.kinds import as_object
from longshore.wire.codec import BROKEN

T = TypeVar("T")

PROBE_SECONDS = 2.0
"""A server that has not answered the probe by then is offered the handshake as well."""
_MODERN_ERRORS = frozenset((-32020, -32021, UNSUPPORTED_VERSION))
_OLDER_STATUSES = frozenset((400, 404, 405))
"""With which a server of HTTP+SSE refuses Streamable HTTP."""
_FINAL_STATUSES = frozenset((*range(300, 400), 401, 403, 429, 502, 503, 504))
"""They say nothing of a server's era: it is elsewhere, wants credentials or time, or was not reached."""

_KNOWN = 1000
_known: dict[str, str] = {}
"""Address of a server -> the revision that was last agreed on with it."""


class ClientHello(Struct, frozen=True):
    """The client's input to a negotiation: the requested era or revision, its capabilities and its name."""

    era: str
    capabilities: Mapping[str, Any]
    info: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.era not in ("auto", "modern", "legacy") and self.era not in REVISIONS:
            raise ValueError(f"no era {self.era!r}; auto, modern, legacy or one of {', '.join(REVISIONS)}")


class OlderTransport(ConnectError):
    """The server may be one of the first revision, which has another transport over HTTP."""


class Unanswered(ConnectError):
    """A server was reached, and did not answer in time."""

    exit_code = CallTimeout.exit_code


class EndedByProbe(ConnectError):
    """The server process ended instead of answering the probe, as some of the handshake era do."""


class _Discovered(Struct, rename="camel"):
    supported_versions: list[str]
    capabilities: dict[str, Any] = {}
    instructions: str | None = None
    result_type: Any = "complete"
    meta: dict[str, Any] = field(name="_meta", default={})


class _Initialized(Struct, rename="camel"):
    protocol_version: str
    capabilities: dict[str, Any] = {}
    server_info: dict[str, Any] = {}
    instructions: str | None = None


_read_discovered = msgspec.json.Decoder(_Discovered).decode
_read_initialized = msgspec.json.Decoder(_Initialized).decode


async def negotiate(session: ClientSession, hello: ClientHello, timeout: float | None, key: str = "") -> ServerInfo:
    """Agree with the server on a revision. `key` is its address. Raises ConnectError."""
    try:
        found = await within(session.clock, _negotiate(session, hello, key), timeout)
    except TimeoutError:
        what = f"it did not answer within {timeout:g} s{session.last_note()}"
        fix = "is it an MCP server? give it more by {}"
        raise Unanswered(what, fix=fix, options=("timeout",)) from None
    except (ConnectionLost, ServerError, BadAnswer) as problem:
        raise ConnectError(problem.what, problem.server, problem.said) from problem
    if hello.era == "auto":  # a pinned era says nothing of the server
        remember(key, found)
    return found


async def within(clock: PausableClock, work: Coroutine[Any, Any, T], timeout: float | None) -> T:
    """Do the work within the timeout, not counting the time of a login. Raises TimeoutError."""
    task = clock.loop.create_task(work)
    try:
        await clock.wait_excluding_login(task, timeout)
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))  # it ends its own work before the caller cleans up
        if not task.cancelled():
            task.exception()  # a cancelled caller does not retrieve it


async def _negotiate(session: ClientSession, hello: ClientHello, key: str) -> ServerInfo:
    if hello.era == "modern" or hello.era in MODERN:
        return await _discover(session, hello, hello.era)
    if hello.era == "legacy" or hello.era in LEGACY:
        return await _shake_hands(session, hello)
    if _known.get(key) in LEGACY:
        try:
            return await _shake_hands(session, hello)
        except (ServerError, BadAnswer, ConnectError):
            if session.closed is not None:
                raise
            # the server has another version now
    return await _find_era(session, hello)


async def _find_era(session: ClientSession, hello: ClientHello) -> ServerInfo:
    probe = _probe(session, hello)
    if await _answered(session, probe):
        return await _judge(session, hello, probe)
    session.envelope = None
    handshake = _initialize(session, hello)  # the server is slow to start, or ignores unknown methods
    try:
        await asyncio.wait((probe.answer, handshake.answer), return_when=asyncio.FIRST_COMPLETED)
        if handshake.answer.done() and handshake.answer.exception() is None:
            return await _initialized(session, hello, handshake.answer.result())
        if await _answered(session, probe):
            return await _judge(session, hello, probe, handshake)
        return await _shake_hands(session, hello, handshake)  # the probe was refused, which says more than silence
    finally:
        for sent in (probe, handshake):
            session.cancel(sent.id, "not needed any more")


async def _answered(session: ClientSession, probe: Sent) -> bool:
    """Whether the probe is answered within PROBE_SECONDS."""
    try:
        await session.clock.wait_excluding_login(probe.answer, PROBE_SECONDS)
    except TimeoutError:
        return False
    return True


def _probe(session: ClientSession, hello: ClientHello, revision: str = MODERN[-1]) -> Sent:
    session.envelope = _make_envelope(revision, hello)
    return session.start("server/discover", {})


async def _judge(session: ClientSession, hello: ClientHello, probe: Sent, handshake: Sent | None = None) -> ServerInfo:
    """Decide by the answer to the probe."""
    try:
        found = _discovered(await probe.answer)
    except ServerError as problem:
        if problem.code in _MODERN_ERRORS:
            return await _discover(session, hello, _offered(problem))
    except HttpRefused as refused:
        if refused.status in _FINAL_STATUSES:
            raise _refused(refused) from refused
    except ConnectionLost as lost:
        if session.channel.ended:
            raise EndedByProbe(lost.what, lost.server, lost.said) from lost
        raise
    except BadAnswer:
        pass
    else:
        if any(version in MODERN for version in found.supported_versions):
            return _agreed(session, hello, found)
    session.envelope = None
    return await _shake_hands(session, hello, handshake)


def _offered(problem: ServerError) -> str:
    """Our newest revision among those that a refusal names."""
    offered = as_object(problem.data).get("supported")
    mutual = [name for name in MODERN if isinstance(offered, list) and name in offered]
    if problem.code == UNSUPPORTED_VERSION and not mutual:
        raise ConnectError(f"it speaks {offered!r}, we speak {', '.join(MODERN)}")
    return mutual[-1] if mutual else MODERN[-1]


async def _discover(session: ClientSession, hello: ClientHello, revision: str, again: bool = False) -> ServerInfo:
    """Discover a modern server. A revision that it refuses is exchanged for one that it names, once."""
    named = revision if revision in MODERN else MODERN[-1]
    try:
        found = _discovered(await _probe(session, hello, named).answer)
    except ServerError as problem:
        if problem.code not in _MODERN_ERRORS or again:
            raise
        return await _discover(session, hello, _offered(problem), again=True)
    except HttpRefused as refused:
        speaks = "" if refused.status in _FINAL_STATUSES else f"it does not speak {named}: "
        raise _refused(refused, speaks) from refused
    if not any(version in MODERN for version in found.supported_versions):
        spoken = ", ".join(found.supported_versions) or "no revision at all"
        raise ConnectError(f"it speaks {spoken}, we speak {', '.join(MODERN)}")
    return _agreed(session, hello, found)


def _discovered(raw: Raw) -> _Discovered:
    try:
        found = _read_discovered(raw)
    except BROKEN as broken:
        raise BadAnswer(f"its answer to server/discover can't be read: {broken}") from None
    if found.result_type != "complete":
        kind = str(found.result_type)[:50]
        raise BadAnswer(f"its answer to server/discover is of a kind that nobody knows: {kind!r}")
    return found


def _agreed(session: ClientSession, hello: ClientHello, found: _Discovered) -> ServerInfo:
    name = [version for version in MODERN if version in found.supported_versions][-1]
    session.envelope = _make_envelope(name, hello)
    return _agree(session, name, as_object(found.meta.get(SERVER_INFO)), found)


def _make_envelope(revision: str, hello: ClientHello) -> dict[str, Any]:
    """The `_meta` of every modern request. Roots declared with every request need no change notifications."""
    roots: dict[str, Any] = {"roots": {}} if "roots" in hello.capabilities else {}
    return {
        PREFIX + "protocolVersion": revision,
        PREFIX + "clientCapabilities": {**hello.capabilities, **roots},
        PREFIX + "clientInfo": dict(hello.info),
    }


def _initialize(session: ClientSession, hello: ClientHello) -> Sent:
    asked = hello.era if hello.era in LEGACY else LEGACY[-1]
    params = {"protocolVersion": asked, "capabilities": hello.capabilities, "clientInfo": hello.info}
    return session.start("initialize", params)


async def _shake_hands(session: ClientSession, hello: ClientHello, handshake: Sent | None = None) -> ServerInfo:
    """Initialize, or wait for the answer to an `initialize` that was sent already."""
    try:
        return await _initialized(session, hello, await (handshake or _initialize(session, hello)).answer)
    except HttpRefused as refused:
        if refused.status in _OLDER_STATUSES:
            raise OlderTransport(refused.what, refused.server) from refused
        raise _refused(refused) from refused


def _refused(refused: HttpRefused, before: str = "") -> ConnectError:
    return ConnectError(before + refused.what, refused.server, refused.said, fix=refused.fix, options=refused.options)


async def _initialized(session: ClientSession, hello: ClientHello, raw: Raw) -> ServerInfo:
    try:
        found = _read_initialized(raw)
    except BROKEN as broken:
        raise BadAnswer(f"its answer to initialize can't be read: {broken}") from None
    name = found.protocol_version
    if name not in LEGACY or (hello.era in LEGACY and name != hello.era):
        wanted = hello.era if hello.era in LEGACY else ", ".join(LEGACY)
        raise ConnectError(f"it answered the handshake with {name[:50]!r}, we speak {wanted}")
    session.envelope = None
    server = _agree(session, name, found.server_info, found)
    session.notify("notifications/initialized")
    await session.channel.ready()  # no request may be sent before it
    return server


def _agree(session: ClientSession, name: str, info: dict[str, Any], found: _Discovered | _Initialized) -> ServerInfo:
    session.revision = REVISIONS[name]
    session.channel.speak(session.revision)
    texts = {key: value for key, value in info.items() if isinstance(value, str)}
    return ServerInfo(
        name=texts.get("name", ""),
        version=texts.get("version", ""),
        title=texts.get("title"),
        instructions=found.instructions,
        capabilities=found.capabilities,
        revision=name,
        info=info,
    )


def remember(key: str, found: ServerInfo) -> None:
    """Remember a server's revision. A server without an address is not remembered."""
    if len(_known) >= _KNOWN:
        _known.clear()
    if key:
        _known[key] = found.revision


def forget(key: str) -> None:
    _known.pop(key, None)
