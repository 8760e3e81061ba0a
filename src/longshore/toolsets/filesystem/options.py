"""The options of the file tools, without the libraries behind them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from longshore.registry.options import Folder, Size
from longshore.sandbox.denied import DENIED


class FilesystemOptions(Struct, frozen=True, kw_only=True):
    """Files in the server's folders."""

    max_file_size: Size = 10_000_000
    """Larger files are read in parts only, and are neither edited nor searched; `filesystem` refuses them."""

    read_only: list[Folder] = []
    """Folders in which nothing is changed."""

    deny: list[str] = field(default_factory=lambda: list(DENIED))
    """Names that no tool touches, as globs."""

    permanent_delete: bool = False
    """Whether fs_delete may delete without the trash."""

    trash_size: Size = 1_000_000_000
    """The most that the trash holds. Beyond it the oldest entries are deleted."""

    trash_days: Annotated[float, Meta(ge=0, le=3650)] = 7.0
    """How many days a deleted file can be restored."""
