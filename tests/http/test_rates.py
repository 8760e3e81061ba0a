"""How often one caller may call one tool: what each era and REST say, by a clock that the test sets."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from asgi import configured
from premises import Site, opened

from longshore import Server
from longshore.server.engine import Rates
from posting import Session, bearer, call, encode, modern, modern_headers, request
from serving import Exchange, serve

ANN = "token-of-ann-0123456789abcdef"
BOB = "token-of-bob-0123456789abcdef"
TOKENS = f'[tokens.ann]\ntoken = "{ANN}"\n[tokens.bob]\ntoken = "{BOB}"\n'
BURST = 3
SAFE = modern(call("safe"))
COMPLETE = {"ref": {"type": "ref/prompt", "name": "harm"}, "argument": {"name": "kind", "value": ""}}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def limited(folder: Path, rate: int = 2, burst: int = BURST, toml: str = TOKENS) -> Iterator[tuple[Site, Clock]]:
    clock = Clock()
    with opened(folder, toml, rate=rate, burst=burst) as site:
        engine = site.premises.app.engine
        assert isinstance(engine.rates, Rates)
        engine.limit_rates(Rates(rate, burst, clock))
        yield site, clock


def ask(site: Site, message: Any, token: str = ANN) -> Exchange:
    return site.send("POST", "/mcp", [bearer(token), *modern_headers(message)], encode(message)).finish()


def rest(site: Site, tool: str = "safe", token: str = ANN) -> Exchange:
    return site.send("POST", f"/tools/{tool}", [bearer(token)], b"{}").finish()


def refusal(what: str = "safe", wait: str = "0.5") -> str:
    return f"{what} was not run: it was called too often (the limit is http.rate); try again in {wait} s"


def put_off(answer: Exchange, tool: str = "safe", wait: str = "0.5") -> None:
    """It is a tool's failure, which a model can read and act on."""
    assert answer.status == 200
    result = answer.messages[-1]["result"]
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": refusal(tool, wait)}]


def test_a_modern_call_too_many_is_an_error_that_says_when_to_try_again(tmp_path: Path) -> None:
    with limited(tmp_path) as (site, clock):
        for _ in range(BURST):
            assert "isError" not in ask(site, SAFE).json["result"]
        with site.untouched():
            put_off(ask(site, SAFE))
        clock.now += 0.4
        with site.untouched():
            put_off(ask(site, SAFE), wait="0.1")
        clock.now += 0.1
        assert "isError" not in ask(site, SAFE).json["result"]
        assert site.premises.ran["safe"] == BURST + 1


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_call_too_many_of_a_session_is_too(tmp_path: Path, version: str) -> None:
    with limited(tmp_path) as (site, clock):
        session = Session(site.server, version, headers=[bearer(ANN)]).open()
        for _ in range(BURST):
            assert session.call("safe") == "safe"
        with site.untouched():
            put_off(session.post(call("safe")).finish())
        clock.now += 0.5
        assert session.call("safe") == "safe"


def test_rest_says_it_by_its_status(tmp_path: Path) -> None:
    with limited(tmp_path) as (site, clock):
        for _ in range(BURST):
            assert rest(site).status == 200
        with site.untouched():
            answer = rest(site)
            assert (answer.status, answer.headers["retry-after"]) == (429, "1")
            assert answer.json["error"] == {"kind": "rate", "message": refusal()}
        clock.now += 1.0  # as Retry-After says, which is never too early
        assert rest(site).status == 200


def test_all_ways_to_call_a_tool_share_a_bucket(tmp_path: Path) -> None:
    with limited(tmp_path) as (site, _):
        session = Session(site.server, headers=[bearer(ANN)]).open()
        assert rest(site).status == 200
        assert session.call("safe") == "safe"
        assert "isError" not in ask(site, SAFE).json["result"]
        with site.untouched():
            put_off(ask(site, SAFE))
            put_off(session.post(call("safe")).finish())
            assert rest(site).status == 429


def test_a_batch_is_no_way_around_it(tmp_path: Path) -> None:
    with limited(tmp_path) as (site, _):
        session = Session(site.server, "2025-03-26", headers=[bearer(ANN)]).open()
        answers = session.post([call("safe", id=n) for n in range(10)]).finish().json
        assert sum("isError" not in answer["result"] or not answer["result"]["isError"] for answer in answers) == BURST
        assert site.premises.ran["safe"] == BURST


def test_another_tool_and_another_caller_are_counted_for_themselves(tmp_path: Path) -> None:
    with limited(tmp_path) as (site, _):
        for _ in range(BURST):
            assert rest(site).status == 200
        assert rest(site).status == 429
        assert rest(site, "danger").status == 200
        assert rest(site, token=BOB).status == 200
        assert rest(site).status == 429


def test_a_caller_without_a_name_is_one_caller(tmp_path: Path) -> None:
    """Where nobody is asked who they are, all share the bucket of a tool: connections can be had for nothing."""
    with limited(tmp_path, toml="") as (site, _):
        answers = [site.send("POST", "/tools/safe", [], b"{}").finish().status for _ in range(BURST + 2)]
        assert answers == [200] * BURST + [429] * 2


def test_what_is_refused_for_another_reason_is_not_counted(tmp_path: Path) -> None:
    with limited(tmp_path) as (site, _):
        for _ in range(BURST + 5):
            assert site.send("POST", "/tools/safe", [], b"{}").finish().status == 401
            assert site.send("POST", "/mcp", [bearer(ANN)], encode(SAFE)).finish().status == 400
        assert [rest(site).status for _ in range(BURST + 1)] == [200] * BURST + [429]


def test_a_call_without_the_scopes_is_not_counted_either(tmp_path: Path) -> None:
    """Or a caller could be told by the status whether somebody else of that name is at work."""
    with limited(tmp_path, toml=TOKENS + "scopes = []\n") as (site, _):
        assert [rest(site, "amend", BOB).status for _ in range(BURST + 3)] == [403] * (BURST + 3)


def test_completion_is_limited_too(tmp_path: Path) -> None:
    message = modern(request("completion/complete", COMPLETE))
    with limited(tmp_path) as (site, clock):
        for _ in range(BURST):
            assert ask(site, message).json["result"]["completion"]["values"] == ["little", "much"]
        with site.untouched():
            answer = ask(site, message)
            assert answer.json["error"]["code"] == -32603
            assert answer.json["error"]["message"] == refusal("completion/complete")
        assert "result" in ask(site, message, BOB).json
        session = Session(site.server, headers=[bearer(ANN)]).open()
        clock.now += 0.5
        assert "result" in session.ask("completion/complete", COMPLETE)
        assert "error" in session.ask("completion/complete", COMPLETE)


def test_lists_and_pings_are_not_limited(tmp_path: Path) -> None:
    with limited(tmp_path, burst=1) as (site, _):
        session = Session(site.server, headers=[bearer(ANN)]).open()
        for _ in range(5):
            assert "result" in session.ask("ping")
            assert "result" in session.ask("tools/list")
            assert "result" in ask(site, modern(request("server/discover"))).json


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with opened(tmp_path, rate=0, burst=1) as site:
        assert site.premises.app.engine.rates is None
        assert [site.send("POST", "/tools/safe", [], b"{}").finish().status for _ in range(10)] == [200] * 10


@pytest.mark.parametrize(("per_second", "refused"), [(12_500, False), (20_000, False), (20_020, True)])
def test_the_default_lets_one_client_call_as_fast_as_it_can(tmp_path: Path, per_second: int, refused: bool) -> None:
    """12,500 a second is more than one connection can make, one call after another: docs/http.md, Measuring."""
    app = configured(Server("default"), tmp_path)
    assert isinstance(app.engine.rates, Rates)
    http, clock = app.config.http, Clock()
    rates = Rates(http.rate, http.burst, clock)
    for _ in range(http.burst - 1):
        assert rates.take("ann", "add") == 0.0
    waits = []
    for _ in range(2 * per_second):
        clock.now += 1 / per_second
        waits.append(rates.take("ann", "add"))
    assert any(waits) is refused


def test_thousands_of_calls_one_after_another_are_all_answered_by_default(tmp_path: Path) -> None:
    server = Server("default")

    @server.tool(run="inline")
    def safe() -> str:
        """Harmless."""
        return "safe"

    with serve(configured(server, tmp_path, grace=0.0)) as served:
        session = Session(served, "2025-03-26").open()
        for _ in range(30):
            answers = session.post([call("safe", id=n) for n in range(100)]).finish().json
            assert [answer["result"]["content"][0]["text"] for answer in answers] == ["safe"] * 100
