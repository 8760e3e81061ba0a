"""Lists: page by page, bounded, and robust against single entries that are wrong."""

from __future__ import annotations

import socket
import textwrap
import threading
from pathlib import Path
from typing import Any

import pytest

from client.scripted import connect_to, heard, run, script
from longshore.client import Client
from longshore.errors import BadAnswer, ServerError


def paging(body: str) -> str:
    """A server whose lists are made by `body` from `cursor`, `method` and `key`."""
    return f"""
import itertools
KEYS = {{"tools/list": "tools", "resources/list": "resources", "prompts/list": "prompts",
        "resources/templates/list": "resourceTemplates"}}
def entry(n):
    return dict(name=f"n{{n}}", inputSchema={{}}, uri=f"x://{{n}}", uriTemplate=f"x://{{n}}/{{{{a}}}}")
asked = 0
for m in asks():
    method = m.get("method")
    if method not in KEYS:
        usual(m) or reply(m, DONE)
        continue
    key, cursor = KEYS[method], m.get("params", {{}}).get("cursor")
    asked += 1
    mark("asked")
{chr(10).join("    " + line for line in body.strip().splitlines())}
"""


LISTS = ["list_tools", "list_resources", "list_templates", "list_prompts"]


@pytest.mark.parametrize("name", LISTS)
async def test_all_pages_are_one_list(tmp_path: Path, name: str) -> None:
    code = paging("""
at = int(cursor or 0)
more = dict(nextCursor=str(at + 1)) if at < 4 else {}
reply(m, {key: [entry(at * 10 + n) for n in range(10)], **more})
""")
    async with connect_to(tmp_path, code) as client:
        found = await getattr(client, name)()
        assert [each.name for each in found] == [f"n{n}" for n in range(50)]
        assert len((tmp_path / "asked").read_text()) == 5


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("following", ["'same'", "str(asked % 3)", "5", "['x']", "{}", "True"])
async def test_cursors_that_go_round_or_are_none(tmp_path: Path, name: str, following: str) -> None:
    async with connect_to(tmp_path, paging(f"reply(m, {{key: [entry(1)], 'nextCursor': {following}}})")) as client:
        with pytest.raises(BadAnswer, match=r"circles|cursor") as caught:
            await getattr(client, name)()
        assert "odd.py" in str(caught.value)
        assert len((tmp_path / "asked").read_text()) <= 5
        assert (await client.call_tool("x")).text == "done"


async def test_an_empty_cursor_is_a_cursor(tmp_path: Path) -> None:
    code = paging("reply(m, {key: [entry(0)], 'nextCursor': ''} if cursor is None else {key: [entry(1)]})")
    async with connect_to(tmp_path, code) as client:
        assert [each.name for each in await client.list_tools()] == ["n0", "n1"]


async def test_pages_without_end_are_given_up(tmp_path: Path) -> None:
    async with connect_to(tmp_path, paging("reply(m, {key: [], 'nextCursor': str(asked)})")) as client:
        with pytest.raises(BadAnswer, match="more than 1000 pages"):
            await client.list_tools()
        assert len((tmp_path / "asked").read_text()) == 1000
        assert (await client.call_tool("x")).text == "done"


async def test_entries_without_end_are_given_up(tmp_path: Path) -> None:
    code = paging("reply(m, {key: [entry(n) for n in range(30000)], 'nextCursor': str(asked)})")
    async with connect_to(tmp_path, code, timeout=30) as client:
        with pytest.raises(BadAnswer, match="more than 100,000 entries"):
            await client.list_prompts()
        assert len((tmp_path / "asked").read_text()) == 4


@pytest.mark.parametrize(("pages", "fits"), [(2, True), (3, True), (4, False)])
async def test_the_most_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pages: int, fits: bool) -> None:
    monkeypatch.setattr("longshore.client.server_lists.PAGES", 3)
    code = paging(f"reply(m, {{key: [entry(asked)], **(dict(nextCursor=str(asked)) if asked < {pages} else {{}})}})")
    async with connect_to(tmp_path, code) as client:
        if fits:
            assert len(await client.list_tools()) == pages
        else:
            with pytest.raises(BadAnswer, match="more than 3 pages"):
                await client.list_tools()
        assert len((tmp_path / "asked").read_text()) == min(pages, 3)


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(("entries", "fits"), [(0, True), (5, True), (6, True), (7, False)])
async def test_the_most_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: int, fits: bool, at_once: bool
) -> None:
    monkeypatch.setattr("longshore.client.server_lists.ENTRIES", 6)
    code = paging(
        f"reply(m, {{key: [entry(n) for n in range({entries})]}})"
        if at_once
        else f"""
more = dict(nextCursor=str(asked)) if asked < {entries} else {{}}
reply(m, {{key: [entry(asked)] if {entries} else [], **more}})
"""
    )
    async with connect_to(tmp_path, code) as client:
        if fits:
            assert len(await client.list_prompts()) == entries
        else:
            with pytest.raises(BadAnswer, match="more than 6 entries"):
                await client.list_prompts()


async def test_pages_refuses_a_method_that_lists_nothing(tmp_path: Path) -> None:
    async with connect_to(tmp_path, paging("reply(m, {key: []})")) as client:
        with pytest.raises(ValueError, match="'nope' lists nothing; what does: tools/list, resources/list"):
            async for _ in client.pages("nope"):
                raise AssertionError("there is none")


@pytest.mark.parametrize(
    ("ref", "kind"),
    [
        ("x://{a}", "ref/resource"),
        ("x://a", "ref/resource"),
        ("urn:isbn:{id}", "ref/resource"),
        ("review", "ref/prompt"),
        ("team:review", "ref/prompt"),
        ("", "ref/prompt"),
    ],
)
async def test_completion_refers_to_a_template_or_a_prompt(tmp_path: Path, ref: str, kind: str) -> None:
    code = "for m in calls(): mark('ref', json.dumps(m['params']['ref'])); reply(m, dict(completion=dict(values=[])))"
    async with connect_to(tmp_path, code) as client:
        await client.complete(ref, "id", "9")
        assert heard(tmp_path / "ref") == [{"type": kind, "uri" if kind == "ref/resource" else "name": ref}]


def test_wrong_entries_by_the_ten_thousand_cost_neither_time_nor_memory(tmp_path: Path) -> None:
    async def test() -> None:
        code = paging("reply(m, {key: [entry(0)] + [dict(name=f'bad{n}', inputSchema=n) for n in range(50000)]})")
        async with connect_to(tmp_path, code, timeout=30) as client:
            assert [each.name for each in await client.list_tools()] == ["n0"]
            assert len(client.problems) == 100

    run(test, 50)


WRONG = ["5", "None", "'x'", "[]", "{}", "dict(name='a')", "dict(name=5, inputSchema={})", "dict(inputSchema={})",
         "dict(name='a', inputSchema=True)", "dict(name='a', inputSchema=None)", "dict(name='a', inputSchema=[])",
         "dict(name='a', inputSchema={}, annotations='x')", "dict(name='a', inputSchema={}, title=5)",
         "dict(name='a' * 100000, inputSchema=5)"]  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_wrong_entry_takes_the_others_not_with_it(tmp_path: Path, wrong: str) -> None:
    async with connect_to(tmp_path, paging(f"reply(m, {{key: [entry(0), {wrong}, entry(1)]}})")) as client:
        assert [each.name for each in await client.list_tools()] == ["n0", "n1"]
        assert len(client.problems) == 1, "and is told of"
        assert len(client.problems[0]) < 500
        await client.list_tools(fresh=True)
        assert len(client.problems) == 1, "once"


@pytest.mark.parametrize("answer", ["{}", "{key: None}", "{key: {}}", "{key: 'x'}", "{'other': []}"])
async def test_answers_that_are_no_list(tmp_path: Path, answer: str) -> None:
    async with connect_to(tmp_path, paging(f"reply(m, {answer})")) as client:
        for name in LISTS:
            with pytest.raises(BadAnswer, match="has no list") as caught:
                await getattr(client, name)()
            assert "odd.py" in str(caught.value)


async def test_an_error_in_the_middle_is_an_error(tmp_path: Path) -> None:
    code = paging("refuse(m, -32602, 'bad cursor') if cursor else reply(m, {key: [entry(0)], 'nextCursor': 'a'})")
    async with connect_to(tmp_path, code) as client:
        with pytest.raises(ServerError, match="bad cursor"):
            await client.list_tools()


async def test_two_tools_of_one_name(tmp_path: Path) -> None:
    """Both are listed, as they came; the last one's promise is held against results."""
    code = paging("""
first = dict(entry(0), outputSchema={"type": "object", "required": ["a"]})
reply(m, {key: [first, entry(0)]})
""")
    async with connect_to(tmp_path, code) as client:
        assert len(await client.list_tools()) == 2
        assert (await client.call_tool("n0")).text == "done"


async def test_undeclared_parts_are_not_requested(tmp_path: Path) -> None:
    code = "CAPABILITIES.clear()\n" + paging("reply(m, {key: [entry(0)]})")
    async with connect_to(tmp_path, code) as client:
        for name in LISTS:
            assert await getattr(client, name)() == []
    assert not (tmp_path / "asked").exists()


async def test_pages_are_fetched_one_by_one(tmp_path: Path) -> None:
    async with connect_to(tmp_path, paging("reply(m, {key: [entry(asked)], 'nextCursor': str(asked)})")) as client:
        found = []
        async for page in client.pages("tools/list"):
            found += [entry["name"] for entry in page]
            if len(found) == 3:
                break
        assert found == ["n1", "n2", "n3"]
        assert len((tmp_path / "asked").read_text()) == 3


# -- schemas


def test_a_reference_in_a_schema_is_never_fetched(tmp_path: Path) -> None:
    """Neither the input's nor the output's; a promise that can't be read binds nobody."""
    visits: list[Any] = []
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]

    def accept() -> None:
        while True:
            try:
                visits.append(listener.accept())
            except OSError:
                return

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{port}/schema.json"

    async def test() -> None:
        code = paging(f"""
schema = dict(type="object", properties=dict(a={{"$ref": {url!r}}}), required=["a"])
dynamic = {{"$schema": {url!r}, "$id": {url!r}, "$dynamicRef": {url + "#x"!r}}}
tools = [dict(entry(0), inputSchema=schema, outputSchema=schema), dict(entry(1), outputSchema=dynamic),
         dict(entry(2), outputSchema={{"$ref": "file:///etc/passwd"}})]
reply(m, {{key: tools}})
""").replace("usual(m) or reply(m, DONE)", "usual(m) or reply(m, dict(DONE, structuredContent=dict(a=1)))")
        async with connect_to(tmp_path, code) as client:
            assert len(await client.list_tools()) == 3
            for n in range(3):
                try:
                    await client.call_tool(f"n{n}")
                except BadAnswer as problem:
                    assert "schema" in str(problem)

    try:
        run(test)
        assert not visits
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)


@pytest.mark.parametrize(
    "schema",
    ["{'type': 'object', 'properties': {'a': {'type': 'integer'}}, 'required': ['a']}", "{'const': {'a': 2}}"],
)
@pytest.mark.parametrize("given", ["{}", "{'a': 'x'}", "[]", "None", "5"])
def test_a_result_that_breaks_the_tools_own_promise(tmp_path: Path, schema: str, given: str) -> None:
    async def test() -> None:
        code = paging(f"reply(m, {{key: [dict(entry(0), outputSchema={schema})]}})").replace(
            "usual(m) or reply(m, DONE)", f"usual(m) or reply(m, dict(DONE, structuredContent={given}))"
        )
        async with connect_to(tmp_path, code) as client:
            assert (await client.call_tool("n0")).text == "done", "what was never promised is not checked"
            await client.list_tools()
            with pytest.raises(BadAnswer, match="'n0' breaks its own output schema") as caught:
                await client.call_tool("n0")
            assert "odd.py" in str(caught.value)
        async with connect_to(tmp_path, code, validate=False) as client:
            await client.list_tools()
            assert (await client.call_tool("n0")).text == "done"

    run(test)


async def test_a_promise_that_is_forgotten_or_can_not_be_read(tmp_path: Path) -> None:
    code = paging("""
reply(m, {key: [dict(entry(0), outputSchema={"type": "object"}), dict(entry(1), outputSchema={"type": "nonsense"}),
                dict(entry(2), outputSchema={"pattern": "("})]})
""").replace(
        "usual(m) or reply(m, DONE)",
        """
        usual(m) or reply(m, DONE if m["params"]["name"] == "n0" else dict(DONE, structuredContent={}))
""".strip(),
    )
    async with connect_to(tmp_path, code) as client:
        await client.list_tools()
        with pytest.raises(BadAnswer, match="promises structured content, and gave none"):
            await client.call_tool("n0")
        assert (await client.call_tool("n1")).text == "done"
        assert (await client.call_tool("n2")).text == "done"


async def test_a_list_is_bounded_in_its_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("longshore.client.server_lists.LIST_BYTES", 10_000)
    code = """
        for m in asks():
            if m.get("method") == "tools/list":
                page = int(m.get("params", {}).get("cursor", "0"))
                tool = {"name": f"t{page}", "inputSchema": {"type": "object"}, "description": "x" * 1000}
                reply(m, {"tools": [tool], **({"nextCursor": str(page + 1)} if page < PAGES else {})})
            else:
                usual(m)
    """
    async with Client(script(tmp_path, "PAGES = 8\n" + textwrap.dedent(code), "short")) as client:
        assert len(await client.list_tools()) == 9
    async with Client(script(tmp_path, "PAGES = 99\n" + textwrap.dedent(code), "long")) as client:
        with pytest.raises(BadAnswer, match="tools/list is longer than"):
            await client.list_tools()
