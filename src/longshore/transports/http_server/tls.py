"""TLS from two PEM files. Errors name the configuration key and the file."""

from __future__ import annotations

import ssl

from longshore.config.sections import HttpConfig
from longshore.errors import ConfigError


def make_context(http: HttpConfig) -> ssl.SSLContext | None:
    """The context to serve HTTPS with; None if that is not configured."""
    cert, key = http.tls_cert, http.tls_key
    if cert is None:
        if key is not None:
            raise ConfigError("http.tls_key: of no use without http.tls_cert")
        return None
    for name, path in (("http.tls_cert", cert), ("http.tls_key", key or cert)):
        try:
            open(path, "rb").close()
        except OSError as problem:
            raise ConfigError(f"{name}: {path} can't be read: {problem.strerror}") from None
    key_name, key_path = ("http.tls_cert", cert) if key is None else ("http.tls_key", key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(cert, key, password=_refuse_password)
    except _Encrypted:
        raise ConfigError(
            f"{key_name}: {key_path} is encrypted, and a server can't ask for the passphrase; "
            "decrypt it:  openssl pkey -in IN -out OUT"
        ) from None
    except (ssl.SSLError, ValueError) as problem:
        if "MISMATCH" in (getattr(problem, "reason", "") or ""):
            text = f"http.tls_key: {key_path} is not the key of the certificate in {cert}"
        elif _is_certificate(cert):
            text = f"{key_name}: {key_path} holds no private key in PEM form"
        else:
            text = f"http.tls_cert: {cert} holds no certificate in PEM form"
        raise ConfigError(text) from None
    return context


class _Encrypted(Exception):
    pass


def _refuse_password() -> str:
    raise _Encrypted


def _is_certificate(path: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except (ssl.SSLError, OSError, ValueError):
        return False
    return True
