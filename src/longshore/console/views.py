"""The views of all toolsets that are open: what each browser and each command looks like now."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from time import monotonic
from typing import Any, Final, final

from longshore.errors import ToolError
from longshore.registry.catalog import Catalog
from longshore.registry.views import Shown, View
from longshore.single_flight import SingleFlight
from longshore.telemetry.redactor import redact
from longshore.transports.http.gate import Denied

MOST_VIEWS: Final = 100
FRESH_SECONDS: Final = 0.5
"""A picture is used again for so long: several pages look at one browser for the price of one."""
_KEY_DIGITS: Final = 16
_MOST_TEXT: Final = 200


@final
class Views:
    """The views of one server."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._latest: dict[str, tuple[float, Shown]] = {}
        self._looking: SingleFlight[str, Shown] = SingleFlight()

    def list_all(self) -> list[dict[str, Any]]:
        """What there is to look at."""
        found = list(self._all())[:MOST_VIEWS]
        kept = {key for key, _, _ in found}
        self._latest = {key: each for key, each in self._latest.items() if key in kept}
        return [
            {
                "key": key,
                "kind": view.kind,
                "toolset": toolset,
                "title": redact(view.title)[:_MOST_TEXT],
                "owner": view.owner,
                "subtitle": redact(view.subtitle)[:_MOST_TEXT],
                "updated": view.updated,
            }
            for key, toolset, view in found
        ]

    async def look(self, wanted: str) -> Shown:
        """What one view shows. Raises Denied."""
        view = next((view for key, _, view in self._all() if key == wanted), None)
        if view is None:
            raise Denied(404, "this was closed")
        known = self._latest.get(wanted)
        if known is not None and monotonic() - known[0] < FRESH_SECONDS:
            return known[1]
        try:
            shown = await self._looking.run(wanted, view.look)
        except ToolError as problem:
            raise Denied(503, str(problem), ((b"retry-after", b"1"),)) from None
        self._latest[wanted] = monotonic(), shown
        return shown

    def _all(self) -> Iterator[tuple[str, str, View]]:
        """Each view with its key, which is no handle that a tool takes, and its toolset."""
        for handle in tuple(self._catalog.toolsets.values()):
            if handle.ready and handle.lazy is None:
                for view in handle.toolset.views():
                    key = sha256(f"{handle.name}/{view.key}".encode()).hexdigest()[:_KEY_DIGITS]
                    yield key, handle.name, view
