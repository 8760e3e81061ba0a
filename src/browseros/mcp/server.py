"""`python -m browseros.mcp.server`: the profile `browseros` of Longshore. It takes the options of `longshore serve`."""

from __future__ import annotations

from typing import NoReturn

from longshore.__main__ import leave_out_working_folder, serve_profile


def main() -> NoReturn:
    """Serve on stdio, or over HTTP if stdin is a terminal or /dev/null."""
    serve_profile("browseros", "python -m browseros.mcp.server")


if __name__ == "__main__":
    leave_out_working_folder()
    main()
