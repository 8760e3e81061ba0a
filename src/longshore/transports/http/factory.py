"""The app as the configuration wants it: its store, its guard, its rates."""

from __future__ import annotations

from longshore.auth.guard import Guard
from longshore.config import Config
from longshore.errors import ConfigError
from longshore.server.engine import Engine
from longshore.server.rate_limits import Rates
from longshore.stores import open_store
from longshore.transports.http.app import HttpApp

_KEY_CHARACTERS = 32


def make_app(engine: Engine, config: Config, *, token: str | None = None) -> HttpApp:
    """An app for this engine. `token` opens it beside what is configured."""
    http = config.http
    _check_state_key(config)
    engine.limit_rates(Rates(http.rate, http.burst) if http.rate else None)
    paths = frozenset({http.path, http.path.rstrip("/") + "/", "/", ""})
    return HttpApp(
        engine, config, paths, lambda: (open_store(http.store or "memory://"), _make_guard(engine, config, token))
    )


def _make_guard(engine: Engine, config: Config, token: str | None) -> Guard:
    def report(text: str) -> None:
        engine.recorder.problem("warning", text)

    guard = Guard(
        config.auth,
        config.tokens,
        resource=resource_url(config),
        extra_token=token,
        resource_name=str(engine.server_info.get("title") or engine.server_info["name"]),
        known_scopes=lambda: frozenset[str]().union(*(entry.scopes for entry in engine.tools.values())),
        report=report,
    )
    for warning in guard.warnings:
        report(warning)
    return guard


def resource_url(config: Config) -> str:
    """The address of MCP, as clients know it."""
    http = config.http
    if http.public_url:
        base = http.public_url.rstrip("/")
        return base if base.endswith(http.path) else base + http.path
    host = f"[{http.host}]" if ":" in http.host else http.host
    scheme = "https" if http.tls_cert else "http"
    return f"{scheme}://{host}:{http.port}{http.path}"


def _check_state_key(config: Config) -> None:
    key, store = config.http.state_key, config.http.store or ""
    if key is not None and len(key) < _KEY_CHARACTERS:
        raise ConfigError(f"http.state_key: it has {len(key)} characters; use {_KEY_CHARACTERS} or more, at random")
    if key is None and store.lower().startswith(("redis://", "rediss://")):
        raise ConfigError(
            "http.state_key: several hosts may share this store, so they must sign with one key; set it to the same "
            f"secret of {_KEY_CHARACTERS} characters or more on each (LONGSHORE_HTTP_STATE_KEY)"
        )
