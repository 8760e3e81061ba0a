"""A place of its own for each test: a project folder with a `.git`, a home, an empty environment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from longshore import config
from longshore.config import Config
from longshore.errors import ConfigError


class Place:
    def __init__(self, root: Path) -> None:
        self.project = root / "project"
        self.home = root / "home"
        (self.project / ".git").mkdir(parents=True)
        self.home.mkdir()
        self.environ = {"HOME": str(self.home)}

    @property
    def file(self) -> Path:
        return self.project / "longshore.toml"

    @property
    def user_file(self) -> Path:
        return self.home / ".config/longshore/longshore.toml"

    def write(self, text: str | bytes) -> Path:
        raw = text if isinstance(text, bytes) else text.encode()
        self.file.write_bytes(raw)
        return self.file

    def write_user(self, text: str) -> Path:
        self.user_file.parent.mkdir(parents=True, exist_ok=True)
        self.user_file.write_text(text)
        return self.user_file

    def load(
        self,
        flags: Mapping[str, Any] | None = None,
        *,
        cwd: Path | None = None,
        path: str | None = None,
        **variables: str,
    ) -> Config:
        return config.load(flags, environ={**self.environ, **variables}, cwd=str(cwd or self.project), path=path)

    def error(self, *args: Any, **kwargs: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(*args, **kwargs)
        return str(caught.value)

    def error_of(self, text: str | bytes) -> str:
        self.write(text)
        return self.error()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)
