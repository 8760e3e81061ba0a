"""The client for scripts and notebooks: the same methods, without await.

Each has an event loop on its own thread, so it also works where a loop is running already, as in a notebook.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, wait
from contextlib import contextmanager
from inspect import iscoroutinefunction
from typing import Any, Self, TypeVar, Unpack, final, overload

from longshore.client.client import Arguments, CallOptions, Client
from longshore.client.handlers import check_callbacks
from longshore.client.models import (
    Change,
    Completion,
    PromptInfo,
    PromptResult,
    ResourceInfo,
    Result,
    ServerInfo,
    TemplateInfo,
    ToolInfo,
)
from longshore.client.tasks import on_thread
from longshore.errors import CallTimeout, ConnectError, ConnectionLost
from longshore.protocol.content import Contents

T = TypeVar("T")

_END_SECONDS = 2.0
"""Time for a handler of the user's to end when the client is closed."""
CLOSE_SECONDS = 15.0
"""Time for closing, with a child that must be killed. More means that a handler blocks the loop's thread."""
_QUESTIONS = ("on_elicit", "on_sample", "roots")
"""Handlers that may wait for a person."""


@final
class SyncClient:
    """A `Client` for scripts and notebooks: the same options and methods, without await.

    `with SyncClient("python server.py") as client: client.call_tool("add", {"a": 1, "b": 2})`
    """

    def __init__(self, target: Any, **options: Any) -> None:
        check_callbacks(options)
        self._client = Client(target, **{name: _off_loop(name, value) for name, value in options.items()})
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._engine: Any = getattr(target, "engine", None)
        """The engine of a server in this process."""

    # -- the connection

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open(self) -> None:
        """Connect."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(target=_run, args=(self._loop,), name="longshore-client", daemon=True)
            self._thread.start()
        try:
            self._do(self._client.open())
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the connection, and its thread."""
        self._check_thread()
        with self._lock:  # other threads begin no calls from here on
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is None or thread is None:
            return
        closing = asyncio.run_coroutine_threadsafe(_end(self._client), loop)
        try:
            wait((closing,), CLOSE_SECONDS)
        except BaseException:  # Ctrl-C: a child is killed at once then
            closing.cancel()
            thread.join(_END_SECONDS)
            raise
        if not closing.done():  # it continues when it can
            what = f"it could not be closed within {CLOSE_SECONDS:g} s: a handler of yours holds its thread up"
            raise CallTimeout(what, self._client.name)
        thread.join(_END_SECONDS)
        self._wait(closing)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it on the loop's thread. Ctrl-C here cancels it there."""
        try:
            self._check_thread()
            with self._lock:
                if self._loop is None:
                    raise ConnectError("the client is not open; write `with SyncClient(…)`", self._client.name)
                future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except BaseException:
            work.close()
            raise
        return self._wait(future)

    def _wait(self, future: Future[T]) -> T:
        try:
            return future.result()
        except CancelledError:
            raise ConnectionLost("the client was closed", self._client.name) from None
        except BaseException:
            future.cancel()
            raise

    def _check_thread(self) -> None:
        """Refuse a call that would wait for its own thread forever."""
        if threading.current_thread() is self._thread:
            what = "what is only told (on_log, on_change, on_progress), and async handlers, run on the client's thread"
            what += " and can't use the client; use Client and async def"
            raise ConnectError(what, self._client.name)
        here = _running_loop()
        if here is not None and self._engine is not None and self._engine.executor.loop is here:
            what = "its server lives on this very event loop, which would stand still; use Client and await"
            raise ConnectError(what, self._client.name)

    @property
    def server(self) -> ServerInfo:
        return self._client.server

    @property
    def left_out(self) -> list[str]:
        return self._client.left_out

    @property
    def problems(self) -> list[str]:
        return self._client.problems

    @property
    def absent(self) -> dict[str, str]:
        return self._client.absent

    @property
    def connected(self) -> bool:
        return self._client.connected

    def stderr_tail(self) -> str:
        return self._client.stderr_tail()

    # -- the same methods as Client

    def list_tools(self, *, fresh: bool = False) -> list[ToolInfo]:
        return self._do(self._client.list_tools(fresh=fresh))

    def list_resources(self, *, fresh: bool = False) -> list[ResourceInfo]:
        return self._do(self._client.list_resources(fresh=fresh))

    def list_templates(self, *, fresh: bool = False) -> list[TemplateInfo]:
        return self._do(self._client.list_templates(fresh=fresh))

    def list_prompts(self, *, fresh: bool = False) -> list[PromptInfo]:
        return self._do(self._client.list_prompts(fresh=fresh))

    @overload
    def call_tool(
        self, name: str, arguments: Arguments = None, *, returns: type[T], **options: Unpack[CallOptions]
    ) -> T: ...
    @overload
    def call_tool(
        self, name: str, arguments: Arguments = None, *, returns: None = None, **options: Unpack[CallOptions]
    ) -> Result: ...
    def call_tool(self, name: str, arguments: Arguments = None, *, returns: Any = None, **options: Any) -> Any:
        return self._do(self._client.call_tool(name, arguments, returns=returns, **options))

    def read_resource(self, uri: str, **options: Any) -> list[Contents]:
        return self._do(self._client.read_resource(uri, **options))

    def get_prompt(self, name: str, arguments: Mapping[str, str] | None = None, **options: Any) -> PromptResult:
        return self._do(self._client.get_prompt(name, arguments, **options))

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
        """Watch for changes: `with client.watch(tools=True) as changes: for change in changes: …`."""
        watch = self._client.watch(**wanted)
        self._do(watch.__aenter__())
        try:
            yield self._changes(watch)
        finally:
            if self._loop is not None:
                self._do(watch.__aexit__(None, None, None))

    def _changes(self, watch: Any) -> Iterator[Change]:
        while True:
            yield self._do(watch.__anext__())


def _run(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
    finally:
        loop.close()


async def _end(client: Client) -> None:
    """Close the client and stop the loop. Calls that wait in other threads end too."""
    try:
        await client.close()
    finally:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_END_SECONDS)
        loop = asyncio.get_running_loop()
        loop.call_soon(loop.stop)  # after the waiting thread was notified


def _off_loop(name: str, value: Any) -> Any:
    """Have a blocking function that answers questions run on its own thread: it may wait, as `input` does."""
    return on_thread(value) if name in _QUESTIONS and callable(value) and not iscoroutinefunction(value) else value


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
