"""What servers offered when they were last visited, so that a shell completes words at once.

One small file a server, in the user's cache folder, readable by its owner only. It also tells which servers a person
has visited: a shell asks nothing for completion that was not chosen on purpose before.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from longshore.files import delete_oldest, read_regular, user_directory, write_atomic

FRESH_SECONDS = 60.0
"""How long it is not asked again, whether it answered or not."""
FILE_BYTES = 4 << 20
"""What is kept of a server: more takes too long to read at every Tab."""
MOST_FILES = 200
"""Servers that are remembered: more than anybody visits in a month, and 800 MiB at the worst."""

FAILED = "failed"


class Tool(Struct):
    """A tool, as far as completion needs it."""

    name: str
    about: str
    schema: dict[str, Any]


class Offers(Struct):
    """What a server offered. None: that was not asked for."""

    tools: list[Tool] | None = None
    resources: list[str] | None = None
    at: dict[str, float] = {}
    """When each of these came, and when it was asked in vain."""

    def is_fresh(self, what: str) -> bool:
        return abs(time.time() - self.at.get(what, 0.0)) < FRESH_SECONDS


def keep(
    target: Any, *, tools: Sequence[Any] | None = None, resources: Sequence[Any] | None = None, failed: bool = False
) -> None:
    """Remember a visit, and tools and resources as a client lists them.

    Whatever goes wrong with that, nobody is told.
    """
    try:
        made = recall(target) or Offers()
        now = time.time()
        made.at.pop(FAILED, None)
        if tools is not None:
            made.tools, made.at["tools"] = [Tool(each.name, _about(each), each.input_schema) for each in tools], now
        if resources is not None:
            made.resources, made.at["resources"] = [each.uri for each in resources], now
        if failed:
            made.at[FAILED] = now
        data = msgspec.json.encode(made)
        if len(data) > FILE_BYTES:
            data = msgspec.json.encode(Offers(at={FAILED: now}))
        path = _path(target)
        write_atomic(path, data, 0o600)
        delete_oldest(os.path.dirname(path), MOST_FILES)
    except (OSError, TypeError, ValueError, RecursionError):
        return


def recall(target: Any) -> Offers | None:
    """What was remembered; None if nothing."""
    try:
        return msgspec.json.decode(read_regular(_path(target), FILE_BYTES)[0], type=Offers)
    except (OSError, TypeError, ValueError, RecursionError):
        return None


def _about(tool: Any) -> str:
    return " ".join((tool.description or "").split())[:80]


def _path(target: Any) -> str:
    """A file for each target: a relative command means another program in another folder."""
    told = msgspec.json.encode([target, None if isinstance(target, str) else os.getcwd()], order="deterministic")
    return os.path.join(_folder(), f"{sha256(told).hexdigest()[:40]}.json")


def _folder() -> str:
    folder = user_directory("cache")
    if folder is None:
        raise OSError("there is no home folder")
    return os.path.join(folder, "offers")
