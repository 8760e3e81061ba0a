"""List what a server offers, and call a tool. `python forecast.py [a command line or a URL]`"""

import asyncio
import sys

from longshore import Client


async def main(target: str) -> None:
    async with Client(target) as client:
        print(f"{client.server.name} speaks {client.server.revision}")
        for tool in await client.list_tools():
            print(f"  {tool.name}: {tool.description}")
        result = await client.call_tool("forecast", {"city": "Oslo", "days": 2})
        print(result.text)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "examples/weather.py"))
