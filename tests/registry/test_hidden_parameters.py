"""Parameters that are accepted and checked, and that no list shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from msgspec import Meta

from longshore import Alias, Ask, Header, Hidden, RegistrationError, Server
from longshore.toolsets.discovery import Discovery
from talk import call, listed, text


def server(**options: Any) -> Server:
    app = Server("t")
    app.add_toolset(Discovery(app))

    @app.tool(**options)
    def greet(
        name: str,
        mode: Annotated[str, Hidden(), Meta(max_length=5)] = "plain",
        count: Annotated[int, Hidden, Alias("times")] = 1,
    ) -> str:
        """Greet somebody.

        name: whom
        mode: how
        """
        return f"{mode} {name} {count}"

    return app


def test_no_list_shows_a_hidden_parameter() -> None:
    schema = listed(server(), "greet")["inputSchema"]
    assert schema == {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "whom"}},
        "required": ["name"],
        "additionalProperties": False,
    }
    assert "mode" not in text(call(server(), "tool_help", {"name": "greet"}))


@pytest.mark.parametrize("options", [{}, {"run": "inline"}])
def test_a_hidden_parameter_is_accepted_also_under_a_former_name(options: dict[str, Any]) -> None:
    app = server(**options)
    assert text(call(app, "greet", {"name": "Ada"})) == "plain Ada 1"
    assert text(call(app, "greet", {"name": "Ada", "mode": "loud", "times": 2})) == "loud Ada 2"


def test_a_hidden_parameter_is_checked() -> None:
    answer = call(server(), "greet", {"name": "Ada", "mode": "louder", "count": "x"})
    assert answer["isError"]
    assert text(answer).splitlines()[0] == "greet: invalid arguments"
    assert {line.partition(":")[0] for line in text(answer).splitlines()[1:]} == {"mode", "count"}


def test_no_error_suggests_a_hidden_parameter() -> None:
    answer = call(server(), "greet", {"name": "Ada", "mod": "loud"})
    assert text(answer) == "greet: invalid arguments\nmod: unknown argument (takes: name)"


@dataclass
class Inner:
    mode: Annotated[str, Hidden()] = "x"


def without_a_default(mode: Annotated[str, Hidden()]) -> str: ...
def with_a_header(mode: Annotated[str, Hidden(), Header("Mode")] = "x") -> str: ...
def asked_of_a_person(mode: Annotated[bool, Hidden(), Ask("Really?")]) -> str: ...
def inside_a_list(modes: list[Annotated[str, Hidden()]]) -> str: ...
def inside_a_record(inner: Inner) -> str: ...


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        (
            without_a_default,
            r"'mode' is Hidden\(\), so no client knows that it has to send it\n  fix: give it a default",
        ),
        (with_a_header, r"no client knows that a header has to repeat it\n  fix: take Hidden\(\) or Header"),
        (asked_of_a_person, r"'mode' is Hidden\(\)"),
        (inside_a_list, "not for what is inside of one"),
        (inside_a_record, "not for what is inside of one"),
    ],
)
def test_marks_that_mean_nothing_are_refused(fn: Any, what: str) -> None:
    with pytest.raises(RegistrationError, match=what):
        Server("t").tool(fn)


def test_only_tools_have_hidden_parameters() -> None:
    def packing(city: Annotated[str, Hidden()] = "Oslo") -> str:
        return city

    for declare in (Server("t").prompt, Server("t").resource("bag://{?city}")):
        with pytest.raises(RegistrationError, match="for the parameters of tools"):
            declare(packing)
