"""Tests of ../weather.py, which pytest.ini names. Run them with `pytest examples/testing`."""

import asyncio

import pytest

from longshore import ToolFailed


@pytest.mark.mcp_era("modern", "legacy")
def test_a_forecast(mcp_client):
    assert mcp_client.call_tool("forecast", {"city": "Oslo"}).text == "sunny in Oslo for 3 days"


def test_a_mistake_says_how_to_mend_it(mcp_client):
    with pytest.raises(ToolFailed, match="city: missing"):
        mcp_client.call_tool("forecast", {"town": "Oslo"})


def test_two_at_once(mcp_connect):
    async def both():
        async with mcp_connect() as client:
            return await asyncio.gather(*(client.call_tool("forecast", {"city": city}) for city in ("Oslo", "Bergen")))

    assert [result.text for result in asyncio.run(both())] == [
        "sunny in Oslo for 3 days",
        "sunny in Bergen for 3 days",
    ]


def test_callers_find_what_they_found_before(mcp_surface):
    mcp_surface()
