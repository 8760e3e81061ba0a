"""How a client gets the tokens that a server asks for: `Client(url, auth=OAuth())`, or `auth=Bearer("…")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_HOMES = {
    "Authorizer": "longshore.client.oauth.authorizer",
    "Bearer": "longshore.client.oauth.authorizer",
    "OAuth": "longshore.client.oauth.login",
    "ClientCredentials": "longshore.client.oauth.grants",
    "EnterpriseManaged": "longshore.client.oauth.grants",
    "JwtBearer": "longshore.client.oauth.grants",
    "FileStorage": "longshore.client.oauth.storage",
    "KeyringStorage": "longshore.client.oauth.storage",
    "MemoryStorage": "longshore.client.oauth.storage",
    "Storage": "longshore.client.oauth.storage",
}

if TYPE_CHECKING:
    from longshore.client.oauth.authorizer import Authorizer as Authorizer
    from longshore.client.oauth.authorizer import Bearer as Bearer
    from longshore.client.oauth.grants import ClientCredentials as ClientCredentials
    from longshore.client.oauth.grants import EnterpriseManaged as EnterpriseManaged
    from longshore.client.oauth.grants import JwtBearer as JwtBearer
    from longshore.client.oauth.login import OAuth as OAuth
    from longshore.client.oauth.storage import FileStorage as FileStorage
    from longshore.client.oauth.storage import KeyringStorage as KeyringStorage
    from longshore.client.oauth.storage import MemoryStorage as MemoryStorage
    from longshore.client.oauth.storage import Storage as Storage

__all__ = [*_HOMES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'longshore.client.oauth' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
