"""FastMCP's code mode over the tools of another server, whose command is the arguments.

Names have no prefix, calls of tools are not counted, and the banner is off.
"""

import os
import sys

from fastmcp import FastMCP
from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.server import create_proxy
from fastmcp.server.providers.proxy import ProxyClient

command, *arguments = sys.argv[1:]
behind = {"command": command, "args": arguments, "env": dict(os.environ), "cwd": os.getcwd()}

app = FastMCP("gateway", transforms=[CodeMode(max_tool_calls=None)])
folder = f"file://{os.getcwd()}"  # a gateway asks its own client, which has none, and our server waits for the answer
app.mount(create_proxy(ProxyClient({"mcpServers": {"longshore": behind}}, roots=[folder])))
app.run("stdio", show_banner=False, log_level="ERROR")
