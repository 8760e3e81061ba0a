"""The sinks that the configuration names, each with a thread of its own."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.util import find_spec
from time import monotonic
from typing import Final, final

from longshore.config import Config
from longshore.config.sections import TelemetryConfig
from longshore.errors import ConfigError
from longshore.telemetry.feeder import Feeder, Sink
from longshore.telemetry.recorder import Recorder

STOP_SECONDS: Final = 1.0
"""At the end, for what was not written yet. All sinks share it."""


@final
class Sinks:
    """The running feeders of one server."""

    def __init__(self, recorder: Recorder, config: Config, service: str, version: str) -> None:
        """Start them. Raises ConfigError for a sink that can't work here."""
        self._recorder, telemetry = recorder, config.telemetry
        openers = _openers(telemetry, service, version)
        recorder.keep(values=telemetry.values, traces=telemetry.otlp is not None)
        ring = recorder.open_ring(telemetry.ring)
        self.feeders = [Feeder(name, recorder, ring, open) for name, open in openers.items()]
        for feeder in self.feeders:
            feeder.start()

    def flush(self) -> None:
        """Wait until everything is written that was recorded so far, for a moment at most."""
        end = monotonic() + STOP_SECONDS
        for feeder in self.feeders:
            feeder.flush(max(0.0, end - monotonic()))

    def close(self) -> None:
        """Write what is there, for a moment at most."""
        end = monotonic() + STOP_SECONDS
        for feeder in self.feeders:
            is_complete = feeder.stop(max(0.0, end - monotonic()))
            if feeder.dropped or not is_complete:
                count = f"{feeder.dropped:,} events" if feeder.dropped else "some events"
                self._recorder.problem("warning", f"telemetry: {count} did not reach the {feeder.name}")


def _openers(config: TelemetryConfig, service: str, version: str) -> dict[str, Callable[[], Sink]]:
    openers: dict[str, Callable[[], Sink]] = {}
    if config.file:
        path, most, count = os.path.abspath(os.path.expanduser(config.file)), config.file_bytes, config.file_count

        def open_file() -> Sink:
            from longshore.telemetry.log_file import LogFile

            return LogFile(path, most, count)

        openers["file"] = open_file
    if config.history:
        place = os.path.abspath(os.path.expanduser(config.history))

        def open_history() -> Sink:
            from longshore.telemetry.history import History

            return History(place, config.history_age, config.history_bytes)

        openers["history"] = open_history
    if config.otlp:
        endpoint = _check_otlp(config.otlp)

        def open_otlp() -> Sink:
            from longshore.telemetry.otlp import OtlpSink

            return OtlpSink(endpoint, service, version)

        openers["otlp"] = open_otlp
    return openers


def _check_otlp(endpoint: str) -> str:
    if not endpoint.startswith(("http://", "https://")):
        raise ConfigError("telemetry.otlp: it is the address of a collector, such as http://127.0.0.1:4318")
    for module in ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"):
        try:
            found = find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            raise ConfigError("telemetry.otlp needs OpenTelemetry: pip install 'longshore[otel]'")
    return endpoint
