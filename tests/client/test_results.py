"""Unusual results of other servers are passed on or refused with a reason, never a crash."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from client.scripted import script
from longshore import Text
from longshore.client import Client
from longshore.errors import BadAnswer, ToolFailed
from services import skip


def answering(folder: Path, result: str, **options: Any) -> Client:
    return Client(
        script(folder, f"for m in calls(): reply(m, {result})"), **{"era": "legacy", "timeout": 10.0, **options}
    )


async def test_a_result_without_content_is_an_empty_one(tmp_path: Path) -> None:
    async with answering(tmp_path, "{}") as client:
        result = await client.call_tool("x")
        assert (result.content, result.text, result.is_error) == ([], "", False)
        assert not result.structured


async def test_blocks_of_kinds_to_come_are_passed_on(tmp_path: Path) -> None:
    blocks = "[dict(type='hologram', depth=3), dict(type='text', text='a', more=1), dict(type='text', text='b'), {}]"
    async with answering(tmp_path, f"dict(content={blocks}, extra=5, _meta={{'a/b': 1}})") as client:
        result = await client.call_tool("x")
        assert result.text == "a\nb"
        assert result.content[0] == {"type": "hologram", "depth": 3}
        assert isinstance(result.content[1], Text)
        assert result.record["extra"] == 5
        assert result.meta == {"a/b": 1}


@pytest.mark.parametrize("value", ["5", "'x'", "[1, 2]", "None", "True", "{}"])
async def test_structured_content_of_any_kind(tmp_path: Path, value: str) -> None:
    async with answering(tmp_path, f"dict(content=[], structuredContent={value})") as client:
        assert (await client.call_tool("x")).structured == eval(value)


@pytest.mark.parametrize("flag", ["'true'", "1", "'false'", "None", "{}"])
async def test_only_true_means_failed(tmp_path: Path, flag: str) -> None:
    async with answering(tmp_path, f"dict(DONE, isError={flag})") as client:
        assert not (await client.call_tool("x")).is_error


async def test_a_failure_without_words(tmp_path: Path) -> None:
    async with answering(tmp_path, "dict(isError=True)") as client:
        with pytest.raises(ToolFailed, match="without a word") as caught:
            await client.call_tool("x")
        assert caught.value.result.content == []
        assert (await client.call_tool("x", check=False)).is_error


@pytest.mark.parametrize(
    ("result", "wanted", "value"),
    [
        ("dict(content=[dict(type='text', text='[1, 2]')])", list[int], [1, 2]),
        ("dict(content=[dict(type='text', text='5')])", int, 5),
        ("dict(content=[dict(type='text', text='5')])", str, "5"),
        ("dict(content=[dict(type='text', text='{}')])", dict, {}),
        ("dict(content=[], structuredContent=dict(result=[1]))", list[int], [1]),
        ("dict(content=[], structuredContent=dict(result=[1]))", dict[str, list[int]], {"result": [1]}),
        ("dict(content=[], structuredContent=[1])", list[int], [1]),
        ("dict(content=[], structuredContent=None)", type(None), None),
    ],
)
async def test_as_the_callers_type(tmp_path: Path, result: str, wanted: Any, value: Any) -> None:
    async with answering(tmp_path, result) as client:
        assert await client.call_tool("x", returns=wanted) == value


@pytest.mark.parametrize(
    ("result", "wanted"),
    [
        ("dict(content=[])", int),
        ("dict(content=[dict(type='text', text='NaN')])", float),
        ("dict(content=[dict(type='text', text='[' * 5000)])", list[int]),
        ("dict(content=[dict(type='text', text='1' * 5000)])", int),
        ("dict(content=[], structuredContent=dict(result='x'))", int),
        ("dict(content=[], structuredContent=dict(result=1, more=2))", int),
        ("dict(content=[], structuredContent='x')", int),
    ],
)
async def test_not_as_the_callers_type(tmp_path: Path, result: str, wanted: Any) -> None:
    async with answering(tmp_path, result) as client:
        with pytest.raises(BadAnswer) as caught:
            await client.call_tool("x", returns=wanted)
        assert "odd.py" in str(caught.value)
        assert len(str(caught.value)) < 5000


async def test_as_a_pydantic_model(tmp_path: Path) -> None:
    if find_spec("pydantic") is None:
        skip("pydantic is not installed; make setup installs it")
    import pydantic

    box = pydantic.create_model("Box", width=(float, ...), name=(str, "box"))
    async with answering(tmp_path, "dict(content=[], structuredContent=dict(width=3))") as client:
        assert await client.call_tool("x", returns=box) == box(width=3)
    async with answering(tmp_path, "dict(content=[], structuredContent=dict(result=[dict(width=3)]))") as client:
        assert await client.call_tool("x", returns=list[box]) == [box(width=3)]
        with pytest.raises(BadAnswer, match="no Box"):
            await client.call_tool("x", returns=box)
    async with answering(tmp_path, """text('{"width": 3}')""") as client:
        assert await client.call_tool("x", returns=box) == box(width=3)


READS = ["{}", "dict(contents=None)", "dict(contents={})", "dict(contents=[5])", "dict(contents=[{}])",
         "dict(contents=[dict(uri=5)])", "dict(contents=[dict(uri='x', blob='%%%')])"]  # fmt: skip


@pytest.mark.parametrize("result", READS)
async def test_contents_that_are_none(tmp_path: Path, result: str) -> None:
    async with answering(tmp_path, result) as client:
        with pytest.raises(BadAnswer, match="contents can't be read") as caught:
            await client.read_resource("x://y")
        assert "odd.py" in str(caught.value)


PROMPTS = [
    "{}",
    "dict(messages=None)",
    "dict(messages=[5])",
    "dict(messages=[{}])",
    "dict(messages=[dict(role='user')])",
    "dict(messages=[dict(role='user', content='x')])",
    "dict(messages=[dict(role='user', content=[])])",
    "dict(messages=[dict(role='user', content=dict(type='text'))])",
]


@pytest.mark.parametrize("result", PROMPTS)
async def test_prompts_that_are_none(tmp_path: Path, result: str) -> None:
    async with answering(tmp_path, result) as client:
        with pytest.raises(BadAnswer) as caught:
            await client.get_prompt("p")
        assert "odd.py" in str(caught.value)


@pytest.mark.parametrize(
    "result", ["{}", "dict(completion=None)", "dict(completion={})", "dict(completion=dict(values=[5]))"]
)
async def test_completions_that_are_none(tmp_path: Path, result: str) -> None:
    async with answering(tmp_path, result) as client:
        with pytest.raises(BadAnswer, match="completion can't be read") as caught:
            await client.complete("p", "a", "b")
        assert "odd.py" in str(caught.value)


async def test_a_completion_of_the_fewest_words(tmp_path: Path) -> None:
    async with answering(tmp_path, "dict(completion=dict(values=['a']))") as client:
        found = await client.complete("p", "a", "b")
        assert (found.values, found.total, found.has_more) == (["a"], None, False)
