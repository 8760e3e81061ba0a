"""A client of any MCP server: `async with Client(target) as client`, or `with SyncClient(target) as client`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from longshore.client.channel import Channel as Channel
    from longshore.client.client import Client as Client
    from longshore.client.handlers import ElicitQuestion as ElicitQuestion
    from longshore.client.models import Change as Change
    from longshore.client.models import Completion as Completion
    from longshore.client.models import LogMessage as LogMessage
    from longshore.client.models import PromptInfo as PromptInfo
    from longshore.client.models import PromptResult as PromptResult
    from longshore.client.models import ResourceInfo as ResourceInfo
    from longshore.client.models import Result as Result
    from longshore.client.models import ServerInfo as ServerInfo
    from longshore.client.models import TemplateInfo as TemplateInfo
    from longshore.client.models import ToolInfo as ToolInfo
    from longshore.client.sync import SyncClient as SyncClient

# The names of each module, which is loaded at the first use: `longshore.client.configs` needs no connection.
_NAMES = {
    "client": "Client",
    "sync": "SyncClient",
    "channel": "Channel",
    "handlers": "ElicitQuestion",
    "models": (
        "Change Completion LogMessage PromptInfo PromptResult ResourceInfo Result ServerInfo TemplateInfo ToolInfo"
    ),
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [*_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'longshore.client' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"longshore.client.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
