"""The same over HTTP: no argument keeps a server busy by a pattern, and a signal ends any check."""

from __future__ import annotations

import json
import signal

import pytest

from posting import ask_modern, call, modern, post_modern
from waiting import seconds_worked

from .serverproc import eventually, start

SOURCE = """
from typing import Annotated
from longshore import Server
from msgspec import Meta

app = Server("patterns")

@app.tool(run="inline")
def echo(text: Annotated[str, Meta(pattern="^(a+)+$")]) -> str:
    return text

@app.tool(waive={"E13": "for the tests of signals"})
def waived(text: Annotated[str, Meta(pattern="^(?=a)(a+)+$")]) -> str:
    return text
"""
WEDGING = {"text": "a" * 40 + "!"}
"""41 bytes on which `re` takes 2^40 steps for `^(a+)+$`."""
SAID = f'text: must match the pattern ^(a+)+$; got "{WEDGING["text"]}"'


def test_an_argument_that_re_would_never_end_on_is_answered() -> None:
    with start(SOURCE) as server:
        for _ in range(6):  # from the fifth call on arguments are read together with the request
            [refused] = ask_modern(server, call("echo", WEDGING)).messages
            assert refused["result"]["isError"] is True
            assert SAID in refused["result"]["content"][0]["text"]
            [taken] = ask_modern(server, call("echo", {"text": "aaa"})).messages
            assert taken["result"]["content"][0]["text"] == "aaa"
        headers = [("Content-Type", "application/json")]
        refused_by_rest = server.send("POST", "/tools/echo", headers, json.dumps(WEDGING).encode()).finish()
        assert refused_by_rest.status == 400
        assert SAID in json.loads(refused_by_rest.body)["error"]["message"]


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda s: s.name)
def test_a_signal_ends_a_check_that_has_no_end(signum: int) -> None:
    with start(SOURCE) as server:
        before = seconds_worked(server.pid)
        post_modern(server, modern(call("waived", WEDGING)))
        eventually("the check runs", lambda: seconds_worked(server.pid) > before + 1)
        server.kill(signum)
        assert server.wait() == -signum
