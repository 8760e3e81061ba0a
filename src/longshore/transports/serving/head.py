"""What is made of a request's head beyond what the parser does."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import httptools

from longshore.transports.serving.statuses import Refused

Headers = list[tuple[bytes, bytes]]


def locate(scope: dict[str, Any], url: bytes) -> None:
    """Put the path and the query where ASGI has them."""
    raw, query = url, b""
    if not url.startswith(b"/") or b"?" in url or b"#" in url:
        parsed = httptools.parse_url(url)
        raw, query = parsed.path or b"/", parsed.query or b""
        if not url.startswith(b"/"):
            _name_host(scope["headers"], url, parsed)
    path = raw.decode("ascii")
    scope["path"] = unquote(path) if "%" in path else path
    scope["raw_path"] = raw
    scope["query_string"] = query


def _name_host(headers: Headers, url: bytes, parsed: Any) -> None:
    """`GET http://host/path`: the host in there is what counts, whatever the Host header says."""
    if url == b"*":
        return
    if not parsed.host:
        raise Refused(400, "a request names a path on this server")
    authority = url.partition(b"://")[2].partition(b"/")[0].partition(b"?")[0]
    headers[:] = [(name, value) for name, value in headers if name != b"host"]
    headers.append((b"host", authority))


def head_bytes(method: bytes, url: bytes, headers: Headers) -> int:
    """How long the head is that these came from."""
    line = len(method) + len(url) + len("  HTTP/1.1\r\n\r\n")
    return line + sum(len(name) + len(value) + len(": \r\n") for name, value in headers)


def without_offer(headers: Headers) -> Headers:
    """The headers of a request that offers to switch to another protocol, less the offer."""
    kept = [(name, value) for name, value in headers if name not in (b"upgrade", b"http2-settings")]
    return [
        (name, b"keep-alive" if name == b"connection" and b"upgrade" in value.lower() else value)
        for name, value in kept
    ]
