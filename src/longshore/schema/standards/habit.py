"""What there is to know of a client: how it names tools, what it does to them, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal

from msgspec import Struct

from longshore.schema.standards.rule import Profile
from longshore.schema.standards.subject import Json, Subject

ClientName = Literal["claude", "codex", "gemini", "vscode", "cursor", "openai"]
Cost = Literal["", "tool", "list", "request"]
"""What is gone: nothing, the tool, every tool of the server, or every request while the server is connected."""
Find = Callable[[Subject], Iterable[str]]


class Fact(Struct, frozen=True, kw_only=True):
    """`find` says where a client stumbles, `edit` gives a schema as the client changes it, or None if it does not."""

    what: str
    """For people. `{gone}` are the keywords that an edit took away."""
    known: str
    rule: str = ""
    """The rule that warns of it."""
    costs: Cost = ""
    find: Find | None = None
    edit: Callable[[Any], Any | None] | None = None


class Naming(Struct, frozen=True, kw_only=True):
    """How a tool's name is made into the one that the model calls."""

    prefix: str = ""
    """Before the tool's name, with the server's name for `{}`."""
    odd: str = r"[^\s\S]"
    """Characters that become `_`."""
    known: str
    most: int | None = None
    cut: Callable[[str, int, str], str] = lambda name, most, _: name[:most]
    """Given the name, how long it may be, and the tool's own."""
    cut_rule: str = ""
    """The rule that warns of a name that is cut."""
    server: Callable[[str], str] = str
    space: bool = False
    """Whether what is before the name goes to the model apart, as a namespace."""
    hashes: bool = False
    """Whether `cut` tells names apart."""


class Habits(Struct, frozen=True, kw_only=True):
    """All that is known of a client."""

    title: str
    profile: Profile
    naming: Naming
    schema_key: str
    more: Json = {}
    """What else stands in each tool."""
    most_text: int | None = None
    """Characters of a description or of the instructions that reach the model."""
    text_known: str = ""
    most_tools: int | None = None
    tools_fact: Fact | None = None
    """What happens to more of them."""
    first_wins: str = ""
    """How it is known that of two tools with one name the first counts; empty where it is not."""
    facts: tuple[Fact, ...] = ()
