"""Writes the corpus: `python tests/fuzz/seeds.py`. Files that the fuzzer added are left alone."""

# ruff: noqa: E501, UP031

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from hostile.frames import TABLE

CORPUS = Path(__file__).with_name("corpus")
E = (
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":'
    '{"elicitation":{}},"progressToken":1,"io.modelcontextprotocol/logLevel":"info"}'
)
GOOD = {
    "discover": '{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{%s}}' % E,
    "list": '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"MTp4"}}',
    "call": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a","count":2,"kind":"b","rest":[1.5]}}}',
    "call_modern": '{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"tell",%s}}' % E,
    "call_fail": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fail","arguments":{"how":"well"}}}\n{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"fail"}}',
    "call_often": "\n".join(
        '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}}' % n
        for n in range(8)
    ),
    "call_later": '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"later"}}\n{"jsonrpc":"2.0","id":"7","method":"tools/call","params":{"name":"later"}}\n{"jsonrpc":"2.0","id":7,"method":"ping"}\n{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}',
    "ask": '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask",%s,"requestState":"QUJD","inputResponses":{"ok":{"action":"accept"}}}}'
    % E,
    "read": '{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"r://a/3?q=%%20x"}}\n{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"r://../3"}}'.replace(
        "%%", "%"
    ),
    "subscribe": '{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"r://a/3"}}\n{"jsonrpc":"2.0","id":2,"method":"resources/unsubscribe","params":{"uri":"r://a/3"}}',
    "prompt": '{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"write","arguments":{"topic":"t"}}}\n{"jsonrpc":"2.0","id":2,"method":"prompts/list"}',
    "complete": '{"jsonrpc":"2.0","id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"write"},"argument":{"name":"style","value":"x"},"context":{"arguments":{"a":"b"}}}}',
    "listen": '{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true,"resourceSubscriptions":["r://a"]},%s}}\n{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    % E,
    "level": '{"jsonrpc":"2.0","id":1,"method":"logging/setLevel","params":{"level":"debug"}}\n{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"tell","_meta":{"progressToken":"p","traceparent":"00"}}}',
    "batch": '[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"x"},1,[],{"jsonrpc":"2.0","id":2,"result":{}},{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"later"}}]',
    "initialize_again": '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}\n{"jsonrpc":"2.0","id":2,"method":"ping"}',
}


def main() -> None:
    CORPUS.mkdir(exist_ok=True)
    for number, (name, text) in enumerate(GOOD.items()):
        (CORPUS / f"good_{name}").write_bytes(bytes([number % 4]) + text.encode())
    (CORPUS / "good_batch").write_bytes(b"\x02" + GOOD["batch"].encode())
    small = [row for row in TABLE if len(row.frame) < 700]
    for start in range(0, len(small), 3):  # three to a file, so that a mutation meets neighbours
        rows = small[start : start + 3]
        (CORPUS / f"hostile_{start // 3:02}").write_bytes(
            bytes([start // 3 % 4]) + b"\n".join(row.frame for row in rows) + b"\n"
        )


if __name__ == "__main__":
    main()
