"""A server inside another web app. Run it with: uvicorn mounted:web"""

from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from longshore import Server

app = Server("shop", version="1.0.0")


@app.tool(effects="read")
async def price(item: str) -> str:
    """Say what an item costs."""
    return f"{item}: 3 EUR"


async def front(_: object) -> PlainTextResponse:
    return PlainTextResponse("the shop")


# Nothing else is needed: the app starts itself. For a public host name, give hosts=["shop.example.com"].
web = Starlette(routes=[Route("/", front), Mount("/agents", app.asgi())])
