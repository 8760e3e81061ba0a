"""Arguments that headers repeat: a request in which the two differ is refused, and nothing of it is done."""

from __future__ import annotations

from typing import Any

import pytest

from posting import Session, call, modern, post_modern
from serving import ABSENT

from .fixture import rigged

EU = {"region": "eu"}
AGREE: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    ({}, []),
    (EU, [("Mcp-Param-Region", "eu")]),
    (EU, [("mcp-param-region", "  eu\t")]),
    (EU, [("Mcp-Param-Region", "=?base64?ZXU=?=")]),
    (EU, [("Mcp-Param-Region", "eu"), ("Mcp-Param-Other", "ignored")]),
    ({"region": "é"}, [("Mcp-Param-Region", "=?base64?w6k=?=")]),
    ({"region": ""}, [("Mcp-Param-Region", "")]),
    ({"region": "w6k="}, [("Mcp-Param-Region", "w6k=")]),
    ({"region": "=?base64?w6k="}, [("Mcp-Param-Region", "=?base64?w6k=")]),
    ({"region": "=?BASE64?w6k=?="}, [("Mcp-Param-Region", "=?BASE64?w6k=?=")]),
    ({"floor": 42}, [("Mcp-Param-Floor", "42")]),
    ({"floor": 42}, [("Mcp-Param-Floor", "42.0")]),
    ({"floor": -1}, [("Mcp-Param-Floor", "-1")]),
    ({"roof": True}, [("Mcp-Param-Roof", "true")]),
    ({"roof": False, "floor": 0}, [("Mcp-Param-Roof", "false"), ("Mcp-Param-Floor", "0")]),
]
DIFFER: list[tuple[dict[str, Any], list[tuple[str, str]]]] = [
    (EU, []),
    (EU, [("Mcp-Param-Region", "us")]),
    (EU, [("Mcp-Param-Region", "EU")]),
    (EU, [("Mcp-Param-Region", "eu"), ("Mcp-Param-Region", "eu")]),
    (EU, [("Mcp-Param-Region", "=?base64?ZXU?=")]),
    (EU, [("Mcp-Param-Region", "=?base64?Z!U=?=")]),
    (EU, [("Mcp-Param-Region", "=?base64?/w==?=")]),
    ({}, [("Mcp-Param-Region", "eu")]),
    ({"region": None}, [("Mcp-Param-Region", "eu")]),
    ({"floor": 42}, [("Mcp-Param-Floor", "43")]),
    ({"floor": 42}, [("Mcp-Param-Floor", "0x2a")]),
    ({"floor": 2**53}, [("Mcp-Param-Floor", str(2**53))]),
    ({"roof": True}, [("Mcp-Param-Roof", "True")]),
    ({"roof": True}, [("Mcp-Param-Roof", "1")]),
    ({"roof": True, "region": "eu"}, [("Mcp-Param-Roof", "true")]),
]


def test_headers_that_say_the_same_are_accepted() -> None:
    with rigged() as (rig, server):
        for arguments, headers in AGREE:
            answer = post_modern(server, modern(call("place", arguments)), *headers).finish()
            assert answer.status == 200, (arguments, headers, answer)
            assert "isError" not in answer.json["result"], answer
        assert rig.befell["placed"] == len(AGREE)


def test_headers_that_say_something_else_are_refused_and_nothing_is_done() -> None:
    with rigged() as (rig, server):
        for arguments, headers in DIFFER:
            answer = post_modern(server, modern(call("place", arguments)), *headers).finish()
            assert (answer.status, answer.json["error"]["code"]) == (400, -32020), (arguments, headers, answer)
        assert rig.befell["placed"] == 0


@pytest.mark.parametrize("name", ["safe", "=?base64?c2FmZQ==?=", "place\t,", "", ABSENT])
def test_another_tool_can_not_be_called_behind_a_proxys_back(name: str) -> None:
    with rigged() as (rig, server):
        for _ in range(5):  # also when the tool is called so often that its calls take the short way
            answer = post_modern(server, modern(call("place")), ("Mcp-Name", name)).finish()
            assert (answer.status, answer.json["error"]["code"]) == (400, -32020)
            assert post_modern(server, modern(call("place"))).finish().status == 200
        assert rig.befell["placed"] == 5


def test_the_handshake_era_has_no_such_headers() -> None:
    with rigged() as (_, server):
        session = Session(server).open()
        wrong = [("Mcp-Param-Region", "us"), ("Mcp-Name", "other"), ("Mcp-Method", "other")]
        answer = session.post(call("place", EU), *wrong).finish()
        assert answer.json["result"]["content"][0]["text"] == "eu 0 False"
