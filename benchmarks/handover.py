"""The bare hand-over: what it costs to let another thread run the function, and nothing else.

The floor's decoding and encoding on an asyncio loop; only the function itself runs in a worker thread. The call goes
there through a SimpleQueue and comes back by call_soon_threadsafe. A framework that keeps the loop free for a `def`
tool pays at least this.
"""

import asyncio
import os
import queue
import threading

from floor import READ_SIZE, TOOLS, ValidationError, answer_message, decode_call, encode_result, lines_of, write

calls = queue.SimpleQueue()


def work(loop):
    while True:
        function, arguments, id, structured = calls.get()
        loop.call_soon_threadsafe(reply, id, function(arguments), structured)


def reply(id, value, structured):
    write(encode_result(id, value, structured) + b"\n")


def take(line):
    try:
        call = decode_call(line)
    except ValidationError:
        answer = answer_message(line)
        if answer is not None:
            write(answer + b"\n")
        return
    decode_arguments, function, structured = TOOLS[call.params.name]
    calls.put((function, decode_arguments(call.params.arguments), call.id, structured))


def serve():
    loop = asyncio.new_event_loop()
    rest = []

    def read():
        chunk = os.read(0, READ_SIZE)
        if not chunk:
            loop.stop()
        for line in lines_of(chunk, rest):
            take(line)

    threading.Thread(target=work, args=[loop], daemon=True).start()
    loop.add_reader(0, read)
    loop.run_forever()


if __name__ == "__main__":
    serve()
