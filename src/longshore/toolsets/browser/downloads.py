"""The downloads of a browser: each is saved under a clean name in a folder that the caller gives."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from typing import Any, Final, Literal, final

from msgspec import Struct

from longshore.protocol.content import ResourceLink
from longshore.toolsets.browser.events import clean

MOST_DOWNLOADS: Final = 100
"""Downloads of one browser. More are refused: a page can start them without end."""
MOST_BYTES: Final = 100_000_000
"""The size of one download."""
_NAME_CHARACTERS: Final = 120
_EXTENSION_CHARACTERS: Final = 20
"""With the dot. A longer one is no extension, and would leave no room for the name."""
_UNSAFE: Final = re.compile(r"[^\w.()+,=@ -]", re.ASCII)

State = Literal["running", "finished", "cancelled", "refused"]


class Download(Struct):
    """A file that a page sent."""

    number: int
    guid: str
    url: str
    name: str
    """The clean name; in the folder it can have a number before its extension."""
    state: State = "running"
    bytes: int = 0
    path: str = ""
    """Where it is, once it is finished."""
    problem: str = ""
    artifact: ResourceLink | None = None
    """The caller's copy, which stays when the browser's folder is deleted."""

    def line(self) -> str:
        """The state of the download, as a line of an answer."""
        match self.state:
            case "finished":
                return f"download {self.name} ({self.bytes:,} bytes)"
            case "running":
                return f"download {self.name} runs ({self.bytes:,} bytes so far)"
            case _:
                return f"download {self.name} {self.state}{f': {self.problem}' if self.problem else ''}"


def clean_name(suggested: str) -> str:
    """A file name without folders, control characters or a leading dot."""
    name = os.path.basename(suggested.replace("\\", "/"))
    name = _UNSAFE.sub("_", clean(name, len(name))).strip(" .")
    stem, extension = os.path.splitext(name)
    extension = extension[:_EXTENSION_CHARACTERS]
    return f"{stem[: _NAME_CHARACTERS - len(extension)]}{extension}" if stem else "download"


@final
class Downloads:
    """Follows downloads. The browser saves each under its guid, which no page can choose; it is renamed at its end."""

    def __init__(
        self,
        folder: str | None,
        cancel: Callable[[str], None],
        most: int = MOST_DOWNLOADS,
        most_bytes: int = MOST_BYTES,
        followed: bool = True,
    ) -> None:
        """`cancel` gets the guid of a download that must end. `followed`: whether the browser reports downloads."""
        self.folder, self.followed = folder, followed
        self._cancel, self._most, self._most_bytes = cancel, most, most_bytes
        self._downloads: dict[str, Download] = {}
        self._changed = asyncio.Event()

    def all(self) -> list[Download]:
        return list(self._downloads.values())

    @property
    def count(self) -> int:
        return len(self._downloads)

    async def wait(self, first: int, seconds: float, *, begins: bool = False) -> list[Download]:
        """The downloads from this number on, after the end of those in progress, but at most `seconds`.

        `begins`: the browser has announced one.
        """
        try:
            async with asyncio.timeout(max(0.0, seconds)):
                while (begins and self.followed and self.count < first) or any(
                    each.state == "running" and each.number >= first for each in self._downloads.values()
                ):
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            pass
        return [each for each in self._downloads.values() if each.number >= first]

    # -- called by Browser

    def begin(self, params: dict[str, Any]) -> Download:
        """Browser.downloadWillBegin."""
        download = Download(
            len(self._downloads) + 1,
            str(params["guid"]),
            clean(str(params.get("url", "")), 500),
            clean_name(str(params.get("suggestedFilename", ""))),
        )
        if self.folder is None:
            self._refuse(download, "this browser has no folder for downloads")
        elif len(self._downloads) >= self._most:
            self._refuse(download, f"a browser has at most {self._most} downloads; open another")
            return download
        self._downloads[download.guid] = download
        self._changed.set()
        return download

    def progress(self, params: dict[str, Any]) -> Download | None:
        """Browser.downloadProgress. Returns the download when it has ended."""
        download = self._downloads.get(str(params.get("guid")))
        if download is None or download.state != "running":
            return None
        download.bytes = int(params.get("receivedBytes", 0))
        if max(download.bytes, int(params.get("totalBytes", 0))) > self._most_bytes:
            self._refuse(download, f"it has more than {self._most_bytes:,} bytes")
        elif params.get("state") == "completed":
            self._finish(download)
        elif params.get("state") == "canceled":
            download.state = "cancelled"
        self._changed.set()
        return download if download.state != "running" else None

    def end(self) -> None:
        """The browser has ended, and its running downloads with it."""
        for download in self._downloads.values():
            if download.state == "running" or (download.state == "finished" and download.artifact is None):
                download.state, download.problem = "cancelled", "the browser ended"
        self._changed.set()

    def _refuse(self, download: Download, why: str) -> None:
        download.state, download.problem = "refused", why
        self._cancel(download.guid)

    def _finish(self, download: Download) -> None:
        assert self.folder is not None
        saved = os.path.join(self.folder, download.guid)
        stem, extension = os.path.splitext(download.name)
        for n in range(1, self._most + 2):
            path = os.path.join(self.folder, f"{stem}{f'-{n}' if n > 1 else ''}{extension}")
            try:
                os.link(
                    saved, path, follow_symlinks=False
                )  # fails if the name is taken; a rename would replace the other file
                os.unlink(saved)
            except FileExistsError:
                continue
            except OSError as problem:
                download.state, download.problem = "cancelled", f"it could not be saved: {problem.strerror}"
                return
            download.state, download.path = "finished", path
            return
        download.state, download.problem = "cancelled", "its name is taken"
