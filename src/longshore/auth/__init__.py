"""Authentication over HTTP: credentials, verification, refusals.

A token goes no further than `Guard`: its result is a Principal, with a name and scopes.
"""

from longshore.auth.credentials import Headers, Refusal
from longshore.auth.guard import Guard

__all__ = ["Guard", "Headers", "Refusal"]
