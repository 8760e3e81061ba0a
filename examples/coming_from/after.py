from dataclasses import dataclass
from typing import Annotated

from longshore import Ask, Context, Server, ToolError

app = Server("shop", version="1.0.0")
PRICES = {"tea": 250, "milk": 99}


@dataclass
class Bill:  # a pydantic model works, too
    item: str
    cents: int


@app.tool(effects="read")
async def price(item: str, ctx: Context, pieces: int = 1) -> Bill:
    """Say what an item costs."""
    if item not in PRICES:
        raise ToolError(f"there is no {item}")
    ctx.progress(1, 1)
    return Bill(item=item, cents=PRICES[item] * pieces)


@app.tool
async def order(item: str, ok: Annotated[bool, Ask("Order {item}?")] = False) -> str:
    """Order an item."""
    return f"{item} is ordered" if ok else "nothing was ordered"


@app.resource("prices://{item}")
def shelf(item: str) -> str:
    return f"{item}: {PRICES[item]}"


@app.prompt
def letter(item: str) -> str:
    """Write to the supplier."""
    return f"Write a letter that orders more {item}."


if __name__ == "__main__":
    app.run()
