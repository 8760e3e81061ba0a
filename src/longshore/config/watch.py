"""Reloads the configuration when one of its files changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from longshore.config.load import fingerprint
from longshore.config.sections import DEFAULT, Config
from longshore.errors import ConfigError


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
        self._seen = fingerprint(config) if config.files else (None,) * len(config.watch)
        return config

    def start(self) -> None:
        """Have `check` look at the files from now on."""
        self._started = True

    def check(self) -> None:
        """Load the configuration again if a file has changed. One that can't be used is only reported."""
        if not self._started:
            return
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
        self._changed(before, config)
