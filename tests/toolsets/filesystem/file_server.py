"""A server with the file tools, and every verb of them as a call about one path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from longshore import Server
from longshore.toolsets.filesystem.options import FilesystemOptions
from longshore.toolsets.filesystem.tools import Filesystem
from talk import NEWEST_LEGACY, call, text

Arguments = dict[str, Any]
EDITS = [{"old": "file", "new": "edited"}]

FOLLOWING: dict[str, Callable[[str], tuple[str, Arguments]]] = {
    "read": lambda path: ("fs_read", {"path": path}),
    "read lines": lambda path: ("fs_read", {"path": path, "offset": 2, "limit": 1}),
    "read tail": lambda path: ("fs_read", {"path": path, "tail": 1}),
    "read bytes": lambda path: ("fs_read", {"path": path, "byte_offset": 0}),
    "write": lambda path: ("fs_write", {"path": path, "content": "written"}),
    "create": lambda path: ("fs_write", {"path": path, "content": "written", "mode": "create"}),
    "append": lambda path: ("fs_write", {"path": path, "content": "written", "mode": "append"}),
    "write known": lambda path: ("fs_write", {"path": path, "content": "written", "expected_hash": "0" * 12}),
    "write below": lambda path: ("fs_write", {"path": f"{path}/made/file", "content": "written"}),
    "edit": lambda path: ("fs_edit", {"path": path, "edits": EDITS}),
    "try an edit": lambda path: ("fs_edit", {"path": path, "edits": EDITS, "dry_run": True}),
    "list": lambda path: ("fs_list", {"path": path}),
    "search": lambda path: ("fs_search", {"pattern": ".", "path": path}),
    "copy from": lambda path: ("fs_move", {"path": path, "to": "copied", "copy": True}),
    "copy to": lambda path: ("fs_move", {"path": "file.txt", "to": path, "copy": True, "overwrite": True}),
    "info": lambda path: ("fs_info", {"path": path}),
    "coarse read": lambda path: ("filesystem", {"action": "read", "path": path}),
    "coarse write": lambda path: ("filesystem", {"action": "write", "path": path, "content": "written"}),
    "coarse append": lambda path: ("filesystem", {"action": "append", "path": path, "content": "written"}),
    "coarse list": lambda path: ("filesystem", {"action": "list", "path": path}),
    "coarse search": lambda path: ("filesystem", {"action": "search", "path": path, "pattern": "."}),
    "coarse copy": lambda path: ("filesystem", {"action": "copy", "path": path, "to": "copied"}),
    "coarse info": lambda path: ("filesystem", {"action": "info", "path": path}),
    "coarse mkdir": lambda path: ("filesystem", {"action": "mkdir", "path": f"{path}/made"}),
}
"""Verbs that follow a link at the end of the path."""
VERBS: dict[str, Callable[[str], tuple[str, Arguments]]] = FOLLOWING | {
    "move from": lambda path: ("fs_move", {"path": path, "to": "moved"}),
    "move to": lambda path: ("fs_move", {"path": "file.txt", "to": path, "overwrite": True}),
    "delete": lambda path: ("fs_delete", {"path": path}),
    "delete for ever": lambda path: ("fs_delete", {"path": path, "permanent": True}),
    "coarse move": lambda path: ("filesystem", {"action": "move", "path": path, "to": "moved"}),
    "coarse delete": lambda path: ("filesystem", {"action": "delete", "path": path}),
}


def serve(**options: Any) -> Server:
    """A server whose folders are the working directory. It reads files on the serving thread from the first call on."""
    app = Server("files")
    toolset = Filesystem(FilesystemOptions(**options), app)
    app.add_toolset(toolset)
    toolset.warm_up()
    return app


def ask(app: Server, tool: str, revision: str = NEWEST_LEGACY, /, **arguments: Any) -> str:
    """The text of an answer that is no error."""
    result = call(app, tool, arguments, revision)
    assert "structuredContent" not in result, "the text is sent once"
    assert result.get("isError") is not True, result
    return text(result)


def refusal(app: Server, tool: str, /, **arguments: Any) -> str:
    """The text of an error."""
    result = call(app, tool, arguments)
    assert result.get("isError") is True, result
    return text(result)
