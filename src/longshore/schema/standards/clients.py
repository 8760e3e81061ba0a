"""What each client does to a list of tools before its model sees it: tables, each line with how it is known.

Measured is what a real client sent to a stand-in for its model's API. The rest was reported by others, and may be old.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from hashlib import sha1
from typing import Any, Final, Literal

from msgspec import Struct

from longshore.schema.kinds import is_object
from longshore.schema.standards.rule import Profile
from longshore.schema.standards.subject import Json, Subject

ClientName = Literal["claude", "codex", "gemini", "vscode", "cursor", "openai"]
Cost = Literal["", "tool", "list", "request"]
"""What is gone: nothing, the tool, every tool of the server, or every request while the server is connected."""

_CLAUDE, _CODEX, _GEMINI = "measured with Claude Code 2.1.197", "measured with Codex 0.166", "measured with Gemini 0.61"
_OPENAI = "reported in mcphost #35 and github-mcp-server #1548"
_ANTHROPIC = "measured that it is sent; that the API refuses it is reported in claude-code #79418"


_Find = Callable[[Subject], Iterable[str]]


class Fact(Struct, frozen=True, kw_only=True):
    """`find` says where a client stumbles, `edit` gives a schema as the client changes it, or None if it does not."""

    what: str
    """For people. `{gone}` are the keywords that an edit took away."""
    known: str
    rule: str = ""
    """The rule that warns of it."""
    costs: Cost = ""
    find: _Find | None = None
    edit: Callable[[Any], Any | None] | None = None


class Naming(Struct, frozen=True, kw_only=True):
    """How a tool's name is made into the one that the model calls."""

    prefix: str = ""
    """Before the tool's name, with the server's name for `{}`."""
    odd: str = r"[^\s\S]"
    """Characters that become `_`."""
    known: str
    most: int | None = None
    cut: Callable[[str, int], str] = lambda name, most: name[:most]
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


# -- where clients stumble

_TYPES: Final = frozenset(("string", "number", "integer", "boolean", "object", "array", "null"))
_KEY: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}\Z")
_OPENAI_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def _odd_record(subject: Subject) -> Iterable[str]:
    """No name, or a text that is none, such as null."""
    texts = {
        "name": "",
        **{key: value for key, value in subject.tool.items() if key in ("name", "title", "description")},
    }
    return (key for key, value in texts.items() if not isinstance(value, str) or (key == "name" and not value))


def _rootless(subject: Subject) -> Iterable[str]:
    return () if subject.input.get("type") == "object" else ("inputSchema",)


def _output_is_odd(subject: Subject) -> Iterable[str]:
    odd = "outputSchema" in subject.tool and (subject.output or {}).get("type") != "object"
    return ("outputSchema",) if odd else ()


def _odd_properties(subject: Subject) -> Iterable[str]:
    """Those of the roots alone: what is inside of them no client looks at."""
    for key, schema in (("inputSchema", subject.input), ("outputSchema", subject.output or {})):
        found = schema.get("properties")
        yield from (f"{key}.properties.{name}" for name, each in _items(found) if not is_object(each))


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if is_object(value) else []


def _at_root(*keywords: str) -> _Find:
    return lambda subject: (f"inputSchema.{keyword}" for keyword in keywords if keyword in subject.input)


def _odd_keys(subject: Subject) -> Iterable[str]:
    return (f"inputSchema.properties.{key}" for key in subject.properties if not _KEY.match(key))


def _types(schema: Any) -> list[Any]:
    """The names of types in a schema."""
    found = schema.get("type", ()) if is_object(schema) else ()
    return list(found) if isinstance(found, (list, tuple)) else [found]


def _has_odd_type(schema: Any) -> bool:
    return any(not isinstance(each, str) or each not in _TYPES for each in _types(schema))


def _odd_types(subject: Subject) -> Iterable[str]:
    return (node.path for node in subject.inputs() if _has_odd_type(node.schema))


def _itemless(subject: Subject) -> Iterable[str]:
    return (node.path for node in subject.inputs() if "array" in _types(node.schema) and "items" not in node.schema)


def _requires_nothing(subject: Subject) -> Iterable[str]:
    return (f"inputSchema.required[{n}]" for n, key in enumerate(subject.required) if key not in subject.properties)


def _without_properties(subject: Subject) -> Iterable[str]:
    root = subject.input
    return ("inputSchema",) if root.get("type") == "object" and "properties" not in root else ()


def _too_long_for_cursor(subject: Subject) -> Iterable[str]:
    return ("name",) if len(subject.surface.name) + len(subject.name) > _CURSOR_NAME else ()


def _refused_name(subject: Subject) -> Iterable[str]:
    return () if _OPENAI_NAME.match(subject.name) else ("name",)


def _long_in_claude(subject: Subject) -> Iterable[str]:
    whole = len(f"mcp__{subject.surface.name}__{subject.name}")
    return ("name",) if whole > _CLAUDE_NAME else ()


def _wordless(subject: Subject) -> Iterable[str]:
    return () if subject.description else ("description",)


def _broken(rule: str, *places: str) -> _Find:
    """Where a rule is broken: for what is looked at in the same way here as there."""

    def find(subject: Subject) -> Iterable[str]:
        from longshore.schema.standards.linting import find_rule

        found = find_rule(rule)
        faults = found.check(subject) if found is not None and found.check is not None else ()
        return (fault.path for fault in faults if fault.path.startswith(places))

    return find


_CURSOR_NAME: Final = 60
"""Characters of the server's and the tool's name together."""
_CLAUDE_NAME: Final = 128
"""Characters of a name that Anthropic's API takes."""


# -- how clients change a schema

_KEPT_BY_CODEX: Final = frozenset(
    (
        *("type", "description", "enum", "items", "properties", "required", "additionalProperties"),
        *("anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions"),
    )
)


def _true_to_string(schema: Any) -> Any | None:
    return {"type": "string"} if isinstance(schema, bool) else None


def _const_to_enum(schema: Any) -> Any | None:
    if not is_object(schema) or "const" not in schema:
        return None
    return {("enum" if key == "const" else key): value for key, value in schema.items()} | {"enum": [schema["const"]]}


def _type_to_nothing(schema: Any) -> Any | None:
    return {} if _has_odd_type(schema) else None


def _invent_items(schema: Any) -> Any | None:
    return {**schema, "items": {"type": "string"}} if "array" in _types(schema) and "items" not in schema else None


def _drop_tuple(schema: Any) -> Any | None:
    if not is_object(schema) or "prefixItems" not in schema:
        return None
    return {"items": {"type": "string"}} | {key: value for key, value in schema.items() if key != "prefixItems"}


def _drop_unknown(schema: Any) -> Any | None:
    if not is_object(schema) or _KEPT_BY_CODEX.issuperset(schema):
        return None
    return {key: value for key, value in schema.items() if key in _KEPT_BY_CODEX}


def _drop_title(schema: Any) -> Any | None:
    if not is_object(schema) or not schema.keys() & {"title", "$schema"}:
        return None
    return {key: value for key, value in schema.items() if key not in ("title", "$schema")}


def _add_properties(schema: Any) -> Any | None:
    if not is_object(schema) or "properties" in schema:
        return None
    return {**schema, "properties": {}} if "object" in _types(schema) or "required" in schema else None


def _null_to_nullable(schema: Any) -> Any | None:
    types = _types(schema)
    if len(types) < 2 or "null" not in types:
        return None
    rest = [each for each in types if each != "null"]
    return {**schema, "type": rest[0] if len(rest) == 1 else rest, "nullable": True}


# -- how clients cut a name


def _hash(name: str, most: int) -> str:
    """A stand-in of the same length: what exactly is hashed was not found out."""
    return f"{name[: most - 13]}_{sha1(name.encode(), usedforsecurity=False).hexdigest()[:12]}"


def _cut_middle(name: str, most: int) -> str:
    half = (most - 3) // 2
    return f"{name[:half]}...{name[-half:]}"


_PLAIN: Final = r"[^A-Za-z0-9_-]"


def _short(server: str) -> str:
    return re.sub(r"[^a-z0-9_.-]+", "_", server.lower())[:13]


# -- the clients

_LIST_FAILS: Final = (
    (_odd_record, "E16", "a tool without a name, or with a text that is none"),
    (_rootless, "E01", "the input schema does not say type: object"),
    (_odd_properties, "E02", "a property's schema is no object"),
    (_output_is_odd, "E03", "the output schema does not say type: object"),
)
_SDK_FAILS: Final = (
    ("E09", "a reference in the output schema leads nowhere"),
    ("E10", "an unknown type in the output schema"),
    ("E13", "the output schema is none"),
    ("E15", "a pattern in the output schema is none in JavaScript"),
)
_SDK: Final = "measured with the official TypeScript SDK 1.32.2, on which it is built"


def _failing(known: str) -> tuple[Fact, ...]:
    """What the official TypeScript SDK refuses to read, and with it whoever is built on it."""
    fails: list[tuple[_Find, str, str, str]] = [(find, rule, what, known) for find, rule, what in _LIST_FAILS]
    fails += [(_broken(rule, "outputSchema"), rule, what, _SDK) for rule, what in _SDK_FAILS]
    return tuple(
        Fact(what=f"the whole list fails: {what}", known=known, rule=rule, costs="list", find=find)
        for find, rule, what, known in fails
    )


_EMPTY: Final = "the description is empty"

CLIENTS: Final[dict[ClientName, Habits]] = {
    "claude": Habits(
        title="Claude Code",
        profile="claude",
        naming=Naming(prefix="mcp__{}__", odd=_PLAIN, known=_CLAUDE),
        schema_key="input_schema",
        most_text=2048,
        text_known=_CLAUDE,
        first_wins=_CLAUDE,
        facts=(
            *_failing(_CLAUDE),
            Fact(
                what="the tool is skipped: a combinator at the root of its schema",
                known=_CLAUDE,
                rule="E04",
                costs="tool",
                find=_at_root("anyOf", "oneOf", "allOf"),
            ),
            Fact(what=_EMPTY, known=_CLAUDE, rule="W22", find=_wordless),
            Fact(
                what="the API refuses the request: a parameter's name",
                known=_ANTHROPIC,
                rule="E05",
                costs="request",
                find=_odd_keys,
            ),
            Fact(
                what="the API refuses the request: a type that JSON Schema does not have",
                known=_ANTHROPIC,
                rule="E10",
                costs="request",
                find=_odd_types,
            ),
            Fact(
                what="the API refuses the request: a schema that is none",
                known="reported in Dokploy/mcp #74",
                rule="E13",
                costs="request",
                find=_broken("E13", "inputSchema"),
            ),
            Fact(
                what=f"the API refuses the request: the name is longer than {_CLAUDE_NAME} characters",
                known="measured that it is sent; that the API refuses it is reported in home-assistant #147760",
                rule="E06",
                costs="request",
                find=_long_in_claude,
            ),
        ),
    ),
    "codex": Habits(
        title="Codex",
        profile="openai",
        naming=Naming(prefix="mcp__{}__", odd=_PLAIN, most=128, cut=_hash, space=True, hashes=True, known=_CODEX),
        schema_key="parameters",
        more={"type": "function", "strict": False},
        first_wins=_CODEX,
        facts=(
            Fact(what=_EMPTY, known=_CODEX, rule="W22", find=_wordless),
            Fact(what="`true` or `false` becomes a string", known=_CODEX, rule="E02", edit=_true_to_string),
            Fact(what="an unknown type becomes anything", known=_CODEX, rule="E10", edit=_type_to_nothing),
            Fact(what="`const` becomes `enum`", known=_CODEX, edit=_const_to_enum),
            Fact(what="{gone} dropped", known=_CODEX, edit=_drop_title),
            Fact(what="{gone} dropped, and `items` invented", known=_CODEX, rule="W26", edit=_drop_tuple),
            Fact(
                what="{gone} dropped",
                known=f"{_CODEX} for minimum, pattern, format, default; its source keeps no other constraint",
                rule="W25",
                edit=_drop_unknown,
            ),
            Fact(what='`items: {{"type": "string"}}` invented', known=_CODEX, rule="E08", edit=_invent_items),
            Fact(what="empty `properties` added", known=_CODEX, edit=_add_properties),
        ),
    ),
    "gemini": Habits(
        title="Gemini CLI",
        profile="gemini",
        naming=Naming(prefix="mcp_{}_", odd=r"[^A-Za-z0-9_.-]", most=63, cut=_cut_middle, known=_GEMINI),
        schema_key="parametersJsonSchema",
        facts=(
            *_failing(_GEMINI),
            Fact(what=_EMPTY, known=_GEMINI, rule="W22", find=_wordless),
            Fact(
                what="the API refuses the request: a reference that leads nowhere",
                known="measured that it is sent; that the API refuses it is reported in gemini-cli #13326",
                rule="E09",
                costs="request",
                find=_broken("E09", "inputSchema"),
            ),
            Fact(
                what="the API refuses the request: what is required is no property",
                known="reported in mcp-obsidian #105",
                rule="E11",
                costs="request",
                find=_requires_nothing,
            ),
            Fact(
                what="the API refuses the request: an array without `items`",
                known="measured that it is sent; that the API refuses it is reported in cesium-mcp #37",
                rule="E08",
                costs="request",
                find=_itemless,
            ),
            Fact(what="null among types becomes `nullable`", known=_GEMINI, rule="W24", edit=_null_to_nullable),
        ),
    ),
    "vscode": Habits(
        title="VS Code",
        profile="vscode",
        naming=Naming(
            prefix="mcp_{}_", odd=_PLAIN, most=64, server=_short, known="read in its source, mcpServer.ts; not measured"
        ),
        schema_key="parameters",
        more={"type": "function"},
        most_tools=128,
        tools_fact=Fact(
            what="requests are refused until tools are switched off: more than 128",
            known="reported in vscode-copilot-release #11653",
            rule="W28",
            costs="request",
        ),
        facts=(
            Fact(
                what="the request is refused: an array without `items`",
                known="reported in vscode #246119",
                rule="E08",
                costs="request",
                find=_itemless,
            ),
        ),
    ),
    "cursor": Habits(
        title="Cursor",
        profile="cursor",
        naming=Naming(known="reported; how it prefixes is not known"),
        schema_key="parameters",
        more={"type": "function"},
        most_tools=80,
        tools_fact=Fact(
            what="left out: only the first 80 are handed on, by older versions the first 40",
            known="reported in Snowflake-Labs/mcp #77",
            rule="W28",
            costs="tool",
        ),
        facts=(
            Fact(
                what=f"filtered out: server and tool have more than {_CURSOR_NAME} characters together",
                known="reported in mcp-playwright #145 and composio #2788",
                rule="W20",
                costs="tool",
                find=_too_long_for_cursor,
            ),
        ),
    ),
    "openai": Habits(
        title="OpenAI's API",
        profile="openai",
        naming=Naming(known="the tools as they are, without a client in between"),
        schema_key="parameters",
        more={"type": "function"},
        facts=(
            Fact(
                what="the request is refused: a name with other characters than A-Z a-z 0-9 _ -, or more than 64",
                known="OpenAI's reference of function names",
                rule="E06",
                costs="request",
                find=_refused_name,
            ),
            Fact(
                what="the request is refused: the root does not say type: object",
                known=_OPENAI,
                rule="E01",
                costs="request",
                find=_rootless,
            ),
            Fact(
                what="the request is refused: a combinator at the root",
                known="reported in notion-mcp-server #340",
                rule="E04",
                costs="request",
                find=_at_root("anyOf", "oneOf", "allOf", "enum", "not"),
            ),
            Fact(
                what="the request is refused: an array without `items`",
                known=_OPENAI,
                rule="E08",
                costs="request",
                find=_itemless,
            ),
            Fact(
                what="the request is refused: an object without `properties`",
                known=_OPENAI,
                rule="E14",
                costs="request",
                find=_without_properties,
            ),
        ),
    ),
}
