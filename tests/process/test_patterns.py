"""No argument keeps a server busy by the patterns and schemas that it is checked by, and a signal ends any check."""

from __future__ import annotations

import os
import signal

import pytest

from waiting import eventually, seconds_worked

from .conftest import Workshop
from .peer import call, failed, text_of

WEDGING = "a" * 40 + "!"
"""41 bytes on which `re` takes 2^40 steps for `^(a+)+$`."""
SERVER = """
    from typing import Annotated
    from longshore import CallResult, Server, Text, Tool
    from msgspec import Meta, Struct
    app = Server("patterns")

    class Person(Struct):
        name: Annotated[str, Meta(pattern="^(a+)+$")]

    @app.tool
    def direct(text: Annotated[str, Meta(pattern="^(a+)+$")]) -> str:
        return text

    @app.tool(run="inline")
    def inside(person: Person) -> str:
        return person.name

    @app.tool(waive={"E13": "for the tests of signals"})
    def waived(text: Annotated[str, Meta(pattern="^(?=a)(a+)+$")]) -> str:
        return text

    twice = lambda n: {"allOf": [{"$ref": f"#/$defs/d{n}"}, {"$ref": f"#/$defs/d{n}"}]}
    doubling = {"type": "object", "properties": {"x": twice(0)}, "$defs": {f"d{n}": twice(n + 1) for n in range(40)}}
    doubling["$defs"]["d40"] = {"type": "string"}
    waiver = {"E13": "for the tests of signals"}
    handler = lambda arguments, ctx: CallResult([Text("taken")])
    app.add_tool(Tool(name="raw", description="x", input_schema=doubling, waive=waiver), handler)
"""


@pytest.mark.parametrize("tool", ["direct", "inside"])
def test_an_argument_that_re_would_never_end_on_is_answered(workshop: Workshop, tool: str) -> None:
    peer = workshop.serve(SERVER)
    peer.start()

    def send(text: str) -> dict:
        return peer.call(tool, **({"text": text} if tool == "direct" else {"person": {"name": text}}))

    for _ in range(6):  # from the fifth call on arguments are read together with the request
        refused = send(WEDGING)
        assert failed(refused)
        assert f'must match the pattern ^(a+)+$; got "{WEDGING}"' in text_of(refused)
        assert text_of(send("aaa")) == "aaa"


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP], ids=lambda s: s.name)
@pytest.mark.parametrize(("tool", "argument"), [("waived", {"text": WEDGING}), ("raw", {"x": "a"})])
def test_a_signal_ends_a_check_that_has_no_end(
    workshop: Workshop, tool: str, argument: dict, signum: signal.Signals
) -> None:
    peer = workshop.serve(SERVER)
    peer.start()
    before = seconds_worked(peer.pid)
    peer.send(call("busy", tool, **argument))
    eventually("the check runs", lambda: seconds_worked(peer.pid) > before + 1)
    os.kill(peer.pid, signum)
    assert peer.wait() == -signum
