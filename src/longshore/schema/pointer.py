"""Where a reference inside of a schema leads to."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from longshore.schema.kinds import is_array, is_object


def look_up(root: dict[str, Any], target: Any) -> Any:
    """What a reference points at; None for what is no way through this very schema."""
    if target == "#":
        return root
    if not isinstance(target, str) or not target.startswith("#/"):
        return None
    found: Any = root
    for part in unquote(target[2:]).split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if is_object(found) and name in found:
            found = found[name]
        elif is_array(found) and name.isdecimal() and len(name) < 9 and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found
