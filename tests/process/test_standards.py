"""Linting in a real server: the log on stderr, and the modules of a second start."""

from __future__ import annotations

import json
import sys

from .conftest import Workshop
from .peer import LONGSHORE, initialize
from .test_cold_start import NEVER, STANDARD, modules_at_initialize

ODD = """
    from longshore import Server, Tool, ToolError

    app = Server("odd", version="1.0.0")
    SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "anyOf": [{"required": ["path"]}]}

    def handle(arguments, ctx):
        return {"content": []}

    app.add_tool(Tool(name="find", description="Find a file", input_schema=SCHEMA), handle)
    PLAIN = {"type": "object", "properties": {"path": {"type": "string"}}}
    app.add_tool(Tool(name="good", description="Find a file", input_schema=PLAIN), handle)

    @app.tool(annotations={"title": "Measure"}, waive={"W22": "nothing to say"})
    def measure(where: str) -> int:
        return 3

    if __name__ == "__main__":
        app.run()
"""


def warnings(stderr: bytes) -> list[str]:
    return [json.loads(line)["text"] for line in stderr.splitlines() if b'"warning"' in line]


def test_each_start_logs_and_the_second_imports_no_rule(workshop: Workshop) -> None:
    path = str(workshop.write(ODD))
    first = workshop.run([*LONGSHORE, "serve", path], initialize())
    (line,) = warnings(first.stderr)
    assert line.startswith("server.py:7 handle(arguments, ctx): E04: the tool 'find'")
    loaded = modules_at_initialize(workshop, "serve", path)
    assert "longshore.registry.lint_cache" in loaded
    assert not [name for name in loaded if name.startswith("longshore.schema.lint")]
    late = {f"longshore.{name}" for name in ("schema.lint.run", "schema.infer", "schema.validate", "schema.violations")}
    assert loaded & (NEVER | late) == set()
    others = {name for name in loaded if name.partition(".")[0] not in ("longshore", "msgspec", "server")}
    assert others - {"typing_extensions"} <= STANDARD | {"_blake2"}
    second = workshop.run([sys.executable, path], initialize())
    assert warnings(second.stderr) == [line]


def test_a_refusal_ends_the_start_each_time_and_names_the_line(workshop: Workshop) -> None:
    path = str(workshop.write(ODD.replace('version="1.0.0"', 'standards="refuse"')))
    for _ in range(2):
        done = workshop.run([*LONGSHORE, "serve", path], initialize())
        assert (done.returncode, done.stdout) == (2, b"")
        where, what, fix = done.stderr.decode().splitlines()
        assert where == "server.py:7 handle(arguments, ctx)"
        assert what.startswith("  E04: the tool 'find': ") and fix.startswith("  fix: ")
    assert not (workshop.folder / "home" / ".cache").exists()


def test_a_server_of_plain_tools_leaves_nothing_behind(workshop: Workshop) -> None:
    done = workshop.run([*LONGSHORE, "serve"], initialize())
    assert done.returncode == 0 and not (workshop.folder / "home").exists()
