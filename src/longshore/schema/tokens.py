"""What something costs a model that reads it as JSON."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from longshore.schema.output import encode_special

TOKEN_CHARACTERS: Final = 4
"""What a token is, wherever one of our figures counts them. Each model has its own; this is near enough to compare."""

_encode = msgspec.json.Encoder(enc_hook=encode_special).encode


def count_tokens(value: Any) -> int:
    """About how many it is. Nothing costs nothing, nor does what has no JSON form: neither is sent."""
    try:
        return -(-len(_encode(value).decode()) // TOKEN_CHARACTERS) if value else 0
    except Exception:
        return 0
