"""The small server on Longshore. The argument says how its tools run:

inline   def tools on the loop's own thread
loop     the same, with an async tool beside them: calling `wake` starts asyncio
async    async tools that never suspend
suspend  async tools that suspend once
thread   def tools as they come: in a thread (the default)
"""

import os
import sys

from longshore import Server

app = Server("bench", version="1")


def add(a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def blob(size: int) -> str:
    """Return a text of this size."""
    return "x" * size


def length(text: str) -> str:
    """Return the length of a text."""
    return str(len(text))


def declare_sync(run: str) -> None:
    for function in (add, blob, length):
        app.tool(run=run)(function)


def declare_wake() -> None:
    @app.tool
    async def wake() -> str:
        """Start asyncio."""
        return "awake"


def declare_async() -> None:
    @app.tool(name="add")
    async def add_async(a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    @app.tool(name="blob")
    async def blob_async(size: int) -> str:
        """Return a text of this size."""
        return "x" * size

    @app.tool(name="length")
    async def length_async(text: str) -> str:
        """Return the length of a text."""
        return str(len(text))


def declare_suspending() -> None:
    from asyncio import sleep

    @app.tool(name="add")
    async def add_suspending(a: int, b: int) -> int:
        """Add two integers."""
        await sleep(0)
        return a + b


def declare_generated(count: int) -> None:
    for number in range(count):

        def search(query: str, limit: int = 10, tags: list[str] | None = None) -> str:
            return query

        description = f"Search collection {number} and return the rows that match."
        app.tool(name=f"tool_{number:04d}", description=description)(search)


match sys.argv[1]:
    case "inline":
        declare_sync("inline")
    case "loop":
        declare_sync("inline")
        declare_wake()
    case "async":
        declare_async()
    case "suspend":
        declare_suspending()
    case "thread":
        declare_sync("thread")
    case unknown:
        sys.exit(f"longshore_small.py: no variant is called {unknown}")
declare_generated(int(os.environ.get("NTOOLS", "0")))

if __name__ == "__main__":
    app.run()
