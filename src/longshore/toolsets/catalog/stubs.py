"""Python stubs of tools, made of their schemas: how a program calls them, and what they return."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from keyword import iskeyword
from typing import Any, Final

from longshore.registry.tool import Entry
from longshore.schema.kinds import as_array, as_object, is_object
from longshore.schema.walk import resolve
from longshore.toolsets.discovery.survey import first_sentence

_DEFAULT_CHARACTERS: Final = 50
"""The longest default value that is written out."""
_LEVELS: Final = 4
"""Objects within objects that are written out; deeper ones are `dict`."""
_MOST_FIELDS: Final = 12
"""Fields of an object that are written out."""
_MOST_CHOICES: Final = 20
"""Values of an enumeration that are written out."""
_OTHER: Final = re.compile(r"\W")
_SCALARS: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def python_name(name: str) -> str:
    """A name of a tool or a parameter as Python can write it: `get-sum` is `get_sum`, `from` is `from_`."""
    made = _OTHER.sub("_", name)
    return f"{made}_" if iskeyword(made) else f"_{made}" if made[:1].isdigit() else made


def parameter_order(schema: Mapping[str, Any]) -> list[str]:
    """The parameters of an input schema in the order of a stub: required ones first, each group as in the schema."""
    names, required = list(as_object(schema.get("properties"))), as_array(schema.get("required"))
    return sorted(names, key=lambda name: name not in required)  # which keeps the order of equal ones


def write_stub(entry: Entry) -> str:
    """The stub of a tool in one line, with the first sentence of its description, and its name if Python has none such.

    It is one line however long, since every line of a model's text costs its indentation and its end.
    """
    described = entry.describe()
    summary = first_sentence(described.get("description") or described.get("title") or "")
    head = _head(entry.name, as_object(described.get("inputSchema")), as_object(described.get("outputSchema")))
    stub = f"{head} ...  # {' '.join(summary.split())}" if summary else f"{head} ..."
    return stub if python_name(entry.name) == entry.name else f"# {entry.name}\n{stub}"


def write_line(entry: Entry) -> str:
    """A tool in one line: its name, the names of its parameters, and the first sentence of its description."""
    described = entry.describe()
    schema = as_object(described.get("inputSchema"))
    required = as_array(schema.get("required"))
    names = [name if name in required else f"{name}?" for name in parameter_order(schema)]
    summary = first_sentence(described.get("description") or described.get("title") or "")
    return f"{entry.name}({', '.join(names)}): {summary}".removesuffix(": ")


def describe_parameters(entry: Entry) -> list[str]:
    """A line for each parameter that has a description."""
    properties = as_object(as_object(entry.describe().get("inputSchema")).get("properties"))
    texts = {name: as_object(part).get("description") for name, part in properties.items()}
    return [f"  {name}: {' '.join(str(text).split())}" for name, text in texts.items() if text]


def _head(name: str, schema: dict[str, Any], output: dict[str, Any]) -> str:
    required = as_array(schema.get("required"))
    order, types = parameter_order(schema), _Types(schema)
    given = [_parameter(each, types, schema["properties"][each], each in required) for each in order]
    if len([each for each in order if each in required]) < len(given):
        given.insert(sum(each in required for each in order), "*")
    result = _Types(output).write(_unwrap(output)) if output else "str"
    return f"def {python_name(name)}({', '.join(given)}) -> {result}:"


def _unwrap(output: dict[str, Any]) -> Any:
    """The schema of what code gets: what is no object comes as the only field of one, and is taken out of it."""
    fields = as_object(output.get("properties"))
    return fields["result"] if [*fields] == ["result"] else output


def _parameter(name: str, types: _Types, schema: Any, required: bool) -> str:
    if not required and is_object(schema) and schema.get("default") is not None:
        return f"{python_name(name)}: {types.write(schema)} = {_literal(schema['default'])}"
    return f"{python_name(name)}: {types.write(schema)}{'' if required else ' = ...'}"


def _literal(value: Any) -> str:
    """A JSON value as Python; a long one is left out."""
    text = repr(value)
    return text if len(text) <= _DEFAULT_CHARACTERS else "..."


class _Types:
    """The types of one schema, whose root holds its definitions."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root

    def write(self, schema: Any, levels: int = _LEVELS, within: tuple[str, ...] = ()) -> str:
        """A schema as a type. `within` are the references that led to it."""
        match schema:
            case {"$ref": str(ref)} if ref not in within:
                return self.write(resolve(self._root, ref), levels, (*within, ref))
            case {"enum": [*values]} if len(values) <= _MOST_CHOICES:
                return f"Literal[{', '.join(map(repr, values))}]"
            case {"const": value}:
                return f"Literal[{value!r}]"
            case {"anyOf": [*parts]} | {"oneOf": [*parts]}:
                return self._union(parts, levels, within)
            case {"type": [*kinds]}:
                return self._union([{**schema, "type": kind} for kind in kinds], levels, within)
            case {"type": "array"}:
                return f"list[{self.write(schema.get('items', {}), levels, within)}]"
            case {"type": "object"} | {"properties": _}:
                return self._object(schema, levels, within)
            case {"type": str(kind)}:
                return _SCALARS.get(kind, "Any")
            case _:
                return "Any"

    def _union(self, parts: Iterable[Any], levels: int, within: tuple[str, ...]) -> str:
        return " | ".join(dict.fromkeys(self.write(part, levels, within) for part in parts)) or "Any"

    def _object(self, schema: Mapping[str, Any], levels: int, within: tuple[str, ...]) -> str:
        """The fields of an object, with a question mark at those that may be left out."""
        fields = as_object(schema.get("properties"))
        if not fields:
            values = schema.get("additionalProperties")
            return f"dict[str, {self.write(values, levels, within)}]" if is_object(values) and values else "dict"
        if levels <= 1:
            return "dict"
        required = as_array(schema.get("required"))
        written = [
            f'"{name}"{"" if name in required else "?"}: {self.write(part, levels - 1, within)}'
            for name, part in list(fields.items())[:_MOST_FIELDS]
        ]
        more = ["..."] if len(fields) > _MOST_FIELDS else []
        return "{" + ", ".join([*written, *more]) + "}"
