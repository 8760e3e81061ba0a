"""Questions to the official client: the same handlers in both eras."""

from collections.abc import Callable
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError

from .peer import ERAS, LEGACY, MODERN, connect, failed, run, text

both_eras = pytest.mark.parametrize("mode", ERAS)
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


class Person:
    """Who sits before the client, with a model and some folders at hand."""

    def __init__(self, answer: Callable[[Any], types.ElicitResult]) -> None:
        self._answer = answer
        self.asked: list[Any] = []

    async def elicit(self, _: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.asked.append(params)
        return self._answer(params)

    async def sample(self, _: Any, params: types.CreateMessageRequestParams) -> types.CreateMessageResult:
        self.asked.append(params)
        content = types.TextContent(type="text", text="Boats and Ropes")
        return types.CreateMessageResult(role="assistant", content=content, model="m1", stop_reason="endTurn")

    async def roots(self, _: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri="file:///work", name="work")])

    @property
    def callbacks(self) -> dict[str, Any]:
        return {
            "elicitation_callback": self.elicit,
            "sampling_callback": self.sample,
            "list_roots_callback": self.roots,
        }


def agree(params: Any) -> types.ElicitResult:
    """Say yes to everything, and give a text where one is wanted."""
    fields = getattr(params, "requested_schema", {}).get("properties", {})
    samples = {"boolean": True, "string": "noon", "number": 2.0, "integer": 2}
    content = {name: samples[field["type"]] for name, field in fields.items()}
    return types.ElicitResult(action="accept", content=content or None)


def say(action: Any) -> Callable[[Any], types.ElicitResult]:
    return lambda _: types.ElicitResult(action=action)


@both_eras
def test_an_accepted_form_runs_the_body_once(mode: str) -> None:
    async def main() -> None:
        person = Person(agree)
        async with connect(mode, **person.callbacks) as client:
            assert text(await client.call_tool("refund", {"order": "A9"})) == "refunded A9 (1)"
            assert text(await client.call_tool("refund", {"order": "B1"})) == "refunded B1 (2)"
            assert [asked.message for asked in person.asked] == ["Refund A9?", "Refund B1?"]

    run(main)


@both_eras
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_refused_form_ends_the_call_and_says_so(mode: str, action: str) -> None:
    async def main() -> None:
        async with connect(mode, **Person(say(action)).callbacks) as client:
            said = failed(await client.call_tool("refund", {"order": "A9"}))
            assert said == f"not done: the person answered {action!r} when asked for 'ok'"

    run(main)


@both_eras
def test_a_record_is_asked_for_as_a_form_and_a_decline_takes_the_default(mode: str) -> None:
    async def main() -> None:
        async with connect(mode, **Person(agree).callbacks) as client:
            assert text(await client.call_tool("pack")) == "2"
        async with connect(mode, **Person(say("decline")).callbacks) as client:
            assert text(await client.call_tool("pack")) == "no box"

    run(main)


@both_eras
def test_the_person_is_sent_to_a_page(mode: str) -> None:
    async def main() -> None:
        person = Person(agree)
        async with connect(mode, **person.callbacks) as client:
            assert text(await client.call_tool("pay", {"order": "A/9"})) == "paid True"
            assert person.asked[0].mode == "url"
            assert person.asked[0].url == "https://pay.example/A%2F9"

    run(main)


@both_eras
def test_the_clients_model_is_asked(mode: str) -> None:
    async def main() -> None:
        person = Person(agree)
        async with connect(mode, **person.callbacks) as client:
            assert text(await client.call_tool("title", {"topic": "the sea"})) == "Boats and Ropes"
            assert person.asked[0].max_tokens == 30
            assert person.asked[0].messages[0].content.text == "A title for the sea"

    run(main)


@both_eras
def test_the_clients_roots_are_listed(mode: str) -> None:
    async def main() -> None:
        async with connect(mode, **Person(agree).callbacks) as client:
            assert text(await client.call_tool("where")) == "file:///work"

    run(main)


@both_eras
def test_a_body_asks_charges_once_and_asks_again(mode: str) -> None:
    async def main() -> None:
        async with connect(mode, **Person(agree).callbacks) as client:
            said = text(await client.call_tool("book", {"guests": 4}))
            assert said == "4 noon True Boats and Ropes charge 1 of 1"

    run(main)


@both_eras
def test_a_body_sees_a_decline(mode: str) -> None:
    async def main() -> None:
        async with connect(mode, **Person(say("decline")).callbacks) as client:
            assert text(await client.call_tool("book", {"guests": 4})) == "nothing booked: decline"

    run(main)


@both_eras
def test_a_body_that_must_not_ask_is_refused_with_the_fix(mode: str) -> None:
    async def main() -> None:
        person = Person(agree)
        async with connect(mode, **person.callbacks) as client:
            assert "replay=True" in failed(await client.call_tool("rude"))
            assert person.asked == []

    run(main)


def test_a_modern_client_that_cannot_be_asked_is_told_what_is_missing() -> None:
    async def main() -> None:
        async with connect(MODERN) as client:
            with pytest.raises(MCPError) as problem:
                await client.call_tool("refund", {"order": "A9"})
            assert problem.value.code == -32021
            assert problem.value.error.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}
            assert text(await client.call_tool("pack")) == "no box"

    run(main)


@pytest.mark.parametrize("mode", [LEGACY, "2025-03-26", "2024-11-05"])
def test_a_handshake_client_that_cannot_be_asked_gets_a_failed_result(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            assert "did not declare" in failed(await client.call_tool("refund", {"order": "A9"}))
            assert text(await client.call_tool("pack")) == "no box"

    run(main)


def test_forms_and_sampling_work_at_2025_06_18() -> None:
    async def main() -> None:
        async with connect("2025-06-18", **Person(agree).callbacks) as client:
            assert text(await client.call_tool("refund", {"order": "A9"})) == "refunded A9 (1)"
            assert text(await client.call_tool("title", {"topic": "sea"})) == "Boats and Ropes"

    run(main)


def test_a_clients_error_is_a_declined_question() -> None:
    async def main() -> None:
        async def refuse(*_: Any) -> Any:
            return types.ErrorData(code=-1, message="user rejected")

        async with connect(LEGACY, elicitation_callback=refuse) as client:
            said = failed(await client.call_tool("refund", {"order": "A9"}))
            assert said == "the client refused to answer 'ok': user rejected"
            assert text(await client.call_tool("pack")) == "no box"

    run(main)
