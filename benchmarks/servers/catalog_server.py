"""The catalogue of 300 tools as a server. Each checks its arguments and answers "ok"; with an output schema, the least
value of that too.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.catalog_corpus import read_tools

from longshore import Context, Server, Tool

LEAST: dict[str, Any] = {"string": "ok", "number": 0, "boolean": True, "array": []}


def least(schema: dict[str, Any]) -> Any:
    """The least value of a schema: an object has its required properties, an array is empty."""
    if schema["type"] != "object":
        return LEAST[schema["type"]]
    return {name: least(schema["properties"][name]) for name in schema["required"]}


def add(app: Server, listed: dict[str, Any]) -> None:
    """Register a tool as `tools/list` shows it."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": "ok"}]}
    if output_schema := listed.get("outputSchema"):
        result["structuredContent"] = least(output_schema)
    tool = Tool(
        name=listed["name"],
        title=listed.get("title"),
        description=listed["description"],
        input_schema=listed["inputSchema"],
        output_schema=output_schema,
        annotations=listed.get("annotations"),
        meta=listed.get("_meta"),
        run="inline",
    )

    def answer(arguments: dict[str, Any], ctx: Context) -> dict[str, Any]:
        return result

    app.add_tool(tool, answer)


app = Server("catalog", version="1")
for each in read_tools():
    add(app, each)

if __name__ == "__main__":
    app.run()
