"""Our own tools keep every rule of every profile, at the strictest level."""

from __future__ import annotations

import pytest

from longshore.builtin import CATEGORIES, make
from longshore.cli.describe import tool_list_of
from longshore.schema.lint.rule import PROFILES, Profile
from longshore.schema.lint.run import lint


@pytest.mark.parametrize("profile", PROFILES)
def test_the_built_in_server_keeps_every_rule(profile: Profile) -> None:
    found = lint(tool_list_of(make()), profiles=(profile,))
    assert [f"{each.tool}: {each.rule} {each.message}" for each in found if not each.waived] == []


def test_the_built_in_server_refuses_tools_that_break_a_rule() -> None:
    app = make()
    asked = app.admission
    assert (asked.policy, asked.categories, asked.waived) == ("refuse", CATEGORIES, {})
    assert {declared.category for declared in tool_list_of(app).declared.values()} <= set(CATEGORIES)
