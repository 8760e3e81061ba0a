"""Middleware in a process on stdio, which begins without an event loop."""

from __future__ import annotations

import sys

from .conftest import Workshop
from .peer import call, initialize, text_of

SERVER = """
    from longshore import Middleware, Server

    class Loud(Middleware):
        async def call_tool(self, request, call_next):
            result = await call_next(request)
            result.content[0].text += "!"
            return result

    app = Server("t")
    app.add_middleware(Loud())

    @app.tool(run="inline")
    def quick() -> str:
        return "quick"

    @app.tool
    def blocking() -> str:
        return "blocking"
"""


def test_the_first_call_opens_the_loop_and_is_answered(workshop: Workshop) -> None:
    peer = workshop.serve(SERVER)
    peer.start()
    assert [text_of(peer.call(name, name)) for name in ("quick", "blocking", "quick")] == [
        "quick!",
        "blocking!",
        "quick!",
    ]
    peer.close_input()
    assert peer.wait() == 0


def test_calls_that_come_with_the_end_of_the_input_are_answered(workshop: Workshop) -> None:
    path = workshop.write(SERVER)
    argv = [sys.executable, "-m", "longshore", "serve", str(path)]
    done = workshop.run(argv, initialize(), call(1, "quick"), call(2, "blocking"))
    assert done.returncode == 0
    assert done.stdout.count(b'!"') == 2
