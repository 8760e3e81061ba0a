from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel

mcp = MCPServer("shop", version="1.0.0")
PRICES = {"tea": 250, "milk": 99}


class Bill(BaseModel):
    item: str
    cents: int


class Confirmation(BaseModel):
    ok: bool


@mcp.tool(annotations=ToolAnnotations(read_only_hint=True))
async def price(item: str, ctx: Context, pieces: int = 1) -> Bill:
    """Say what an item costs."""
    if item not in PRICES:
        raise ToolError(f"there is no {item}")
    await ctx.report_progress(1, 1)
    return Bill(item=item, cents=PRICES[item] * pieces)


@mcp.tool()
async def order(item: str, ctx: Context) -> str:
    """Order an item."""
    answer = await ctx.elicit(f"Order {item}?", Confirmation)
    return f"{item} is ordered" if answer.action == "accept" and answer.data.ok else "nothing was ordered"


@mcp.resource("prices://{item}")
def shelf(item: str) -> str:
    return f"{item}: {PRICES[item]}"


@mcp.prompt()
def letter(item: str) -> str:
    """Write to the supplier."""
    return f"Write a letter that orders more {item}."


if __name__ == "__main__":
    mcp.run()
