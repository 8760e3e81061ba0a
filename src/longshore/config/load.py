"""Reading the configuration: find the files, merge all sources if anything is configured, read it again on a change.

Runs at every cold start: `os` only, two questions to the kernel for each folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeAlias, final

from msgspec import Struct

from longshore.config.sections import DEFAULT, PATH_VARIABLE, PREFIX, Config
from longshore.errors import ConfigError
from longshore.files import user_directory

FILE = "longshore.toml"
TRUST_FILE = "trust.json"

IsWritable: TypeAlias = Callable[[str, Sequence[str]], bool]
"""Whether tools can change what is at a path, where the configuration names these roots, or none."""


class ForeignConfig(Struct, frozen=True, kw_only=True):
    """The configuration of another program that a server reads as its own, and the keys of ours that its keys mean."""

    keys: Mapping[str, str]
    """Its keys, each with ours: `timeout` is `server.timeout`."""
    switches: Mapping[str, tuple[str, str]] = {}
    """Those of them that are true or false, each with the values of ours for both."""
    variables: Mapping[str, str] = {}
    """Its variables, each with the key that it sets."""
    path: str = ""
    """Its file, which holds a JSON object of these keys and of one table for each tool, under `tools`."""
    toolsets: tuple[str, ...] = ()
    """The toolsets that these tables are for."""
    shared: tuple[str, ...] = ()
    """Keys that hold for each of these toolsets too, unless its table says otherwise."""


class ConfiguredToolset(Protocol):
    """A toolset as the configuration reads it. `options_type` is not read if nothing is configured for it."""

    @property
    def options_type(self) -> type[Struct] | None: ...

    @property
    def variables(self) -> Mapping[str, str]:
        """Variables beside ours that set an option, each with the option's name."""
        ...


class Files(Struct, frozen=True, kw_only=True):
    """The files to read, the weakest first; None: there is none."""

    foreign: str | None = None
    user: str | None = None
    project: str | None = None
    is_named: bool = False
    """Whether the user has named the project's file."""
    watch: tuple[str, ...] = ()
    """Paths whose change, creation or deletion may change the configuration."""

    def __bool__(self) -> bool:
        return bool(self.foreign or self.user or self.project)


class Inputs(Struct, frozen=True):
    """All that the configuration is made of, but for the files."""

    cwd: str
    environ: Mapping[str, str]
    variables: Mapping[str, str]
    flags: Mapping[str, Any]
    toolsets: Mapping[str, ConfiguredToolset] | None
    defaults: Mapping[str, Any]
    defaults_name: str
    foreign: ForeignConfig | None

    def merge(self, files: Files, texts: Mapping[str, str]) -> Config:
        """The configuration with these files. `texts` count in place of the content of the files at their paths."""
        if not (files or self.flags or self.variables or self.defaults or self.foreign):
            return Config(watch=files.watch)
        from longshore.config.sources import Sources

        sources = Sources(self.cwd, self.toolsets, texts)
        sources.add_flags(self.defaults, self.defaults_name)
        foreign = None
        if self.foreign is not None:
            from longshore.config.foreign import ForeignSettings

            foreign = ForeignSettings(self.foreign, files.foreign, self.cwd, texts)
            if files.foreign is not None:
                sources.note_file(files.foreign)
            sources.add_foreign(foreign.of_file())
        sources.add_file("user", files.user)
        sources.add_file("project", files.project)
        if foreign is not None:
            sources.add_foreign(foreign.of_variables(self.environ))
        sources.add_variables(self.variables)
        sources.add_flags(self.flags)
        return sources.build(files.watch)


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    environ: Mapping[str, str] | None = None,
    cwd: str | None = None,
    path: str | None = None,
    toolsets: Mapping[str, ConfiguredToolset] | None = None,
    defaults: Mapping[str, Any] | None = None,
    defaults_name: str = "",
    foreign: ForeignConfig | None = None,
    is_writable: IsWritable | None = None,
) -> Config:
    """Read the configuration: flag > environment > project file > user file > foreign file > `defaults` > default.

    - `flags` maps dotted keys (`server.timeout`) to texts or values; None means not given.
    - `path` replaces the project file and must exist.
    - `toolsets` are those of the server; their options are checked. None: unknown, so options are not checked.
    - `defaults` are in the form of `flags`; `defaults_name` says whose they are: "profile bb".
    - `foreign` is the configuration of another program that is read too. Our own variables override its variables.
    - `is_writable` says which files tools can write: these count only as the user has trusted them. None: all count.
    - Raises ConfigError with a line for each problem, all found at once.
    """
    environ = os.environ if environ is None else environ
    given = {key: value for key, value in flags.items() if value is not None} if flags else {}
    try:
        here = os.path.abspath(cwd) if cwd else os.getcwd()
    except FileNotFoundError:
        here = ""  # it was deleted
    search = partial(_find_files, environ, here, path, foreign)
    files = search(_exists)
    # An empty variable counts as unset, as XDG has it: launchers pass on empty ones.
    second = {variable for toolset in (toolsets or {}).values() for variable in toolset.variables}
    names = [name for name in environ if name in second or (name.startswith(PREFIX) and name != PATH_VARIABLE)]
    variables = {name: environ[name] for name in names if environ[name]}
    inputs = Inputs(here, environ, variables, given, toolsets, defaults or {}, defaults_name, foreign)
    if is_writable is not None:
        record = trust_file(environ)
        if files or (record and _exists(record)):
            from longshore.config.trust import Trust

            return Trust(record, is_writable, inputs.merge).load(search)
    return inputs.merge(files, {})


def fingerprint(config: Config) -> tuple[tuple[int, int, int] | None, ...]:
    """The state of the watched paths; load again when it differs. Takes a few µs."""
    states: list[tuple[int, int, int] | None] = []
    for path in config.watch:
        try:
            found = os.stat(path)
            states.append((found.st_mtime_ns, found.st_size, found.st_ino))
        except OSError:
            states.append(None)
    return tuple(states)


@final
class ConfigWatch:
    """The configuration of one server. `check` is cheap: a few µs for each watched path."""

    def __init__(self, changed: Callable[[Config, Config], None], failed: Callable[[ConfigError], None]) -> None:
        """`changed` takes the old and the new configuration, `failed` the error of one that can't be used."""
        self._changed, self._failed = changed, failed
        self._load: Callable[[], Config] = lambda: DEFAULT
        self._seen: tuple[Any, ...] = ()
        self._config = DEFAULT
        self._started = False

    def load(self, load: Callable[[], Config]) -> Config:
        """Load the configuration, now and whenever it has changed."""
        self._load = load
        self._config = config = load()
        # Without a file there was nothing to look at; each that appears is a change.
        self._seen = fingerprint(config) if config.files or config.untrusted else (None,) * len(config.watch)
        return config

    def start(self) -> None:
        """Have `check` look at the files from now on."""
        self._started = True

    def check(self) -> None:
        """Load the configuration again if a file has changed. If it can't be used, that is reported."""
        if self._started:
            self.look()

    def look(self) -> None:
        """The same, also before the start."""
        now = fingerprint(self._config)
        if now == self._seen:
            return
        self._seen = now
        try:
            config = self._load()
        except ConfigError as problem:
            self._failed(problem)
            return
        before, self._config = self._config, config
        if config != before:
            self._changed(before, config)


# Finding the files


def project_file(path: str | None = None) -> str:
    """The project's file: the one that is read, else the one to create. `path` replaces it, as in `load`."""
    here = os.getcwd()
    return _find_files(os.environ, here, path, None, _exists).project or os.path.join(here, FILE)


def trust_file(environ: Mapping[str, str] | None = None) -> str | None:
    """The record of the files that the user has trusted, which need not exist. None: the user has no home."""
    folder = user_directory("state", environ)
    return os.path.join(folder, TRUST_FILE) if folder else None


def _exists(path: str) -> bool:
    return os.access(path, os.F_OK)


def _find_files(
    environ: Mapping[str, str],
    here: str,
    path: str | None,
    foreign: ForeignConfig | None,
    counts: Callable[[str], bool],
) -> Files:
    """The files that count, and the paths to watch. Raises ConfigError."""
    folder = user_directory("config", environ)
    user = os.path.normpath(os.path.join(folder, FILE)) if folder else None
    chosen = path or environ.get(PATH_VARIABLE)
    if chosen:
        candidates = [os.path.normpath(os.path.join(here, os.path.expanduser(chosen)))]
        project: str | None = candidates[0]
        if not _exists(candidates[0]):
            raise ConfigError(f"{'--config' if path else PATH_VARIABLE}: no such file: {chosen}")
    else:
        candidates, project = _search(here, counts) if here else ([], None)
    other = os.path.normpath(os.path.expanduser(foreign.path)) if foreign is not None and foreign.path else None
    # Started in ~/.config/longshore, the user's file is also the nearest one; it counts once.
    return Files(
        foreign=other if other and counts(other) else None,
        user=user if user and user not in candidates and counts(user) else None,
        project=project,
        is_named=bool(chosen),
        watch=tuple(dict.fromkeys(each for each in (user, *candidates, other) if each)),
    )


def _search(folder: str, counts: Callable[[str], bool]) -> tuple[list[str], str | None]:
    """Look in each folder upward until a file, a `.git` or the root. All candidates are watched: a nearer file wins."""
    candidates: list[str] = []
    while True:
        candidates.append(os.path.join(folder, FILE))
        if counts(candidates[-1]):
            if len(candidates) > 1:
                _check_owner(candidates[-1])
            return candidates, candidates[-1]
        parent = os.path.dirname(folder)
        if parent == folder or _exists(os.path.join(folder, ".git")):
            return candidates, None
        folder = parent


def _check_owner(path: str) -> None:
    """Refuse a file of another user above the folder that this one chose: anyone can put one into /tmp."""
    try:
        owners = {os.lstat(path).st_uid, os.stat(path).st_uid}  # of a link, and of its target
    except OSError:
        return  # it was deleted meanwhile; reading it says so
    others = owners - {os.geteuid(), 0}
    if others:
        fix = "--config PATH takes it if you trust it, or another file, or /dev/null for none"
        raise ConfigError(f"{path}: it belongs to another user (uid {min(others)}), so it is not read; {fix}")
