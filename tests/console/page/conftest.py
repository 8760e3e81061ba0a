"""A server with its console and a browser, for the tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.services import skip

from console.page.console_page import READY, ConsolePage
from console.page.harbour import harbour
from longshore.toolsets.browser.executable import BrowserUnavailable, find_browser, install_line
from serving import Served
from toolsets.browser.page import TestPage, open_page


@pytest.fixture(scope="module")
def browser() -> Iterator[TestPage]:
    try:
        find_browser()
    except BrowserUnavailable:
        skip(f"there is no Chromium; install it ({install_line()}) to run this test")
    with open_page() as page:
        yield page


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server's configuration file is."""
    return tmp_path_factory.mktemp("harbour")


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Served]:
    with harbour(folder) as server:
        yield server


@pytest.fixture
def console(browser: TestPage, served: Served) -> ConsolePage:
    """The console, after signing in, in a wide window."""
    console = ConsolePage(browser, served.port)
    console.window(1280)
    console.media()
    console.sign_in()
    console.until(READY, "the console")
    return console
