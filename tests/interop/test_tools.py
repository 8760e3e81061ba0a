"""Tools, as the official client lists and calls them."""

import base64

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from .peer import ERAS, HANDSHAKES, MODERN, connect, failed, run, text
from .server import PIXEL

every_way = pytest.mark.parametrize("mode", [*HANDSHAKES, MODERN, "auto"])
both_eras = pytest.mark.parametrize("mode", ERAS)


@every_way
def test_the_client_connects_and_learns_who_we_are(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            assert client.protocol_version == (MODERN if mode == "auto" else mode)
            if mode == MODERN:
                return  # it begins at once, without asking who we are
            info = client.server_info
            assert info is not None
            assert (info.name, info.version) == ("interop", "1.2.3")
            assert client.instructions == "Try everything."
            capabilities = client.server_capabilities
            assert capabilities.tools is not None
            assert capabilities.prompts is not None
            assert capabilities.resources is not None
            assert capabilities.resources.subscribe

    run(main)


@every_way
def test_the_client_lists_and_calls_tools(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            echo = tools["echo"]
            assert echo.description == "Say something back."
            assert echo.input_schema["properties"]["text"] == {"type": "string", "description": "what to say"}
            assert echo.input_schema["required"] == ["text"]
            assert text(await client.call_tool("echo", {"text": "hi", "times": 2})) == "hi hi"
            assert text(await client.call_tool("add", {"a": 1, "b": 2})) == "3"

    run(main)


@both_eras
def test_a_record_comes_as_structured_content_that_the_client_validates(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert tools["measure"].output_schema is not None
            assert tools["measure"].title == "Measure a box"
            annotations = tools["measure"].annotations
            assert annotations is not None
            assert annotations.read_only_hint
            result = await client.call_tool("measure", {"width": 2, "height": 3})
            assert result.structured_content == {"width": 2.0, "height": 3.0, "area": 6.0}
            result = await client.call_tool("raw", {"n": 4})
            assert result.structured_content == {"got": {"n": 4}}

    run(main)


@both_eras
def test_failures_are_results_that_the_model_can_read(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            assert failed(await client.call_tool("fail")) == "the printer is on fire"
            crashed = failed(await client.call_tool("crash"))
            assert "secret" not in crashed
            assert "failed unexpectedly" in crashed
            wrong = failed(await client.call_tool("echo", {"text": 7, "volume": 11}))
            assert "text" in wrong
            assert "volume" in wrong
            assert "n" in failed(await client.call_tool("raw", {"n": 0}))

    run(main)


@both_eras
def test_an_unknown_tool_is_a_protocol_error_with_the_nearest_name(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            with pytest.raises(MCPError, match="did you mean 'echo'") as problem:
                await client.call_tool("ecco")
            assert problem.value.code == -32602

    run(main)


@both_eras
def test_every_kind_of_content_arrives(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            image = (await client.call_tool("picture")).content[0]
            assert (image.type, image.mime_type, base64.b64decode(image.data)) == ("image", "image/png", PIXEL)
            audio = (await client.call_tool("sound")).content[0]
            assert (audio.type, base64.b64decode(audio.data)) == ("audio", b"RIFF")
            link = (await client.call_tool("link")).content[0]
            assert (link.type, link.uri, link.name) == ("resource_link", "note://welcome", "welcome")
            embedded = (await client.call_tool("embedded")).content[0]
            assert (embedded.type, embedded.resource.text) == ("resource", "inside")
            mixed = (await client.call_tool("mixed")).content
            assert [block.type for block in mixed] == ["text", "image"]

    run(main)


@pytest.mark.parametrize("mode", ["2024-11-05", "2025-03-26"])
def test_content_that_an_old_revision_does_not_know_comes_as_text(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            assert (await client.call_tool("link")).content[0].type == "text"
            measured = await client.call_tool("measure", {"width": 2, "height": 3})
            assert measured.structured_content is None
            assert '"area":6.0' in text(measured)

    run(main)


@both_eras
def test_a_tools_print_does_not_disturb_the_protocol(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            assert text(await client.call_tool("noisy")) == "quiet"
            assert text(await client.call_tool("echo", {"text": "still here"})) == "still here"

    run(main)


@both_eras
def test_many_calls_in_flight_are_each_answered(mode: str) -> None:
    async def main() -> None:
        async with connect(mode) as client:
            answers: dict[int, str] = {}

            async def call(n: int) -> None:
                answers[n] = text(await client.call_tool("add", {"a": n, "b": n}))

            async with anyio.create_task_group() as group:
                for n in range(200):
                    group.start_soon(call, n)
            assert answers == {n: str(2 * n) for n in range(200)}

    run(main)


@both_eras
def test_a_call_knows_who_makes_it_and_in_which_revision(mode: str) -> None:
    from mcp_types import Implementation

    async def main() -> None:
        async with connect(mode, client_info=Implementation(name="tester", version="9")) as client:
            result = await client.call_tool("whoami", meta={"traceparent": "00-ab-cd-01"})
            assert result.structured_content is not None
            assert result.structured_content["client"] == "tester"
            assert result.structured_content["revision"] == client.protocol_version
            assert result.structured_content["trace"]["traceparent"] == "00-ab-cd-01"

    run(main)
