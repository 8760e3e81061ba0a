"""Resources by URI and by template, a prompt, and completion for both."""

from typing import Literal

from longshore import ResourceNotFound, Server

app = Server("inventory", version="1.0.0")
STOCK = {"cup": 12, "cap": 0, "bowl": 7}


@app.resource("stock://all", mime_type="application/json")
def everything() -> dict[str, int]:
    """The whole stock."""
    return STOCK


@app.resource("stock://{item}")
def one(item: str) -> str:
    """How many there are of one item."""
    if item not in STOCK:
        raise ResourceNotFound(f"stock://{item}")
    return f"{STOCK[item]} x {item}"


@app.prompt
def restock(item: str, tone: Literal["polite", "urgent"] = "polite") -> str:
    """Write to the supplier about an item."""
    return f"Write a {tone} letter that orders more of: {item}"


@app.completion("stock://{item}", "item")
@app.completion("restock", "item")
def items(text: str) -> list[str]:
    return [item for item in STOCK if item.startswith(text)]


if __name__ == "__main__":
    app.run()
