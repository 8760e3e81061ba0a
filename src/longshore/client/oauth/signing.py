"""Signatures: proofs of a key (DPoP) and of a client (private_key_jwt). Needs joserfc, so it is loaded when needed."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from longshore.errors import AuthorizationError


def load_signing(what: str) -> Any:
    """The module that signs. Raises AuthorizationError, with the fix, where its library is missing."""
    try:
        module: ModuleType = import_module("longshore.client.oauth.signatures")
    except ImportError as missing:
        fix = "install it with: pip install 'longshore[jwt]'"
        raise AuthorizationError(f"{what} needs the library {missing.name or 'joserfc'}; {fix}") from None
    return module


def can_sign() -> bool:
    """Whether signatures can be made here."""
    try:
        load_signing("")
    except AuthorizationError:
        return False
    return True
