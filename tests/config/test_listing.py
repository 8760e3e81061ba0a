"""`longshore config show` prints everything but secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from longshore.cli.config import rows
from longshore.config.reference import list_values, tree

from .conftest import Place

SECRET = "s3cret-s3cret-s3cret"


def _rows(place: Place, text: str, **variables: str) -> dict[str, list[str]]:
    place.write(text)
    return {row[0]: row[1:] for row in rows(list_values(place.load(**variables)), with_origin=True)}


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ("[auth]", "auth.token"),
        ("[auth]", "auth.introspection_secret"),
        ("[http]", "http.state_key"),
        ("[tokens.alice]", "tokens.alice.token"),
        ("[tokens.'a.b']", 'tokens."a.b".token'),
    ],
)
def test_a_secret_is_hidden_and_its_origin_shown(place: Place, table: str, key: str) -> None:
    found = _rows(place, f"{table}\n{key.rpartition('.')[2]} = '{SECRET}'\n")
    assert found[key] == ["…", "project longshore.toml:2"]
    assert SECRET not in str(found)


def test_a_secret_of_a_variable_is_hidden_too(place: Place) -> None:
    found = _rows(place, "", LONGSHORE_AUTH_TOKEN=SECRET, LONGSHORE_TOKENS_BOB_TOKEN=SECRET)
    assert found["auth.token"] == ["…", "env LONGSHORE_AUTH_TOKEN"]
    assert found["tokens.$BOB.token"] == ["…", "env LONGSHORE_TOKENS_BOB_TOKEN"]


def test_a_secret_that_is_unset_is_unset(place: Place) -> None:
    assert _rows(place, "")["auth.token"] == ["unset", "default"]


def test_other_values_are_shown(place: Place) -> None:
    found = _rows(place, "[tokens.alice]\nsha256 = 'ab'\ntoken_file = 'f'\nscopes = ['a', 'b']\n")
    assert [found[f"tokens.alice.{key}"][0] for key in ("sha256", "token_file", "scopes")] == [
        '"ab"',
        '"f"',
        '["a","b"]',
    ]


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("redis://:s3cret@localhost:6379/0", "redis://:…@localhost:6379/0"),
        ("redis://user:s3cret@localhost", "redis://user:…@localhost"),
        ("rediss://user:s3@cret:s3cret@localhost", "rediss://user:…@localhost"),
        ("redis://user:s3cret/s3cret@localhost", "redis://user:…@localhost"),
        ("redis://user@localhost", "redis://user@localhost"),
        ("redis://localhost?db=1&password=s3cret&x=1", "redis://localhost?db=1&password=…&x=1"),
        ("redis://:s3cret@localhost?PASSWORD=s3cret", "redis://:…@localhost?PASSWORD=…"),
        ("sqlite:///var/lib/longshore.db", "sqlite:///var/lib/longshore.db"),
        ("memory://", "memory://"),
    ],
)
def test_a_password_in_a_url_is_hidden(place: Place, url: str, shown: str) -> None:
    text = f"[http]\nstore = '{url}'\n[toolsets.x]\ndatabase = '{url}'\n"
    found = _rows(place, text)
    assert found["http.store"] == [json.dumps(shown, ensure_ascii=False), "project longshore.toml:2"]
    assert found["toolsets.x.database"][0] == json.dumps(shown, ensure_ascii=False)


def test_the_json_form_hides_secrets(place: Place) -> None:
    place.write(f"[auth]\ntoken = '{SECRET}'\n[http]\nstore = 'redis://:{SECRET}@h'\n")
    found: dict[str, Any] = tree(list_values(place.load()))
    assert (found["auth"]["token"], found["http"]["store"]) == ("…", "redis://:…@h")


@pytest.mark.parametrize("name", ["password", "api_key", "SECRET", "authToken", "db-password-file"])
def test_an_option_whose_name_says_secret_is_hidden_at_any_depth(place: Place, name: str) -> None:
    text = f"[toolsets.x]\n{name} = '{SECRET}'\nt = {{ a = 1, b = {{ {name} = ['{SECRET}'] }} }}\n"
    found = _rows(place, text)
    assert found[f"toolsets.x.{name}"] == ["…", "project longshore.toml:2"]
    assert json.loads(found["toolsets.x.t"][0]) == {"a": 1, "b": {name: "…"}}
    assert SECRET not in str(found)


def test_a_password_in_a_url_is_hidden_in_lists_and_tables_too(place: Place) -> None:
    url = f"redis://u:{SECRET}@h"
    text = f"[http]\norigins = ['{url}']\n[toolsets.x]\nurls = ['{url}', {{ at = '{url}', n = 1 }}]\n"
    found = _rows(place, text)
    assert json.loads(found["http.origins"][0]) == ["redis://u:…@h"]
    assert json.loads(found["toolsets.x.urls"][0]) == ["redis://u:…@h", {"at": "redis://u:…@h", "n": 1}]
