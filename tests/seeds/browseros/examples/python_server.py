from browseros.mcp import MCPJsonRpcServer, create_stdio_server

# Create server
server = create_stdio_server(debug=True)

# Register tool handlers
def browser_tool(params):
    url = params.get("url")
    # Perform browser action
    return {"title": "Page Title", "url": url}

def filesystem_tool(params):
    action = params.get("action")
    path = params.get("path")
    # Perform filesystem action
    return {"success": True, "path": path}

server.add_tool("browser", browser_tool)
server.add_tool("filesystem", filesystem_tool)

# Run server (blocks, reading from stdin)
server.run()
