"""How a client gets the tokens that a server asks for: `Client(url, auth=OAuth())`, or `auth=Bearer("…")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

_NAMES = {
    "authorizer": "Authorizer AuthRequest Bearer",
    "grants": "ClientCredentials EnterpriseManaged JwtBearer",
    "oauth": "OAuth",
    "token_store": "FileStorage KeyringStorage MemoryStorage Storage",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}

if TYPE_CHECKING:
    from longshore.client.auth.authorizer import Authorizer as Authorizer
    from longshore.client.auth.authorizer import AuthRequest as AuthRequest
    from longshore.client.auth.authorizer import Bearer as Bearer
    from longshore.client.auth.grants import ClientCredentials as ClientCredentials
    from longshore.client.auth.grants import EnterpriseManaged as EnterpriseManaged
    from longshore.client.auth.grants import JwtBearer as JwtBearer
    from longshore.client.auth.oauth import OAuth as OAuth
    from longshore.client.auth.token_store import FileStorage as FileStorage
    from longshore.client.auth.token_store import KeyringStorage as KeyringStorage
    from longshore.client.auth.token_store import MemoryStorage as MemoryStorage
    from longshore.client.auth.token_store import Storage as Storage

__all__ = [*_MODULES]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'longshore.client.auth' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"longshore.client.auth.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
