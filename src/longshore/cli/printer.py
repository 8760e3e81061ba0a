"""Printing and saving what a tool or a resource returned."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, final

import click
import msgspec
from msgspec import UNSET

from longshore.cli.screen import Screen, json_text
from longshore.client.models import PromptResult, Result
from longshore.protocol.content import Audio, Contents, EmbeddedResource, Image, ResourceLink, Text

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


@final
class Folder:
    """The folder of `--save`. We name the files: a server's names could be paths to anywhere."""

    def __init__(self, path: str, stem: str) -> None:
        """Raises OSError if the folder can't be made."""
        os.makedirs(path, exist_ok=True)
        self._path = path
        self._stem = _UNSAFE.sub("-", stem).strip("-")[:60] or "file"

    def save(self, data: bytes, kind: str) -> str:
        """Write a file under an unused name."""
        from mimetypes import guess_extension

        ending = guess_extension(kind.partition(";")[0].strip()) or ".bin"
        n = 1
        while True:
            path = os.path.join(self._path, f"{self._stem}-{n}{ending}")
            try:
                with open(path, "xb") as file:
                    file.write(data)
                return path
            except FileExistsError:
                n += 1


def open_folder(path: str | None, stem: str) -> Folder | None:
    """The folder of `--save`, opened before the call: a result that can't be saved would be lost."""
    try:
        return None if path is None else Folder(path, stem)
    except OSError as problem:
        raise click.UsageError(f"--save: {path}: {problem.strerror}") from None


def show_result(screen: Screen, result: Result, folder: Folder | None) -> None:
    """Print a tool's texts, and a note for every other block."""
    printed = [_show_block(screen, block, folder) for block in result.content]
    if not any(printed) and result.structured is not UNSET:
        screen.text(json_text(result.structured))


def show_prompt(screen: Screen, result: PromptResult, folder: Folder | None) -> None:
    """Print the messages of a prompt; their roles too if there are several."""
    several = len(result.messages) > 1
    for n, message in enumerate(result.messages):
        if several:
            screen.text(f"{chr(10) if n else ''}{message.role}:")
        _show_block(screen, message.content, folder)


def _show_block(screen: Screen, block: Any, folder: Folder | None) -> bool:
    """Print a text, or a note for what is none; whether it was a text."""
    match block:
        case Text(text=text):
            screen.text(pretty(text) if screen.out_is_terminal else text)
        case Image(data=data, mime_type=kind) | Audio(data=data, mime_type=kind):
            _show_bytes(screen, block.__class__.__name__.lower(), data, kind, folder)
            return False
        case ResourceLink(name=name, uri=uri):
            screen.text(f"{name}: {uri}")
        case EmbeddedResource(resource=Contents(text=str(text))):
            screen.text(text)
        case EmbeddedResource(resource=contents):
            _show_bytes(screen, contents.uri, _blob(contents), _kind(contents), folder)
            return False
        case _:
            screen.text(json_text(block))
    return True


def show_contents(screen: Screen, contents: Iterable[Contents], folder: Folder | None) -> None:
    """Print what a resource holds; into a pipe its exact bytes."""
    for n, each in enumerate(contents):
        text = each.text if isinstance(each.text, str) else None
        data = _blob(each)
        if folder is not None:
            kind = "text/plain" if text is not None and each.mime_type is UNSET else _kind(each)
            _show_bytes(screen, each.uri, data if text is None else text.encode("utf-8", "replace"), kind, folder)
        elif screen.out_is_terminal:
            screen.text(text) if text is not None else _show_bytes(screen, each.uri, data, _kind(each), None)
        else:
            screen.data(b"\n" if n and text is not None else b"")
            screen.data(data if text is None else text)


def _blob(contents: Contents) -> bytes:
    return contents.blob if isinstance(contents.blob, bytes) else b""


def _kind(contents: Contents) -> str:
    return contents.mime_type if isinstance(contents.mime_type, str) else "application/octet-stream"


def _show_bytes(screen: Screen, what: str, data: bytes, kind: str, folder: Folder | None) -> None:
    shown = f"{what}, {kind}, {size(len(data))}"
    if folder is not None:
        screen.note(f"[{shown}] saved as {folder.save(data, kind)}")
    elif screen.out_is_terminal:
        screen.text(f"[{shown}; --save DIR writes it to a file]")
    else:
        screen.note(f"[{shown}, left out; --save DIR writes it to a file, --json prints it]")


def size(length: int) -> str:
    """`12.3 KiB`."""
    if length < 1024:
        return f"{length} bytes"
    return f"{length / 1024:.1f} KiB" if length < 1 << 20 else f"{length / (1 << 20):.1f} MiB"


def pretty(text: str) -> str:
    """Indent a text that is a JSON object or array; return any other unchanged."""
    if text[:1] not in ("{", "[") or "\n" in text.strip():
        return text
    try:
        return msgspec.json.format(text, indent=2)
    except (ValueError, RecursionError):
        return text
