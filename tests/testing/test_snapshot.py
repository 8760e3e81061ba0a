"""Surfaces: equal for equal servers, and differences that say which callers break."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from client.scripted import script
from longshore import Client, ClientError, Context, Server, SyncClient
from longshore.schema.diff import compare
from longshore.testing import assert_surface, read_surface

WRONG = """
for m in asks():
    if m["method"] == "tools/list": reply(m, {"tools": [TOOL, {"name": "bad", "inputSchema": 5}]})
    else: usual(m) or reply(m, {"resources": [], "resourceTemplates": [], "prompts": []})
"""


def library(*, turned: bool = False) -> Server:
    app = Server("library", instructions="Read.")

    def lend() -> None:
        @app.tool(effects="read")
        def lend(book: str, days: int = 3) -> dict[str, int]:
            """Lend a book."""
            return {book: days}

    def shelf() -> None:
        @app.resource("book://moby", name="moby", mime_type="text/plain")
        def moby() -> str:
            """A whale."""
            return "Call me Ishmael."

        @app.resource("book://{name}", name="any")
        def book(name: str) -> str:
            """Any book."""
            return name

        @app.prompt
        def review(book: str, tone: str = "kind") -> str:
            """Review it."""
            return f"{book} {tone}"

    def give() -> None:
        @app.tool
        def give(book: str) -> str:
            """Give a book back."""
            return book

    for part in [give, shelf, lend] if turned else [lend, shelf, give]:
        part()
    return app


def surface(app: Server, path: Path) -> dict[str, Any]:
    assert_surface(app, path, update=True)
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_the_order_of_declaration_makes_no_difference(tmp_path: Path) -> None:
    surface(library(), tmp_path / "one")
    surface(library(turned=True), tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()
    assert_surface(library(turned=True), tmp_path / "one")
    with SyncClient(library()) as client:
        assert_surface(client, tmp_path / "one")
    assert_surface(json.loads((tmp_path / "one").read_text()), tmp_path / "other")


def test_the_surface_holds_every_list_and_the_instructions(tmp_path: Path) -> None:
    found = surface(library(), tmp_path / "s")
    assert [each["name"] for each in found["tools"]] == ["give", "lend"]
    assert [each["uri"] for each in found["resources"]] == ["book://moby"]
    assert [each["uriTemplate"] for each in found["templates"]] == ["book://{name}"]
    assert [each["name"] for each in found["prompts"]] == ["review"]
    assert found["instructions"] == "Read."


def test_problems_of_a_connection_are_not_part_of_the_surface(tmp_path: Path) -> None:
    """Noise on stdout and other handlers of the client do not change the surface."""
    app = library()

    @app.tool
    async def tell(ctx: Context) -> str:
        """Tell."""
        await ctx.info("told")
        return "told"

    def broken(_: Any) -> None:
        raise ValueError("mine")

    with SyncClient(app, on_log=broken, log_level="info") as client:
        client.call_tool("tell")
        assert "on_log raised" in str(client.problems) and client.left_out == []
        assert_surface(client, tmp_path / "s", update=True)
    code = "import os; os.write(1, b'starting\\n')\nfrom longshore import Server\nServer('noisy').run()"
    assert_surface([sys.executable, "-c", code], tmp_path / "noisy", update=True)


def test_entries_that_the_client_leaves_out_fail_the_surface(tmp_path: Path) -> None:
    """The client can't use an entry: comparing the rest would pass."""
    with SyncClient(script(tmp_path, WRONG)) as client:
        with pytest.raises(ClientError, match=r"what it offers can't all be used: .*'bad'"):
            assert_surface(client, tmp_path / "s", update=True)
        assert len(client.left_out) == 1 and set(client.left_out) <= set(client.problems)

    async def work() -> None:
        async with Client(script(tmp_path, WRONG)) as client:
            with pytest.raises(ClientError, match="can't all be used"):
                await read_surface(client)
            client.left_out.clear()
            assert len(client.left_out) == 1, "it is a copy"

    asyncio.run(work())


def changed(tmp_path: Path, change: Any) -> tuple[list[str], list[str]]:
    """The broken and the safe changes of a changed surface."""
    old = surface(library(), tmp_path / "s")
    new = json.loads(json.dumps(old))
    change(new)
    changes = compare(old, new)
    return [why for each in changes for why in each.broken], [why for each in changes for why in each.safe]


CHANGES = {
    "a tool less": (lambda s: s["tools"].pop(0), ["it was removed"], []),
    "a tool more": (lambda s: s["tools"].append({"name": "z", "inputSchema": {}}), [], ["it is new"]),
    "a resource less": (lambda s: s["resources"].clear(), ["it was removed"], []),
    "a template less": (lambda s: s["templates"].clear(), ["it was removed"], []),
    "other words": (lambda s: s["tools"][0].update(description="x"), [], ["its description changed"]),
    "another media type": (
        lambda s: s["resources"][0].update(mimeType="a/b"),
        ["its media type was text/plain and is a/b"],
        [],
    ),
    "no promise any more": (
        lambda s: s["tools"][1].pop("annotations"),
        ["it does not promise readOnlyHint: true any more"],
        [],
    ),
    "no structured result": (
        lambda s: s["tools"][1].pop("outputSchema"),
        ["it promises no structured result any more"],
        [],
    ),
    "a wider result": (
        lambda s: s["tools"][1]["outputSchema"].update(type=["object", "null"]),
        ['the result: type was "object" and is [ "object", "null" ]'],
        [],
    ),
    "an argument of a prompt": (
        lambda s: s["prompts"][0]["arguments"].append({"name": "x", "required": True}),
        ["parameter 'x' is new and required"],
        [],
    ),
    "an optional one": (
        lambda s: s["prompts"][0]["arguments"].append({"name": "x"}),
        [],
        ["what callers may send and get is the same or more"],
    ),
    "a default of another type": (
        lambda s: s["tools"][1]["inputSchema"]["properties"]["days"].update(default=3.0),
        [],
        ["what callers may send and get is the same or more"],
    ),
    "a member of the result": (
        lambda s: s["tools"][1]["outputSchema"].update(
            {"properties": {"x": {"type": "integer"}}, "additionalProperties": {"type": "integer"}}
        ),
        [],
        ["what callers may send and get is the same or more"],
    ),
    "other instructions": (lambda s: s.update(instructions=None), [], ["they changed"]),
    "only a default": (
        lambda s: s["tools"][1]["inputSchema"]["properties"]["days"].update(default=4),
        [],
        ["what callers may send and get is the same or more"],
    ),
}


@pytest.mark.parametrize("case", CHANGES)
def test_changes(case: str, tmp_path: Path) -> None:
    change, broken, safe = CHANGES[case]
    assert changed(tmp_path, change) == (broken, safe)


def test_the_failure_tells_what_breaks_first_and_shows_the_difference(tmp_path: Path) -> None:
    old = surface(library(), tmp_path / "s")
    old["tools"][1]["description"] = "Lent."
    old["tools"].insert(0, {"name": "burn", "inputSchema": {"type": "object"}})
    (tmp_path / "s").write_text(json.dumps(old))
    with pytest.raises(AssertionError) as caught:
        assert_surface(library(), tmp_path / "s")
    text = str(caught.value)
    assert "1 of 2 changes break callers" in text
    assert text.index("tool burn") < text.index("tool lend")
    assert '-  "description": "Lent."' in text and '+  "description": "Lend a book."' in text
    assert text.endswith("pytest --mcp-update")


@pytest.mark.parametrize("text", ["", "[", "[]", "{}", '{"tools": 1}'])
def test_a_file_that_is_no_surface(text: str, tmp_path: Path) -> None:
    (tmp_path / "s").write_text(text)
    with pytest.raises(AssertionError, match=r"Write it anew:  pytest --mcp-update"):
        assert_surface(library(), tmp_path / "s")


@pytest.mark.parametrize("data", [b"\xff\xfe", b"[" * 100_000, b'["\\ud800"]', b"NaN"])
def test_a_file_that_can_not_be_read_is_written_anew(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "s").write_bytes(data)
    with pytest.raises(AssertionError, match=r"can't be read: .* Write it anew:  pytest --mcp-update"):
        assert_surface(library(), tmp_path / "s")
    surface(library(), tmp_path / "s")
    assert_surface(library(), tmp_path / "s")


def test_a_folder_in_place_of_the_surface_file_is_reported(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="can't be read"):
        assert_surface(library(), tmp_path)
    with pytest.raises(AssertionError, match="can't be written"):
        assert_surface(library(), tmp_path, update=True)


def test_updating_through_a_symbolic_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "link").symlink_to("deep/real")
    surface(library(), tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "deep" / "real").is_file()


def test_true_does_not_match_one(tmp_path: Path) -> None:
    old = surface(library(), tmp_path / "s")
    new = json.loads(json.dumps(old))
    for found, default in ((old, True), (new, 1)):
        found["tools"][1]["inputSchema"]["properties"]["days"]["default"] = default
    assert [change.title for change in compare(old, new)] == ["tool lend"]


@pytest.mark.parametrize("schema", [7, {"properties": 7}, {"required": [[]]}, {"anyOf": 7}, {"type": {}}])
def test_a_malformed_schema_is_a_difference(schema: Any, tmp_path: Path) -> None:
    kept = surface(library(), tmp_path / "s")
    kept["tools"][0]["inputSchema"] = schema
    (tmp_path / "s").write_text(json.dumps(kept))
    with pytest.raises(AssertionError, match="1 of 1 changes break callers"):
        assert_surface(library(), tmp_path / "s")


def test_a_file_that_people_edited_or_checked_out_elsewhere(tmp_path: Path) -> None:
    kept = surface(library(), tmp_path / "s")
    (tmp_path / "s").write_bytes(json.dumps(kept).replace(", ", ",\r\n").encode())
    assert_surface(library(), tmp_path / "s")


def test_malformed_entries_and_duplicate_names_are_differences(tmp_path: Path) -> None:
    kept = surface(library(), tmp_path / "s")
    kept["tools"] += [7, kept["tools"][0]]
    (tmp_path / "s").write_text(json.dumps(kept))
    with pytest.raises(AssertionError, match="2 of 2 changes break callers"):
        assert_surface(library(), tmp_path / "s")


def test_writing_keeps_the_mode_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "s"
    surface(library(), path)
    path.write_text("old")
    path.chmod(0o640)
    surface(library(), path)
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(path.parent) == ["s"]


def test_an_unchanged_surface_file_is_not_written(tmp_path: Path) -> None:
    surface(library(), tmp_path / "s")
    before = (tmp_path / "s").stat().st_ino
    surface(library(), tmp_path / "s")
    assert (tmp_path / "s").stat().st_ino == before
