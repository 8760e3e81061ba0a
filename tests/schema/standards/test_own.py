"""Our own tools keep every rule of every profile, at the strictest level."""

from __future__ import annotations

import pytest

from longshore.builtin import CATEGORIES, make
from longshore.cli.describe import surface_of
from longshore.schema.standards.linting import lint
from longshore.schema.standards.rule import PROFILES, Profile


@pytest.mark.parametrize("profile", PROFILES)
def test_the_built_in_server_keeps_every_rule(profile: Profile) -> None:
    found = lint(surface_of(make()), profiles=(profile,))
    assert [f"{each.tool}: {each.rule} {each.message}" for each in found] == []


def test_it_refuses_what_it_asks_of_others() -> None:
    app = make()
    asked = app.admission
    assert (asked.policy, asked.categories, asked.waived) == ("refuse", CATEGORIES, {})
    assert {facts.category for facts in surface_of(app).facts.values()} <= set(CATEGORIES)
