"""Watch for changes: a server in the same process gets a tool meanwhile."""

import asyncio

from longshore import Client, Server

app = Server("growing")


async def later() -> str:
    """Say that it is new."""
    return "new"


async def main() -> None:
    async with Client(app) as client:
        print(len(await client.list_tools()), "tools")
        async with client.watch(tools=True) as changes:
            app.tool(later)
            async for change in changes:
                print(change.kind, "changed:", [tool.name for tool in await client.list_tools()])
                break


if __name__ == "__main__":
    asyncio.run(main())
