"""Tools that share state. The state is opened when one of them is first used, and closed at the end."""

import sqlite3
from typing import Any

from longshore import Server, ToolError, Toolset, tool


class Notes(Toolset):
    def start(self) -> None:
        self.db = sqlite3.connect(":memory:", check_same_thread=False)
        self.db.execute("create table note (title text primary key, body text)")

    def stop(self) -> None:
        self.db.close()

    def status(self) -> dict[str, Any]:
        return {"notes": self.db.execute("select count(*) from note").fetchone()[0]}

    @tool(effects="write", idempotent=True)
    def write(self, title: str, body: str) -> str:
        """Keep a note."""
        self.db.execute("insert or replace into note values (?, ?)", (title, body))
        return f"kept {title!r}"

    @tool(effects="read")
    def read(self, title: str) -> str:
        """Read a note."""
        for (body,) in self.db.execute("select body from note where title = ?", (title,)):
            return str(body)
        raise ToolError(f"no note {title!r}")


app = Server("notes", version="1.0.0")
app.add_toolset(Notes())

if __name__ == "__main__":
    app.run()
