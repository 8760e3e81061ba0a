"""The address of a store in PostgreSQL: connection string, schema, and a text without the password."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct
from psycopg import Error
from psycopg.conninfo import conninfo_to_dict

from longshore.errors import StoreError

SCHEMA: Final = "contextgraph"
"""The schema of the tables, unless the address ends with `?schema=another`: several projects can share a server."""
_SCHEMA_NAME: Final = re.compile("[a-z_][a-z0-9_]{0,49}")
_SECRETS: Final = ("password", "sslpassword", "oauth_client_secret")
_DEFAULTS: Final = {
    "application_name": "longshore",
    "connect_timeout": "10",
    # A host that was switched off is noticed within a minute.
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
}


class PostgresAddress(Struct, frozen=True):
    """The parts of the address of a store in PostgreSQL."""

    parameters: dict[str, Any]
    """For the driver."""
    schema: str
    place: str
    """The address without secrets."""

    def masked(self, text: str) -> str:
        """A message of the driver without secrets."""
        for secret in (str(self.parameters.get(name) or "") for name in _SECRETS):
            for written in {secret, quote(secret, safe="")} - {""}:
                text = text.replace(written, "***")
        return text


def parse_address(url: str) -> PostgresAddress:
    """The parts of a `postgresql://` address. Raises StoreError, whose message never includes a possible password."""
    plain, schema = _take_schema(url)
    if not _SCHEMA_NAME.fullmatch(schema):
        raise _refused("the name of its schema has other characters than a-z, 0-9 and _, or more than 50")
    try:
        given = {name: str(value) for name, value in conninfo_to_dict(plain).items()}
    except Error:
        raise _refused("it is not an address of PostgreSQL") from None
    host, port, database = (given.get(name, "") for name in ("host", "port", "dbname"))
    # An unescaped @ or / of a password makes its rest a part of these.
    if "@" in host + database or "/" in database or not re.fullmatch("[0-9,]*", port):
        raise _refused("its parts can't be told apart; write @ / : ? and % of a password as %40 %2F %3A %3F and %25")
    user = quote(given["user"], safe="") + "@" if given.get("user") else ""
    shown = f"postgresql://{user}{host}{':' + port if port else ''}/{database}"
    place = shown if schema == SCHEMA else f"{shown}?schema={schema}"
    return PostgresAddress({**_DEFAULTS, **given, "client_encoding": "UTF8"}, schema, place)


def _take_schema(url: str) -> tuple[str, str]:
    """The address without its parameter `schema`, which the driver does not know, and the value of that."""
    start = url.find("://") + 3
    login = url[start:].partition("/")[0].find("@") + 1
    mark = url.find("?", start + login)
    if mark < 0:
        return url, SCHEMA
    pairs = url[mark + 1 :].split("&")
    named = [pair.partition("=")[2] for pair in pairs if pair.startswith("schema=")]
    rest = "&".join(pair for pair in pairs if not pair.startswith("schema="))
    return url[:mark] + ("?" + rest if rest else ""), named[-1] if named else SCHEMA


def _refused(what: str) -> StoreError:
    fix = "write it as postgresql://USER:PASSWORD@HOST:PORT/DATABASE in CONTEXTGRAPH_DB"
    return StoreError("postgresql://…", what, fix)
