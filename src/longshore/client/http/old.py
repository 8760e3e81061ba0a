"""HTTP+SSE, the transport of 2024-11-05: one stream for everything that comes, and a URL to POST to that it names."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, final
from urllib.parse import urljoin

from longshore.client.channel import CLIENT_LIMITS, About, Channel
from longshore.client.http.endpoint import JSON, STREAM, Endpoint, media_type, read_refusal, refuse
from longshore.client.http.events import Events, TooLong
from longshore.client.http.reading import let_end
from longshore.client.tasks import Tasks
from longshore.errors import ClientError, ConnectError, ConnectionLost, HttpRefused
from longshore.http_client.response import ExchangeBroken, HttpResponse
from longshore.http_client.urls import HeaderPairs, parse_url
from longshore.limits import Limits
from longshore.protocol.revisions import Revision
from longshore.wire.messages import Id

if TYPE_CHECKING:
    from longshore.client.oauth.authorizer import Authorizer

TELL_SECONDS: Final = 60.0
"""For a message to be accepted. Some servers do so only when they have dealt with it."""
MOST_SENDING: Final = 128
"""Messages on their way, each with a connection of its own. More wait for a free one."""
_FLUSH_SECONDS: Final = 0.5
_MOST_URL: Final = 4096


@final
class OldHttpChannel(Channel):
    """The way to a server of the first revision."""

    handshake_only = True
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
        self._events = Events(limits.frame_bytes)
        self._post_to = ""
        self._sending, self._others = Tasks(), Tasks()
        self._free = asyncio.Semaphore(MOST_SENDING)
        self._unsent: dict[Id | None, asyncio.Task[None]] = {}
        self._greeted = asyncio.Event()
        self._greeted.set()
        self._closed = False
        self._closing = asyncio.Lock()

    # -- the session's side

    @property
    def waiting(self) -> bool:
        return self._endpoint.waiting

    async def open(self) -> None:
        try:
            answer = await self._endpoint.ask("GET", [("Accept", STREAM)])
            if answer.status != 200 or media_type(answer) != STREAM:
                refuse(await read_refusal(answer))
            rest = await self._learn(answer)
        except HttpRefused as refused:
            what = f"{refused.what}: there is no MCP server of any revision at this URL; is its path right?"
            raise ConnectError(what, self.where) from refused
        except TooLong as problem:
            raise ConnectError(f"it sent {problem}", self.where) from None
        except ConnectError as problem:
            problem.at(self.where)
            raise
        self.note("it speaks only the HTTP+SSE of 2024-11-05, which later revisions deprecate")
        self._others.start(self._read(answer, rest))

    def send(self, frame: bytes, about: About) -> None:
        if self._closed or not self._post_to:
            if about.id is not None:
                self.fail(about.id, ConnectionLost("the connection is closed", unsent=True))
            return
        task = self._sending.start(self._send(frame, about, self._post_to))
        if about.id is not None:
            self._unsent[about.id] = task

    def cancel(self, id: Id, frame: bytes) -> None:
        """Of what was not sent yet, there is nothing to tell."""
        task = self._unsent.pop(id, None)
        if task is None:
            super().cancel(id, frame)
        else:
            task.cancel()

    def speak(self, revision: Revision) -> None:  # noqa: ARG002 - there is nothing to say it in
        self._greeted.clear()

    async def close(self) -> None:
        self._closed = True
        async with self._closing:
            try:
                await self._sending.wait(_FLUSH_SECONDS)
                await self._sending.end()
                await self._others.end()
            finally:
                await self._endpoint.close(self.note)

    # -- the stream

    async def _learn(self, answer: HttpResponse) -> list[bytes]:
        """Wait for the URL to POST to. Gives the messages that came right behind it."""
        try:
            async for chunk in answer:
                events = self._events.feed(chunk)
                for n, event in enumerate(events):
                    if event.kind == "endpoint":
                        self._post_to = self._resolve(event.data)
                        return [later.data for later in events[n + 1 :] if later.kind == "message"]
            raise ConnectError("its stream ended before it said where to send to", self.where)
        except BaseException:
            answer.close()
            raise

    def _resolve(self, data: bytes) -> str:
        """The URL to POST to. On another host it could have us send anything anywhere."""
        if len(data) > _MOST_URL:
            raise ConnectError("the URL that it gives to send to is too long", self.where)
        try:
            url = urljoin(self._endpoint.place, data.decode("utf-8", "replace").strip())
        except ValueError as problem:
            raise ConnectError(f"what it gives to send to is no URL ({problem})", self.where) from None
        if parse_url(url).origin != self._endpoint.address.origin:
            what = f"it wants messages sent to {parse_url(url).origin}, which is another origin than its own"
            raise ConnectError(f"{what}; that is not done", self.where)
        return url

    async def _read(self, answer: HttpResponse, rest: list[bytes]) -> None:
        what = "it ended the stream"
        try:
            for frame in rest:
                self.hear(frame)
            async for chunk in answer:
                for event in self._events.feed(chunk):
                    if event.kind == "message":
                        self.hear(event.data)
        except ExchangeBroken as problem:
            what = problem.what
        except TooLong as problem:
            what = f"it sent {problem}"
        finally:
            answer.close()
        self._post_to = ""
        if not self._closed:
            self.lose(ConnectionLost(what))

    # -- messages of ours

    async def _send(self, frame: bytes, about: About, to: str) -> None:
        greeting = about.method == "notifications/initialized"
        problem: ClientError | None = None
        try:
            if not greeting:
                await self._greeted.wait()
            problem = await self._post(frame, about, to)
        except Exception as failed:  # whatever it is: the caller must not wait for ever
            problem = ClientError(f"the request failed ({failed!r})")
        finally:
            self._unsent.pop(about.id, None)
            if greeting:
                self._greeted.set()
        if problem is None or self._closed:
            return
        if about.id is not None:
            self.fail(about.id, problem)
        else:
            self.note(f"{about.method} could not be delivered: {problem.what}")

    async def _post(self, frame: bytes, about: About, to: str) -> ClientError | None:
        """Send a message. Gives what went wrong.

        An answer of ours waits for no request: it may be what that waits for. Nor does word that we gave up.
        """
        if about.method in ("response", "notifications/cancelled"):
            return await self._post_now(frame, to)
        async with self._free:
            self._unsent.pop(about.id, None)
            return await self._post_now(frame, to)

    async def _post_now(self, frame: bytes, to: str) -> ClientError | None:
        headers = [("Content-Type", JSON), ("Accept", f"{JSON}, {STREAM}")]
        try:
            answer = await self._endpoint.ask("POST", headers, frame, url=to, seconds=TELL_SECONDS)
            if not 200 <= answer.status < 300:
                refuse(await read_refusal(answer))
            self._others.start(let_end(answer))
        except ClientError as problem:
            return self._endpoint.explain(problem)
        return None
