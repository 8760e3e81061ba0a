"""A server of ours with one of everything: in memory by `make()`, as a process when it is run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from longshore import (
    Ask,
    Audio,
    Contents,
    Context,
    Elicit,
    EmbeddedResource,
    Image,
    ListRoots,
    Message,
    ResourceLink,
    ResourceNotFound,
    Root,
    Sample,
    Server,
    ToolError,
)

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(range(16))


@dataclass
class Box:
    width: float
    height: float
    area: float


def make() -> Server:
    """Every tool is async: a thread would be the server's, and outlive its clients in the same process."""
    app = Server("own", version="3")
    happened: list[str] = []
    for add in (_add_results, _add_calls, _add_questions, _add_others):
        add(app, happened)
    return app


def _add_results(app: Server, _: list[str]) -> None:
    @app.tool(effects="read")
    async def measure(width: float, height: float) -> Box:
        """Measure a box."""
        return Box(width, height, width * height)

    @app.tool
    async def numbers(to: int) -> list[int]:
        """Count."""
        return list(range(to))

    @app.tool
    async def echo(text: str) -> str:
        """Say it back."""
        return text

    @app.tool
    async def fail(words: str = "the printer is on fire") -> str:
        """Fail on purpose."""
        raise ToolError(words)

    @app.tool
    async def crash() -> str:
        """Fail by accident."""
        raise ValueError("secret detail")

    @app.tool
    async def everything() -> list[str | Image | Audio | ResourceLink | EmbeddedResource]:
        """All kinds of content."""
        inside = EmbeddedResource(Contents("note://inside", text="inside", mime_type="text/plain"))
        return ["look:", Image(PIXEL), Audio(b"RIFF", "audio/wav"), ResourceLink("note://welcome", "welcome"), inside]


def _add_calls(app: Server, happened: list[str]) -> None:
    @app.tool
    async def steps(ctx: Context, to: int = 3) -> str:
        """Tell how far it is."""
        for n in range(1, to + 1):
            await ctx.progress(n, to, f"{n} of {to}")
        return "done"

    @app.tool(timeout=False)
    async def wait(ctx: Context) -> str:
        """Wait until it is cancelled."""
        await ctx.progress(1)
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            happened.append("cancelled")
        return "never"

    @app.tool
    async def events() -> list[str]:
        """The events so far."""
        return happened

    @app.tool
    async def chat(ctx: Context) -> str:
        """Write log messages."""
        await ctx.debug("fine print")
        await ctx.log("info", {"step": 1}, logger="chatty")
        await ctx.warning("careful")
        return "logged"


def _add_questions(app: Server, happened: list[str]) -> None:
    @app.tool(effects="destroy")
    async def refund(order: str, ok: Annotated[bool, Ask("Refund {order}?")]) -> str:
        """Refund an order, if the person agrees."""
        happened.append(f"refund {order} {ok}")
        return "refunded" if ok else "left alone"

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
            happened.append("charged")
            return 1

        await ctx.once("charge", charge)
        answers = await ctx.ask(window=Elicit("At the window?"), menu=Sample("Which menu?"))
        return f"{guests} {when.value} {answers.window.value} {answers.menu.text}"


def _add_others(app: Server, _: list[str]) -> None:
    items = {"cup": 3, "cap": 0, "bowl": 7}

    @app.resource("note://welcome", mime_type="text/plain", title="Welcome")
    async def welcome() -> str:
        """A text."""
        return "hello"

    @app.resource("blob://logo", mime_type="image/png")
    async def logo() -> bytes:
        """A picture."""
        return PIXEL

    @app.resource("item://{sku}")
    async def item(sku: str) -> dict[str, Any]:
        """An item by its number."""
        if sku not in items:
            raise ResourceNotFound(f"item://{sku}")
        return {"sku": sku, "stock": items[sku]}

    @app.completion("item://{sku}", "sku")
    async def complete_sku(text: str) -> list[str]:
        return [sku for sku in items if sku.startswith(text)]

    @app.prompt(title="Review")
    async def review(code: str, tone: Literal["kind", "strict"] = "kind") -> list[Message]:
        """Review some code.

        code: the code
        """
        return [Message("user", f"Review in a {tone} tone: {code}"), Message("assistant", "Gladly.")]

    @app.completion("review", "code")
    async def complete_code(text: str, settled: dict[str, str]) -> list[str]:
        return [f"{text}-{settled.get('tone', 'any')}"]


if __name__ == "__main__":
    make().run()
