"""Real server processes, as in tests/process."""

from __future__ import annotations

from process.conftest import workshop as workshop
