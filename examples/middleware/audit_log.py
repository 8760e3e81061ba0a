"""An audit log: one JSON line for each call, with the caller, the tool, its arguments and the outcome."""

import asyncio
import json
import os
from datetime import UTC, datetime

from longshore import CallResult, CallTool, Middleware, Server, ToolError, ToolRequest


class AuditLog(Middleware):
    """Appends to a file. Each line is written whole, so several processes may share the file."""

    def __init__(self, path: str) -> None:
        self._path = path

    async def call_tool(self, request: ToolRequest, call_next: CallTool) -> CallResult:
        outcome = "stopped"  # what remains if the call is cancelled or runs out of time
        try:
            result = await call_next(request)
            outcome = "failed" if result.is_error is True else "ok"
            return result
        except ToolError:
            outcome = "failed"
            raise
        except Exception:
            outcome = "error"
            raise
        finally:
            self._write(request, outcome)

    def _write(self, request: ToolRequest, outcome: str) -> None:
        entry = {
            "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "principal": request.context.principal.name,
            "tool": request.name,
            "arguments": request.arguments,
            "outcome": outcome,
        }
        file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(file, (json.dumps(entry) + "\n").encode())
        finally:
            os.close(file)


app = Server("accounts")
app.add_middleware(AuditLog("audit.jsonl"))


@app.tool(effects="destroy")
def close_account(number: int) -> str:
    """Close an account."""
    if number < 1000:
        raise ToolError(f"there is no account {number}")
    return f"account {number} is closed"


@app.tool
async def wait_for_clearance() -> str:
    """Wait until somebody clears the account."""
    await asyncio.Event().wait()
    return "cleared"


if __name__ == "__main__":
    app.run()
