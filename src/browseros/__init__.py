"""BrowserOS's import path. `browseros.mcp` is its JSON-RPC transport, served by Longshore."""
