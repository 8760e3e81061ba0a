"""The server that the official conformance suite is run against: every fixture that it asks for, each really done.

python tests/conformance/server.py --port 9200

The order of the tools matters: the suite calls the first one without arguments, and reads the first resource.
Written with the public API alone; `schemas.py` holds what the suite wants to see word for word.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Annotated, Any

import msgspec
import schemas
from schemas import PNG, WAV, Color, Confirmation, Contact, Name, PromptContext, Settings

from longshore import (
    Ask,
    Audio,
    CallResult,
    Contents,
    Context,
    Elicit,
    ElicitAnswer,
    EmbeddedResource,
    Header,
    Image,
    ListRoots,
    Message,
    Root,
    Sample,
    SampleAnswer,
    Server,
    Text,
    Tool,
    ToolError,
    Toolset,
    prompt,
)

PAUSE_SECONDS = 0.05
"""Between two notifications of one tool, as the suite asks for."""

RETRY_SECONDS = 0.1
"""How soon a client whose stream was closed may come back."""

app = Server("longshore-conformance", version="1.0.0", title="Longshore's conformance fixtures")

# -- tools that return each kind of content


@app.tool(effects="read", run="inline")
def test_simple_text() -> str:
    """Return a text."""
    return "This is a simple text response for testing."


@app.tool(effects="read")
def test_image_content() -> Image:
    """Return a picture."""
    return Image(PNG)


@app.tool(effects="read")
def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(WAV, "audio/wav")


@app.tool(effects="read")
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource."""
    text = "This is an embedded resource content."
    return EmbeddedResource(Contents("test://embedded-resource", text, mime_type="text/plain"))


@app.tool(effects="read")
def test_multiple_content_types() -> list[Text | Image | EmbeddedResource]:
    """Return a text, a picture and a resource."""
    data = msgspec.json.encode({"test": "data", "value": 123}).decode()
    resource = Contents("test://mixed-content-resource", data, mime_type="application/json")
    return [Text("Multiple content types test:"), Image(PNG), EmbeddedResource(resource)]


@app.tool(effects="read")
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("This tool intentionally returns an error for testing")


# -- tools that speak while they work


@app.tool(effects="read")
async def test_tool_with_logging(ctx: Context) -> str:
    """Log three messages at level info."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(text)
        await asyncio.sleep(PAUSE_SECONDS)
    return "Tool with logging executed successfully"


@app.tool(effects="read")
async def test_logging_tool(ctx: Context) -> str:
    """Log one message at each of four levels: only what the client asked for may arrive."""
    await ctx.debug("a detail")
    await ctx.info("a fact")
    await ctx.warning("a doubt")
    await ctx.error("a failure")
    return "logged"


@app.tool(effects="read")
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for done in (0, 50, 100):
        await ctx.progress(done, 100, f"Completed step {done} of 100")
        await asyncio.sleep(PAUSE_SECONDS)
    return f"done for {ctx.meta.get('progressToken')}"


@app.tool(effects="read")
async def test_reconnection(ctx: Context) -> str:
    """Close the stream before the result is there: the client comes back for it."""
    await ctx.close_stream(retry=RETRY_SECONDS)
    await asyncio.sleep(2 * RETRY_SECONDS)
    return "Reconnection test completed successfully. If you received this, the client properly reconnected."


# -- tools that ask the client; each works in both eras


@app.tool(effects="read")
async def test_sampling(prompt: str, answer: Annotated[str, Ask(Sample("{prompt}", max_tokens=100))]) -> str:
    """Have the client's model answer a prompt."""
    return f"LLM response: {answer}"


@app.tool(effects="read")
async def test_elicitation(message: str, answer: Annotated[ElicitAnswer, Ask(Elicit("{message}", Contact))]) -> str:
    """Ask the person for a name and an address."""
    return f"User response: {_told(answer)}"


@app.tool(effects="read")
async def test_elicitation_sep1034_defaults(
    answer: Annotated[ElicitAnswer, Ask(Elicit("Please review and update the form fields with defaults", Settings))],
) -> str:
    """Ask by a form whose every field has a default, and use the defaults where the person left one out."""
    return f"Elicitation completed: {_told(answer)}"


@app.tool(effects="read")
async def test_elicitation_sep1330_enums(
    answer: Annotated[ElicitAnswer, Ask(Elicit("Please select options from the enum fields", schema=schemas.CHOICES))],
) -> str:
    """Ask by a form with every kind of choice."""
    return f"Elicitation completed: {_told(answer)}"


@app.tool(effects="read")
async def test_streaming_elicitation(user_name: Annotated[Name, Ask("What is your name?")]) -> str:
    """Ask for a name."""
    return f"Hello, {user_name.name}!"


@app.tool(effects="read")
async def test_missing_capability(word: Annotated[str, Ask(Sample("Say one word", max_tokens=5))]) -> str:
    """Need a client that can ask its model."""
    return f"The model said: {word}"


def _told(answer: ElicitAnswer) -> str:
    content = msgspec.json.encode(answer.value).decode()
    return f"action: {answer.action}, content: {content}" if answer.accepted else f"action: {answer.action}"


# -- tools that are sent again with the answers


@app.tool(effects="read")
async def test_input_required_result_elicitation(user_name: Annotated[Name, Ask("What is your name?")]) -> str:
    """Greet a person by name."""
    return f"Hello, {user_name.name}!"


@app.tool(effects="read")
async def test_input_required_result_sampling(
    capital_question: Annotated[SampleAnswer, Ask(Sample("What is the capital of France?", max_tokens=100))],
) -> str:
    """Have the client's model name a capital."""
    return f"{capital_question.model}: {capital_question.text}"


@app.tool(effects="read")
async def test_input_required_result_list_roots(client_roots: Annotated[list[Root], Ask(ListRoots())]) -> str:
    """List the client's roots."""
    return _uris(client_roots)


@app.tool(effects="write")
async def test_input_required_result_request_state(confirm: Annotated[Confirmation, Ask("Please confirm")]) -> str:
    """Confirm something. It has an effect, so an answer counts only with the state that was signed for it."""
    return f"state-ok, {confirm.ok}"


@app.tool(effects="write")
async def test_input_required_result_tampered_state(confirm: Annotated[Confirmation, Ask("Please confirm")]) -> str:
    """Confirm something, with a state that nobody else can write."""
    return f"confirmed: {confirm.ok}"


@app.tool(effects="read")
async def test_input_required_result_multiple_inputs(
    user_name: Annotated[Name, Ask("What is your name?")],
    greeting: Annotated[str, Ask(Sample("Generate a greeting", max_tokens=50))],
    client_roots: Annotated[list[Root], Ask(ListRoots())],
) -> str:
    """Ask the person, the model and for the roots at once."""
    return f"{greeting} {user_name.name}, in {_uris(client_roots)}"


@app.tool(effects="read", replay=True)
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask a second thing after the first was answered."""
    first = await ctx.elicit("Step 1: What is your name?", Name, key="step1")
    if not first.accepted:
        return "nobody there"
    second = await ctx.elicit("Step 2: What is your favorite color?", Color, key="step2")
    return f"{first.value.name} likes {second.value.color if second.accepted else 'no color'}"


@app.tool(effects="read")
async def test_input_required_result_capabilities(
    user_name: Annotated[Name | None, Ask("What is your name?")] = None,
    greeting: Annotated[str | None, Ask(Sample("Generate a greeting", max_tokens=50))] = None,
) -> str:
    """Ask for what this client can be asked."""
    return f"{greeting or 'Hello'}, {user_name.name if user_name else 'you'}!"


def _uris(roots: list[Root]) -> str:
    return ", ".join(root.uri for root in roots) or "no roots"


# -- tools that change what the server offers


class Passing(Toolset):
    """A prompt that comes and goes."""

    @prompt
    def test_passing_prompt(self) -> str:
        """Is there for a moment."""
        return "Already gone."


@app.tool(effects="write")
async def test_trigger_tool_change() -> str:
    """Add a tool and take it away again."""
    app.tool(name="test_passing_tool", description="Is there for a moment.")(test_simple_text)
    app.remove_tool("test_passing_tool")
    return "the tools have changed, twice"


@app.tool(effects="write")
async def test_trigger_prompt_change() -> str:
    """Add a prompt and take it away again."""
    app.add_toolset(Passing())
    app.remove_toolset("passing")
    return "the prompts have changed, twice"


@app.tool(effects="write")
async def test_trigger_resource_change(ctx: Context) -> str:
    """Change the watched resource."""
    watched.append(len(watched) + 1)
    ctx.resource_changed("test://watched-resource")
    return f"version {watched[-1]}"


# -- tools with a schema of their own


async def _say_arguments(arguments: dict[str, Any], ctx: Context) -> CallResult:
    return CallResult([Text(f"{ctx.name}: {msgspec.json.encode(arguments, order='sorted').decode()}")])


app.add_tool(
    Tool(
        name="json_schema_2020_12_tool",
        input_schema=schemas.JSON_SCHEMA_2020_12,
        description="Take what only a whole JSON Schema can say.",
        effects="read",
    ),
    _say_arguments,
)


@app.tool(effects="read")
def test_x_mcp_header(region: Annotated[str, Header("Region")] = "nowhere") -> str:
    """Take an argument that a header repeats."""
    return f"region: {region}"


# -- resources

watched = [1]
"""The versions of the watched resource."""


@app.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@app.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture that never changes."""
    return PNG


@app.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text that changes when `test_trigger_resource_change` is called."""
    return f"Watched resource content, version {watched[-1]}"


@app.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> dict[str, Any]:
    """The data of any id."""
    return {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}


# -- prompts


@app.prompt
def test_simple_prompt() -> str:
    """One message."""
    return "This is a simple prompt for testing."


@app.prompt
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A message with two arguments in it.

    arg1: the first
    arg2: the second
    """
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@app.completion("test_prompt_with_arguments", "arg1")
def first_arguments(text: str) -> list[str]:
    return [word for word in ("test", "testing", "paris", "park", "party") if word.startswith(text)]


@app.prompt
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message | str]:
    """A message that holds a resource, and one that speaks of it.

    resourceUri: the resource's address
    """
    contents = Contents(resourceUri, "Embedded resource content for testing.", mime_type="text/plain")
    return [Message("user", EmbeddedResource(contents)), "Please process the embedded resource above."]


@app.prompt
def test_prompt_with_image() -> list[Message | str]:
    """A message that holds a picture, and one that speaks of it."""
    return [Message("user", Image(PNG)), "Please analyze the image above."]


@app.prompt
async def test_input_required_result_prompt(
    user_context: Annotated[PromptContext, Ask("What context should the prompt use?")],
) -> str:
    """A prompt that asks for its context."""
    return f"Use this context: {user_context.context}"


def main() -> None:
    parser = argparse.ArgumentParser(description="The fixture server of the conformance suite.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9200)
    options = parser.parse_args()
    app.run(http=True, host=options.host, port=options.port)


if __name__ == "__main__":
    main()
