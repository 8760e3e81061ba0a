"""The revision table against the specification's own tables, and the handshake's choice."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longshore.errors import ProtocolError
from longshore.protocol import revisions
from longshore.protocol.revisions import LEGACY, METHODS, MODERN, NAMES, REVISIONS, lower, negotiate
from longshore.protocol.session import Session, check_method

EVERYTHING = frozenset({"tools", "resources", "prompts", "completions", "logging"})

# mcp-spec.md §6, one letter a revision: y there, - not.
MATRIX = {
    "initialize": "yyyy-",
    "ping": "yyyy-",
    "server/discover": "----y",
    "tools/list": "yyyyy",
    "tools/call": "yyyyy",
    "resources/list": "yyyyy",
    "resources/templates/list": "yyyyy",
    "resources/read": "yyyyy",
    "resources/subscribe": "yyyy-",
    "resources/unsubscribe": "yyyy-",
    "prompts/list": "yyyyy",
    "prompts/get": "yyyyy",
    "completion/complete": "yyyyy",
    "logging/setLevel": "yyyy-",
    "subscriptions/listen": "----y",
    # what a server is never sent, or what is not a core method of any revision
    "roots/list": "-----",
    "sampling/createMessage": "-----",
    "elicitation/create": "-----",
    "notifications/cancelled": "-----",
    "tasks/update": "-----",
    "no/such": "-----",
}

# Fields with the revisions that know them: mcp-spec.md §7.
FIELDS = [
    (
        revisions.TOOL,
        {
            "name": "yyyyy",
            "description": "yyyyy",
            "inputSchema": "yyyyy",
            "annotations": "-yyyy",
            "title": "--yyy",
            "outputSchema": "--yyy",
            "_meta": "--yyy",
            "icons": "---yy",
            "execution": "-----",
        },
    ),
    (
        revisions.RESOURCE,
        {
            "uri": "yyyyy",
            "name": "yyyyy",
            "description": "yyyyy",
            "mimeType": "yyyyy",
            "size": "yyyyy",
            "annotations": "yyyyy",
            "title": "--yyy",
            "_meta": "--yyy",
            "icons": "---yy",
        },
    ),
    (
        revisions.TEMPLATE,
        {
            "uriTemplate": "yyyyy",
            "name": "yyyyy",
            "mimeType": "yyyyy",
            "annotations": "yyyyy",
            "title": "--yyy",
            "icons": "---yy",
            "size": "-----",
        },
    ),
    (
        revisions.PROMPT,
        {"name": "yyyyy", "description": "yyyyy", "arguments": "yyyyy", "title": "--yyy", "icons": "---yy"},
    ),
    (revisions.ARGUMENT, {"name": "yyyyy", "description": "yyyyy", "required": "yyyyy", "title": "--yyy"}),
    (
        revisions.IMPLEMENTATION,
        {
            "name": "yyyyy",
            "version": "yyyyy",
            "title": "--yyy",
            "icons": "---yy",
            "websiteUrl": "---yy",
            "description": "---yy",
        },
    ),
    (
        revisions.CAPABILITIES,
        {
            "tools": "yyyyy",
            "resources": "yyyyy",
            "prompts": "yyyyy",
            "logging": "yyyyy",
            "completions": "-yyyy",
            "tasks": "-----",
        },
    ),
    (
        revisions.CONTENT,
        {"text": "yyyyy", "image": "yyyyy", "resource": "yyyyy", "audio": "-yyyy", "resource_link": "--yyy"},
    ),
]
CELLS = [
    (table, field, row, index)
    for table, rows in FIELDS
    for field, row in rows.items()
    for index, row in [(i, row[i]) for i in range(5)]
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", MATRIX)
def test_a_method_exists_in_the_revisions_that_the_specification_says(method: str, name: str) -> None:
    revision = REVISIONS[name]
    if MATRIX[method][revision.index] == "y":
        check_method(method, revision, EVERYTHING)
    else:
        with pytest.raises(ProtocolError) as caught:
            check_method(method, revision, EVERYTHING)
        assert caught.value.code == -32601


def test_the_table_holds_no_method_beyond_the_specification() -> None:
    assert set(METHODS) == {method for method, row in MATRIX.items() if "y" in row}


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.capability])
def test_a_method_of_a_missing_capability_does_not_exist(method: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        check_method(method, None, EVERYTHING - {METHODS[method].capability})
    assert caught.value.code == -32601


@pytest.mark.parametrize(
    ("table", "field", "known", "index"), CELLS, ids=lambda value: value if isinstance(value, str) else None
)
def test_a_field_goes_out_to_the_revisions_that_know_it(
    table: dict[str, int], field: str, known: str, index: int
) -> None:
    lowered = lower({field: 1}, table, REVISIONS[NAMES[index]])
    assert (field in lowered) == (known == "y")


def test_the_revisions_and_their_eras() -> None:
    assert NAMES == ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
    assert NAMES[:4] == LEGACY and NAMES[4:] == MODERN
    assert [REVISIONS[name].modern for name in NAMES] == [False, False, False, False, True]
    assert [REVISIONS[name].batches for name in NAMES] == [False, True, False, False, False]


@pytest.mark.parametrize("name", LEGACY)
def test_a_handshake_gets_the_revision_that_it_asks_for(name: str) -> None:
    assert negotiate(name).name == name


@pytest.mark.parametrize(
    "asked", ["2026-07-28", "2099-01-01", "1999-01-01", "", "latest", "2025-11-25 ", "2025-6-18", "DRAFT"]
)
def test_any_other_handshake_gets_the_newest_revision_that_has_one(asked: str) -> None:
    assert negotiate(asked).name == "2025-11-25"


@given(st.text())
def test_no_handshake_ever_reaches_the_modern_era_or_a_newer_revision_than_a_known_one_asked_for(asked: str) -> None:
    found = negotiate(asked)
    assert not found.modern
    assert asked not in LEGACY or found.name == asked


@pytest.mark.parametrize("table", [table for table, _ in FIELDS])
def test_no_revision_forgets_a_field_that_an_older_one_had(table: dict[str, int]) -> None:
    record: dict[str, Any] = dict.fromkeys(table, 1)
    known = [set(lower(record, table, REVISIONS[name])) for name in NAMES]
    assert all(older <= newer for older, newer in pairwise(known))
    assert known[-1] == set(table)


def test_a_request_before_the_handshake_is_refused_with_both_ways_to_begin() -> None:
    with pytest.raises(ProtocolError) as caught:
        Session[object]().require_peer("tools/list")
    assert caught.value.code == -32602
    assert "initialize" in caught.value.message and "protocolVersion" in caught.value.message
