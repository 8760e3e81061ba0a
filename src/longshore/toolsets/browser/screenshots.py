"""Screenshots of the window, the whole page, or one element."""

from __future__ import annotations

from base64 import b64decode
from typing import Final, Literal

from msgspec import Struct

from longshore.errors import ToolError
from longshore.toolsets.browser.page import Page

Format = Literal["webp", "png", "jpeg"]
MOST_PIXELS: Final = 16_384
"""The width and the height of a picture. Browsers draw no larger ones."""
MOST_AREA: Final = 64_000_000
"""Pixels of a picture. More takes a browser and us some hundred megabytes."""
DEFAULT_QUALITY: Final = 60


class Box(Struct, frozen=True):
    """A part of the page, in CSS pixels from the page's own corner."""

    x: float
    y: float
    width: float
    height: float


class Screenshot(Struct, frozen=True):
    """A picture."""

    data: bytes
    mime: str
    width: int
    height: int
    note: str = ""
    """The parts that are left out."""
    marks: list[str] = []
    """The refs that are written in it."""


async def capture(
    page: Page, format: Format, quality: int | None, max_width: int | None, full_page: bool, part: Box | None
) -> Screenshot:
    """Take a picture, scaled down to `max_width`."""
    metrics = await page.call("Page.getLayoutMetrics")
    view = metrics["cssVisualViewport"]
    box, note = part or Box(view["pageX"], view["pageY"], view["clientWidth"], view["clientHeight"]), ""
    if full_page and part is None:
        size = metrics["cssContentSize"]
        box = Box(0, 0, size["width"], size["height"])
    if box.width < 1 or box.height < 1:
        raise ToolError("there is nothing to take a picture of: it has no size")
    scale = min(1.0, max_width / box.width) if max_width else 1.0
    width = min(box.width, MOST_PIXELS / scale)
    height = min(box.height, MOST_PIXELS / scale, MOST_AREA / scale**2 / width)
    if (width, height) != (box.width, box.height):
        size = f"{round(width):,} x {round(height):,} of {round(box.width):,} x {round(box.height):,}"
        note = f"only the upper left {size} pixels; a smaller max_width shows more"
        box = Box(box.x, box.y, width, height)
    clip = {"x": box.x, "y": box.y, "width": box.width, "height": box.height, "scale": scale}
    answer = await page.call(
        "Page.captureScreenshot",
        {
            "format": format,
            **({} if format == "png" else {"quality": quality or DEFAULT_QUALITY}),
            "clip": clip,
            "captureBeyondViewport": full_page or part is not None,
        },
    )
    data = b64decode(answer["data"])
    return Screenshot(data, f"image/{format}", round(box.width * scale), round(box.height * scale), note)
