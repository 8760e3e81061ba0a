"""The servers that the transcripts talk to. Each transcript gets a fresh one, in this process or in one of its own."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Literal

from msgspec import Struct

from longshore import (
    Annotations,
    Ask,
    Audio,
    CallResult,
    Contents,
    Context,
    Elicit,
    EmbeddedResource,
    Icon,
    Image,
    Limits,
    ListRoots,
    Message,
    ResourceLink,
    ResourceNotFound,
    Sample,
    SampleAnswer,
    Server,
    Text,
    Tool,
    ToolError,
    Toolset,
    prompt,
    resource,
    tool,
)

ICON = Icon("https://longshore.example/icon.png", mime_type="image/png", sizes=["48x48"])

# -- tools of every kind

tools = Server("tools", version="1.2.3", instructions="Call echo.")
gates: dict[str, asyncio.Event] = {}


def gate(key: str) -> asyncio.Event:
    return gates.setdefault(key, asyncio.Event())


@tools.tool(run="inline")
def echo(text: str = "") -> str:
    """Say it again."""
    return text


@tools.tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    a: the first
    b: the second
    """
    return a + b


@tools.tool
def threaded(text: str) -> str:
    """Say it from a thread."""
    return text


@tools.tool
async def hold(key: str, ctx: Context) -> str:
    """Wait until `release` is called with the same key."""
    ctx.info(f"holding {key}")
    await gate(key).wait()
    return f"released {key}"


@tools.tool
async def release(key: str) -> str:
    """Let a `hold` go on."""
    gate(key).set()
    return f"releasing {key}"


@tools.tool
def refuse() -> str:
    """Fail in the author's own words."""
    raise ToolError("out of stock; try next week")


@tools.tool
def crash() -> str:
    """Fail with what nobody should see."""
    raise RuntimeError("secret AKIAIOSFODNN7EXAMPLE")


@tools.tool
async def count(to: int, ctx: Context) -> str:
    """Report progress and log on the way."""
    for step in range(1, to + 1):
        await ctx.progress(step, to, f"step {step}")
    await ctx.progress(1, to, "going back is not reported")
    await ctx.debug("a detail")
    await ctx.info({"counted": to})
    await ctx.log("warning", "nearly done", logger="counter")
    return "done"


@tools.tool
async def whoami(ctx: Context) -> dict[str, Any]:
    """What the call knows of its caller."""
    return {
        "client": ctx.client,
        "capabilities": ctx.capabilities,
        "revision": ctx.revision,
        "trace": ctx.trace,
        "own": ctx.meta.get("com.example/own"),
        "id": ctx.request_id,
    }


# -- everything that older revisions don't know

shapes = Server("shapes", version="2", title="Shapes", website_url="https://longshore.example", icons=[ICON])


class Forecast(Struct):
    city: str
    days: list[int]


@shapes.tool(title="Forecast", effects="read", icons=[ICON], tags=["weather"], meta={"com.example/a": 1})
def forecast(city: str) -> Forecast:
    """A structured result."""
    return Forecast(city, [1, 2])


@shapes.tool(effects="destroy", idempotent=True, open_world=False)
def numbers() -> list[int]:
    """A structured result that is no object."""
    return [1, 2, 3]


@shapes.tool
def sound() -> Audio:
    """Audio."""
    return Audio(b"RIFF", "audio/wav")


@shapes.tool
def picture() -> Image:
    """An image."""
    return Image(b"\x89PNG")


@shapes.tool
def link() -> ResourceLink:
    """A link to a resource."""
    return ResourceLink("note://big", "big", description="too big to send")


@shapes.tool
def mixed() -> list[str | Text | EmbeddedResource]:
    """Several blocks."""
    notes = Annotations(audience=["user"], priority=1)
    return ["plain", Text("noted", annotations=notes), EmbeddedResource(Contents("note://a", text="embedded"))]


async def _raw(arguments: dict[str, Any], _: Context) -> CallResult:
    return CallResult([Text("raw")], arguments["value"], meta={"com.example/b": 2})


shapes.add_tool(
    Tool(
        name="raw",
        description="The author's own schemas.",
        input_schema={
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {"value": {"$ref": "#/$defs/v"}},
            "required": ["value"],
            "$defs": {"v": {"type": "array"}},
        },
        output_schema={"type": "array"},
    ),
    _raw,
)


@shapes.resource("note://{name}", title="A note", mime_type="text/plain", icons=[ICON], meta={"com.example/c": 3})
def note(name: str) -> str:
    """A note by its name."""
    return f"note {name}"


@shapes.resource("logo://", name="logo", title="Logo", size=4, annotations=Annotations(priority=0.5), icons=[ICON])
def logo() -> bytes:
    """A picture."""
    return b"\x00\xff\xfe\xfd"


@shapes.prompt(title="Listen", icons=[ICON])
def listen() -> list[Any]:
    """A prompt with content that not every client has."""
    return [Message("assistant", Audio(b"RIFF")), ResourceLink("note://a", "a")]


# -- resources, prompts and completions

library = Server("library")
opened: list[str] = []


@library.resource("book://moby", name="moby", mime_type="text/markdown", max_age=60)
def moby() -> str:
    """The first line."""
    return "Call me Ishmael."


@library.resource("book://cover", name="cover", mime_type="image/png")
def cover() -> bytes:
    """The cover."""
    return b"\x00\x01\xff"


@library.resource("shelf://{room}/{number}{?lang}")
def shelf(room: str, number: int, lang: str = "en") -> dict[str, Any]:
    """What stands on a shelf."""
    if number > 9:
        raise ResourceNotFound(f"shelf://{room}/{number}")
    return {"room": room, "number": number, "lang": lang}


@library.resource("two://", name="two")
def two() -> list[Contents]:
    """Two contents at once."""
    return [Contents("two://a", text="a"), Contents("two://b", blob=b"b", mime_type="x/y")]


@library.resource("broken://", name="broken")
def broken() -> str:
    """Fails."""
    raise RuntimeError("secret AKIAIOSFODNN7EXAMPLE")


@library.prompt
def greet(name: str, style: Literal["warm", "wild", "cold"] = "warm") -> str:
    """Greet somebody.

    name: whom
    style: how
    """
    return f"Write a {style} greeting for {name}."


@library.prompt
async def talk() -> list[Message]:
    return [Message("user", "Hello?"), Message("assistant", "Who is there?")]


@library.completion("greet", "name")
def complete_name(value: str, settled: dict[str, str]) -> list[str]:
    names = ["Ada", "Alan", "Grace"] if settled.get("style") != "cold" else ["Agnes"]
    return [name for name in names if name.lower().startswith(value.lower())]


@library.completion("shelf://{room}/{number}{?lang}", "room")
async def complete_room(value: str) -> list[str]:
    return [f"{value}{n}" for n in range(250)]


@library.tool(run="inline")
def touch(uri: str, ctx: Context) -> str:
    """Say that a resource has changed."""
    ctx.resource_changed(uri)
    return "touched"


# -- pages and changing lists

pages = Server("pages", limits=Limits(page=2))
for _name in "abcde":
    pages.tool(name=_name, description=_name, run="inline")(lambda: "x")
    pages.resource(f"r://{_name}", name=_name, description=_name)(lambda: "x")
    pages.prompt(name=_name, description=_name)(lambda: "x")
    pages.resource(f"t{_name}://{{x}}", name=_name, description=_name)(lambda x: x)


class Extra(Toolset):
    """Comes and goes."""

    @tool(run="inline")
    def extra_tool(self) -> str:
        """There now."""
        return "extra"

    @resource("extra://r")
    def extra_resource(self) -> str:
        """There now."""
        return "r"

    @prompt
    def extra_prompt(self) -> str:
        """There now."""
        return "p"


changing = Server("changing")


@changing.resource("base://", name="base")
def base() -> str:
    """Always there."""
    return "base"


@changing.prompt
def start() -> str:
    """Always there."""
    return "start"


@changing.tool(run="inline")
def grow() -> str:
    """Add the extra toolset."""
    changing.add_toolset(Extra())
    return "grown"


@changing.tool(run="inline")
def shrink() -> str:
    """Remove the extra toolset."""
    changing.remove_toolset("extra")
    return "shrunk"


@changing.tool
def grow_from_thread() -> str:
    """Add a tool from a thread."""
    changing.tool(name="late", run="inline")(lambda: "late")
    return "grown"


# -- questions to the client

questions = Server("questions")
charged: list[str] = []


@questions.tool
def refund(order: str, ok: Annotated[bool, Ask("Refund {order}?")]) -> str:
    """Ask before the body."""
    charged.append(order)
    return f"{order}: {ok}, {len(charged)} in all"


@questions.tool(effects="read")
async def size(kind: Annotated[Literal["small", "large"], Ask("Which size?")] = "small") -> str:
    """Ask, and have a default."""
    return kind


@questions.tool(effects="read")
async def visit(seen: Annotated[bool, Ask("Please sign in", url="https://longshore.example/login")]) -> str:
    """Send the person to a page."""
    return f"seen: {seen}"


@questions.tool(effects="read")
async def poem(tone: Annotated[str, Ask(Sample("One word for a tone", max_tokens=5))]) -> str:
    """Ask the client's model."""
    return f"a {tone} poem"


@questions.tool(effects="read", replay=True)
async def folders(ctx: Context) -> str:
    """Ask for the roots."""
    return ", ".join(root.uri for root in await ctx.roots())


@questions.tool(replay=True)
async def rounds(ctx: Context) -> str:
    """Ask twice, with an effect in between that must happen once."""
    first = await ctx.elicit("First?", str, key="first")
    number = await ctx.once("charge", lambda: charged.append("rounds") or len(charged))
    second = await ctx.elicit(f"Second, after {first.value}?", int, key="second")
    return f"{first.value} {second.value} {number}"


@questions.tool(replay=True, effects="read")
async def several(ctx: Context) -> str:
    """Ask three things at once."""
    answers = await ctx.ask(who=Elicit("Who?", str), say=Sample("Say hi"), where=ListRoots())
    said: SampleAnswer = answers.say
    return f"{answers.who.value} {said.text} {len(answers.where)}"


@questions.tool
async def careless(ctx: Context) -> str:
    """Asks in its body without saying that it can run again."""
    return str(await ctx.elicit("Sure?", key="sure"))


@questions.prompt
async def draft(topic: str, tone: Annotated[str, Ask("Which tone?")]) -> str:
    """A prompt that asks."""
    return f"Write a {tone} text about {topic}."


@questions.resource("secret://{name}")
async def secret(name: str, ok: Annotated[bool, Ask("Show {name}?")]) -> str:
    """A resource that asks."""
    return f"{name}: {ok}"


# -- a server with tools alone

bare = Server("bare")


@bare.tool(run="inline")
def hello() -> str:
    """Say hello."""
    return "hello"
