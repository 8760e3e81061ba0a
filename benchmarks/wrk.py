"""Runs wrk, the HTTP load generator, with our script."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from typing import Any

from benchmarks.environment import HERE, SetupFailed
from benchmarks.http_messages import PATH, call, encode
from benchmarks.http_server import Serving, cores, placed
from benchmarks.load import Session

SCRIPT = HERE / "wrk.lua"
INSTALL = ["apt-get", "install", "--yes", "--quiet", "wrk"]
TROUBLES = ("status", "connect", "read", "write", "timeout")
GRACE = 30  # seconds that one answer may take, and what a run may take longer than it should
_PLACEHOLDER = 1234567


@functools.cache
def find() -> str:
    """Where wrk is. As root, and where there is apt, it is installed if it is missing."""
    if shutil.which("wrk") is None and os.geteuid() == 0 and shutil.which("apt-get"):
        subprocess.run(INSTALL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = shutil.which("wrk")
    if path is None:
        raise SetupFailed("no wrk, which makes the HTTP load: apt-get install wrk")
    return path


def run(
    session: Session,
    serving: Serving,
    modern: bool,
    headers: Sequence[tuple[str, str]],
    connections: int,
    seconds: int,
) -> dict[str, Any]:
    """Load a server for some seconds. What wrk counted, the processor time of a request, and what went wrong."""
    body = encode(call(_PLACEHOLDER, modern)).decode().replace(str(_PLACEHOLDER), "@")
    load = ["-t1", f"-c{connections}", f"-d{seconds}s", f"--timeout={GRACE}s", "-s", str(SCRIPT)]
    url = f"http://127.0.0.1:{serving.port}{PATH}"
    lines = [f"{name}: {value}" for name, value in headers]
    before = serving.cpu_seconds()
    command = [*placed(session, cores()[0]), find(), *load, url, "--", body, *lines]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 2 * GRACE)
    except subprocess.TimeoutExpired:
        raise serving.failed("wrk did not end") from None
    spent = serving.cpu_seconds() - before
    if done.returncode != 0:
        raise serving.failed(f"wrk ended with {done.returncode}: {done.stderr.strip() or done.stdout.strip()}")
    counted: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    if not counted["requests"]:
        raise serving.failed("not one request was answered")
    troubles = [f"{counted[kind]} {kind}" for kind in TROUBLES if counted[kind]]
    return {
        **counted,
        "per_second": counted["requests"] / counted["seconds"],
        "cpu_us": spent / counted["requests"] * 1e6,
        "troubles": ", ".join(troubles),
    }
