"""Runs every claim; with --save, writes the figures to a file in results/."""

import sys

from benchmarks import (
    agent_session,
    browser,
    client_cycles,
    client_http,
    client_import,
    client_memory,
    client_stdio,
    code_mode,
    cold_start,
    console,
    context_dialogues,
    context_ingest,
    context_quality,
    context_speed,
    disconnect,
    files,
    http,
    in_flight,
    large,
    lazy_start,
    list_tools,
    memory,
    recorder,
    registration,
    sequential,
    sessions,
    shutdown,
    slow_peers,
    terminal,
    tool_search,
    validation,
)
from benchmarks.command import main

STDIO = (
    cold_start,
    lazy_start,
    sequential,
    in_flight,
    memory,
    list_tools,
    large,
    recorder,
    registration,
    validation,
    shutdown,
    files,
    terminal,
    agent_session,
    browser,
)
HTTP = (http, sessions, slow_peers, disconnect, console)
CATALOG = (tool_search, code_mode)
CONTEXT = (context_quality, context_dialogues, context_speed, context_ingest)
CLIENT = (client_import, client_memory, client_stdio, client_cycles, client_http)

if __name__ == "__main__":
    sys.exit(main([module.measure for module in (*STDIO, *HTTP, *CATALOG, *CONTEXT, *CLIENT)], complete=True))
