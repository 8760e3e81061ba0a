"""The client for scripts and notebooks: the same methods, without await.

Each has an event loop on a thread of its own, so it also works where a loop is running already, as in a notebook.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar, final, overload

from longshore.client.client import Client
from longshore.client.records import (
    Change,
    Completion,
    PromptInfo,
    ResourceInfo,
    ServerInfo,
    TemplateInfo,
    ToolInfo,
)
from longshore.client.results import PromptResult, Result
from longshore.errors import ConnectError
from longshore.protocol.content import Contents

T = TypeVar("T")


@final
class SyncClient:
    """`with SyncClient("python server.py") as client: client.call("add", {"a": 1, "b": 2})`."""

    def __init__(self, target: Any, **options: Any) -> None:
        self._client = Client(target, **options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    # -- the connection

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self) -> None:
        """Connect."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=self._loop.run_forever, name="longshore-client", daemon=True)
            self._thread.start()
        try:
            self._do(self._client.open())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connection, and its thread."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        try:
            self._do(self._client.close())
        finally:
            self._loop = self._thread = None
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        """Have it done on the loop's thread. Ctrl-C here cancels it there."""
        loop = self._loop
        if loop is None:
            work.close()
            raise ConnectError("the client is not open; write `with SyncClient(…)`", self._client.name)
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def server(self) -> ServerInfo:
        return self._client.server

    @property
    def problems(self) -> list[str]:
        return self._client.problems

    @property
    def connected(self) -> bool:
        return self._client.connected

    def said(self) -> str:
        return self._client.said()

    # -- the same as Client's

    def list_tools(self, *, fresh: bool = False) -> list[ToolInfo]:
        return self._do(self._client.list_tools(fresh=fresh))

    def list_resources(self, *, fresh: bool = False) -> list[ResourceInfo]:
        return self._do(self._client.list_resources(fresh=fresh))

    def list_templates(self, *, fresh: bool = False) -> list[TemplateInfo]:
        return self._do(self._client.list_templates(fresh=fresh))

    def list_prompts(self, *, fresh: bool = False) -> list[PromptInfo]:
        return self._do(self._client.list_prompts(fresh=fresh))

    @overload
    def call(self, name: str, arguments: Mapping[str, Any] | None = None, *, returns: type[T], **options: Any) -> T: ...
    @overload
    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, returns: None = None, **options: Any
    ) -> Result: ...
    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, returns: Any = None, **options: Any
    ) -> Any:
        return self._do(self._client.call(name, arguments, returns=returns, **options))

    def read(self, uri: str, **options: Any) -> list[Contents]:
        return self._do(self._client.read(uri, **options))

    def prompt(self, name: str, arguments: Mapping[str, str] | None = None, **options: Any) -> PromptResult:
        return self._do(self._client.prompt(name, arguments, **options))

    def complete(self, ref: str, argument: str, value: str, context: Mapping[str, str] | None = None) -> Completion:
        return self._do(self._client.complete(ref, argument, value, context))

    def ping(self) -> None:
        self._do(self._client.ping())

    def set_log_level(self, level: str) -> None:
        self._do(self._client.set_log_level(level))

    def set_roots(self, roots: Sequence[Any]) -> None:
        self._do(self._client.set_roots(roots))

    def request(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> Any:
        return self._do(self._client.request(method, params, **options))

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self._do(self._client.notify(method, params))

    @contextmanager
    def watch(self, **wanted: Any) -> Generator[Iterator[Change]]:
        """Hear of changes: `with client.watch(tools=True) as changes: for change in changes: …`."""
        watch = self._do(_made(self._client, wanted))
        self._do(watch.__aenter__())
        try:
            yield self._changes(watch)
        finally:
            if self._loop is not None:
                self._do(watch.__aexit__(None, None, None))

    def _changes(self, watch: Any) -> Iterator[Change]:
        while True:
            yield self._do(watch.__anext__())


async def _made(client: Client, wanted: Mapping[str, Any]) -> Any:
    return client.watch(**wanted)
