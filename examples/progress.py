"""A plain `def` runs on its own thread: it reports progress, and stops when the call is cancelled."""

from hashlib import sha256

from longshore import Context, Server

app = Server("progress", version="1.0.0")


@app.tool(effects="read", timeout=False)
def mine(zeros: int, ctx: Context) -> str:
    """Find a number whose hash begins with so many zeros.

    zeros: hexadecimal zeros at the front of the hash
    """
    number = 0
    while not sha256(str(number).encode()).hexdigest().startswith("0" * zeros):
        number += 1
        if number % 1000 == 0:
            ctx.raise_if_cancelled()  # raises if the call was cancelled
            ctx.progress(number, message=f"tried {number:,}")
    ctx.info(f"found {number} for {ctx.client.get('name', 'somebody')}")
    return str(number)


if __name__ == "__main__":
    app.run()
