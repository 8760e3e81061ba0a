import sys
import json
from browseros.mcp import JsonRpcRequest

class StdioClient:
    def __init__(self, server_process):
        self.process = server_process
        self.request_id = 0

    def call_tool(self, tool_name, arguments):
        self.request_id += 1

        request = {
            "jsonrpc": "2.0",
            "method": "tools/call",
            "params": {
                "name": tool_name,
                "arguments": arguments
            },
            "id": str(self.request_id)
        }

        # Send request to server
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()

        # Read response
        response_line = self.process.stdout.readline()
        response = json.loads(response_line)

        if "error" in response:
            raise Exception(f"Tool error: {response['error']['message']}")

        return response["result"]

# Usage
import subprocess

process = subprocess.Popen(
    ["python", "-m", "browseros.mcp.server"],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True
)

client = StdioClient(process)
result = client.call_tool("browser", {"url": "https://example.com"})
print(result)
