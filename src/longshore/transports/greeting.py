"""The text for a person who starts a stdio server on a terminal."""

from __future__ import annotations

import os
import re
import shlex
import sys


def greet(name: str, command: list[str] | None) -> None:
    """Explain that the server waits for a client, and how to connect one. The command works from any folder."""
    sys.stderr.write(f"{name} speaks MCP on stdin and stdout, one JSON message a line; Ctrl-D ends it.\n")
    if command is not None:
        sys.stderr.write(f"To connect it:  claude mcp add {client_name(name)} -- {shlex.join(command)}\n")


def client_name(name: str) -> str:
    """A server's name in the characters that clients allow: letters, digits, - and _."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-") or "longshore"


def script() -> list[str] | None:
    """The command of the program that calls `app.run()`; None in an interactive session."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    if spec is not None:
        return [sys.executable, "-m", spec.name.removesuffix(".__main__"), *sys.argv[1:]]
    if os.path.isfile(sys.argv[0]):
        return [sys.executable, os.path.abspath(sys.argv[0]), *sys.argv[1:]]
    return None


def longshore_command() -> list[str]:
    """The `longshore` command, for use in any folder. -P: a file there must not shadow a library of the same name."""
    started = os.path.abspath(sys.argv[0])
    if os.path.basename(started) == "longshore" and os.path.isfile(started):
        return [started]
    return [sys.executable, "-P", "-m", "longshore"]
