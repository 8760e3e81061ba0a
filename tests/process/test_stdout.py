"""Nothing but the protocol reaches the protocol's stream, whoever writes and however."""

from __future__ import annotations

import json
import sys

import pytest

from .conftest import Workshop
from .peer import LONGSHORE, call, encode, failed, initialize, modern, request, text_of

NOISY = """
    import ctypes, os, subprocess, sys
    from longshore import Server

    app = Server("noisy")
    libc = ctypes.CDLL(None)

    def with_print(): print("NOISE"); print("NOISE", flush=True)
    def with_write(): sys.stdout.write("NOISE\\n"); sys.stdout.flush()
    def with_buffer(): sys.stdout.buffer.write(b"NOISE\\n"); sys.stdout.buffer.flush()
    def with_original(): print("NOISE", file=sys.__stdout__, flush=True)
    def with_descriptor(): os.write(1, b"NOISE\\n")
    def with_puts(): libc.puts(b"NOISE"); libc.fflush(None)
    def with_printf(): libc.printf(b"NOISE %d\\n", 7); libc.fflush(None)
    def with_child(): subprocess.run(["echo", "NOISE"], check=True)
    def with_shell(): os.system("echo NOISE")

    NOISES = [value for name, value in list(globals().items()) if name.startswith("with_")]
    for noise in NOISES:
        app.tool(name=noise.__name__ + "_thread")(noise)
        app.tool(name=noise.__name__ + "_inline", run="inline")(noise)

    @app.tool
    async def with_all_async():
        for noise in NOISES:
            noise()

    if __name__ == "__main__":
        app.run()
"""
NOISES = ["print", "write", "buffer", "original", "descriptor", "puts", "printf", "child", "shell"]
TOOLS = [f"with_{noise}_{how}" for noise in NOISES for how in ("thread", "inline")] + ["with_all_async"]


@pytest.mark.parametrize("how", ["serve", "run"])
def test_output_of_a_tool_to_stdout_goes_to_stderr(workshop: Workshop, how: str) -> None:
    path = str(workshop.write(NOISY))
    peer = workshop.spawn(*([*LONGSHORE, "serve", path] if how == "serve" else [sys.executable, path]))
    peer.start()
    for tool in TOOLS:
        assert not failed(peer.call(tool, id=tool)), peer.stderr  # `answer` fails on a line that is not JSON
    peer.close_input()
    assert peer.read_all() == []
    assert peer.wait() == 0
    assert peer.stderr.count("NOISE") == 3 * (len(NOISES) + 1)  # print says it twice


IMPORTED = """
    import sys
    from longshore import Server
    print("BUFFERED")
    sys.stdout.write("HALF A LINE")
    if {flush}: print("FLUSHED", flush=True)
    app = Server("early")

    @app.tool(run="inline")
    def echo(text: str) -> str:
        return text

    if __name__ == "__main__":
        app.run()
"""


@pytest.mark.parametrize(("how", "flush"), [("serve", True), ("serve", False), ("run", False)])
def test_a_print_at_import_does_not_reach_the_stream(workshop: Workshop, how: str, flush: bool) -> None:
    path = str(workshop.write(IMPORTED.format(flush=flush)))
    argv = [*LONGSHORE, "serve", path] if how == "serve" else [sys.executable, path]
    done = workshop.run(argv, modern(call(1, "echo", text="hi")))
    (answer,) = map(json.loads, done.stdout.splitlines())
    assert text_of(answer) == "hi"
    assert done.returncode == 0
    assert b"BUFFERED" in done.stderr and b"HALF A LINE" in done.stderr
    assert (b"FLUSHED" in done.stderr) is flush


READING = """
    import subprocess, sys, os
    from longshore import Server
    app = Server("reading")

    @app.tool
    def child_reads() -> str:
        return repr(subprocess.run(["cat"], capture_output=True, check=True, timeout=10).stdout)

    @app.tool
    def tool_reads() -> str:
        return repr(os.read(0, 100) + sys.stdin.buffer.read())

    @app.tool
    def tool_asks() -> str:
        try:
            return input("your name? ")
        except EOFError:
            return "end of file"

    @app.tool
    def shell_reads() -> str:
        return str(os.system("read line && exit 1 || exit 0"))
"""


def test_other_readers_of_stdin_find_it_empty(workshop: Workshop) -> None:
    workshop.write(READING)
    asked = [call(tool, tool) for tool in ("child_reads", "tool_reads", "tool_asks", "shell_reads")]
    pings = [request(n, "ping") for n in range(200)]
    done = workshop.run([*LONGSHORE, "serve", "server.py"], initialize(), *asked, *pings)
    answers = {answer["id"]: answer for answer in map(json.loads, done.stdout.splitlines())}
    assert text_of(answers["child_reads"]) == "b''"
    assert text_of(answers["tool_reads"]) == "b''"
    assert text_of(answers["tool_asks"]) == "end of file"
    assert text_of(answers["shell_reads"]) == "0"
    assert all(n in answers for n in range(200))


INHERITING = """
    import os, subprocess, sys
    from longshore import Server
    app = Server("inheriting")

    @app.tool
    def descriptors() -> list[str]:
        code = "import os; print(*(os.readlink(f'/proc/self/fd/{n}') for n in os.listdir('/proc/self/fd') if n != '3'))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, close_fds=False, text=True)
        ours = [os.readlink(f"/proc/self/fd/{n}") for n in (0, 1, 2)]
        return [*ours, "children:", *done.stdout.split()]
"""


def test_children_inherit_no_descriptor_of_the_protocol(workshop: Workshop) -> None:
    peer = workshop.serve(INHERITING)
    peer.start()
    assert peer.process.stdin is not None and peer.process.stdout is not None
    pipes = {f"pipe:[{__import__('os').fstat(s.fileno()).st_ino}]" for s in (peer.process.stdin, peer.process.stdout)}
    seen = peer.call("descriptors")["result"]["structuredContent"]["result"]
    assert not pipes & set(seen)
    assert seen[0] == "/dev/null"
    assert seen[1] == seen[2]


def test_a_tool_may_close_stdout_and_the_server_goes_on(workshop: Workshop) -> None:
    peer = workshop.serve(
        """
        import os, sys
        from longshore import Server
        app = Server("closing")

        @app.tool
        def close() -> str:
            sys.stdout.close()
            os.close(0)
            return "closed"
        """
    )
    peer.start()
    assert text_of(peer.call("close")) == "closed"
    assert peer.ask(request(2, "ping"))["result"] == {}
    peer.close_input()
    assert peer.wait() == 0


def test_stdout_and_stderr_may_be_one_pipe(workshop: Workshop) -> None:
    """A launcher that joins both gets the tools' noise, but whole lines of ours all the same."""
    import subprocess

    path = workshop.write(NOISY)
    done = subprocess.run(
        [*LONGSHORE, "serve", str(path)],
        cwd=workshop.folder,
        env=workshop.env,
        input=encode(initialize(), call(1, "with_puts_thread")),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=30,
    )
    lines = done.stdout.splitlines()
    assert b"NOISE" in lines
    assert {json.loads(line)["id"] for line in lines if line.startswith(b"{")} == {"init", 1}
