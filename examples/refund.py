"""Ask the user before anything is done. The body runs once, whichever protocol the client speaks."""

from dataclasses import dataclass
from typing import Annotated, Literal

from longshore import Ask, Server

app = Server("refund", version="1.0.0")
ORDERS = {"A9": 40, "B1": 15}


@app.tool(effects="destroy")
async def refund(order: str, ok: Annotated[bool, Ask("Refund order {order}?")]) -> str:
    """Give a customer the money back."""
    return f"refunded {ORDERS.pop(order)} EUR" if ok else "nothing was refunded"


@dataclass
class Address:
    street: str
    town: str
    country: Literal["DE", "FR", "IT"] = "DE"


@app.tool
async def ship(order: str, to: Annotated[Address | None, Ask("Where does {order} go?")] = None) -> str:
    """Send an order off: to the address that the person gives, else to the one on file."""
    return f"{order} goes to {to.street}, {to.town} ({to.country})" if to else f"{order} goes to the address on file"


@app.tool
async def pay(order: str, paid: Annotated[bool, Ask("Pay for {order}", url="https://pay.example/{order}")]) -> str:
    """Have the person pay on a page of ours. Card numbers never pass through the client."""
    return f"payment for {order} has begun" if paid else "not paid"


if __name__ == "__main__":
    app.run()
