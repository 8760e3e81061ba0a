"""What a command says of a tool or prompt that the server does not list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from longshore.nearest import nearest
from longshore.schema.phrase import cut

if TYPE_CHECKING:
    from longshore.cli.target import Destination

NAMED = 20
"""Most names that an error lists."""


def explain_unknown(kind: str, name: str, names: Sequence[str], place: Destination, problems: Sequence[str]) -> str:
    """The error, with the nearest name or all of them. `kind` is `tool` or `prompt`."""
    near = nearest(name, names)
    if near is not None:
        hint = f"did you mean {near!r}?"
    else:
        hint = f"it has {', '.join(map(cut, names[:NAMED]))}" if names else "it has none"
        hint += ", …" if len(names) > NAMED else ""
    text = f"{place.name}: there is no {kind} {name!r}; {hint}"
    if place.is_bare_program:
        command = "call" if kind == "tool" else kind
        line = f"longshore {command} '{place.name} {name} …' {'TOOL' if kind == 'tool' else 'NAME'}"
        text += f"\nA command line with arguments is one word, in quotes: {line}"
    return "\n".join([text, *(problem for problem in problems if name in problem)])
