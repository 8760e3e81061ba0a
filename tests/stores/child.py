"""A child process with a store, controlled line by line. Run as a script, this file is that process."""

from __future__ import annotations

import ast
import asyncio
import os
import selectors
import subprocess
import sys
import time
from typing import Any

PATIENCE = 60.0


class Child:
    """The parent's end."""

    def __init__(self, url: str) -> None:
        argv = [sys.executable, "-W", "error", __file__, url]
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.heard: list[tuple[str, bytes]] = []
        self._lines: list[bytes] = []
        self._rest = b""
        self._answers = 0

    def ask(self, method: str, *args: Any) -> Any:
        """The result of one operation; one that raises gives the text of its error."""
        self.tell(method, *args)
        return self._next("answer")

    def tell(self, method: str, *args: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(repr((method, args)).encode() + b"\n")

    def answers(self) -> int:
        """The number of messages that have arrived so far."""
        self._read(0.01)
        self._answers += sum(line.startswith(b"('answer'") for line in self._lines)
        self._lines.clear()
        return self._answers

    def wait_heard(self, count: int) -> list[tuple[str, bytes]]:
        deadline = time.monotonic() + PATIENCE
        while len(self.heard) < count:
            self._take_heard()
            self._read(max(0.0, deadline - time.monotonic()))
            assert time.monotonic() < deadline, self.heard
            self._take_heard()
        return self.heard

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def end(self) -> int:
        """Close its store properly."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self._end()

    def _end(self) -> int:
        status = self.process.wait(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()
        return status

    def _next(self, kind: str) -> Any:
        deadline = time.monotonic() + PATIENCE
        while True:
            for line in self._lines:
                found = ast.literal_eval(line.decode())
                if found[0] == kind:
                    self._lines.remove(line)
                    return found[1]
            assert time.monotonic() < deadline
            self._read(max(0.0, deadline - time.monotonic()))
            self._take_heard()

    def _take_heard(self) -> None:
        for line in [line for line in self._lines if line.startswith(b"('heard'")]:
            self._lines.remove(line)
            self.heard.append(ast.literal_eval(line.decode())[1])

    def _read(self, seconds: float) -> None:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if selector.select(seconds):
                data = os.read(self.process.stdout.fileno(), 1 << 20)
                assert data, f"the process ended with {self.process.wait(PATIENCE)}"
                *lines, self._rest = (self._rest + data).split(b"\n")
                self._lines += lines


def say(kind: str, content: Any) -> None:
    os.write(1, repr((kind, content)).encode() + b"\n")


async def do(store: Any, method: str, args: tuple[Any, ...]) -> None:
    try:
        if method == "listen":
            await store.listen(args[0], lambda message: say("heard", (args[0], message)))
            say("answer", None)
        else:
            say("answer", await getattr(store, method)(*args))
    except Exception as error:
        say("answer", str(error))


async def serve(url: str) -> None:
    from longshore.stores import open_store

    store = open_store(url)
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    tasks = set()
    while line := await reader.readline():
        tasks.add(asyncio.create_task(do(store, *ast.literal_eval(line.decode()))))
    await asyncio.gather(*tasks)
    await store.close()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
