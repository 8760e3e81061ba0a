"""The options of `longshore serve` that set a configuration key: one table for the fast door and for click."""

from __future__ import annotations

from msgspec import Struct

CONFIG_OPTION = "--config"
"""Stands in for the project file. It is no key, so it is not in the table."""


class Flag(Struct, frozen=True):
    """An option that takes one value."""

    option: str
    key: str
    metavar: str
    help: str


FLAGS = (
    Flag("--timeout", "server.timeout", "SECONDS", "Stop a tool that says nothing else after this long; 0: never."),
    Flag("--eof-grace", "server.eof_grace", "SECONDS", "After end of input, let calls in flight finish for this long."),
    Flag(
        "--log-level",
        "server.log_level",
        "LEVEL",
        "Least severe record on stderr: debug, info, notice, warning, error.",
    ),
    Flag("--log-format", "server.log_format", "FORMAT", "Records on stderr: auto, pretty or json."),
)

KEY_OF_OPTION = {flag.option: flag.key for flag in FLAGS}
OPTION_OF_KEY = {flag.key: flag.option for flag in FLAGS}
