"""A model stand-in, for a real client: answers its requests with the next steps of a script.

`python stand_in_model.py SCRIPT PORT_FILE RECORD`. SCRIPT has a JSON list of what the model says: `{"name": …,
"input": …}` calls a tool, `{"text": …}` ends the turn. The port goes to PORT_FILE, and what came back from
each tool to RECORD.
"""

from __future__ import annotations

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

SCRIPT, PORT_FILE, RECORD = (Path(argument) for argument in sys.argv[1:])


def events(number: int, step: dict[str, Any]) -> list[dict[str, Any]]:
    """One answer of the model, as the stream that a client reads."""
    if "text" in step:
        block, delta, reason = {"type": "text", "text": ""}, {"type": "text_delta", "text": step["text"]}, "end_turn"
    else:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": step["name"], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step["input"])}
        reason = "tool_use"
    message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "stand-in", "content": []}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return [
        {"type": "message_start", "message": {**message, "stop_reason": None, "usage": usage}},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage},
        {"type": "message_stop"},
    ]


def results(messages: list[dict[str, Any]]) -> list[Any]:
    """What came back from the tools so far."""
    blocks = [block for each in messages if isinstance(each["content"], list) for block in each["content"]]
    return [block.get("content") for block in blocks if block["type"] == "tool_result"]


class Model(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = results(body["messages"])
        RECORD.write_text(json.dumps(found))
        steps = json.loads(SCRIPT.read_text())
        # Each step but the last calls a tool, so the results say which is next.
        made = events(len(found), steps[min(len(found), len(steps) - 1)])
        data = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in made).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    PORT_FILE.with_suffix(".new").write_text(str(server.server_port))
    PORT_FILE.with_suffix(".new").rename(PORT_FILE)
    server.serve_forever()
