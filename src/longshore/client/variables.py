"""Variables inside the entries of clients' configuration files: `${NAME}`, `${NAME:-default}`, `${env:NAME}` …"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from longshore.errors import ConfigError
from longshore.schema.kinds import is_array, is_object

_MARK = re.compile(r"\$\{([^{}\n]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Scope(Struct, frozen=True):
    """What variables stand for. `folder` is the project that the file belongs to."""

    environ: Mapping[str, str]
    folder: str


def expand(value: Any, scope: Scope, where: str) -> Any:
    """A value of an entry with its variables filled in, at any depth. Raises ConfigError for one that is not set."""
    if isinstance(value, str):
        return _MARK.sub(lambda found: _meaning(found[1], found[0], scope, where), value)
    if is_object(value):
        return {key: expand(each, scope, f"{where}.{key}") for key, each in value.items()}
    if is_array(value):
        return [expand(each, scope, f"{where}[{n}]") for n, each in enumerate(value)]
    return value


def _meaning(inner: str, whole: str, scope: Scope, where: str) -> str:
    places = {
        "workspaceFolder": scope.folder,
        "workspaceFolderBasename": os.path.basename(scope.folder),
        "userHome": scope.environ.get("HOME", ""),
        "pathSeparator": os.sep,
        "/": os.sep,
    }
    if inner in places:
        return places[inner]
    if inner.startswith("input:"):
        fix = "only VS Code asks for it: write the value, or ${env:NAME}, into a file for --config"
        raise ConfigError(f"{where}: {whole} is a question to a person; {fix}")
    name, has_default, default = inner.removeprefix("env:").partition(":-")
    if not _NAME.fullmatch(name):
        return whole  # something that the server itself may understand
    found = scope.environ.get(name)
    if has_default:
        return found or default  # as a shell does: an empty one counts as unset
    if found is None:
        raise ConfigError(f"{where}: the variable {name} is not set; set it, or write ${{{name}:-default}}")
    return found
