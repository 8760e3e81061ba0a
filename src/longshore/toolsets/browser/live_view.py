"""The live view of a browser for a person: its current tab, which is not brought to the front for that."""

from __future__ import annotations

import asyncio
from typing import Final

from longshore.errors import ToolError
from longshore.registry.views import Shown, View
from longshore.toolsets.browser.browser import Browser
from longshore.toolsets.browser.connection import CdpError, ConnectionClosed
from longshore.toolsets.browser.events import clean, without_user
from longshore.toolsets.browser.screenshots import capture

WIDTH: Final = 960
"""Pixels: enough to read along."""
QUALITY: Final = 50
SECONDS: Final = 3.0
"""A page that is busy, or shows a dialog, gives no picture."""


def view_of(owner: str, id: str, browser: Browser) -> View:
    """The view of one browser."""
    tab = browser.current

    async def look() -> Shown:
        page = None if browser.current is None else browser.current.page
        if page is None:
            raise ToolError(f"{id} has no page now")
        try:
            async with asyncio.timeout(SECONDS):
                shot = await capture(page, "webp", QUALITY, WIDTH, full_page=False, part=None)
        except (TimeoutError, CdpError, ConnectionClosed):
            raise ToolError(f"the page of {id} gives no picture now: it is busy, or shows a dialog") from None
        return Shown(shot.data, shot.mime)

    url = "" if tab is None else browser.secrets.mask(clean(without_user(tab.url), 200))
    title = "" if tab is None else browser.secrets.mask(clean(tab.title, 80))
    return View(key=f"{owner}/{id}", kind="image", title=title or url or id, owner=owner, subtitle=url, look=look)
