"""The raw level: your own JSON Schema, raw arguments, a complete result. Nothing is inferred or wrapped."""

from typing import Any

from longshore import Context, Server, Tool

app = Server("raw", version="1.0.0")

LOOKUP = Tool(
    name="lookup",
    description="Look a word up.",
    input_schema={
        "type": "object",
        "properties": {"word": {"type": "string", "pattern": "^[a-z]+$"}},
        "required": ["word"],
    },
    output_schema={"type": "object", "properties": {"letters": {"type": "integer"}}, "required": ["letters"]},
    effects="read",
)


async def lookup(arguments: dict[str, Any], ctx: Context) -> dict[str, Any]:
    word = arguments["word"]
    return {
        "content": [{"type": "text", "text": f"{word}: {len(word)} letters"}],
        "structuredContent": {"letters": len(word)},
        "_meta": {"example.org/revision": ctx.revision},
    }


app.add_tool(LOOKUP, lookup)

if __name__ == "__main__":
    app.run()
