"""The formats of configuration files, each with edits that leave the rest of a file unchanged.

An edit is checked: the edited text is parsed again, and must differ from the old one in that entry only.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Final, Literal, Protocol, cast

from longshore.install.plain_data import BrokenFile, look_up, with_value, without_value

Format = Literal["jsonc", "toml", "yaml"]
CONTAINED: Final[dict[Format, bool]] = {"jsonc": True, "toml": False, "yaml": True}
"""Whether an empty object of servers stays in the text when its last server is removed."""


class Editor(Protocol):
    """A module that reads and edits one format. Its functions raise BrokenFile."""

    def read(self, text: str) -> dict[str, Any]: ...
    def put(self, text: str, path: Sequence[str], value: Any) -> str: ...
    def remove(self, text: str, path: Sequence[str]) -> str: ...


def editor(form: Format) -> Editor:
    """The module of a format, imported now: the parser of YAML costs 20 ms."""
    return cast("Editor", import_module(f"longshore.install.{form}"))


def put(form: Format, text: str, path: Sequence[str], value: dict[str, Any]) -> str:
    """The text with an entry. Raises BrokenFile."""
    module = editor(form)
    after = module.put(text, path, value)
    _check(module, after, with_value(module.read(text), path, value), path)
    return after


def remove(form: Format, text: str, path: Sequence[str], *, container: bool) -> str:
    """The text without an entry; with `container` also without an object that is empty then."""
    module = editor(form)
    after = module.remove(text, path)
    wanted = without_value(module.read(text), path)
    if CONTAINED[form]:
        _check(module, after, wanted, path)
        if container and look_up(wanted, path[:-1]) == {}:
            after = module.remove(after, path[:-1])
            _check(module, after, without_value(wanted, path[:-1]), path)
        return after
    left = look_up(wanted, path[:-1])
    if not left and look_up(module.read(after), path[:-1]) is None:
        wanted = without_value(wanted, path[:-1])
    _check(module, after, wanted, path)
    return after


def _check(module: Editor, text: str, wanted: dict[str, Any], path: Sequence[str]) -> None:
    try:
        is_right = module.read(text) == wanted
    except BrokenFile:
        is_right = False
    if not is_right:
        raise BrokenFile(0, f"{'.'.join(path)} can't be changed without changing more; change it by hand")
