"""Status lines, and the short responses that a connection gives by itself, before any app is asked."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""


STATUS_LINES: Final = {status: f"HTTP/1.1 {status} {_phrase(status)}\r\n".encode() for status in range(100, 600)}


class Refused(Exception):
    """What is wrong with a request's form. Ends its connection."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status, self.text = status, text


def short_response(status: int, text: str, date: bytes, extra: bytes = b"") -> bytes:
    """A whole response after which the connection closes."""
    body = text.encode() + b"\n"
    head = b"content-type: text/plain; charset=utf-8\r\ncontent-length: %d\r\nconnection: close\r\n" % len(body)
    return STATUS_LINES[status] + date + head + extra + b"\r\n" + body
