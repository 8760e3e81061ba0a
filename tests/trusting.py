"""Trust in configuration files, as `longshore trust` records it. `conftest.py` has a fixture of it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from longshore.config import trust_file
from longshore.config.trust import change_record


class Trusting:
    """Trusts files with their present content, until `end`."""

    def __init__(self) -> None:
        self._records = set[str]()

    def __call__(self, file: Path, environ: Mapping[str, str] | None = None) -> None:
        """`environ` is that of the server which is to find it trusted."""
        record = trust_file(environ)
        assert record is not None
        self._records.add(record)
        change_record(record, str(file), file.read_text())

    def end(self) -> None:
        for record in self._records:
            os.unlink(record)
