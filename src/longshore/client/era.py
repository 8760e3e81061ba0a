"""Which era a server speaks, and agreeing on a revision with it.

A modern server answers `server/discover`; any other refuses it, each in its own way, or says nothing at all. So the
handshake follows a refusal at once and silence after a while, without giving up on the probe: a server that takes ten
seconds to start answers whichever it knows, and the first good answer decides. What was learned of a server is
remembered for as long as the process lives.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from longshore.client.channel import Channel
from longshore.client.clock import patiently
from longshore.client.pending import Sent
from longshore.client.records import ServerInfo
from longshore.client.session import Session
from longshore.errors import BadAnswer, CallTimeout, ConnectError, ConnectionLost, HttpRefused, ServerError
from longshore.protocol.peer import PREFIX, SERVER_INFO, UNSUPPORTED_VERSION
from longshore.protocol.revisions import LEGACY, MODERN, REVISIONS, Revision
from longshore.schema.kinds import is_object
from longshore.wire.codec import BROKEN

T = TypeVar("T")

PROBE_SECONDS = 2.0
"""A server that has not answered the probe by then is offered the handshake as well."""
_MODERN_ERRORS = frozenset((-32020, -32021, UNSUPPORTED_VERSION))
_OLDER_STATUSES = frozenset((400, 404, 405))
"""With which a server of HTTP+SSE refuses what is sent to it by a later way."""
_FINAL_STATUSES = frozenset((*range(300, 400), 401, 403, 429, 502, 503, 504))
"""They say nothing of what a server speaks: it is elsewhere, wants credentials or patience, or was not even asked."""

_KNOWN = 1000
_known: dict[str, str] = {}
"""Where a server is -> the revision that it was last spoken to in."""


class Wish(Struct, frozen=True):
    """What we bring to an agreement: which era or revision, what we can do, who we are."""

    era: str
    capabilities: Mapping[str, Any]
    info: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.era not in ("auto", "modern", "legacy") and self.era not in REVISIONS:
            raise ValueError(f"no era {self.era!r}; auto, modern, legacy or one of {', '.join(REVISIONS)}")


class OlderTransport(ConnectError):
    """The server may be one of the first revision, which has another way over HTTP."""


class Unanswered(ConnectError):
    """A server is there, and did not answer in time."""

    exit_code = CallTimeout.exit_code


class EndedByProbe(ConnectError):
    """The server ended instead of answering the probe, as some of the handshake era do: they expect nothing else."""


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


async def agree(session: Session, wish: Wish, timeout: float | None, key: str = "") -> ServerInfo:
    """Agree with the server on a revision. Raises ConnectError."""
    try:
        found = await within(session.channel, _agree(session, wish, key), timeout)
    except TimeoutError:
        late = Unanswered(
            f"it did not answer within {timeout:g} s{session.oddity()}",
            fix="is it an MCP server? give it more by {}",
            options=("timeout",),
        )
        raise late.at(session.channel.where, session.channel.said()) from None
    except (ConnectionLost, ServerError, BadAnswer) as problem:
        found_out = ConnectError(problem.what, problem.server, problem.said)
        raise found_out.at(session.channel.where, session.channel.said()) from problem
    except ConnectError as problem:
        problem.at(session.channel.where, session.channel.said())
        raise
    if wish.era == "auto":  # who insists on an era has learned nothing of the server
        remember(key, found)
    return found


async def within(channel: Channel, work: Coroutine[Any, Any, T], timeout: float | None) -> T:
    """Have it done in time, not counting that in which a person logs in."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        await patiently(task, timeout, lambda: channel.waiting)
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))  # what it has begun it ends before anybody cleans up
        if not task.cancelled():
            task.exception()  # whoever was cancelled meanwhile will not ask for it


async def _agree(session: Session, wish: Wish, key: str) -> ServerInfo:
    if wish.era == "modern" or wish.era in MODERN:
        return await _discover(session, wish, wish.era)
    if wish.era == "legacy" or wish.era in LEGACY:
        return await _shake_hands(session, wish)
    if _known.get(key) in LEGACY:
        try:
            return await _shake_hands(session, wish)
        except (ServerError, BadAnswer, ConnectError):
            if session.gone is not None:
                raise
            # another version of it is there now
    return await _find_out(session, wish)


async def _find_out(session: Session, wish: Wish) -> ServerInfo:
    probe = _probe(session, wish)
    if await _answered(session, probe):
        return await _judge(session, wish, probe)
    session.envelope = None
    hello = _hello(session, wish)  # it is slow to start, or ignores what it does not know
    try:
        await asyncio.wait((probe.answer, hello.answer), return_when=asyncio.FIRST_COMPLETED)
        if hello.answer.done() and hello.answer.exception() is None:
            return _shaken(session, wish, hello.answer.result())
        if await _answered(session, probe):
            return await _judge(session, wish, probe, hello)
        return await _shake_hands(session, wish, hello)  # which was refused: that says more than silence
    finally:
        for sent in (probe, hello):
            session.give_up(sent.id, "not needed any more")


async def _answered(session: Session, probe: Sent) -> bool:
    """Whether the probe is answered, if it gets a while for it."""
    try:
        await patiently(probe.answer, PROBE_SECONDS, lambda: session.channel.waiting)
    except TimeoutError:
        return False
    return True


def _probe(session: Session, wish: Wish, revision: str = MODERN[-1]) -> Sent:
    session.envelope = _make_envelope(REVISIONS[revision], wish)
    return session.start("server/discover", {})


async def _judge(session: Session, wish: Wish, probe: Sent, hello: Sent | None = None) -> ServerInfo:
    """What the answer to the probe says of the server."""
    try:
        found = _discovered(session, await probe.answer)
    except ServerError as problem:
        if problem.code in _MODERN_ERRORS:
            return await _discover(session, wish, _offered(problem))
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
            return _met(session, wish, found)
    session.envelope = None
    if hello is not None:
        return await _shake_hands(session, wish, hello)
    return await _shake_hands(session, wish)


def _offered(problem: ServerError) -> str:
    """The newest revision of ours among those that a refusal names."""
    offered: Any = problem.data.get("supported") if is_object(problem.data) else None
    mutual = [name for name in MODERN if isinstance(offered, list) and name in offered]
    if problem.code == UNSUPPORTED_VERSION and not mutual:
        raise ConnectError(f"it speaks {offered!r}, we speak {', '.join(MODERN)}", problem.server, problem.said)
    return mutual[-1] if mutual else MODERN[-1]


async def _discover(session: Session, wish: Wish, revision: str) -> ServerInfo:
    """The server is modern, or is to be. A revision that it refuses is exchanged for one that it names, once."""
    named = revision if revision in MODERN else MODERN[-1]
    try:
        found = await _ask_who(session, wish, named)
    except ServerError as problem:
        if problem.code not in _MODERN_ERRORS:
            raise
        found = await _ask_who(session, wish, _offered(problem))
    if not any(version in MODERN for version in found.supported_versions):
        spoken = ", ".join(found.supported_versions) or "no revision at all"
        raise ConnectError(f"it speaks {spoken}, we speak {', '.join(MODERN)}", session.channel.where)
    return _met(session, wish, found)


async def _ask_who(session: Session, wish: Wish, revision: str) -> _Discovered:
    try:
        return _discovered(session, await _probe(session, wish, revision).answer)
    except HttpRefused as refused:
        speaks = "" if refused.status in _FINAL_STATUSES else f"it does not speak {revision}: "
        raise _refused(refused, speaks) from refused


def _discovered(session: Session, raw: Raw) -> _Discovered:
    try:
        found = _read_discovered(raw)
    except BROKEN as broken:
        raise BadAnswer(f"its answer to server/discover can't be read: {broken}", session.channel.where) from None
    if found.result_type != "complete":
        kind = str(found.result_type)[:50]
        raise BadAnswer(
            f"its answer to server/discover is of a kind that nobody knows: {kind!r}", session.channel.where
        )
    return found


def _met(session: Session, wish: Wish, found: _Discovered) -> ServerInfo:
    name = [version for version in MODERN if version in found.supported_versions][-1]
    revision = REVISIONS[name]
    session.envelope = _make_envelope(revision, wish)
    _settle(session, revision)
    info: Any = found.meta.get(SERVER_INFO)
    return _info(name, info if is_object(info) else {}, found.capabilities, found.instructions)


def _make_envelope(revision: Revision, wish: Wish) -> dict[str, Any]:
    """What every modern request says of itself."""
    return {
        PREFIX + "protocolVersion": revision.name,
        PREFIX + "clientCapabilities": _modern(wish.capabilities),
        PREFIX + "clientInfo": dict(wish.info),
    }


def _modern(capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """What is declared with every request needs no notice that it changed."""
    return {**capabilities, "roots": {}} if "roots" in capabilities else dict(capabilities)


def _hello(session: Session, wish: Wish) -> Sent:
    asked = wish.era if wish.era in LEGACY else LEGACY[-1]
    params = {"protocolVersion": asked, "capabilities": wish.capabilities, "clientInfo": wish.info}
    return session.start("initialize", params)


async def _shake_hands(session: Session, wish: Wish, hello: Sent | None = None) -> ServerInfo:
    """Shake hands, or wait for the other hand where ours is held out already."""
    try:
        return _shaken(session, wish, await (hello or _hello(session, wish)).answer)
    except HttpRefused as refused:
        if refused.status in _OLDER_STATUSES:
            raise OlderTransport(refused.what, refused.server) from refused
        raise _refused(refused) from refused


def _refused(refused: HttpRefused, before: str = "") -> ConnectError:
    return ConnectError(before + refused.what, refused.server, refused.said, fix=refused.fix, options=refused.options)


def _shaken(session: Session, wish: Wish, raw: Raw) -> ServerInfo:
    try:
        found = _read_initialized(raw)
    except BROKEN as broken:
        raise BadAnswer(f"its answer to initialize can't be read: {broken}", session.channel.where) from None
    name = found.protocol_version
    if name not in LEGACY or (wish.era in LEGACY and name != wish.era):
        wanted = wish.era if wish.era in LEGACY else ", ".join(LEGACY)
        raise ConnectError(f"it answered the handshake with {name[:50]!r}, we speak {wanted}", session.channel.where)
    session.envelope = None
    _settle(session, REVISIONS[name])
    session.notify("notifications/initialized")
    return _info(name, found.server_info, found.capabilities, found.instructions)


def _settle(session: Session, revision: Revision) -> None:
    session.revision = revision
    session.channel.speak(revision)


def _info(revision: str, info: dict[str, Any], capabilities: dict[str, Any], instructions: str | None) -> ServerInfo:
    def text(key: str) -> str | None:
        value = info.get(key)
        return value if isinstance(value, str) else None

    return ServerInfo(
        name=text("name") or "",
        version=text("version") or "",
        title=text("title"),
        instructions=instructions,
        capabilities=capabilities,
        revision=revision,
        info=info,
    )


def remember(key: str, found: ServerInfo) -> None:
    """What was learned of a server. An empty key is nobody's."""
    if len(_known) >= _KNOWN:
        _known.clear()
    if key:
        _known[key] = found.revision


def forget(key: str) -> None:
    """What was known of a server does not hold any more."""
    _known.pop(key, None)
