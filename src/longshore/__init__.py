"""Longshore: an MCP server that any agent can plug in, and the Python framework that it is built with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# The modules of the public names. They are loaded when they are first used: an import should cost what is used of it.
_MODULES = {
    "longshore.app": "Server",
    "longshore.server.context": "Context",
    "longshore.auth.verifiers": "TokenVerifier",
    "longshore.protocol.peer": "Principal",
    "longshore.server.middleware": (
        "Middleware ToolRequest ResourceRequest PromptRequest ListRequest CallTool ReadResource GetPrompt ListEntries"
    ),
    "longshore.registry.toolset": "Toolset tool resource prompt",
    "longshore.registry.handles": "HandleTable",
    "longshore.registry.tool": "Tool",
    "longshore.registry.options": "Size Folder Variable",
    "longshore.registry.token_budget": "MaxTokens fit_lines fit_ends",
    "longshore.protocol.content": (
        "CallResult Text Image Audio ResourceLink EmbeddedResource Contents Message Icon Annotations"
    ),
    "longshore.protocol.questions": "Ask Elicit ElicitAnswer Sample SampleAnswer ListRoots Root",
    "longshore.schema.header_params": "Header",
    "longshore.schema.annotations": "Alias Hidden",
    "longshore.limits": "Limits",
    "longshore.client.client": "Client",
    "longshore.client.sync": "SyncClient",
    "longshore.errors": (
        "LongshoreError RegistrationError ConfigError ToolError ResourceNotFound Cancelled Declined ClientError "
        "ConnectError ConnectionLost CallTimeout ServerError BadAnswer Unanswerable ToolFailed HttpRefused WouldBlock "
        "AuthorizationError TargetError StoreError LifespanFailed"
    ),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

if TYPE_CHECKING:
    from longshore.app import Server as Server
    from longshore.auth.verifiers import TokenVerifier as TokenVerifier
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
    from longshore.errors import LifespanFailed as LifespanFailed
    from longshore.errors import LongshoreError as LongshoreError
    from longshore.errors import RegistrationError as RegistrationError
    from longshore.errors import ResourceNotFound as ResourceNotFound
    from longshore.errors import ServerError as ServerError
    from longshore.errors import StoreError as StoreError
    from longshore.errors import TargetError as TargetError
    from longshore.errors import ToolError as ToolError
    from longshore.errors import ToolFailed as ToolFailed
    from longshore.errors import Unanswerable as Unanswerable
    from longshore.errors import WouldBlock as WouldBlock
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
    from longshore.protocol.peer import Principal as Principal
    from longshore.protocol.questions import Ask as Ask
    from longshore.protocol.questions import Elicit as Elicit
    from longshore.protocol.questions import ElicitAnswer as ElicitAnswer
    from longshore.protocol.questions import ListRoots as ListRoots
    from longshore.protocol.questions import Root as Root
    from longshore.protocol.questions import Sample as Sample
    from longshore.protocol.questions import SampleAnswer as SampleAnswer
    from longshore.registry.handles import HandleTable as HandleTable
    from longshore.registry.options import Folder as Folder
    from longshore.registry.options import Size as Size
    from longshore.registry.options import Variable as Variable
    from longshore.registry.token_budget import MaxTokens as MaxTokens
    from longshore.registry.token_budget import fit_ends as fit_ends
    from longshore.registry.token_budget import fit_lines as fit_lines
    from longshore.registry.tool import Tool as Tool
    from longshore.registry.toolset import Toolset as Toolset
    from longshore.registry.toolset import prompt as prompt
    from longshore.registry.toolset import resource as resource
    from longshore.registry.toolset import tool as tool
    from longshore.schema.annotations import Alias as Alias
    from longshore.schema.annotations import Hidden as Hidden
    from longshore.schema.header_params import Header as Header
    from longshore.server.context import Context as Context
    from longshore.server.middleware import CallTool as CallTool
    from longshore.server.middleware import GetPrompt as GetPrompt
    from longshore.server.middleware import ListEntries as ListEntries
    from longshore.server.middleware import ListRequest as ListRequest
    from longshore.server.middleware import Middleware as Middleware
    from longshore.server.middleware import PromptRequest as PromptRequest
    from longshore.server.middleware import ReadResource as ReadResource
    from longshore.server.middleware import ResourceRequest as ResourceRequest
    from longshore.server.middleware import ToolRequest as ToolRequest

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
