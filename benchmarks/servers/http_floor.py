"""The floor over HTTP: the least that an ASGI app in Python can do and still answer a tool call honestly.

It reads the whole body, decodes it by type, calls, encodes and says how long the answer is. It looks at no header,
keeps no session and never streams. Stock uvicorn runs it, so what that costs is in it; what a framework adds shows as
a ratio against it.
"""

from benchmarks.floor import answer

JSON_TYPE = (b"content-type", b"application/json")


async def app(scope, receive, send):
    message = await receive()
    body = message["body"]
    if message["more_body"]:
        body = await read_rest(body, receive)
    reply = answer(body)
    head = [JSON_TYPE, (b"content-length", b"%d" % len(reply))]
    await send({"type": "http.response.start", "status": 200, "headers": head})
    await send({"type": "http.response.body", "body": reply})


async def read_rest(first, receive):
    parts, more = [first], True
    while more:
        message = await receive()
        parts.append(message["body"])
        more = message["more_body"]
    return b"".join(parts)
