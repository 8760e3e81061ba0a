"""The official client runs every example; the documentation quotes their output."""

import re
import runpy
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest

from serving import serve

from .http_peer import connect_to
from .peer import ERAS, ROOT, connect, failed, run, text
from .test_questions import Person, agree, say

EXAMPLES = ROOT / "examples"
MOST_EXAMPLES, MOST_LINES = 10, 40
both_eras = pytest.mark.parametrize("mode", ERAS)
pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

# The program of the promise: this, and only this, is a complete server.
WEATHER = '''
from longshore import Server
app = Server("weather", version="1.0.0")
@app.tool
async def forecast(city: str, days: int = 3) -> str:
    """Fetch the weather forecast for a city.
    city: the city's name
    days: how many days ahead (default 3)
    """
    return f"sunny in {city} for {days} days"
if __name__ == "__main__":
    app.run()
'''


def example(name: str) -> str:
    return f"{EXAMPLES / name}.py:app"


def written(source: str) -> list[str]:
    return [line for line in source.splitlines() if line.strip()]


def test_the_weather_example_is_the_whole_program_and_nothing_more() -> None:
    assert written((EXAMPLES / "weather.py").read_text()) == written(WEATHER)


def test_the_examples_are_few_and_short() -> None:
    examples = list(EXAMPLES.glob("*.py"))
    assert len(examples) <= MOST_EXAMPLES
    assert [path.name for path in examples if len(path.read_text().splitlines()) > MOST_LINES] == []


def test_every_example_has_a_test_here() -> None:
    source = Path(__file__).read_text()
    for path in EXAMPLES.glob("*.py"):
        assert f'example("{path.stem}")' in source, path.name


def excerpts() -> list[tuple[str, str, str]]:
    """Each quotation of an example: where it stands, of which example, and what it says."""
    found = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.S | re.M):
            first, _, rest = block.partition("\n")
            if match := re.fullmatch(r"# examples/(\w+\.py)", first):
                found.append((page.name, match[1], rest))
    return found


def test_the_documentation_quotes_the_examples() -> None:
    found = excerpts()
    assert {name for _, name, _ in found} >= {"refund.py", "survey.py"}
    for page, name, quoted in found:
        assert quoted in (EXAMPLES / name).read_text(), f"{page} quotes {name} wrongly:\n{quoted}"


@both_eras
def test_weather(mode: str) -> None:
    async def main() -> None:
        async with connect(mode, example("weather")) as client:
            tool = (await client.list_tools()).tools[0]
            assert tool.description == "Fetch the weather forecast for a city."
            assert tool.input_schema["properties"]["days"] == {
                "type": "integer",
                "default": 3,
                "description": "how many days ahead (default 3)",
            }
            assert text(await client.call_tool("forecast", {"city": "Hamburg"})) == "sunny in Hamburg for 3 days"

    run(main)


@both_eras
def test_inventory(mode: str) -> None:
    async def main() -> None:
        async with connect(mode, example("inventory")) as client:
            assert [r.uri for r in (await client.list_resources()).resources] == ["stock://all"]
            whole = (await client.read_resource("stock://all")).contents[0]
            assert isinstance(whole, types.TextResourceContents)
            assert whole.text == '{"cup":12,"cap":0,"bowl":7}'
            one = (await client.read_resource("stock://cup")).contents[0]
            assert isinstance(one, types.TextResourceContents)
            assert one.text == "12 x cup"
            got = await client.get_prompt("restock", {"item": "cup", "tone": "urgent"})
            content = got.messages[0].content
            assert isinstance(content, types.TextContent)
            assert content.text == "Write a urgent letter that orders more of: cup"
            for ref in (
                types.PromptReference(name="restock"),
                types.ResourceTemplateReference(uri="stock://{item}"),
            ):
                done = await client.complete(ref, {"name": "item", "value": "c"})
                assert done.completion.values == ["cup", "cap"]

    run(main)


@both_eras
def test_refund(mode: str) -> None:
    async def main() -> None:
        async with connect(mode, example("refund"), **Person(agree).callbacks) as client:
            assert text(await client.call_tool("refund", {"order": "A9"})) == "refunded 40 EUR"
            assert text(await client.call_tool("pay", {"order": "B1"})) == "payment for B1 has begun"
        async with connect(mode, example("refund"), **Person(say("decline")).callbacks) as client:
            assert "decline" in failed(await client.call_tool("refund", {"order": "A9"}))
            assert text(await client.call_tool("ship", {"order": "B1"})) == "B1 goes to the address on file"

        def fill_in(_: Any) -> types.ElicitResult:
            return types.ElicitResult(action="accept", content={"street": "Kai 1", "town": "Bremen"})

        async with connect(mode, example("refund"), **Person(fill_in).callbacks) as client:
            assert text(await client.call_tool("ship", {"order": "B1"})) == "B1 goes to Kai 1, Bremen (DE)"

    run(main)


@both_eras
def test_mounted(mode: str) -> None:
    file = example("mounted").partition(":")[0]
    web = runpy.run_path(file)["web"]

    async def main() -> None:
        async with connect_to(server.url.replace("/mcp", "/agents/mcp"), mode) as client:
            assert text(await client.call_tool("price", {"item": "cup"})) == "cup: 3 EUR"

    with serve(web, shut=(), tidy=False) as server:
        assert server.send("GET", "/").finish().body == b"the shop"
        run(main)


@both_eras
def test_survey(mode: str) -> None:
    async def main() -> None:
        async with connect(mode, example("survey"), **Person(agree).callbacks) as client:
            said = text(await client.call_tool("book", {"guests": 4}))
            assert said == "table 1 of 1, at the window: Boats and Ropes"
        async with connect(mode, example("survey"), **Person(say("cancel")).callbacks) as client:
            assert text(await client.call_tool("book", {"guests": 4})) == "nothing was booked"

    run(main)


@both_eras
def test_progress(mode: str) -> None:
    async def main() -> None:
        working = anyio.Event()

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            working.set()

        async with connect(mode, example("progress")) as client:
            assert text(await client.call_tool("mine", {"zeros": 2}, progress_callback=progressed)) == "286"
            async with anyio.create_task_group() as group:

                async def call() -> None:
                    await client.call_tool("mine", {"zeros": 64}, progress_callback=progressed)

                group.start_soon(call)
                await working.wait()
                group.cancel_scope.cancel()
            assert text(await client.call_tool("mine", {"zeros": 1})) == "39"

    run(main)


@both_eras
def test_toolset(mode: str) -> None:
    async def main() -> None:
        async with connect(mode, example("toolset")) as client:
            assert "no note" in failed(await client.call_tool("read", {"title": "sea"}))
            assert text(await client.call_tool("write", {"title": "sea", "body": "deep"})) == "kept 'sea'"
            assert text(await client.call_tool("read", {"title": "sea"})) == "deep"

    run(main)


@both_eras
def test_raw(mode: str) -> None:
    async def main() -> None:
        async with connect(mode, example("raw")) as client:
            result = await client.call_tool("lookup", {"word": "anchor"})
            assert result.structured_content == {"letters": 6}
            assert text(result) == "anchor: 6 letters"
            assert result.meta is not None
            assert result.meta["example.org/revision"] == client.protocol_version
            assert "word" in failed(await client.call_tool("lookup", {"word": "Anchor!"}))

    run(main)


@both_eras
def test_images(mode: str) -> None:
    async def main() -> None:
        async with connect(mode, example("images")) as client:
            color = {"red": 255, "green": 128, "blue": 0}
            label, image = (await client.call_tool("swatch", color)).content
            assert isinstance(label, types.TextContent)
            assert label.text == "#ff8000"
            assert isinstance(image, types.ImageContent)
            assert image.data.startswith("iVBORw0KGgo")
            link = (await client.call_tool("poster", color)).content[0]
            assert isinstance(link, types.ResourceLink)
            poster = (await client.read_resource(link.uri)).contents[0]
            assert isinstance(poster, types.BlobResourceContents)
            assert poster.mime_type == "image/png"

    run(main)


@both_eras
def test_gateway(mode: str) -> None:
    async def main() -> None:
        async with connect(mode, example("gateway")) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names == ["motto", "weather_forecast", "notes_recall"]
            said = text(await client.call_tool("weather_forecast", {"city": "Hamburg"}))
            assert said == "sunny in Hamburg for 3 days"
            assert text(await client.call_tool("notes_recall", {"word": "sea"})) == "a note on sea"

    run(main)
