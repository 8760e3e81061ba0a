"""Pictures, looked at: the window, the whole page, and elements, in frames too."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

import pytest

from longshore.toolsets.browser.actions import ElementTarget

from .page import TestPage, open_page

WHITE, LIME, RED = (255, 255, 255), (0, 255, 0), (255, 0, 0)
BLOCK = "<div style='height:700px'></div>"
LIME_BOX = "<div id=lime style='width:200px;height:100px;background:lime' onclick=''>x</div>"
RED_BOX = "<div style='width:200px;height:100px;background:red'></div>"
PLAIN = f"<style>body {{ margin: 0; color: transparent }}</style>{RED_BOX}{BLOCK}{LIME_BOX}{BLOCK}"
Picture = list[list[tuple[int, ...]]]


@pytest.fixture(scope="module")
def page() -> Iterator[TestPage]:
    with open_page() as opened:
        yield opened


def decode_png(data: bytes) -> Picture:
    """The rows of a picture with 8 bits a channel, red, green and blue."""
    chunks = dict[bytes, bytes]()
    at = 8
    while at < len(data):
        length, name = struct.unpack(">I4s", data[at : at + 8])
        chunks[name] = chunks.get(name, b"") + data[at + 8 : at + 8 + length]
        at += length + 12
    width, height, depth, color = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    size = {2: 3, 6: 4}[color]
    assert depth == 8
    packed, stride = zlib.decompress(chunks[b"IDAT"]), width * size + 1
    above, rows = bytearray(width * size), Picture()
    for start in range(0, height * stride, stride):
        row = bytearray(packed[start + 1 : start + stride])
        for n in range(len(row)):
            left, corner = (row[n - size], above[n - size]) if n >= size else (0, 0)
            row[n] = row[n] + _predict(packed[start], left, above[n], corner) & 255
        above = row
        rows.append([tuple(row[n : n + 3]) for n in range(0, len(row), size)])
    return rows


def _predict(filter: int, left: int, up: int, corner: int) -> int:
    paeth = min((left, up, corner), key=lambda each: abs(left + up - corner - each))
    return (0, left, up, (left + up) // 2, paeth)[filter]


def take(page: TestPage, target: ElementTarget | None = None, full_page: bool = False) -> Picture:
    return decode_png(page.run(page.tab.screenshot("png", target=target, full_page=full_page)).data)


def test_a_picture_has_what_the_window_shows(page: TestPage) -> None:
    page.set(PLAIN)
    picture = take(page)
    assert (len(picture[0]), len(picture)) == (1000, 700)
    assert (picture[99][199], picture[99][200], picture[100][0]) == (RED, WHITE, WHITE)
    page.evaluate("scrollTo(0, 750)")
    assert [row[0] for row in take(page)] == [WHITE] * 50 + [LIME] * 100 + [WHITE] * 550


def test_a_picture_of_the_whole_page_has_what_is_below_the_window(page: TestPage) -> None:
    page.set(PLAIN)
    picture = take(page, full_page=True)
    assert [row[199] for row in picture] == [RED] * 100 + [WHITE] * 700 + [LIME] * 100 + [WHITE] * 700


@pytest.mark.parametrize("scrolled", [0, 300, 900])
def test_a_picture_of_an_element_has_nothing_else(page: TestPage, scrolled: int) -> None:
    page.set(PLAIN)
    page.evaluate(f"scrollTo(0, {scrolled})")
    assert take(page, ElementTarget(selector="#lime")) == [[LIME] * 200] * 100


@pytest.mark.parametrize("scrolled", [0, 450])
def test_a_picture_of_an_element_in_a_frame_has_nothing_else(page: TestPage, scrolled: int) -> None:
    inner = PLAIN.replace('"', "")
    page.set(f'{BLOCK}<iframe width=400 height=300 srcdoc="{inner}"></iframe>{BLOCK}')
    page.evaluate(f"scrollTo(0, {scrolled})")
    found = page.run(page.tab.find(text="x", role="clickable"))
    assert take(page, ElementTarget(ref=found.matches[0].ref)) == [[LIME] * 200] * 100


def test_a_mark_stands_at_the_corner_of_its_control_only_while_the_picture_is_taken(page: TestPage) -> None:
    page.set(PLAIN)
    page.evaluate("scrollTo(0, 750)")
    marked = page.run(page.tab.screenshot("png", marks=True))
    assert len(marked.marks) == 1
    picture = decode_png(marked.data)
    assert picture[51][1] == (255, 238, 0) and picture[140][150] == LIME
    assert take(page)[51][1] == LIME
