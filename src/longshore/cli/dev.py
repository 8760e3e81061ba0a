"""`longshore dev`: serve a file, and load it again when it is saved."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from longshore.cli.options import utf8
from longshore.config.sections import CONFIG_OPTION, HTTP_OPTION, SET_OPTION
from longshore.errors import LongshoreError

if TYPE_CHECKING:
    from longshore.app import Server


@click.command()
@click.argument("target")
@click.option(HTTP_OPTION, "http", is_flag=True, help="Serve over HTTP, also where stdin is no terminal.")
@click.option("--port", metavar="NUMBER", help="The port of HTTP and of the console.  [default: 9100, else a free one]")
@click.option(CONFIG_OPTION, "path", metavar="PATH", help="Read this file in place of the project's longshore.toml.")
@click.option(
    SET_OPTION, "pairs", multiple=True, metavar="KEY=VALUE", help="Set any key of the configuration. Repeatable."
)
def dev(target: str, http: bool, port: str | None, path: str | None, pairs: tuple[str, ...]) -> None:
    """Serve a file of yours, and load it again when it is saved.

    TARGET is path/to/server.py or path/to/server.py:name. Clients stay connected and are notified of changed lists.
    While the file has an error, its last good version goes on. It is served on stdio where a client starts it, and over
    HTTP in a terminal; the console's address is printed in both.
    """
    from longshore.cli.reloading import Reloader

    flags = _read_flags(port, pairs)
    reloader = Reloader(utf8(target))
    app = reloader.server
    app.show_console()
    try:
        reloader.start()
        if http or os.isatty(0):
            app.serve_http(flags=flags, config_path=path)
        else:
            _serve_stdio(app, flags, path)
    except LongshoreError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(problem.exit_code)
    finally:
        reloader.close()


def _read_flags(port: str | None, pairs: tuple[str, ...]) -> dict[str, Any]:
    flags: dict[str, Any] = {"http.workers": 1}  # each worker would need a watcher of its own
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise click.UsageError(f"{SET_OPTION} {pair}: expected KEY=VALUE, such as server.timeout=5")
        flags[key] = value
    return flags if port is None else {**flags, "http.port": port}


def _serve_stdio(app: Server, flags: dict[str, Any], path: str | None) -> None:
    """Serve stdio, and the console on a port beside it."""
    from longshore.transports.descriptors import claim

    app.serve_http_beside_stdio()
    app.serve(*claim(), flags={**flags, "server.transport": "stdio"}, config_path=path)
