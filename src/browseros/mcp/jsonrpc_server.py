"""A JSON-RPC server of one's own tools, on stdio and in memory."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, final

from msgspec import Raw, structs

from longshore import __version__
from longshore import config as configuration
from longshore.app import Server
from longshore.builtin import BROWSEROS_CONFIG
from longshore.protocol.content import CallResult, Text
from longshore.registry.tool import Tool
from longshore.schema.output import encode
from longshore.server.link import Link

Handler = Callable[[dict[str, Any]], Any]
"""Takes the arguments of a call, and returns a value that JSON can hold. It may be `async def`."""

_VARIABLES: Final = {name: key for name, key in BROWSEROS_CONFIG.variables.items() if key != "transport"}
_CONFIG: Final = structs.replace(BROWSEROS_CONFIG, path="", toolsets=(), variables=_VARIABLES)
"""The variables alone: the file is that of the built-in tools."""


@final
class MCPJsonRpcServer:
    """A server of tools that are functions of one dict.

    - `server.add_tool("echo", lambda params: params)`, also while it runs.
    - `server.run()` serves stdin and stdout until the input ends. `server.handle_request(text)` answers one message.
    - `debug` writes a record of each request to stderr.
    """

    def __init__(self, debug: bool = False) -> None:
        self.tools: dict[str, Handler] = {}
        defaults = {"server.dialect": "browseros"} | ({"server.log_level": "debug"} if debug else {})
        self._app = Server("browseros", version=__version__, standards="off", defaults=defaults, foreign=_CONFIG)
        self._memory: _Memory | None = None
        self._lock = threading.Lock()

    def add_tool(self, name: str, handler: Handler, *, replace: bool = False) -> None:
        """Add a tool. Raises RegistrationError for a name that is taken, unless it is to be replaced."""
        from inspect import iscoroutinefunction

        if iscoroutinefunction(handler):

            async def call_async(arguments: dict[str, Any], _: Any) -> CallResult:
                return _result(await handler(arguments))

            call: Callable[..., Any] = call_async
        else:

            def call_plain(arguments: dict[str, Any], _: Any) -> CallResult:
                return _result(handler(arguments))

            call = call_plain
        tool = Tool(name=name, description=handler.__doc__ or name, input_schema={"type": "object"})
        self._app.add_tool(tool, call, replace=replace)
        self.tools[name] = handler

    def handle_request(self, request: str) -> str:
        """The answer to one message, which may have any whitespace; empty for a notification."""
        with self._lock:
            if self._memory is None:
                # As every server in memory, it reads no configuration: a test must not depend on the user's files.
                self._app.config = configuration.load(self._app.defaults, environ={}, path=os.devnull)
                self._memory = _Memory(self._app)
            memory = self._memory
        return memory.ask(request)

    def run(self) -> None:
        """Serve stdin and stdout until the input ends."""
        self._app.run()


def create_stdio_server(debug: bool = False) -> MCPJsonRpcServer:
    """A server for stdio, still without tools."""
    return MCPJsonRpcServer(debug=debug)


def _result(value: Any) -> CallResult:
    """The value as text and, unless it is a text, as data."""
    if value is None or isinstance(value, str):
        return CallResult([] if value is None else [Text(value)])
    raw = encode(value)
    return CallResult([Text(raw.decode())], Raw(raw))


@final
class _Memory:
    """A peer in this process. The server's event loop has a thread of its own, so any thread may ask."""

    def __init__(self, app: Server) -> None:
        self._app = app
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._serve, name="browseros-mcp", daemon=True).start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._app.engine.executor.adopt_loop(self._loop)
        self._loop.run_forever()

    def ask(self, request: str) -> str:
        answer: Future[bytes | None] = Future()
        self._loop.call_soon_threadsafe(self._handle, request.encode(), answer)
        return (answer.result() or b"").decode()

    def _handle(self, frame: bytes, answer: Future[bytes | None]) -> None:
        link = _Answer(answer)
        try:
            reply = self._app.engine.frames.handle(frame, link)
        except BaseException as problem:
            answer.set_exception(problem)
            raise
        if reply is not None or not (answer.done() or link.session.rows):
            link.answer(reply)


@final
class _Answer(Link):
    """The link of one message."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Future[bytes | None]) -> None:
        super().__init__()
        self._answer = answer

    def send(self, frame: bytes) -> None:
        """Drop it: it belongs to no request."""

    def answer(self, frame: bytes | None) -> None:
        if not self._answer.done():
            self._answer.set_result(frame)
