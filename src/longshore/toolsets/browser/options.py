"""The options of the browser tools, and whether they can run here, without the libraries behind them."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from longshore.registry.options import Size


class BrowserOptions(Struct, frozen=True, kw_only=True):
    """A browser."""

    path: str = ""
    """The browser's program. Empty: CHROME_PATH, else Chrome, Chromium, Edge or Brave in the usual places."""

    headless: bool = True
    """Whether browsers have no window, unless browser_open asks for one."""

    allowed_origins: list[str] = []
    """The only origins that pages may reach, such as "https://example.com" or "*.example.com". Empty: all."""

    blocked_origins: list[str] = []
    """Origins that pages may not reach, whatever is allowed."""

    private_addresses: bool = True
    """Whether pages may reach addresses of private networks. Loopback and allowed origins are always reached."""

    evaluate: bool = True
    """Whether browser_evaluate may run scripts in pages."""

    connect: str = ""
    """The address of a running browser that the first use attaches to; "auto" finds one. Empty: it starts a browser."""

    attach: bool = True
    """Whether browser_open may attach to a browser that already runs, other than the one of `connect`."""

    most_browsers: Annotated[int, Meta(ge=1, le=32)] = 4
    """Browsers open at once, for each user."""

    most_tabs: Annotated[int, Meta(ge=1, le=100)] = 20
    """Tabs of one browser."""

    idle_seconds: Annotated[float, Meta(ge=1)] = 1800.0
    """A browser that no call has used for so long is closed."""

    max_download_size: Size = 100_000_000
    """A larger download is ended."""

    max_image_size: Size = 1_000_000
    """A larger screenshot is not in the answer, only linked."""


def available(self: Any) -> str | None:
    """The reason why there is no browser here, and the fix. `self` has the options as `options`."""
    from longshore.toolsets.browser.executable import BrowserUnavailable, find_browser

    if self.options.connect:
        return None  # that browser may be started later
    try:
        find_browser(self.options.path or None)
    except BrowserUnavailable as problem:
        return str(problem)
    return None
