"""One server in front of two others: a child process and one in the same program. URLs can be added, too."""

import sys
from pathlib import Path

from longshore import Server
from longshore.client import Client

notes = Server("notes")


@notes.tool(effects="read")
async def recall(word: str) -> str:
    """Find a note."""
    return f"a note on {word}"


app = Server("gateway", version="1.0.0")
weather = Path(__file__).with_name("weather.py")
app.mount(Client([sys.executable, str(weather)]), prefix="weather", timeout=20)
app.mount(notes, prefix="notes")


@app.tool(effects="read")
async def motto() -> str:
    """Say what this gateway is for."""
    return "one address for all"


if __name__ == "__main__":
    app.run()
