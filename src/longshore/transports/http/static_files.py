"""The files of a package's folder over HTTP. Only names that the folder lists are served, so no path leads outside."""

from __future__ import annotations

import os
from hashlib import sha256
from typing import Final, NamedTuple, final

from longshore.transports.http.gate import Denied, HttpRequest
from longshore.transports.http.responses import HeaderPairs, Send, reply

TYPES: Final = {
    ".html": b"text/html; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".json": b"application/json",
    ".svg": b"image/svg+xml",
    ".png": b"image/png",
    ".ico": b"image/x-icon",
    ".woff2": b"font/woff2",
    ".txt": b"text/plain; charset=utf-8",
    ".webmanifest": b"application/manifest+json",
}
"""Files of other kinds are not served."""
_DIGITS: Final = 32
"""Of the hash that is the entity tag."""


class _File(NamedTuple):
    stamp: tuple[int, int]
    """When it was changed, and its size: a file that has changed is read again."""
    body: bytes
    etag: bytes


@final
class StaticFiles:
    """The files of a folder and of those below, by their paths with `/`."""

    def __init__(self, folder: str, headers: HeaderPairs) -> None:
        self._headers = headers
        self._paths = dict(_list_files(folder))
        self._read: dict[str, _File] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._paths

    async def serve(self, request: HttpRequest, name: str, send: Send) -> None:
        """Send a file, or 304 if the browser has it."""
        method = request.scope["method"]
        if method not in ("GET", "HEAD"):
            raise Denied(405, "static files take GET and HEAD", ((b"allow", b"GET, HEAD"),))
        if name not in self._paths:
            raise Denied(404, "there is no such file")
        file = self._load(name)
        kind = TYPES[os.path.splitext(name)[1]]
        headers = ((b"etag", file.etag), (b"cache-control", b"no-cache"), *self._headers)
        if _holds(request.headers.get(b"if-none-match", b""), file.etag):
            await send({"type": "http.response.start", "status": 304, "headers": list(headers)})
            await send({"type": "http.response.body", "body": b""})
        elif method == "HEAD":
            length = (b"content-length", b"%d" % len(file.body))
            await send(
                {"type": "http.response.start", "status": 200, "headers": [(b"content-type", kind), length, *headers]}
            )
            await send({"type": "http.response.body", "body": b""})
        else:
            await reply(send, 200, file.body, ((b"content-type", kind), *headers))

    def _load(self, name: str) -> _File:
        path = self._paths[name]
        try:
            found = os.stat(path)
            stamp = (found.st_mtime_ns, found.st_size)
            known = self._read.get(name)
            if known is not None and known.stamp == stamp:
                return known
            with open(path, "rb") as opened:
                body = opened.read()
        except OSError:
            raise Denied(404, "there is no such file") from None
        tag = b'"%s"' % sha256(body).hexdigest()[:_DIGITS].encode()
        self._read[name] = made = _File(stamp, body, tag)
        return made


def _list_files(folder: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for place, _, names in os.walk(folder):
        below = os.path.relpath(place, folder)
        for name in names:
            if os.path.splitext(name)[1] in TYPES:
                path = os.path.join(place, name)
                found.append((name if below == "." else f"{below.replace(os.sep, '/')}/{name}", path))
    return found


def _holds(header: bytes, etag: bytes) -> bool:
    """Whether an If-None-Match header names this entity tag."""
    return any(each.strip().removeprefix(b"W/") in (etag, b"*") for each in header.split(b","))
