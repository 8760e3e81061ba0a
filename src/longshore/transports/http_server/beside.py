"""HTTP in the process of a stdio server, on the same loop: for the console of a server that its client has started."""

from __future__ import annotations

import asyncio
import sys
from typing import final

from msgspec.structs import replace

from longshore.errors import ConfigError, LongshoreError
from longshore.telemetry.recorder import Recorder
from longshore.transports.http.app import HttpApp
from longshore.transports.http_server.endpoint import console_address, open_endpoint
from longshore.transports.http_server.listener import Listener
from longshore.transports.http_server.supervisor import Served


@final
class HttpBeside:
    """Serves the app of a server on the loop that its stdio runs on, until the loop ends."""

    def __init__(self, served: Served) -> None:
        self._served = served
        self._task: asyncio.Task[None] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start serving. Errors are reported, and stdio continues."""
        self._task = loop.create_task(self._run())

    async def _run(self) -> None:
        recorder: Recorder = self._served.engine.recorder
        try:
            await self._listen()
        except LongshoreError as problem:
            recorder.problem("warning", f"there is no console: {problem}")

    async def _listen(self) -> None:
        served = self._served
        try:
            endpoint, sockets = open_endpoint(served.config, True, True, served.verifier)
        except ConfigError:  # the port is in use: another client has started this server too
            free = replace(served.config, http=replace(served.config.http, port=0))
            endpoint, sockets = open_endpoint(free, True, True, served.verifier)
        config = endpoint.apply(served.config)
        token = endpoint.token.text if endpoint.token else None
        app = HttpApp(served.engine, config, token=token, parts=served.parts(), verifier=served.verifier)
        await app.start()
        listener = Listener(app, asyncio.get_running_loop(), served.engine.limits, served.engine.recorder)
        await listener.listen(sockets, None)
        sys.stderr.write(f"The console:  {console_address(config, endpoint)}\n")
        sys.stderr.flush()
        try:
            await asyncio.Event().wait()
        finally:
            listener.stop()
            listener.cut()
            listener.end()
