"""For mkdocs, whose Markdown differs from GitHub's: adapts the text of a page.

- A link out of docs/, to code or saved figures, becomes its path: the site has no such file.
- In a table, `a \\| b` becomes `a | b`: mkdocs needs no backslash in code, and would show it.
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

LINK = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^()\s#]+)(?:#[^()\s]*)?\)")
ROW = re.compile(r"^\|.*\|$", re.MULTILINE)
CODE = re.compile(r"`[^`\n]+`")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    folder = posixpath.dirname(page.file.src_uri)
    linked = LINK.sub(lambda link: replace_link(folder, link), markdown)
    return ROW.sub(lambda row: CODE.sub(lambda code: code[0].replace("\\|", "|"), row[0]), linked)


def replace_link(folder: str, link: re.Match[str]) -> str:
    path = posixpath.normpath(posixpath.join("docs", folder, link[2]))
    if path.startswith("docs/"):
        return link[0]
    return f"`{path}`" if link[1].strip("`") == path else f"{link[1]} `{path}`"
