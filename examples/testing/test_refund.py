"""Tests of ../refund.py, which asks the user. A fixture names the server."""

from pathlib import Path

import pytest

from longshore import ToolFailed
from longshore.testing import load_server


@pytest.fixture
def mcp_server():
    return load_server("refund.py", Path(__file__).parents[1])


@pytest.mark.mcp_era("modern", "legacy")
def test_the_person_says_where_it_goes(mcp_client, mcp_answers):
    mcp_answers.add({"street": "Karl Johans gate 1", "town": "Oslo"})
    assert mcp_client.call_tool("ship", {"order": "A9"}).text == "A9 goes to Karl Johans gate 1, Oslo (DE)"
    assert [question.message for question in mcp_answers.asked] == ["Where does A9 go?"]


@pytest.mark.mcp_era("modern", "legacy")
def test_no_means_no(mcp_client, mcp_answers):
    mcp_answers.add(False)
    with pytest.raises(ToolFailed):
        mcp_client.call_tool("refund", {"order": "A9"})
