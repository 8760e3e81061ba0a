"""Longshore: an MCP server that any agent can plug in, and the Python framework that it is built with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Where each public name lives. They are loaded when they are first used: an import should cost what is used of it.
_HOMES = {
    "Server": "longshore.app",
    "Context": "longshore.server.context",
    "Toolset": "longshore.registry.toolset",
    "tool": "longshore.registry.toolset",
    "resource": "longshore.registry.toolset",
    "prompt": "longshore.registry.toolset",
    "Tool": "longshore.registry.tool",
    "CallResult": "longshore.protocol.content",
    "Text": "longshore.protocol.content",
    "Image": "longshore.protocol.content",
    "Audio": "longshore.protocol.content",
    "ResourceLink": "longshore.protocol.content",
    "EmbeddedResource": "longshore.protocol.content",
    "Contents": "longshore.protocol.content",
    "Message": "longshore.protocol.content",
    "Icon": "longshore.protocol.content",
    "Annotations": "longshore.protocol.content",
    "Ask": "longshore.protocol.questions",
    "Header": "longshore.schema.header_params",
    "Was": "longshore.schema.annotations",
    "Elicit": "longshore.protocol.questions",
    "ElicitAnswer": "longshore.protocol.questions",
    "Sample": "longshore.protocol.questions",
    "SampleAnswer": "longshore.protocol.questions",
    "ListRoots": "longshore.protocol.questions",
    "Root": "longshore.protocol.questions",
    "Limits": "longshore.limits",
    "LongshoreError": "longshore.errors",
    "RegistrationError": "longshore.errors",
    "ConfigError": "longshore.errors",
    "ToolError": "longshore.errors",
    "ResourceNotFound": "longshore.errors",
    "Cancelled": "longshore.errors",
    "Declined": "longshore.errors",
    "Client": "longshore.client.client",
    "SyncClient": "longshore.client.sync",
    "ClientError": "longshore.errors",
    "ConnectError": "longshore.errors",
    "ConnectionLost": "longshore.errors",
    "CallTimeout": "longshore.errors",
    "ServerError": "longshore.errors",
    "BadAnswer": "longshore.errors",
    "Unanswerable": "longshore.errors",
    "ToolFailed": "longshore.errors",
    "HttpRefused": "longshore.errors",
    "AuthorizationError": "longshore.errors",
}

if TYPE_CHECKING:
    from longshore.app import Server as Server
    from longshore.client.client import Client as Client
    from longshore.client.sync import SyncClient as SyncClient
    from longshore.errors import AuthorizationError as AuthorizationError
    from longshore.errors import BadAnswer as BadAnswer
    from longshore.errors import CallTimeout as CallTimeout
    from longshore.errors import Cancelled as Cancelled
    from longshore.errors import ClientError as ClientError
    from longshore.errors import ConfigError as ConfigError
    from longshore.errors import ConnectError as ConnectError
    from longshore.errors import ConnectionLost as ConnectionLost
    from longshore.errors import Declined as Declined
    from longshore.errors import HttpRefused as HttpRefused
    from longshore.errors import LongshoreError as LongshoreError
    from longshore.errors import RegistrationError as RegistrationError
    from longshore.errors import ResourceNotFound as ResourceNotFound
    from longshore.errors import ServerError as ServerError
    from longshore.errors import ToolError as ToolError
    from longshore.errors import ToolFailed as ToolFailed
    from longshore.errors import Unanswerable as Unanswerable
    from longshore.limits import Limits as Limits
    from longshore.protocol.content import Annotations as Annotations
    from longshore.protocol.content import Audio as Audio
    from longshore.protocol.content import CallResult as CallResult
    from longshore.protocol.content import Contents as Contents
    from longshore.protocol.content import EmbeddedResource as EmbeddedResource
    from longshore.protocol.content import Icon as Icon
    from longshore.protocol.content import Image as Image
    from longshore.protocol.content import Message as Message
    from longshore.protocol.content import ResourceLink as ResourceLink
    from longshore.protocol.content import Text as Text
    from longshore.protocol.questions import Ask as Ask
    from longshore.protocol.questions import Elicit as Elicit
    from longshore.protocol.questions import ElicitAnswer as ElicitAnswer
    from longshore.protocol.questions import ListRoots as ListRoots
    from longshore.protocol.questions import Root as Root
    from longshore.protocol.questions import Sample as Sample
    from longshore.protocol.questions import SampleAnswer as SampleAnswer
    from longshore.registry.tool import Tool as Tool
    from longshore.registry.toolset import Toolset as Toolset
    from longshore.registry.toolset import prompt as prompt
    from longshore.registry.toolset import resource as resource
    from longshore.registry.toolset import tool as tool
    from longshore.schema.annotations import Was as Was
    from longshore.schema.header_params import Header as Header
    from longshore.server.context import Context as Context

__all__ = ["__version__", *_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'longshore' has no attribute {name!r}")
    import sys

    __import__(home)  # `importlib` takes 0.2 ms of a cold start
    value = getattr(sys.modules[home], name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
