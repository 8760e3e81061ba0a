"""The ContextGraph server over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from http_process.serverproc import ServerProcess, start
from http_process.test_lines import Lines
from posting import call
from seeds.browseros.test_port import bearer, post

from .document import CODES, COMMAND, read


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    database = tmp_path_factory.mktemp("graph") / "context.db"
    with start(None, argv=(COMMAND, "--http", "--port", "0"), env={"CONTEXTGRAPH_DB": str(database)}) as process:
        yield process


def test_over_http_a_post_with_the_token_is_answered(server: ServerProcess) -> None:
    """S-126."""
    status, _, _ = post(server, read("initialize_request"))
    assert status == 401
    status, answer, headers = post(server, read("initialize_request"), bearer(server))
    assert (status, answer) == (200, read("initialize_response"))
    session = ("Mcp-Session-Id", headers["mcp-session-id"])
    assert post(server, read("list_request"), bearer(server), session)[:2] == (200, read("list_response"))
    assert post(server, read("call_request"), bearer(server), session)[1]["result"]["isError"] is False
    assert post(server, call("query_context", id=4), bearer(server), session)[1]["error"]["code"] == -32602


def test_lines_are_answered_in_the_form_of_the_document(tmp_path: Path) -> None:
    """S-127: on the port, where they are switched on. They carry no token, so the server asks for none."""
    argv, env = (
        (COMMAND, "--http", "--port", "0", "--lines", "--auth", "off"),
        {"CONTEXTGRAPH_DB": str(tmp_path / "db")},
    )
    with start(None, argv=argv, env=env) as server, Lines(server) as lines:
        lines.say(read("initialize_request"), read("initialized"), read("list_request"), call("query_context", id=4))
        assert lines.hear() == read("initialize_response")
        assert lines.hear() == read("list_response")
        assert lines.answer(4)["error"]["code"] == CODES["invalid params"]
