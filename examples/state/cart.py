"""A cart for each session: calls of one client share it, in whichever process they run."""

from longshore import Context, Server

app = Server("shop")


@app.tool
async def put_into_cart(item: str, ctx: Context) -> list[str]:
    """Put an item into the cart."""
    cart = [*await ctx.session.state.get("cart", []), item]
    await ctx.session.state.set("cart", cart)
    return cart


@app.tool
def empty_cart(ctx: Context) -> str:
    """Empty the cart."""
    ctx.session.state.delete("cart")  # without await, for a plain def runs on a thread
    return "empty"


if __name__ == "__main__":
    app.run()
