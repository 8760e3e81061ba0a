"""The server that the tests of this folder start."""

SOURCE = """
import asyncio, os, subprocess, sys, threading, time
from longshore import Context, Server

app = Server("quay")
kept = []

@app.tool(run="inline")
def add(a: int, b: int) -> int:
    return a + b

@app.tool(run="inline")
def pid() -> int:
    return os.getpid()

@app.tool(run="inline")
def running() -> int:
    return app.engine.executor.running

@app.tool
async def wait(file: str) -> str:
    '''Wait until there is a file of this name; make one called `file.begun` first.'''
    open(file + ".begun", "w").close()
    while not os.path.exists(file):
        await asyncio.sleep(0.01)
    return "waited"

@app.tool
def hold() -> str:
    time.sleep(600)

@app.tool
async def swallow() -> str:
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass

@app.tool(run="inline")
def block() -> str:
    open("blocked", "w").close()
    time.sleep(600)

@app.tool
def start_child() -> int:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
    kept.append(subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE))
    kept[-1].stdout.read(1)
    return kept[-1].pid

@app.tool
async def count(context: Context, upto: int) -> str:
    for n in range(upto):
        await context.progress(n, upto)
    await asyncio.sleep(600)

@app.tool(timeout=False)
async def chatter(context: Context) -> str:
    n = 0
    while n := n + 1:
        await context.progress(n, message="x" * 50_000)
        await asyncio.sleep(0.001)

@app.tool(run="inline")
def large(size: int) -> str:
    return "x" * size
"""
