"""The server word-tools. Its tools are the functions below."""

from collections import Counter

from longshore import Server

app = Server("word-tools", version="0.1.0")


@app.tool(effects="read")
def count_words(text: str) -> int:
    """Count the words of a text.

    text: the text, in any language
    """
    return len(text.split())


@app.tool(effects="read")
def frequent_words(text: str, most: int = 3) -> list[str]:
    """List the words of a text, the most frequent first.

    text: the text, in any language
    most: how many words to list (default 3)
    """
    return [word for word, _ in Counter(text.lower().split()).most_common(most)]


def main() -> None:
    """Serve on stdio."""
    app.run()


if __name__ == "__main__":
    main()
