"""Acknowledgements of subscriptions, compared with what is watched."""

from __future__ import annotations

from pathlib import Path

import pytest

from client.scripted import heard, until
from client.test_watch import LISTENED, connect_to, next_of
from longshore.client import Change
from longshore.errors import ConnectError, ServerError


def listening(acknowledgement: str) -> str:
    return (
        LISTENED
        + f"""
for m in asks():
    mark("heard", json.dumps([m["method"], m.get("params", {{}}).get("requestId")]))
    match m["method"]:
        case "server/discover": meet(m)
        case "subscriptions/listen":
            listen = m
            {acknowledgement}
        case "tools/call": changed(listen); reply(m, DONE)
"""
    )


@pytest.mark.parametrize(
    "honoured",
    [
        "toolsListChanged=False",
        "other=True",
        "resourceSubscriptions=[]",
        "resourceSubscriptions=True",
    ],
)
async def test_an_acknowledgement_of_nothing_fails_the_watch(tmp_path: Path, honoured: str) -> None:
    async with connect_to(tmp_path, listening(f"acknowledge(m, {honoured})")) as client:
        with pytest.raises(ConnectError, match="does not tell of changes to tools, prompts, x://a") as caught:
            async with client.watch(tools=True, prompts=True, uris=["x://a"]):
                raise AssertionError("it must not begin")
        assert "odd.py" in str(caught.value)
        await until("a word", lambda: ["notifications/cancelled", 2] in heard(tmp_path / "heard"))


async def test_refused_parts_of_a_subscription_are_noted(tmp_path: Path) -> None:
    acknowledgement = "acknowledge(m, toolsListChanged=True, resourceSubscriptions=['x://a'])"
    async with (
        connect_to(tmp_path, listening(acknowledgement)) as client,
        client.watch(tools=True, prompts=True, uris=["x://a", "x://b"]) as changes,
    ):
        assert client.problems == ["it does not tell of changes to prompts, x://b, which are watched"]
        await client.call_tool("x")
        assert await next_of(changes) == Change("tools")


async def test_a_long_list_of_refused_subscriptions_is_cut(tmp_path: Path) -> None:
    async with connect_to(tmp_path, listening("acknowledge(m, other=True)")) as client:
        with pytest.raises(ConnectError, match="and 995 more") as caught:
            await client.watch(uris=[f"x://{n}{'x' * 1000}" for n in range(1000)]).__aenter__()
        assert len(str(caught.value)) < 2000


@pytest.mark.parametrize("said", ["None", "[]", "5", "'all'"])
async def test_an_acknowledgement_without_its_filters_is_noted(tmp_path: Path, said: str) -> None:
    acknowledgement = (
        f"notify('notifications/subscriptions/acknowledged', _meta={{SUB: m['id']}}, notifications={said})"
    )
    async with (
        connect_to(tmp_path, listening(acknowledgement)) as client,
        client.watch(tools=True) as changes,
    ):
        assert "does not say what it will tell of" in client.problems[0]
        await client.call_tool("x")
        assert await next_of(changes) == Change("tools")


async def test_a_handshake_server_that_has_no_such_thing(tmp_path: Path) -> None:
    code = "del CAPABILITIES['prompts'], CAPABILITIES['resources']\nfor m in calls(): reply(m, DONE)"
    async with connect_to(tmp_path, code, era="legacy") as client:
        with pytest.raises(ConnectError, match="has no resources, prompts to tell of"):
            await client.watch(prompts=True, resources=True).__aenter__()
        assert (await client.call_tool("x")).text == "done"


async def test_a_handshake_server_without_listchanged_is_noted(tmp_path: Path) -> None:
    """The official one says by default that it does not, and does."""
    code = "for m in calls(): reply(m, DONE); notify('notifications/tools/list_changed')"
    async with (
        connect_to(tmp_path, code, era="legacy") as client,
        client.watch(tools=True, resources=True) as changes,
    ):
        [problem] = client.problems
        assert "does not say that it tells of changes to tools, resources" in problem
        await client.call_tool("x")
        assert await next_of(changes) == Change("tools")


async def test_a_watch_with_a_refused_uri_subscribes_to_nothing(tmp_path: Path) -> None:
    code = """
            for m in calls():
                mark("asked", m["method"] + m["params"]["uri"])
                refuse(m, -32002, "no such resource") if m["params"]["uri"] == "x://no" else reply(m, {})
        """
    async with (
        connect_to(tmp_path, code, era="legacy") as client,
        client.watch(uris=["x://kept"]),
    ):
        with pytest.raises(ServerError, match="no such resource"):
            await client.watch(uris=["x://kept", "x://a", "x://no", "x://never"]).__aenter__()
        await until("it is taken back", lambda: "unsubscribex://a" in (tmp_path / "asked").read_text())
        assert (tmp_path / "asked").read_text().split() == [
            f"resources/{each}"
            for each in ("subscribex://kept", "subscribex://kept", "subscribex://a", "subscribex://no",
                         "unsubscribex://a")
        ]  # fmt: skip
