"""The floor: the least that a server in Python can do and still answer a tool call honestly.

A blocking read loop, one typed decode of the envelope, one of the arguments, the call, one encode, one write for all
answers of a chunk. It validates arguments and names its tools, and it is made for three of them: no context, no
cancellation, no limits, no other protocol revision. What a framework adds shows as a ratio against this.
"""

import os

from msgspec import Raw, Struct, ValidationError
from msgspec.json import Decoder, Encoder

READ_SIZE = 65536  # what a pipe holds; larger reads would cross malloc's mmap threshold and cost a mapping each


class CallParams(Struct):
    name: str
    arguments: Raw = Raw(b"{}")


class Call(Struct, tag_field="method", tag="tools/call"):
    jsonrpc: str
    id: int | str
    params: CallParams


class Message(Struct):
    """Anything that is no tools/call."""

    jsonrpc: str
    method: str
    id: int | str | None = None


class AddArguments(Struct, forbid_unknown_fields=True):
    a: int
    b: int


class BlobArguments(Struct, forbid_unknown_fields=True):
    size: int


class LengthArguments(Struct, forbid_unknown_fields=True):
    text: str


def add(arguments: AddArguments) -> int:
    return arguments.a + arguments.b


def blob(arguments: BlobArguments) -> str:
    return "x" * arguments.size


def length(arguments: LengthArguments) -> str:
    return str(len(arguments.text))


encode = Encoder().encode
decode_call = Decoder(Call).decode
decode_message = Decoder(Message).decode

# name: the decoder of its arguments, the function, whether the result is structured
TOOLS = {
    "add": (Decoder(AddArguments).decode, add, True),
    "blob": (Decoder(BlobArguments).decode, blob, False),
    "length": (Decoder(LengthArguments).decode, length, False),
}

INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "floor", "version": "1"},
}


def object_schema(properties, required):
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def tool_definitions(generated):
    """The three tools, and as many more as asked for: what tools/list says."""
    integer, string = {"type": "integer"}, {"type": "string"}
    sum_schema = object_schema({"result": integer}, ["result"])
    yield {
        "name": "add",
        "description": "Add two integers.",
        "inputSchema": object_schema({"a": integer, "b": integer}, ["a", "b"]),
        "outputSchema": sum_schema,
    }
    yield {
        "name": "blob",
        "description": "Return a text of this size.",
        "inputSchema": object_schema({"size": integer}, ["size"]),
    }
    yield {
        "name": "length",
        "description": "Return the length of a text.",
        "inputSchema": object_schema({"text": string}, ["text"]),
    }
    parameters = {
        "query": string,
        "limit": {"type": "integer", "default": 10},
        "tags": {"anyOf": [{"type": "array", "items": string}, {"type": "null"}], "default": None},
    }
    for number in range(generated):
        yield {
            "name": f"tool_{number:04d}",
            "description": f"Search collection {number} and return the rows that match.",
            "inputSchema": object_schema(parameters, ["query"]),
        }


RESULTS = {
    "initialize": INITIALIZED,
    "ping": {},
    "tools/list": Raw(encode({"tools": list(tool_definitions(int(os.environ.get("NTOOLS", "0"))))})),
}


def answer(line):
    """The answer to one line, with its newline, or None for a notification."""
    try:
        call = decode_call(line)
    except ValidationError:
        return answer_message(line)
    tool = TOOLS.get(call.params.name)
    if tool is None:
        return encode_error(call.id, -32602, "Unknown tool")
    decode_arguments, function, structured = tool
    try:
        value = function(decode_arguments(call.params.arguments))
    except ValidationError as error:
        return encode_failure(call.id, str(error))
    return encode_result(call.id, value, structured)


def answer_message(line):
    message = decode_message(line)
    if message.id is None:
        return None
    result = RESULTS.get(message.method)
    if result is None:
        return encode_error(message.id, -32601, "Method not found")
    return encode({"jsonrpc": "2.0", "id": message.id, "result": result})


def encode_result(id, value, structured):
    if structured:
        content = [{"type": "text", "text": str(value)}]
        result = {"content": content, "structuredContent": {"result": value}, "isError": False}
    else:
        result = {"content": [{"type": "text", "text": value}], "isError": False}
    return encode({"jsonrpc": "2.0", "id": id, "result": result})


def encode_failure(id, text):
    result = {"content": [{"type": "text", "text": text}], "isError": True}
    return encode({"jsonrpc": "2.0", "id": id, "result": result})


def encode_error(id, code, message):
    return encode({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})


def write(data):
    count = os.write(1, data)
    while count < len(data):
        data = memoryview(data)[count:]
        count = os.write(1, data)


def lines_of(chunk, rest):
    """The complete lines of a chunk; `rest` keeps what came of the line that is still under way."""
    newline = chunk.find(b"\n")
    if newline < 0:
        rest.append(chunk)
        return ()
    if rest:
        newline += sum(map(len, rest))
        chunk = b"".join([*rest, chunk])
        rest.clear()
    if newline == len(chunk) - 1:  # one whole line, as nearly always: nothing to split
        return (chunk,)
    *lines, last = chunk.split(b"\n")
    if last:
        rest.append(last)
    return lines


def serve():
    rest = []
    while chunk := os.read(0, READ_SIZE):
        lines = lines_of(chunk, rest)
        if len(lines) == 1:
            reply = answer(lines[0])
            if reply is not None:
                write(reply + b"\n")
            continue
        answers = [reply for reply in map(answer, lines) if reply is not None]
        if answers:
            answers.append(b"")
            write(b"\n".join(answers))


if __name__ == "__main__":
    serve()
