"""Keys as backends file them: by family, the part up to the first colon."""

from __future__ import annotations


def family_of(key: str) -> str:
    """`session:` of `session:42`; empty for a key without a colon."""
    return key[: key.find(":") + 1]


def family_of_prefix(prefix: str) -> str:
    """The one family that all keys with this prefix belong to."""
    family = family_of(prefix)
    if not family:
        raise ValueError(f"a prefix must name a family, like 'session:'; {prefix!r} has no colon")
    return family


def to_bytes(name: str) -> bytes:
    """A name as databases keep it. Total: a lone surrogate from a header must not break a lookup."""
    return name.encode("utf-8", "surrogatepass")


def to_text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogatepass")
