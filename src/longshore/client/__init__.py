"""A client of any MCP server: `async with Client(target) as client`, or `with SyncClient(target) as client`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

# Where each name lives. They are loaded when they are first used: `longshore.client.servers` needs no connection.
_HOMES = {
    "Client": "longshore.client.client",
    "SyncClient": "longshore.client.sync",
    "Channel": "longshore.client.channel",
    "Change": "longshore.client.records",
    "Completion": "longshore.client.records",
    "ElicitQuestion": "longshore.client.answering",
    "LogMessage": "longshore.client.records",
    "PromptInfo": "longshore.client.records",
    "PromptResult": "longshore.client.results",
    "ResourceInfo": "longshore.client.records",
    "Result": "longshore.client.results",
    "ServerInfo": "longshore.client.records",
    "TemplateInfo": "longshore.client.records",
    "ToolInfo": "longshore.client.records",
}

if TYPE_CHECKING:
    from longshore.client.answering import ElicitQuestion as ElicitQuestion
    from longshore.client.channel import Channel as Channel
    from longshore.client.client import Client as Client
    from longshore.client.records import Change as Change
    from longshore.client.records import Completion as Completion
    from longshore.client.records import LogMessage as LogMessage
    from longshore.client.records import PromptInfo as PromptInfo
    from longshore.client.records import ResourceInfo as ResourceInfo
    from longshore.client.records import ServerInfo as ServerInfo
    from longshore.client.records import TemplateInfo as TemplateInfo
    from longshore.client.records import ToolInfo as ToolInfo
    from longshore.client.results import PromptResult as PromptResult
    from longshore.client.results import Result as Result
    from longshore.client.sync import SyncClient as SyncClient

__all__ = [*_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'longshore.client' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
