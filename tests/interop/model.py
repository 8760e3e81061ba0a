"""A stand-in for the API of Claude's models, on the loopback: it calls a tool once, then says what came back.

`python model.py TOOL ARGUMENTS FILE` prints its port. Of each request with tools, their names are appended to FILE.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOOL, ARGUMENTS, FILE = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]


def results(request: dict[str, Any]) -> list[Any]:
    """The tool's results in the last message."""
    content = request["messages"][-1]["content"]
    return [] if isinstance(content, str) else [each for each in content if each.get("tool_use_id") == "toolu_1"]


def call(id: str, name: str, arguments: Any) -> tuple[dict[str, Any], dict[str, Any], str]:
    change = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    return {"type": "tool_use", "id": id, "name": name, "input": {}}, change, "tool_use"


def block(request: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], str]:
    """What the model says: the block, its one change, and why it stops."""
    if found := results(request):
        text = {"type": "text_delta", "text": f"the tool said: {json.dumps(found[0]['content'])}"}
        return {"type": "text", "text": ""}, text, "end_turn"
    if any(tool["name"] == TOOL for tool in request.get("tools", ())):
        return call("toolu_1", TOOL, ARGUMENTS)
    return {"type": "text", "text": ""}, {"type": "text_delta", "text": "there is no such tool"}, "end_turn"


def events(request: dict[str, Any]) -> list[dict[str, Any]]:
    made, change, why = block(request)
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"], "content": []}
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": made},
        {"type": "content_block_delta", "index": 0, "delta": change},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": why, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


class Handler(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if request.get("tools"):
            with open(FILE, "a") as file:
                file.write(json.dumps([tool["name"] for tool in request["tools"]]) + "\n")
        self.send_response(200)
        if request.get("stream"):
            text = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events(request))
            self.send_header("Content-Type", "text/event-stream")
        else:
            text = json.dumps({"input_tokens": 1})
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
