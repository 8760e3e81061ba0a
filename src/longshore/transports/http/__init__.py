"""MCP over HTTP, as one ASGI app. `app` routes; `modern` and `legacy` are the two eras; the rest serves them."""
