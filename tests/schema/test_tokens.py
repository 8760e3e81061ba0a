"""The number of tokens that a value costs a model."""

from __future__ import annotations

from typing import Any

import pytest

from longshore.schema.output import count_tokens


@pytest.mark.parametrize(
    ("value", "tokens"),
    [((), 0), ([], 0), ("ab", 1), ("abc", 2), ({"é": 1}, 2), ([object()], 0), ("\ud800", 0)],
)
def test_four_characters_of_json_are_a_token(value: Any, tokens: int) -> None:
    assert count_tokens(value) == tokens
