"""Each test gets a client of the server, in memory."""

import pytest

from longshore import ToolFailed


def test_words_are_counted(mcp_client):
    text = "three short words"
    assert mcp_client.call_tool("count_words", {"text": text}, returns=int) == 3


def test_a_missing_text_is_named(mcp_client):
    with pytest.raises(ToolFailed, match="text"):
        mcp_client.call_tool("count_words", {})


def test_the_most_frequent_word_is_first(mcp_client):
    text = "the cat and the dog and the bird"
    assert mcp_client.call_tool("frequent_words", {"text": text, "most": 2}, returns=list[str]) == ["the", "and"]
