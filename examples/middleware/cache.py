"""A cache around read-only tools: the same call within a minute is answered from memory."""

import json
from collections.abc import Callable
from time import monotonic

from longshore import CallResult, CallTool, Middleware, Server, ToolRequest


class ReadCache(Middleware):
    """Keeps the results of read-only tools, for each caller, until they expire or another tool is called."""

    def __init__(self, seconds: float = 60.0, most: int = 1000, clock: Callable[[], float] = monotonic) -> None:
        self._seconds, self._most, self._clock = seconds, most, clock
        self._results: dict[tuple[str, str, str], tuple[float, CallResult]] = {}

    async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
        if request.effects != "read":
            self._results.clear()
            return await call_next(request)
        arguments = json.dumps(request.arguments, sort_keys=True)
        key = request.context.principal.name, request.name, arguments
        expires, result = self._results.get(key, (0.0, None))
        if result is not None and self._clock() < expires:
            return result
        result = await call_next(request)
        if result.is_error is not True:
            self._results.pop(key, None)
            while len(self._results) >= self._most:
                del self._results[next(iter(self._results))]
            self._results[key] = self._clock() + self._seconds, result
        return result


app = Server("prices")
app.add_middleware(ReadCache())

looked_up: list[str] = []
"""What was really looked up."""


@app.tool(effects="read")
def price(item: str) -> int:
    """Look the price of an item up, in cents."""
    looked_up.append(item)
    return 100 * len(item)


@app.tool(effects="write")
def change_prices() -> str:
    """Change all prices."""
    return "changed"


if __name__ == "__main__":
    app.run()
