"""Who a request over HTTP acts for: credentials, how they are checked, what a refusal says.

`Guard` is the door. A token reaches nothing behind it: what comes out is a Principal, which holds a name and scopes.
"""

from longshore.auth.challenge import Refusal
from longshore.auth.credentials import Headers
from longshore.auth.guard import Guard

__all__ = ["Guard", "Headers", "Refusal"]
