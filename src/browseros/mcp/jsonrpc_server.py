"""A JSON-RPC server of one's own tools, on stdio and in memory."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final, final

from msgspec import Raw, structs

from longshore import __version__
from longshore import config as configuration
from longshore.app import Server
from longshore.builtin import BROWSEROS_CONFIG
from longshore.errors import RegistrationError
from longshore.protocol.content import CallResult, Text
from longshore.registry.function import read_arity
from longshore.registry.source_location import locate
from longshore.registry.tool import Tool
from longshore.runtime import log_to_stderr
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
        self._serves = False
        self._lock = threading.Lock()

    def add_tool(self, name: str, handler: Handler, *, replace: bool = False) -> None:
        """Add a tool. Raises RegistrationError for a name that is taken, unless it is to be replaced."""
        given: Any = handler
        if not callable(given):
            what = f"add_tool({name!r}, …): {type(given).__name__} can't be called"
            raise TypeError(f"{what}; pass a function that takes one dict, such as lambda arguments: arguments")
        if name in self.tools and not replace:
            what = f"there is a tool {name!r} already: {locate(self.tools[name])}"
            raise RegistrationError(locate(handler), what, "give it another name, or replace=True")
        find = _find_handler(weakref.ref(self), name)
        if read_arity(handler)[2]:

            async def call_async(arguments: dict[str, Any], _: Any) -> CallResult:
                return _result(await find()(arguments))

            call: Callable[..., Any] = call_async
        else:

            def call_plain(arguments: dict[str, Any], _: Any) -> CallResult:
                value = find()(arguments)
                return _result(asyncio.run(value) if asyncio.iscoroutine(value) else value)

            call = call_plain
        tool = Tool(name=name, description=handler.__doc__ or name, input_schema={"type": "object"})
        self.tools[name] = handler
        try:
            self._app.add_tool(tool, call, replace=replace)
        except RegistrationError as problem:
            del self.tools[name]
            raise RegistrationError(locate(handler), problem.what, problem.fix) from None

    def handle_request(self, request: str) -> str:
        """The answer to one message, which may have any whitespace; empty for a notification.

        Any thread may call it, also that of a tool. Raises RuntimeError in an `async def` tool, which the answer
        would wait for, and while `run` serves.
        """
        with self._lock:
            if self._serves:
                raise RuntimeError(
                    "run() serves this server; in the same process call its `tools`, which are functions"
                )
            if self._memory is None:
                # As every server in memory, it reads no configuration: a test must not depend on the user's files.
                self._app.config = configuration.load(self._app.defaults, environ={}, path=os.devnull)
                self._app.renew()
                self._memory = _Memory(self._app)
                weakref.finalize(self, self._memory.close)
            memory = self._memory
        return memory.ask(request)

    def run(self) -> None:
        """Serve stdin and stdout until the input ends."""
        with self._lock:
            self._serves = True
            if self._memory is not None:
                self._memory.close()
                self._memory = None
                self._app.renew()
        try:
            self._app.run()
        finally:
            self._serves = False


def create_stdio_server(debug: bool = False) -> MCPJsonRpcServer:
    """A server for stdio, still without tools."""
    return MCPJsonRpcServer(debug=debug)


def _find_handler(server: weakref.ref[MCPJsonRpcServer], name: str) -> Callable[[], Handler]:
    """Finds a handler. Threads hold what it is called by, and a handler may refer to its server, which ends them."""

    def find() -> Handler:
        found = server()
        assert found is not None  # whoever asks or runs it holds it
        return found.tools[name]

    return find


def _result(value: Any) -> CallResult:
    """The value as text and, unless it is a text, as data."""
    if value is None or isinstance(value, str):
        return CallResult([] if value is None else [Text(value)])
    raw = encode(value)
    return CallResult([Text(raw.decode())], Raw(raw))


@final
class _Memory:
    """A peer in this process. The server's event loop has a thread of its own, so any thread may ask.

    It must not refer to the MCPJsonRpcServer, whose end closes it.
    """

    def __init__(self, app: Server) -> None:
        self._engine = app.engine
        self._stop_log = log_to_stderr(app.recorder, app.config)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="browseros-mcp", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._engine.executor.adopt_loop(self._loop)
        self._loop.run_forever()
        self._engine.executor.stop_all("its server has ended")
        self._engine.executor.dismiss_threads()
        self._loop.close()

    def close(self) -> None:
        """End the threads, once no call runs. From any thread; a second time it does nothing."""
        self._stop_log()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)

    def ask(self, request: str) -> str:
        if threading.current_thread() is self._thread:
            raise RuntimeError(
                "handle_request in an async def tool of the same server would wait for ever; make the tool a def, or "
                "write await asyncio.to_thread(server.handle_request, text)"
            )
        answer: Future[bytes | None] = Future()
        frame = request.encode(errors="surrogatepass")  # which is no JSON
        self._loop.call_soon_threadsafe(self._handle, frame, answer)
        return (answer.result() or b"").decode()

    def _handle(self, frame: bytes, answer: Future[bytes | None]) -> None:
        link = _Answer(answer)
        try:
            reply = self._engine.frames.handle(frame, link)
            self._engine.detach(link)  # its peer sends nothing more: a listen ends, and a question gets no answer
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
