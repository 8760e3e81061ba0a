"""Builds the app from the configuration: the store, the guard, and everything between them and the engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from longshore.auth.guard import Guard
from longshore.config import Config
from longshore.errors import ConfigError
from longshore.server.engine import Engine, Rates
from longshore.stores import open_store
from longshore.transports.http.admin import Health, Metrics
from longshore.transports.http.app import HttpApp, Parts
from longshore.transports.http.cluster import Cluster
from longshore.transports.http.cluster_events import ClusterEvents
from longshore.transports.http.gate import Gate
from longshore.transports.http.legacy import LegacyEndpoint
from longshore.transports.http.modern import ModernEndpoint
from longshore.transports.http.pending import Delivery, Lifecycle, SlowResponses
from longshore.transports.http.rest import RestEndpoint
from longshore.transports.http.routes import Routes
from longshore.transports.http.sessions import Sessions
from longshore.transports.http.sse_2024 import SseSessions
from longshore.transports.http.uploads import Uploads

_KEY_CHARACTERS = 32


def make_app(
    engine: Engine,
    config: Config,
    *,
    token: str | None = None,
    on_close: Callable[[], Awaitable[None]] | None = None,
) -> HttpApp:
    """An app for this engine. `token` is accepted beside the configured ones; `on_close` is awaited when it closes."""
    http, limits = config.http, engine.limits
    _check_state_key(config)
    engine.limit_rates(Rates(http.rate, http.burst) if http.rate else None)
    engine.executor.hold_at_least(limits.upload_bytes)  # an admitted body may run
    uploads = Uploads(limits)
    return HttpApp(engine, config, uploads, lambda: _build(engine, config, uploads, token), on_close)


def _build(engine: Engine, config: Config, uploads: Uploads, token: str | None) -> Parts:
    http, limits = config.http, engine.limits
    store = open_store(http.store or "memory://")
    guard = _make_guard(engine, config, token)
    gate = Gate(config, limits, guard, uploads)
    lifecycle = Lifecycle()
    delivery = Delivery(engine, limits, guard, lifecycle, SlowResponses())
    cluster = Cluster(store, engine.recorder)
    sessions = Sessions(engine, store, limits, http.session_ttl, cluster)
    sse = SseSessions(delivery, gate, store, cluster, http.path)
    metrics = Metrics(engine, store, cluster, sessions, sse, uploads)
    events = ClusterEvents(engine, store, cluster, sessions, sse, metrics)
    rest = RestEndpoint(delivery, gate, config)
    routes = Routes(config, guard, sse, rest, Health(engine, store, lifecycle), metrics)
    modern = ModernEndpoint(delivery, gate)
    legacy = LegacyEndpoint(delivery, sessions, cluster)
    return Parts(store, guard, gate, cluster, events, sessions, sse, modern, legacy, routes, delivery)


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
