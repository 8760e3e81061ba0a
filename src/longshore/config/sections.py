"""The sections of `longshore.toml`, one Struct each.

Checks, variable names, the JSON Schema and the page in docs derive from these. To add a section, write its Struct and
name it in `Sections`; to add a key, add a field with its reason below it. A field's type is one of `bool`, `int` (a
count, or bytes if its name ends in `_bytes`), `float` (always seconds), `Timeout`, `str`, `list[str]`, `Literal[...]`,
`Folders` and `dict[str, Any]` (free-form, files only). `Meta(ge=…, le=…)` gives a number a range of its own. `| None`
means that the key may stay unset. The options of a toolset are such a Struct too, with the types of `registry.options`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Meta, Struct, field

from longshore.limits import DEFAULT_LIMITS, CountOrZero, Limits, SecondsOrZero

Timeout: TypeAlias = Annotated[float | Literal[False], Meta(extra={"kind": "timeout"})]
"""Seconds, or False for no limit. Zero is read as False."""

Folders: TypeAlias = Annotated[list[str], Meta(extra={"kind": "folders"})]
"""The same as `list[Folder]`, whose module a cold start does not load."""

LogLevel: TypeAlias = Literal["debug", "info", "notice", "warning", "error"]
LogFormat: TypeAlias = Literal["auto", "pretty", "json"]
SchemaForm: TypeAlias = Literal["claude", "openai", "openai-strict", "gemini", "vscode", "cursor", "brooklyn"]
DialectName: TypeAlias = Literal["bb", "brooklyn", "browseros", "ghost"]
CatalogForm: TypeAlias = Literal["full", "search", "code"]


class ServerConfig(Struct, frozen=True, kw_only=True):
    """How the server behaves."""

    timeout: Timeout = DEFAULT_LIMITS.timeout_seconds
    """A tool without a limit of its own is stopped after this many seconds; false or 0: never."""

    eof_grace: SecondsOrZero = DEFAULT_LIMITS.eof_grace_seconds
    """After end of input, calls in flight may finish for this many seconds."""

    expose_errors: bool = False
    """Show the model the text of unexpected exceptions. Masked by default: they may hold paths and secrets."""

    debug: bool = False
    """Show stack traces to peers whose dialect has a place for them. Never beyond this machine."""

    instructions: str | None = None
    """Instructions to the model, in place of the author's."""

    log_level: LogLevel = "warning"
    """The least severe record that is written to stderr."""

    log_format: LogFormat = "auto"
    """How records look on stderr; auto: pretty on a terminal, JSON lines otherwise."""

    dialect: DialectName | None = None
    """Speak this dialect with the peers that it is for, and MCP with all others."""

    transport: Literal["stdio", "http", "auto"] | None = None
    """How it is served without --http; auto: over HTTP if stdin is /dev/null or a terminal. Unset: on stdio."""

    schemas: SchemaForm | None = None
    """List tools in the form that one kind of client takes. Unset: as written. Arguments are checked as written."""

    catalog: CatalogForm = "full"
    """How tools are listed; search: search_tools and call_tool find and call them; code: run_code runs Python that
    calls them. All can be called by name in every form."""

    pinned: list[str] = []
    """Tools that are listed in every form of the catalogue."""

    toolsets: list[str] | None = None
    """Offer only these toolsets, whatever their own tables say. Unset: all that are enabled."""

    tags: list[str] | None = None
    """Offer only tools that have one of these tags, and those that an own table enables. Unset: all."""

    exclude_tags: list[str] = []
    """Offer no tools that have one of these tags, but for those that an own table enables."""

    hide_forbidden: bool = False
    """Hide from each caller the tools whose scopes it lacks: no list shows them, and a call finds no such tool."""

    roots: Folders = []
    """Folders that tools may touch. Unset: the working directory, or a folder of its own if that is / or the home."""


class ToolsetConfig(Struct, frozen=True, kw_only=True):
    """One toolset, by its name."""

    enabled: bool | None = None
    """Offer the tools of this toolset. Unset: as the toolset declares, yes for most."""

    timeout: Timeout | None = None
    """Seconds that each of its tools may run; false or 0: no limit. Unset: as the tool declares."""

    groups: list[str] = []
    """Groups of its tools to offer, which are off otherwise."""

    catalog: CatalogForm | None = None
    """How its tools are listed: full, search or code. Unset: as the server's."""

    scopes: list[str] | None = None
    """Scopes that a caller needs for each of its tools, beside those that the tool declares."""

    options: dict[str, Any] = {}
    """The toolset's own options that are set; no key, since they stand beside the other keys of the table."""


class ToolConfig(Struct, frozen=True, kw_only=True):
    """One tool, by its name."""

    enabled: bool | None = None
    """Offer this tool. Unset: as its toolset says."""

    timeout: Timeout | None = None
    """Seconds that the tool may run; false or 0: no limit. Unset: as its toolset says."""

    scopes: list[str] | None = None
    """Scopes that a caller needs for the tool, beside those that it declares. Unset: as its toolset says."""

    result_bytes: int | None = None
    """The longest result text in bytes; a longer one is cut, with a note. Unset: not cut."""


class TelemetryConfig(Struct, frozen=True, kw_only=True):
    """Records of the server's work."""

    records: bool = True
    """Make a record of each request and call. Off, nothing is logged about them."""

    values: bool = False
    """Record arguments and results too, without what looks like a secret. Off: names, sizes and durations only."""

    ring: int = 10_000
    """Events held in memory until they are written, and for the console; 0.3 KB each. More are dropped, and counted."""

    file: str | None = None
    """Write records to this file, one line of JSON each. Unset: to none."""

    file_bytes: int = 10 << 20
    """At this size the file is renamed and a new one begun."""

    file_count: CountOrZero = 5
    """Renamed files that are kept beside it: NAME.1, the latest, to NAME.5."""

    history: str | None = None
    """Write records to this SQLite file. Unset: to none."""

    history_age: float = 30 * 86_400.0
    """Records in it are deleted when they are this many seconds old."""

    history_bytes: int = 100 << 20
    """At this size the oldest records in it are deleted."""

    otlp: str | None = None
    """Send a span for each request to this OpenTelemetry collector: http://127.0.0.1:4318. Needs longshore[otel]."""


class HttpConfig(Struct, frozen=True, kw_only=True):
    """How the server is reached over HTTP."""

    host: str = "127.0.0.1"
    """The address to listen on. Anything but loopback needs authentication."""

    port: Annotated[int, Meta(ge=0, le=65_535)] = 9100
    """The port to listen on; 0 picks a free one."""

    workers: Annotated[int, Meta(le=256)] = 1
    """Processes that serve. More than one share their sessions through the store."""

    path: str = "/mcp"
    """Where MCP is served."""

    public_url: str | None = None
    """The address that clients use, if it differs from host and port: https://mcp.example.com. Its host is accepted."""

    hosts: list[str] = []
    """Further Host headers to accept, as host or host:port, each compared whole."""

    origins: list[str] = []
    """Web origins that may use the server from a browser (CORS), as scheme://host[:port]. None by default."""

    store: str | None = None
    """Where sessions live: memory://, sqlite:///path or redis://host. Unset: memory, or SQLite with several workers."""

    state_key: str | None = None
    """The secret that signs requestState, 32 characters or more. Several hosts must share one."""

    session_ttl: float = 1800.0
    """A session that is not used for this many seconds is forgotten."""

    grace: SecondsOrZero = 3.0
    """When the server is stopped, calls in flight may finish for this many seconds."""

    rate: CountOrZero = 20_000
    """Calls of one tool that one caller may make in a second, on average; 0: no limit. Each process counts alone."""

    burst: int = 100_000
    """Calls of one tool that one caller may make at once before the rate holds."""

    tls_cert: str | None = None
    """A PEM file with the certificate chain: the server speaks HTTPS."""

    tls_key: str | None = None
    """A PEM file with the certificate's private key."""

    rest: bool = True
    """Serve the tools as plain REST at /tools, with an OpenAPI document at /openapi.json."""

    console: bool | None = None
    """Serve the web console at /console. Unset: where `longshore serve` or `longshore dev` serves over HTTP."""

    lines: bool = False
    """Also take JSON-RPC lines on the same port, on loopback only."""

    allow_unauthenticated_remote: bool = False
    """Listen beyond loopback without authentication. Anyone who reaches the port can then use every tool."""


class AuthConfig(Struct, frozen=True, kw_only=True):
    """Access to the server over HTTP."""

    mode: Literal["auto", "required", "optional", "off"] = "auto"
    """auto: the built-in server asks for a token, others where one is configured; required: always; off: never.
    optional: a caller on this machine without one has no scopes, so tools that need some refuse it."""

    token: str | None = None
    """A bearer token for the server. LONGSHORE_AUTH_TOKEN or token_file is better than this file."""

    token_file: str | None = None
    """A file that holds the bearer token."""

    key_header: str = "X-API-Key"
    """A header in which a token may come too. Empty: none."""

    cookie: str = "longshore"
    """The cookie in which a browser may hold a token, got by POST /auth/cookie. Empty: none."""

    issuer: str | None = None
    """The issuer of the access tokens (JWT): compared with `iss`."""

    audience: str | None = None
    """The audience of access tokens: compared with `aud`. Unset: the address of this server."""

    jwks: str | None = None
    """The issuer's keys: a URL or a file with a JWKS document."""

    algorithms: list[str] = field(default_factory=lambda: ["RS256", "ES256", "EdDSA"])
    """Signatures that are accepted on access tokens."""

    introspection_url: str | None = None
    """Where opaque tokens are looked up (RFC 7662)."""

    introspection_client: str | None = None
    """Our client id there."""

    introspection_secret: str | None = None
    """Our client secret there."""

    authorization_servers: list[str] = []
    """Issuers that the protected-resource metadata names. Unset: the issuer."""

    scopes: list[str] = []
    """Scopes that every request needs."""


class TokenConfig(Struct, frozen=True, kw_only=True):
    """A token for one caller, by the caller's name. One of token, token_file and sha256 is needed."""

    token: str | None = None
    """The token itself."""

    token_file: str | None = None
    """A file that holds it."""

    sha256: str | None = None
    """Its SHA-256, in hex, so that the file holds no secret."""

    scopes: list[str] | None = None
    """The scopes of the caller. Unset: all."""


class LintConfig(Struct, frozen=True, kw_only=True):
    """Defaults for `longshore lint`; its options override them."""

    profiles: list[str] = []
    """Rules that apply: mcp, claude, openai, openai-strict, gemini, vscode, cursor, brooklyn. None: the usual ones."""

    level: Literal["error", "warning", "info"] = "info"
    """The least severe finding that is shown."""

    strict: bool = False
    """Warnings fail too."""

    waive: dict[str, Any] = {}
    """Rules that do not apply here, each with the reason: `E04 = "why"`, or of one tool `"get_weather:E04" = "why"`."""


class Sections(Struct, frozen=True, kw_only=True):
    """Every section by its name; a dict holds tables that the user names, as in `[tools.NAME]`."""

    server: ServerConfig = ServerConfig()
    limits: Limits = DEFAULT_LIMITS
    toolsets: dict[str, ToolsetConfig] = {}
    tools: dict[str, ToolConfig] = {}
    telemetry: TelemetryConfig = TelemetryConfig()
    http: HttpConfig = HttpConfig()
    auth: AuthConfig = AuthConfig()
    tokens: dict[str, TokenConfig] = {}
    lint: LintConfig = LintConfig()


MOVED = {
    "limits.timeout_seconds": "server.timeout",
    "limits.eof_grace_seconds": "server.eof_grace",
}
"""Fields of Limits that `[server]` sets under a friendlier name; `[limits]` refuses them."""
NO_KEYS = frozenset({*MOVED, "toolsets.options"})
"""Fields that no key sets."""

OriginKind: TypeAlias = Literal["flag", "env", "project", "user", "default"]


class Origin(Struct, frozen=True):
    """The source of a value: `where` is `path:line`, a variable's name, an option, or whose default it is."""

    kind: OriginKind
    where: str = ""

    def __str__(self) -> str:
        return self.where if self.kind == "default" and self.where else f"{self.kind} {self.where}".rstrip()


class Config(Sections, frozen=True, kw_only=True):
    """The checked configuration. `limits` already holds `server.timeout` and `server.eof_grace`."""

    origins: dict[str, Origin] = field(default_factory=dict[str, Origin])
    """Dotted key → its source. A key with its default value is not here: see `origin`."""

    files: tuple[str, ...] = ()
    """The files that were read."""

    watch: tuple[str, ...] = ()
    """Paths whose change, creation or deletion may change the configuration."""

    untrusted: dict[str, str] = field(default_factory=dict[str, str])
    """Files whose content does not count, since tools can write it and the user has not trusted it, each with why."""


DEFAULT = Config()
DEFAULT_ORIGIN = Origin("default")


def origin(config: Config, key: str) -> Origin:
    """The source of this dotted key."""
    return config.origins.get(key, DEFAULT_ORIGIN)


def limits_of(config: Config, authors: Limits | None) -> Limits:
    """The author's limits with the configured ones over them, even where a configured one equals the default."""
    if authors is None:
        return config.limits
    from msgspec.structs import replace

    keys = {name: f"limits.{name}" for name in Limits.__struct_fields__}
    given = [name for name, key in keys.items() if MOVED.get(key, key) in config.origins]
    return replace(authors, **{name: getattr(config.limits, name) for name in given})


def fixed_part(config: Config) -> Any:
    """The part that a running server can't change: a change takes effect at the next start."""
    from msgspec.structs import replace

    return (
        replace(config.limits, timeout_seconds=0),
        config.server.log_level,
        config.server.log_format,
        config.server.dialect,
        config.server.debug,
        {name: table.options for name, table in config.toolsets.items() if table.options},
        config.telemetry,
        config.http,
        config.auth,
        config.tokens,
    )


_FIXED_SECTIONS = ("limits", "telemetry", "http", "auth", "tokens")
_FIXED_KEYS = ("eof_grace", "log_level", "log_format", "dialect", "debug", "transport")


def is_fixed(path: tuple[str, ...]) -> bool:
    """Whether a change of the key at this path takes effect at the next start."""
    match path:
        case ("server", key):
            return key in _FIXED_KEYS
        case ("toolsets", _, key):
            return key not in ToolsetConfig.__struct_fields__
        case _:
            return path[0] in _FIXED_SECTIONS


# Names

PREFIX = "LONGSHORE_"
PATH_VARIABLE = "LONGSHORE_CONFIG"

ENV_MARK = "$"
"""A variable can't spell `get-weather` or `getWeather`: its settings are stored under `$GET_WEATHER` for both."""


def dotted(path: Iterable[str]) -> str:
    """A key as TOML writes it: `tools."a.b".timeout`."""
    return ".".join(part if _is_bare(part) else quote(part) for part in path)


def quote(text: str) -> str:
    """A string in double quotes, with everything unprintable escaped: a key can hold terminal control characters."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in plain) + '"'


def _is_bare(part: str) -> bool:
    return part.isascii() and part.removeprefix(ENV_MARK).replace("_", "a").replace("-", "a").isalnum()


def env_form(name: str) -> str:
    """A tool's or toolset's name as a variable holds it: upper case, anything but letters and digits as `_`."""
    return "".join(c if c.isalnum() else "_" for c in name.upper())


def variable_of(path: Iterable[str]) -> str:
    """The variable of a key: `LONGSHORE_TOOLS_GET_WEATHER_TIMEOUT`."""
    return PREFIX + "_".join(env_form(part.removeprefix(ENV_MARK)) for part in path)


# The options of `longshore serve`

CONFIG_OPTION = "--config"
"""Replaces the project file. It is no key, so it is not in the table."""
PROFILE_OPTION = "--profile"
"""Chooses the server, where no target is given."""
HTTP_OPTION = "--http"
"""Chooses the transport."""

FLAGS = {
    "--timeout": "server.timeout",
    "--eof-grace": "server.eof_grace",
    "--log-level": "server.log_level",
    "--log-format": "server.log_format",
    "--schemas": "server.schemas",
    "--dialect": "server.dialect",
    "--debug": "server.debug",
    "--catalog": "server.catalog",
    "--toolsets": "server.toolsets",
    "--tags": "server.tags",
    "--exclude-tags": "server.exclude_tags",
    "--root": "server.roots",
}
"""Options that set a key, of every transport. The fast entry handles them; others go through the command line."""

SET_OPTION = "--set"
"""Sets any key: `--set toolsets.notes.folder=x`. Repeatable."""
SWITCHES = frozenset({"--debug"})
"""Options of FLAGS that take no value."""

REPEATABLE = frozenset({"--root"})
"""Options of FLAGS whose values make a list."""

HTTP_FLAGS = {
    "--host": "http.host",
    "--port": "http.port",
    "--workers": "http.workers",
    "--public-url": "http.public_url",
    "--store": "http.store",
    "--grace": "http.grace",
    "--tls-cert": "http.tls_cert",
    "--tls-key": "http.tls_key",
    "--auth": "auth.mode",
    "--lines": "http.lines",
    "--allow-unauthenticated-remote": "http.allow_unauthenticated_remote",
}
"""Options of HTTP."""
