"""Streamable HTTP, both eras at one URL.

Each request is a POST whose answer is one JSON document or a stream of events. In the modern era that is all, and
closing a stream cancels its request. In the handshake era there is a session besides: an id that the server gave, a
GET stream for what belongs to no request, and streams that can be taken up again where they broke.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final, final

from longshore.client.channel import CLIENT_LIMITS, About, Channel
from longshore.client.http.endpoint import (
    JSON,
    STREAM,
    Endpoint,
    answered,
    error_for,
    is_session_over,
    media_type,
    read_refusal,
    refuse,
)
from longshore.client.http.events import TooLong
from longshore.client.http.reading import Reader, gone, let_end
from longshore.client.mirror import write_value
from longshore.client.tasks import Tasks, end
from longshore.errors import BadAnswer, ClientError, ConnectionLost
from longshore.http_client.response import HttpResponse, Unreachable
from longshore.http_client.urls import HeaderPairs
from longshore.limits import Limits
from longshore.protocol.revisions import MODERN, R2506, Revision
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.client.oauth.authorizer import Authorizer

MOST_REQUESTS: Final = 128
"""Requests under way, each with a connection of its own. More wait for a free one."""
TELL_SECONDS: Final = 30.0
"""For a notification or an answer of ours to be accepted."""
_REFUSED_SECONDS: Final = 0.25
"""When a session has ended, for other requests under way to hear that too: then they may be sent again."""
_FLUSH_SECONDS: Final = 0.5
"""For what was told last to arrive, before the end."""
_LISTEN_SECONDS: Final = 1.0
"""For a server to say whether it has a stream for the session. Some say so with its first event only."""
_DELETE_SECONDS: Final = 2.0
_SESSION_CHARS: Final = 1024
_POST: Final = (("Content-Type", JSON), ("Accept", f"{JSON}, {STREAM}"))
_OVER: Final = "the server has ended the session"


@final
class HttpChannel(Channel):
    """The way to an MCP endpoint."""

    shared = True
    logs_in = True

    def __init__(
        self,
        url: str,
        *,
        headers: HeaderPairs = (),
        authorizer: Authorizer | None = None,
        limits: Limits = CLIENT_LIMITS,
    ) -> None:
        super().__init__()
        self._endpoint = Endpoint(url, headers, authorizer)
        self.where = self._endpoint.where
        self._most = limits.frame_bytes
        self._reader = Reader(self._get, self._pass_on, lambda text: self.note(text), limits.frame_bytes)
        self._revision: Revision | None = None
        self._session: str | None = None
        self._requests: dict[Id, asyncio.Task[None]] = {}
        self._unheard = 0
        """Requests that were sent and of whose answers nothing has come."""
        self._telling, self._others = Tasks(), Tasks()
        self._order = asyncio.Lock()
        self._greeted = asyncio.Event()
        """Clear while the server does not know yet that the handshake is over: nothing may be asked then."""
        self._greeted.set()
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._over = self._lost = self._closed = False
        self._closing = asyncio.Lock()

    # -- the session's side

    async def open(self) -> None:
        """The first request connects. What should be known before that is told."""
        if not self._endpoint.address.is_confidential:
            self.note(f"the way to {self.where} is not encrypted: whoever is on it can read along; use https://")

    @property
    def waiting(self) -> bool:
        return self._endpoint.waiting

    def send(self, frame: bytes, about: About) -> None:
        id = about.id
        if self._closed or self._over:
            if id is not None:
                self.fail(id, ConnectionLost(_OVER if self._over else "the connection is closed", unsent=True))
        elif id is None:
            self._telling.start(self._tell(frame, about))
        else:
            task = asyncio.get_running_loop().create_task(self._request(frame, about, id))
            self._requests[id] = task
            task.add_done_callback(lambda _: self._forget(id))
            self.congested = len(self._requests) >= MOST_REQUESTS

    def cancel(self, id: Id, frame: bytes) -> None:
        """Closing its stream is what cancels a modern request. An older server is told; then nobody reads on."""
        if self._revision is not None and not self._revision.modern:
            self.send(frame, About("notifications/cancelled"))
        task = self._requests.get(id)
        if task is not None:
            task.cancel()

    async def ready(self) -> None:
        while self.congested and not self._closed and not self._lost:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if not waiter.cancelled():
                    self._admit()  # another one in its stead
                raise

    def speak(self, revision: Revision) -> None:
        self._revision = revision
        if not revision.modern:
            self._greeted.clear()

    async def close(self) -> None:
        self._closed = True
        self._admit_all()
        async with self._closing:
            try:
                await end([*self._requests.values()])
                await self._others.end()
                await self._telling.wait(_FLUSH_SECONDS)
                await self._telling.end()
                await self._others.end()
                await self._leave()
            finally:
                await self._endpoint.close(self.note)

    async def _leave(self) -> None:
        """Tell the server that the session is not needed any more. Whether it cares is its own business."""
        if self._session is None or self._over:
            return
        headers = [*self._version(None), ("Mcp-Session-Id", self._session)]
        self._session = None
        try:
            async with asyncio.timeout(_DELETE_SECONDS):
                await read_refusal(await self._endpoint.ask("DELETE", headers, login=False))
        except (TimeoutError, ClientError):
            pass
        except Exception as problem:  # an authorizer of the caller's
            self.note(f"the session could not be ended ({problem!r})")

    # -- headers

    def _headers(self, about: About | None) -> list[tuple[str, str]]:
        """What a request says beside its body. `about` is None where it has none."""
        headers = self._version(about)
        session = self._used_session
        if session is not None:
            headers.append(("Mcp-Session-Id", session))
        return headers

    def _version(self, about: About | None) -> list[tuple[str, str]]:
        revision = self._revision
        if revision is None:
            return [] if about is None or about.method != "server/discover" else _mirror(MODERN[-1], about)
        if revision.modern:
            return [] if about is None else _mirror(revision.name, about)
        return [("MCP-Protocol-Version", revision.name)] if revision.index >= R2506 else []

    @property
    def _used_session(self) -> str | None:
        """A server may have begun a session by the time that it says it is modern. That is ended, and not used."""
        return None if self._revision is not None and self._revision.modern else self._session

    def _may_be_modern(self, about: About) -> bool:
        return about.method == "server/discover" if self._revision is None else self._revision.modern

    # -- requests

    async def _request(self, frame: bytes, about: About, id: Id) -> None:
        problem: ClientError = BadAnswer("its answer belongs to no request of ours")
        try:
            await self._greeted.wait()
            await self._exchange(frame, about, id)
        except ClientError as failed:
            problem = self._endpoint.explain(failed)
        except TooLong as failed:
            problem = BadAnswer(f"it sent {failed}")
        except Exception as failed:  # whatever it is: the caller must not wait for ever
            problem = ClientError(f"the request failed ({failed!r})")
            problem.__cause__ = failed
        self.fail(id, problem)  # of no effect if the answer came

    def _forget(self, id: Id) -> None:
        del self._requests[id]
        if len(self._requests) < MOST_REQUESTS:
            self.congested = False
            self._admit()

    def _admit(self) -> None:
        """There is a free place: the one that waited for longest may have it."""
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _admit_all(self) -> None:
        """There will be no free place any more."""
        while self._waiters:
            self._admit()

    async def _exchange(self, frame: bytes, about: About, id: Id) -> None:
        session = self._used_session
        self._unheard += 1
        try:
            answer = await self._endpoint.ask("POST", [*_POST, *self._headers(about), *about.headers], frame)
        finally:
            self._unheard -= 1
        try:
            await self._take(answer, about, id, session)
        finally:
            answer.close()

    async def _take(self, answer: HttpResponse, about: About, id: Id, session: str | None) -> None:
        if not 200 <= answer.status < 300:
            await self._take_refusal(answer, about, id, session)
            return
        if about.method == "initialize":
            self._keep_session(answer)
        kind = media_type(answer)
        if kind == STREAM:
            await self._reader.follow(answer, id, resumable=not self._may_be_modern(about))
        elif kind == JSON:
            self.hear(await answer.read(self._most))
        else:
            refuse(await read_refusal(answer))

    async def _take_refusal(self, answer: HttpResponse, about: About, id: Id, session: str | None) -> None:
        whole = await read_refusal(answer)
        modern = self._may_be_modern(about)
        if session is not None and not modern and is_session_over(whole, id):
            self.fail(id, ConnectionLost(_OVER, unsent=True))
            self._end_session()
            return
        error = error_for(whole.body, id, nameless=modern)
        if error is None:
            refuse(whole)
        self.hear(error)

    def _keep_session(self, answer: HttpResponse) -> None:
        session = answer.header("mcp-session-id")
        if session is None:
            return
        if not session or len(session) > _SESSION_CHARS or not all("!" <= char <= "~" for char in session):
            raise BadAnswer("the id that it gave the session can't be sent back; it must be visible ASCII")
        self._session = session

    def _end_session(self) -> None:
        """The server does not know the session any more. Requests under way may be told so too, one by one."""
        if self._over or self._closed:
            return
        self._over = True
        if self._unheard:
            self._others.start(self._lose_later())
        else:
            self._lose(ConnectionLost(_OVER))

    async def _lose_later(self) -> None:
        waiting = [task for task in self._requests.values() if task is not asyncio.current_task()]
        if waiting:
            await asyncio.wait(waiting, timeout=_REFUSED_SECONDS)
        self._lose(ConnectionLost(_OVER))

    def _lose(self, problem: ConnectionLost) -> None:
        if not self._closed and not self._lost:
            self._lost = True
            self.lose(problem)
            self._admit_all()

    # -- notifications and answers of ours

    async def _tell(self, frame: bytes, about: About) -> None:
        """Notifications go one after the other. An answer waits for none of them, nor does word that we gave up."""
        if about.method == "notifications/initialized":
            await self._greet(frame, about)
            return
        await self._greeted.wait()
        if about.method in ("response", "notifications/cancelled"):
            await self._deliver(frame, about)
        else:
            async with self._order:
                await self._deliver(frame, about)

    async def _greet(self, frame: bytes, about: About) -> None:
        """End the handshake and open the stream of the session.

        Servers may ask on that stream what belongs to a request, so no request goes out before it is there.
        """
        try:
            if await self._deliver(frame, about) and not self._closed:
                begun = asyncio.Event()
                self._others.start(self._listen(begun))
                async with asyncio.timeout(_LISTEN_SECONDS):
                    await begun.wait()
        except TimeoutError:
            pass
        finally:
            self._greeted.set()

    async def _deliver(self, frame: bytes, about: About) -> bool:
        """Whether the server took it. What it thinks of a notification, nobody waits for."""
        session = self._used_session
        try:
            answer = await self._endpoint.ask("POST", [*_POST, *self._headers(about)], frame, seconds=TELL_SECONDS)
            if 200 <= answer.status < 300:
                self._others.start(let_end(answer))  # some answer by a stream, and keep it open
                return True
            whole = await read_refusal(answer)
        except ClientError as problem:
            self.note(f"{about.method} could not be delivered: {problem.what}")
            return False
        except Exception as problem:  # an authorizer of the caller's
            self.note(f"{about.method} could not be delivered: {problem!r}")
            return False
        if session is not None and is_session_over(whole):
            self._end_session()
        else:
            self.note(f"{about.method} was refused with HTTP status {answer.status}")
        return False

    # -- the stream that belongs to no request

    async def _listen(self, begun: asyncio.Event) -> None:
        try:
            await self._reader.listen(begun.set)
        except Unreachable as problem:
            self._over = True
            self._lose(gone(problem))
        except ConnectionLost:
            pass  # it ended with the session
        except Exception as problem:  # a login that came to nothing, an authorizer of the caller's
            what = problem.what if isinstance(problem, ClientError) else repr(problem)
            self.note(f"the stream of the session is at its end ({what}); requests go on without it")
        finally:
            begun.set()

    async def _get(self, last_id: str) -> HttpResponse:
        session = self._session
        resume = [("Last-Event-ID", last_id)] if last_id else []
        answer = await self._endpoint.ask("GET", [("Accept", STREAM), *self._headers(None), *resume])
        if answer.status in (400, 404) and session is not None:
            whole = await read_refusal(answer)
            if not is_session_over(whole):
                refuse(whole)
            self._end_session()
            raise ConnectionLost(_OVER)
        return answer

    def _pass_on(self, frame: bytes, id: Id | None) -> None:
        """Hand over what came on a stream. An answer may come on another than its own; then that is done with."""
        self.hear(frame)
        if id is None and self._requests:
            for each in answered(frame):
                task = self._requests.get(each)
                if task is not None:
                    task.cancel()


def _mirror(version: str, about: About) -> list[tuple[str, str]]:
    """What the headers of a modern request repeat of its body."""
    headers = [("MCP-Protocol-Version", version), ("Mcp-Method", about.method)]
    if about.name is not None:
        headers.append(("Mcp-Name", write_value(about.name)))
    return headers
