"""A server with tools for every table of a shop, of which a model sees three."""

from longshore import Server

app = Server("shop", version="1.0.0", catalog="search", pinned=["shop_status"])


@app.tool(effects="read")
def shop_status() -> str:
    """Say whether the shop is open, and what waits to be done."""
    return "open; 3 orders wait to be sent"


def declare(table: str, one: str) -> None:
    """The tools of one table."""

    @app.tool(name=f"list_{table}", description=f"List all {table}.", effects="read")
    def list_rows(limit: int = 20) -> list[str]:
        return [f"{one} {number}" for number in range(1, min(limit, 3) + 1)]

    @app.tool(name=f"delete_{one}", description=f"Delete one {one} by its number.", effects="destroy")
    def delete_row(number: int) -> str:
        return f"deleted {one} {number}"


for table, one in (("orders", "order"), ("customers", "customer"), ("products", "product"), ("invoices", "invoice")):
    declare(table, one)

if __name__ == "__main__":
    app.run()
