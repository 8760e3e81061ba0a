"""The lower floor over HTTP: a bare httptools protocol on uvloop, without ASGI, that decodes, calls and answers.

It looks at no header, keeps no deadline, and writes every answer as one response. It shows what is left to gain below
an ASGI server.
"""

import asyncio
import sys

import httptools
import uvloop
from benchmarks.floor import answer

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"


class Floor(asyncio.Protocol):
    def connection_made(self, transport):
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.body = b""

    def data_received(self, data):
        self.parser.feed_data(data)

    def on_body(self, body):
        self.body += body

    def on_message_complete(self):
        reply, self.body = answer(self.body), b""
        self.transport.write(HEAD % (len(reply), reply))


async def serve(port):
    server = await asyncio.get_running_loop().create_server(Floor, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1])))
