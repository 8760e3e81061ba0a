"""docs/security.md: with `--config` outside of the roots, what a tool writes into them is no configuration."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from longshore import SyncClient
from waiting import eventually


def test_a_file_in_the_roots_is_no_configuration_with_another_one_outside(tmp_path: Path) -> None:
    project, outside, config = tmp_path / "project", tmp_path / "outside", tmp_path / "longshore.toml"
    project.mkdir()
    outside.mkdir()
    (outside / "key.txt").write_text("42")
    config.write_text(f"[server]\nroots = [{json.dumps(str(project))}]\n")
    wider = f"[server]\nroots = {json.dumps([str(project), str(outside)])}\n"
    argv = [sys.executable, "-m", "longshore", "serve", "--config", str(config), "--toolsets", "filesystem"]

    def reads() -> bool:
        client.ping()  # before it, the server looks at its configuration; a list may come from the cache
        return not client.call_tool("fs_read", {"path": str(outside / "key.txt")}, check=False).is_error

    with SyncClient(argv, cwd=str(project), era="legacy") as client:
        client.call_tool("fs_write", {"path": "longshore.toml", "content": wider})
        assert not reads()
        config.write_text(wider)
        eventually("the wider roots", reads)  # it looks from when the client has been silent for a moment
