"""The options of `longshore serve` that set a configuration key: one table for the fast entry and for click."""

from __future__ import annotations

from msgspec import Struct

CONFIG_OPTION = "--config"
"""Replaces the project file. It is no key, so it is not in the table."""


HTTP_OPTION = "--http"
"""Chooses the transport."""


class Flag(Struct, frozen=True):
    """An option that sets a key: to its value, or, without a metavar, to true."""

    option: str
    key: str
    metavar: str
    help: str


FLAGS = (
    Flag("--timeout", "server.timeout", "SECONDS", "Stop a tool without a limit of its own after this long; 0: never."),
    Flag("--eof-grace", "server.eof_grace", "SECONDS", "After end of input, let calls in flight finish for this long."),
    Flag(
        "--log-level",
        "server.log_level",
        "LEVEL",
        "Least severe record on stderr: debug, info, notice, warning, error.",
    ),
    Flag("--log-format", "server.log_format", "FORMAT", "Records on stderr: auto, pretty or json."),
    Flag(
        "--schemas",
        "server.schemas",
        "CLIENT",
        "List tools in the form that one client takes: claude, openai, …",
    ),
)

HTTP_FLAGS = (
    Flag("--host", "http.host", "ADDRESS", "Listen on this address. Anything but loopback needs authentication."),
    Flag("--port", "http.port", "NUMBER", "Listen on this port; 0: any free one."),
    Flag("--workers", "http.workers", "NUMBER", "Serve with this many processes, which share their sessions."),
    Flag("--public-url", "http.public_url", "URL", "The address that clients use, where it is not host and port."),
    Flag("--store", "http.store", "URL", "Keep sessions there: memory://, sqlite:///path or redis://host."),
    Flag("--grace", "http.grace", "SECONDS", "When stopped, let calls in flight finish for this long."),
    Flag("--tls-cert", "http.tls_cert", "FILE", "Serve HTTPS with this certificate chain (PEM)."),
    Flag("--tls-key", "http.tls_key", "FILE", "The certificate's private key (PEM)."),
    Flag("--auth", "auth.mode", "MODE", "Whether to ask for a token: auto, required or off."),
    Flag("--lines", "http.lines", "", "Also take JSON-RPC lines on the same port, from loopback."),
    Flag(
        "--allow-unauthenticated-remote",
        "http.allow_unauthenticated_remote",
        "",
        "Listen beyond loopback without authentication: anyone who reaches the port can use every tool.",
    ),
)
"""Options of HTTP."""

KEY_OF_OPTION = {flag.option: flag.key for flag in FLAGS}
"""The options that the fast entry handles; others go through the command line."""
OPTION_OF_KEY = {flag.key: flag.option for flag in FLAGS + HTTP_FLAGS}
