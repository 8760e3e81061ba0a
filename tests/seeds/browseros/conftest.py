"""The server of the document's entry point, and a page on loopback for its browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from process.conftest import Workshop
from process.peer import Peer
from toolsets.browser.conftest import browser_path as browser_path
from toolsets.browser.conftest import serve_pages as serve_pages

from .document import SERVER, TITLE


@pytest.fixture
def page(serve_pages: Callable[[dict[str, str]], str], browser_path: str) -> str:
    """The address of a page for a real browser."""
    return serve_pages({"/": f"<title>{TITLE}</title><p>For use in examples"}) + "/"


@pytest.fixture
def server(workshop: Workshop) -> Peer:
    """`python -m browseros.mcp.server` on stdio, in a folder of its own."""
    return workshop.spawn(*SERVER)
