"""FastMCP's code mode over the tools of other servers.

The arguments are the command of one server, whose tools keep their names. Or `--servers JSON`: commands by name, which
becomes the prefix of that server's tools, in a network whose only interface is loopback. Calls of tools are not
counted, and the banner is off.
"""

import fcntl
import json
import os
import socket
import struct
import sys

from fastmcp import FastMCP
from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.server import create_proxy
from fastmcp.server.providers.proxy import ProxyClient

SIOCSIFFLAGS, IFF_UP = 0x8914, 0x1


def turn_on_loopback() -> None:
    """Turn on the loopback interface of this network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))


app = FastMCP("gateway", transforms=[CodeMode(max_tool_calls=None)])
folder = f"file://{os.getcwd()}"  # a gateway asks its own client, which has none, and a server waits for the answer
if sys.argv[1] == "--servers":
    turn_on_loopback()
    commands = json.loads(sys.argv[2])
else:
    commands = {"": sys.argv[1:]}
for name, (command, *arguments) in commands.items():
    behind = {"command": command, "args": arguments, "env": dict(os.environ), "cwd": os.getcwd()}
    proxy = create_proxy(ProxyClient({"mcpServers": {name or "longshore": behind}}, roots=[folder]))
    app.mount(proxy, namespace=name or None)
app.run("stdio", show_banner=False, log_level="ERROR")
