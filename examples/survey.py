"""A body that asks while it runs. With `replay=True` it may run again; `ctx.once` runs an effect once."""

from longshore import Context, Elicit, Sample, Server

app = Server("survey", version="1.0.0")
tables: list[str] = []


@app.tool(replay=True)
async def book(guests: int, ctx: Context) -> str:
    """Book a table."""
    when = await ctx.elicit(f"When do the {guests} of you come?", str, key="when")
    if not when.accepted:
        return "nothing was booked"

    async def reserve() -> int:
        tables.append(when.value)
        return len(tables)

    number = await ctx.once("reserve", reserve)
    answers = await ctx.ask(
        window=Elicit("At the window?"),
        greeting=Sample(f"Greet {guests} guests who come at {when.value}, in one line.", max_tokens=40),
    )
    where = "at the window" if answers.window.value else "inside"
    return f"table {number} of {len(tables)}, {where}: {answers.greeting.text}"


if __name__ == "__main__":
    app.run()
