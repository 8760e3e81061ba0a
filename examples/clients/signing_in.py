"""Sign in when a server asks for it: the browser opens, and redirects back to this program."""

import asyncio
import sys

from longshore import Client
from longshore.client.auth import OAuth


async def main(url: str) -> None:
    login = OAuth(client_name="Example", scopes=["tools"])
    async with Client(url, auth=login) as client:
        print([tool.name for tool in await client.list_tools()])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
