"""`python -m browseros.mcp.server`: the profile `browseros` of Longshore. It takes the options of `longshore serve`."""

from __future__ import annotations

import sys
from typing import NoReturn

from longshore.__main__ import main as run_longshore


def main() -> NoReturn:
    """Serve on stdio, or over HTTP if stdin is a terminal or /dev/null."""
    run_longshore(["serve", "--profile", "browseros", *sys.argv[1:]])


if __name__ == "__main__":
    main()
