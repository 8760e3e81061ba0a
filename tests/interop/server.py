"""The server that the official client drives: one of everything, each declared as an author would."""

import threading
from asyncio import CancelledError, get_running_loop
from collections import defaultdict
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from longshore import (
    Ask,
    Audio,
    Contents,
    Context,
    Elicit,
    EmbeddedResource,
    Icon,
    Image,
    ListRoots,
    Message,
    ResourceLink,
    ResourceNotFound,
    Root,
    Sample,
    Server,
    Tool,
    ToolError,
    Toolset,
    tool,
)

app = Server(
    "interop",
    version="1.2.3",
    title="Interop",
    instructions="Try everything.",
    icons=[Icon("https://example.org/icon.png", mime_type="image/png")],
)
PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(range(16))
happened: defaultdict[str, threading.Event] = defaultdict(threading.Event)


@dataclass
class Box:
    width: float
    height: float
    area: float


# -- tools


@app.tool(effects="read")
async def echo(text: str, times: int = 1) -> str:
    """Say something back.

    text: what to say
    times: how often
    """
    return " ".join([text] * times)


@app.tool(effects="read", title="Measure a box")
def measure(width: float, height: float) -> Box:
    """Measure a box."""
    return Box(width, height, width * height)


@app.tool(run="inline")
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool
async def fail() -> str:
    """Fail on purpose."""
    raise ToolError("the printer is on fire")


@app.tool
async def crash() -> str:
    """Fail by accident."""
    raise ValueError("secret detail")


@app.tool
def noisy() -> str:
    """Print where a careless author prints."""
    print("this must not reach the protocol")
    return "quiet"


@app.tool
def picture() -> Image:
    """A picture."""
    return Image(PIXEL)


@app.tool
def sound() -> Audio:
    """A sound."""
    return Audio(b"RIFF", "audio/wav")


@app.tool
def link() -> ResourceLink:
    """A pointer to a resource."""
    return ResourceLink("note://welcome", "welcome", mime_type="text/plain")


@app.tool
def embedded() -> EmbeddedResource:
    """A resource inside a result."""
    return EmbeddedResource(Contents("note://inside", text="inside", mime_type="text/plain"))


@app.tool
def mixed() -> list[str | Image]:
    """Text and a picture."""
    return ["look:", Image(PIXEL)]


async def _raw(arguments: dict[str, Any], ctx: Context) -> Any:
    return {"content": [{"type": "text", "text": "raw"}], "structuredContent": {"got": arguments}}


app.add_tool(
    Tool(
        name="raw",
        description="An author's own schemas.",
        input_schema={"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]},
        output_schema={"type": "object", "properties": {"got": {"type": "object"}}, "required": ["got"]},
    ),
    _raw,
)


# -- the call itself


@app.tool
async def count(to: int, ctx: Context) -> str:
    """Count, and tell how far it is."""
    for n in range(1, to + 1):
        await ctx.progress(n, to, f"{n} of {to}")
    return "counted"


@app.tool
def count_on_a_thread(to: int, ctx: Context) -> str:
    """Count on a thread, and tell how far it is."""
    for n in range(1, to + 1):
        ctx.progress(n, to)
    return "counted"


@app.tool
async def chat(ctx: Context) -> str:
    """Write log messages of several levels."""
    ctx.debug("fine print")
    await ctx.log("info", {"step": 1}, logger="chatty")
    ctx.warning("careful")
    return "logged"


@app.tool
async def whoami(ctx: Context) -> dict[str, Any]:
    """Tell what is known of the caller."""
    return {"client": ctx.client.get("name"), "revision": ctx.revision, "trace": ctx.trace}


@app.tool(timeout=False)
async def wait(ctx: Context) -> str:
    """Wait until cancelled."""
    await ctx.progress(1)
    try:
        await get_running_loop().create_future()
    except CancelledError:
        happened["wait"].set()
        raise
    return "never"


@app.tool(timeout=False)
def spin(ctx: Context) -> str:
    """Work on a thread until cancelled."""
    ctx.progress(1)
    while not ctx.cancelled:
        threading.Event().wait(0.001)
    happened["spin"].set()
    return "too late"


@app.tool
def await_event(name: str) -> bool:
    """Wait until something has happened in here."""
    return happened[name].wait(10)


# -- resources, prompts, completion


@app.resource("note://welcome", mime_type="text/plain", title="Welcome")
def welcome() -> str:
    """A text."""
    return "hello"


@app.resource("blob://logo", mime_type="image/png")
def logo() -> bytes:
    """A picture."""
    return PIXEL


ITEMS = {"cup": 3, "cap": 0, "bowl": 7}


@app.resource("item://{sku}")
def item(sku: str) -> dict[str, Any]:
    """An item by its number."""
    if sku not in ITEMS:
        raise ResourceNotFound(f"item://{sku}")
    return {"sku": sku, "stock": ITEMS[sku]}


@app.completion("item://{sku}", "sku")
def complete_sku(text: str) -> list[str]:
    return [sku for sku in ITEMS if sku.startswith(text)]


@app.prompt(title="Review")
def review(code: str, tone: Literal["kind", "strict"] = "kind") -> list[Message]:
    """Review some code.

    code: the code
    """
    return [Message("user", f"Review in a {tone} tone: {code}"), Message("assistant", "Gladly.")]


@app.completion("review", "code")
async def complete_code(text: str, settled: dict[str, str]) -> list[str]:
    return [f"{text}-{settled.get('tone', 'any')}"]


@app.tool
def touch(uri: str) -> str:
    """Say that a resource has changed."""
    app.resource_changed(uri)
    return "touched"


class Extra(Toolset):
    """Comes while the server runs."""

    @tool
    async def bonus(self) -> str:
        """There since just now."""
        return "bonus"


@app.tool
def grow() -> str:
    """Add a toolset."""
    app.add_toolset(Extra())
    return "grown"


@app.tool
def shrink() -> str:
    """Take the toolset away."""
    app.remove_toolset("extra")
    return "shrunk"


# -- questions

charges: list[str] = []


@app.tool(effects="destroy")
async def refund(order: str, ok: Annotated[bool, Ask("Refund {order}?")]) -> str:
    """Refund an order, if the person agrees."""
    charges.append(order)
    return f"refunded {order} ({len(charges)})" if ok else "left alone"


@app.tool
def pack(box: Annotated[Box | None, Ask("Which box?")] = None) -> str:
    """Pack something."""
    return "no box" if box is None else f"{box.area:g}"


@app.tool
async def pay(order: str, paid: Annotated[bool, Ask("Pay {order}", url="https://pay.example/{order}")]) -> str:
    """Send the person to a page."""
    return f"paid {paid}"


@app.tool
async def title(topic: str, found: Annotated[str, Ask(Sample("A title for {topic}", max_tokens=30))]) -> str:
    """Have the client's model find a title."""
    return found


@app.tool
async def where(roots: Annotated[list[Root], Ask(ListRoots())]) -> str:
    """List the client's folders."""
    return " ".join(root.uri for root in roots)


@app.tool(replay=True)
async def book(guests: int, ctx: Context) -> str:
    """Book a table: ask, charge once, ask again."""
    when = await ctx.elicit("When?", str, key="when")
    if not when.accepted:
        return f"nothing booked: {when.action}"

    async def charge() -> int:
        charges.append("table")
        return len(charges)

    number = await ctx.once("charge", charge)
    answers = await ctx.ask(window=Elicit("At the window?"), menu=Sample("Which menu?"))
    return f"{guests} {when.value} {answers.window.value} {answers.menu.text} charge {number} of {len(charges)}"


@app.tool
async def rude(ctx: Context) -> str:
    """Ask from a body that must not."""
    await ctx.elicit("May I?", key="may")
    return "never"
