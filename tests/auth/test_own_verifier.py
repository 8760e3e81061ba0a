"""A server whose author checks tokens: whom it lets in, and what a client gets while the check fails."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from longshore import ConfigError, Context, Principal, RegistrationError, Server, TokenVerifier
from longshore.auth import Guard, Refusal
from longshore.auth.verifiers import AuthorsVerifier, IssuerUnavailable
from longshore.config.sections import AuthConfig
from posting import Session, ask_modern, modern, post_modern
from posting import bearer as header
from posting import call as calling
from serving import serve

from .conftest import RESOURCE, bearer, look_up
from .issuer import Clock


class Keys:
    """Finds tokens in a dict. What is an exception there is raised."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found, self.asked = found, list[str]()

    async def verify(self, token: str) -> Principal | None:
        self.asked.append(token)
        await asyncio.sleep(0)
        found = self.found.get(token)
        if isinstance(found, BaseException):
            raise found
        return found  # type: ignore[no-any-return]


ANN = Principal("ann", frozenset({"read"}))


def guard(verifier: TokenVerifier, clock: Clock | None = None, **hooks: Any) -> Guard:
    settings = hooks.pop("settings", {})
    return Guard(AuthConfig(**settings), {}, resource=RESOURCE, verifier=verifier, clock=clock or Clock(), **hooks)


def test_a_valid_token_is_the_caller_that_the_author_names_and_is_checked_once_a_minute() -> None:
    clock, keys = Clock(), Keys({"good-token": ANN})
    found = guard(keys, clock)
    assert found.required
    for seconds, times in ((0, 1), (59, 1), (2, 2)):
        clock.now += seconds
        assert look_up(found, bearer("good-token")) == ANN
        assert keys.asked == ["good-token"] * times


@pytest.mark.parametrize(
    ("returned", "status", "why"),
    [
        (None, 401, None),
        (OSError("the database at 10.0.0.1 is down"), 503, "Keys.verify raised OSError: the database at 10.0.0.1"),
        (TimeoutError(), 503, "Keys.verify did not end within 5 s"),
        ("ann", 503, "Keys.verify returned a str; it returns a Principal, or None for a token that is not valid"),
        (Principal("local"), 503, "Keys.verify returned a Principal that can't be named 'local'"),
        (Principal(""), 503, "can't be named ''"),
        (Principal("a\nb"), 503, "can't be named"),
        (Principal(cast("str", None)), 503, "can't be named None"),
        (Principal("ann", cast("frozenset[str]", "read")), 503, "returned scopes that are no frozenset"),
        (SystemExit(3), 503, "Keys.verify raised SystemExit: 3"),
    ],
)
def test_what_else_it_does_is_a_refusal_and_only_the_log_says_why(returned: Any, status: int, why: str | None) -> None:
    reports: list[str] = []
    outcome = look_up(guard(Keys({"some-token": returned}), report=reports.append), bearer("some-token"))
    assert isinstance(outcome, Refusal)
    assert (outcome.status, len(reports)) == (status, 0 if why is None else 1)
    assert why is None or why in reports[0]
    assert "10.0.0.1" not in outcome.text
    if status == 401:
        assert 'error="invalid_token"' in outcome.challenge


def test_a_verifier_that_does_not_end_is_given_up() -> None:
    class Hanging:
        async def verify(self, token: str) -> Principal | None:
            await asyncio.Event().wait()
            return None

    with pytest.raises(IssuerUnavailable, match=r"Hanging\.verify did not end within 0 s"):
        asyncio.run(AuthorsVerifier(Hanging(), Clock(), 0).verify(b"some-token"))


def test_metadata_names_the_authorization_servers_that_issue_its_tokens() -> None:
    found = guard(Keys({}), settings={"authorization_servers": ["https://login.example.com"]})
    metadata = found.metadata()
    assert metadata is not None
    assert metadata["authorization_servers"] == ["https://login.example.com"]


def test_static_tokens_go_first_and_another_verifier_beside_it_is_refused() -> None:
    keys = Keys({})
    found = guard(keys, settings={"token": "a-static-token-of-the-tests"})
    assert look_up(found, bearer("a-static-token-of-the-tests")) == Principal("token", None)
    assert keys.asked == []
    with pytest.raises(ConfigError, match=r"auth.jwks: the server checks tokens in its own way"):
        guard(keys, settings={"issuer": "https://h", "jwks": "https://h/jwks"})


def test_a_class_or_a_plain_def_is_refused_with_the_fix() -> None:
    class Plain:
        def verify(self, token: str) -> Principal | None:
            return None

    with pytest.raises(RegistrationError, match="verify of a token verifier is async"):
        Server("t", auth=Plain())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="an object with `async def verify`, and this is a class"):
        Server("t", auth=Keys)  # type: ignore[arg-type]


def test_a_server_asks_it_in_both_eras_and_checks_the_scopes_that_it_grants() -> None:
    keys = Keys({"good-token": ANN, "bad-day-token": OSError("down")})
    app = Server("t", auth=keys)

    @app.tool(run="inline", scopes=["read"])
    def look(ctx: Context) -> str:
        return ctx.principal.name

    @app.tool(run="inline", scopes=["write"])
    def change() -> str:
        return "changed"

    with serve(app.asgi()) as served:
        good = header("good-token")
        assert ask_modern(served, calling("look"), good).json["result"]["content"][0]["text"] == "ann"
        assert Session(served, headers=[good]).open().call("look") == "ann"
        refused = [post_modern(served, modern(calling("change")), good).finish()]
        refused += [
            post_modern(served, modern(calling("look")), *given).finish() for given in ([], [header("unknown-one")])
        ]
        assert [each.status for each in refused] == [403, 401, 401]
        broken = post_modern(served, modern(calling("look")), header("bad-day-token")).finish()
        assert broken.status == 503
        assert "down" not in str(broken.json)
