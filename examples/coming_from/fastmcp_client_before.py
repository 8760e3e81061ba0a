import asyncio
import sys

from fastmcp import Client


async def main(server: str) -> None:
    async with Client(server) as client:
        print([tool.name for tool in await client.list_tools()])
        result = await client.call_tool("price", {"item": "tea", "pieces": 2})
        print(result.structured_content)
        print((await client.read_resource("prices://milk"))[0].text)


asyncio.run(main(sys.argv[1]))
