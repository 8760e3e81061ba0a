"""A server whose callers have keys of its own making, which are looked up in a table."""

from hashlib import sha256

from longshore import Context, Principal, Server

KEYS = {
    # SHA-256 of "ann-s3cret-of-the-example": no table should hold the keys themselves
    "40fd178da0634aaef65146d9822d860b6c983967d6308cc84bb6a3924dec662c": "ann",
}


class KeyTable:
    """Finds the caller of a key."""

    async def verify(self, token: str) -> Principal | None:
        name = KEYS.get(sha256(token.encode()).hexdigest())
        return None if name is None else Principal(name, frozenset({"notes"}))


app = Server("notes", auth=KeyTable())


@app.tool(scopes=["notes"])
def whoami(ctx: Context) -> str:
    """Say who calls."""
    return ctx.principal.name


if __name__ == "__main__":
    app.run(http=True)
