import pytest
from browseros.mcp import MCPJsonRpcServer, JsonRpcRequest

def test_list_tools():
    server = MCPJsonRpcServer()
    server.add_tool("test", lambda p: p)

    request = '{"jsonrpc":"2.0","method":"tools/list","id":"1"}'
    response = server.handle_request(request)

    assert "test" in response

def test_call_tool():
    server = MCPJsonRpcServer()
    server.add_tool("echo", lambda p: {"echo": p})

    request = '''{
      "jsonrpc": "2.0",
      "method": "tools/call",
      "params": {"name": "echo", "arguments": {"msg": "hello"}},
      "id": "1"
    }'''

    response = server.handle_request(request)
    assert "hello" in response
