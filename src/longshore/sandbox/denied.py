"""Names that usually hold secrets: keys, passwords, the folders of programs that store them."""

from typing import Final

DENIED: Final = (
    ".env", ".env.*", "*.pem", "*.key", "*.p12", "*.pfx", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*",
    ".netrc", ".git-credentials", ".pgpass", ".ssh", ".aws", ".gnupg", ".kube",
)  # fmt: skip
"""Globs, as for `DeniedNames`."""
