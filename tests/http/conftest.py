"""This folder is no package (see `asgi.py`), so what lies beside it must be put in reach."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))
