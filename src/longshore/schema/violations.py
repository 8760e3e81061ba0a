"""Finds where a value breaks its schema, in plain lines of `path: what was expected; what came; what was meant`.

The validator creates its whole list of errors before the first can be read, and each error has a copy of its part of
the value, once more for every alternative around it. So it is asked for all errors in a value of ordinary size, for the
first one in a larger value, and for none beyond that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from operator import itemgetter
from typing import Any, Final, Literal, final

from msgspec import Struct

from longshore.nearest import nearest
from longshore.schema.kinds import as_object, is_array, is_object
from longshore.schema.phrase import cut, describe, either, expected, kind, path, quote, type_name
from longshore.schema.walk import resolve

SHOWN_LINES: Final = 20
"""Lines of one explanation. An attacker's thousand unknown keys must not become a thousand lines."""
COUNTED_LINES: Final = 1000
"""Violations that are read and counted; more are not."""
MAX_NODES: Final = 2_000
"""Values in a value of which all errors are listed."""
MAX_PAIRS: Final = 100_000
"""Values in such values, times values in the schema, over the life of a finder. Each pair may be an error of 20 µs."""
MAX_COPIES: Final = 200_000
"""Values that the validator may copy for its first error (each once for every level around it): some 15 MB."""
_MAX_HINTS: Final = 20
"""Names that are compared with the known ones. More lines than this are not shown."""
_MAX_KNOWN: Final = 20
"""Known names that one line lists."""
_MAX_FORM_NAMES: Final = 8
"""Names of one alternative that a line lists."""

Place = tuple[str | int, ...]


class Violation(Struct, frozen=True):
    """One place where a value breaks its schema."""

    where: Place
    text: str
    types: tuple[str, ...] = ()
    """The allowed types, if the value is of another one."""
    options: tuple[Any, ...] = ()
    """The allowed values, if the value is none of them."""
    repair: Literal["parse", "omit"] | None = None
    """The repair: to parse the JSON inside a string, or to leave out a null."""

    @property
    def line(self) -> str:
        return f"{path(self.where)}: {self.text}" if self.where else self.text


def shorten(lines: Sequence[str]) -> list[str]:
    """The first `SHOWN_LINES`, and a line with the number of the others."""
    hidden = len(lines) - SHOWN_LINES
    least = "at least " if len(lines) >= COUNTED_LINES else ""
    return [*lines[:SHOWN_LINES], f"… and {least}{hidden} more"] if hidden > 0 else list(lines)


@final
class ErrorFinder:
    """Lists the violations of one schema, in the order of the schema.

    `validator` is the compiled schema. `taker` names the tool whose arguments the values are; None for other values.
    """

    def __init__(self, schema: dict[str, Any], validator: Any, taker: str | None) -> None:
        self._root, self._validator, self._taker = schema, validator, taker
        self._hints, self._left = _MAX_HINTS, MAX_PAIRS

    def find(self, value: Any) -> list[Violation]:
        """The violations of a value; none if it is valid."""
        self._hints = _MAX_HINTS
        if self._validator.is_valid(value):
            return []
        nodes, copies = _measure(value)
        errors: Iterable[Any] = ()
        pairs = nodes * _measure(self._root)[0]
        if nodes <= MAX_NODES and pairs <= self._left and copies <= MAX_COPIES:
            self._left -= pairs
            errors = islice(self._validator.iter_errors(value), COUNTED_LINES)
        elif copies <= MAX_COPIES:
            try:
                self._validator.validate(value)
            except Exception as error:
                errors = (error,)
        found = self._violations(errors, value)[:COUNTED_LINES]
        return found or [Violation((), "is not valid; it is too large to say where")]

    def _violations(self, errors: Iterable[Any], value: Any) -> list[Violation]:
        placed = sorted(((error, *_trail(self._root, error)) for error in errors), key=itemgetter(2))
        enums = {
            tuple(each.evaluation_path[:-1]): each.instance_path for each, *_ in placed if each.kind.name == "enum"
        }
        found: list[Violation] = []
        for error, trail, _ in placed:
            # A list of values also says their type.
            if error.kind.name == "type" and enums.get(tuple(error.evaluation_path[:-1])) == error.instance_path:
                continue
            part = _at(value, tuple(error.instance_path))
            optional = part is None and _may_be_omitted(trail, error.instance_path)
            for violation in self._read(error, trail, value, part):
                if optional and violation.where == tuple(error.instance_path):
                    violation = Violation(violation.where, violation.text, violation.types, repair="omit")
                found.append(violation)
        return found

    def _read(self, error: Any, trail: list[Any], value: Any, part: Any) -> Iterator[Violation]:
        """The violations of one error of the validator. `part` is the part of the value that it is about."""
        where: Place = tuple(error.instance_path)
        schema: dict[str, Any] = trail[-1] if trail and is_object(trail[-1]) else {}
        match error.kind.name:
            case "type":
                wanted = schema.get("type", error.kind.types)
                types = tuple(wanted) if is_array(wanted) else (str(wanted),)
                yield Violation(where, wrong_type(types, part), types, repair=_parse(types, part))
            case "enum":
                yield self._none_of(list(error.kind.options), part, where)
            case "const":
                yield self._none_of([error.kind.expected_value], part, where)
            case "required":
                yield self._missing(error, schema, part, where)
            case "additionalProperties":
                known = schema.get("properties", {})
                free = [each for each in known if each not in part]
                yield from (self._unknown(name, free, known, where) for name in error.kind.unexpected)
            case "unevaluatedProperties":
                yield from (Violation((*where, name), "unknown field") for name in error.kind.unexpected)
            case "propertyNames":
                inner = error.kind.error
                text = f"has a key that is not allowed: {quote(inner.instance)}: {text_of(inner)}"
                yield Violation(where, text)
            case "anyOf" | "oneOf":
                forms = [self._violations(form, value) for form in error.kind.context]
                if all(forms):
                    yield from self._closest(forms, value, part, where)
                else:
                    fitting = [each for each, form in zip(schema.get("oneOf", ()), forms, strict=False) if not form]
                    text = f"fits several of the forms of which it may fit one{_to_leave_out(fitting)}"
                    yield Violation(where, text)
            case _:
                yield Violation(where, text_of(error, part))

    def _none_of(self, options: list[Any], value: Any, where: Place) -> Violation:
        names = tuple(dict.fromkeys(type_name(option) for option in options))
        types = () if type_name(value) in names else names
        close = self._nearest(value, [o for o in options if isinstance(o, str)]) if isinstance(value, str) else None
        return Violation(where, wrong_value(options, value, close), types, tuple(options), _parse(types, value))

    def _nearest(self, name: str, names: Any) -> str | None:
        self._hints -= 1
        return nearest(name, names) if self._hints >= 0 else None

    def _missing(self, error: Any, schema: dict[str, Any], part: Any, where: Place) -> Violation:
        name, keyword = error.kind.property, error.schema_path[-1]
        if keyword != "required":  # dependentRequired, or dependencies
            needed = schema.get(keyword, {}).items()
            why = next((other for other, names in needed if other in part and is_array(names) and name in names), "")
            return Violation((*where, name), f"missing (required with {cut(why)})")
        inner = as_object(schema.get("properties")).get(name)
        return Violation((*where, name), f"missing ({describe(inner)}, required)" if is_object(inner) else "missing")

    def _unknown(self, name: str, free: list[str], known: Any, where: Place) -> Violation:
        close = self._nearest(name, free) or self._nearest(name, known)
        hint = f"; did you mean {cut(close)}?" if close else ""
        if where or self._taker is None:
            return Violation((*where, name), f"unknown field{hint}")
        listed = ", ".join(cut(each) for each in islice(known, _MAX_KNOWN)) + (", …" if len(known) > _MAX_KNOWN else "")
        takes = f"takes: {listed}" if known else f"{cut(self._taker)} takes no arguments"
        return Violation((name,), f"unknown argument{hint} ({takes})")

    def _closest(self, forms: list[list[Violation]], value: Any, part: Any, where: Place) -> Iterator[Violation]:
        """The violations of the alternative that was meant, if there is one; else what the alternatives expect."""
        wrong = [next((each for each in form if each.types and each.where == where), None) for form in forms]
        fitting = [form for form, other in zip(forms, wrong, strict=True) if other is None]
        if not fitting:
            types = tuple(name for other in wrong if other is not None for name in other.types)
            yield Violation(where, wrong_type(types, part), types, repair=_parse(types, part))
            return
        if repairable := next((form for form in fitting if all(each.repair for each in form)), None):
            yield from repairable  # the repaired value is checked again
            return
        best = min(_distance(form, where) for form in fitting)
        closest = [form for form in fitting if _distance(form, where) == best]
        if all(form == closest[0] for form in closest):
            yield from closest[0]
        else:
            yield self._joined(closest, value, where)

    def _joined(self, forms: list[list[Violation]], value: Any, where: Place) -> Violation:
        """One line for several equally close alternatives: their tags, if they have one in the same place."""
        tags = [_tag(form, where) for form in forms]
        places = {tag.where for tag in tags if tag is not None}
        if len(places) == 1 and None not in tags:
            place = places.pop()
            options = list({quote(o): o for tag in tags if tag is not None for o in tag.options}.values())
            return self._none_of(options, _at(value, place), place)
        texts = [f"{path(form[0].where[len(where) :])} {form[0].text}".strip() for form in forms]
        return Violation(where, f"fits none of the allowed forms: {either(texts)}")


# -- the origin of an error


def _trail(root: Any, error: Any) -> tuple[list[Any], list[int]]:
    """The schemas, lists and mappings on an error's path, one for each step; and its position in the schema.

    The position is that of each step, and of the item of the value where there is one. A step that can't be followed is
    None, at -1.
    """
    trail: list[Any] = []
    rank: list[int] = []
    indices = iter([step for step in error.instance_path if isinstance(step, int)])
    node: Any = root
    for step in error.evaluation_path:
        trail.append(node)
        if is_object(node):
            rank.append(next((index for index, key in enumerate(node) if key == step), -1))
            if step in ("items", "prefixItems", "additionalItems"):
                rank.append(next(indices, -1))
            node = resolve(root, node.get("$ref")) if step == "$ref" else node.get(str(step))
        else:
            rank.append(step if isinstance(step, int) else -1)
            node = node[step] if is_array(node) and isinstance(step, int) and step < len(node) else None
    return trail, rank


def _may_be_omitted(trail: list[Any], where: Sequence[str | int]) -> bool:
    """Whether the value is a property that its object doesn't require."""
    holders = [node for node in trail if is_object(node) and is_object(node.get("properties"))]
    holder = next((each for each in reversed(holders) if where and where[-1] in each["properties"]), None)
    required = holder.get("required") if holder is not None else None
    return holder is not None and not (is_array(required) and where[-1] in required)


def _at(value: Any, place: Place) -> Any:
    for step in place:
        value = value[step]
    return value


def _measure(value: Any) -> tuple[int, int]:
    """The number of values in a value, texts by the hundred characters, and the sum of their levels; both bounded."""
    nodes, copies, waiting = 0, 0, [(value, 1)]
    while waiting and copies <= MAX_COPIES:
        found, level = waiting.pop()
        size = 1 + (len(found) // 100 if isinstance(found, str) else 0)
        nodes, copies = nodes + size, copies + size * level
        if is_object(found) or is_array(found):
            inner = found.values() if is_object(found) else found
            waiting.extend((each, level + 1) for each in islice(inner, MAX_COPIES))
    return nodes, copies


def _parse(types: tuple[str, ...], value: Any) -> Literal["parse"] | None:
    """The parsed value of a string that looks like the JSON of the expected object or array."""
    wanted = "string" not in types and ("object" in types or "array" in types)
    return "parse" if wanted and isinstance(value, str) and value.lstrip().startswith(("[", "{")) else None


def _distance(form: list[Violation], where: Place) -> tuple[bool, int]:
    """How far a value is from an alternative: a wrong tag is farther than any number of other violations."""
    return _tag(form, where) is not None, sum(each.repair is None for each in form)


def _tag(form: list[Violation], where: Place) -> Violation | None:
    return next((each for each in form if each.options and len(each.where) <= len(where) + 1), None)


# -- texts


def wrong_type(types: Sequence[str], value: Any) -> str:
    """The text for a value of another type."""
    got = quote(value) if "integer" in types and isinstance(value, float) else kind(value)
    return f"expected {expected(list(types))}, got {got}"


def wrong_value(options: Sequence[Any], value: Any, close: str | None) -> str:
    """The text for a value that is none of the allowed ones."""
    if len(options) == 1:
        return f"must be {quote(options[0])}; got {quote(value)}"
    few = len(options) <= SHOWN_LINES
    text = f"must be {describe({'enum': options})}" if few else "is not one of the allowed values"
    return f"{text}; got {quote(value)}" + (f"; did you mean {quote(close)}?" if close else "")


def _to_leave_out(forms: Sequence[Any]) -> str:
    """For alternatives that fit at once: the required names in which they differ, if each has some."""
    found: list[Any] = [form.get("required") if is_object(form) else None for form in forms]
    names = [dict.fromkeys(map(str, each)) if is_array(each) else {} for each in found]
    apart = [
        [cut(name) for name in islice(each, _MAX_FORM_NAMES) if any(name not in o for o in names)] for each in names
    ]
    return f": leave out {either([' and '.join(each) for each in apart])}" if all(apart) else ""


def text_of(error: Any, value: Any = None) -> str:
    """The text for an error of the validator. `value` is the part of the value that it is about."""
    value = error.instance if value is None else value
    keyword: str = error.kind.name
    if keyword == "type":
        return wrong_type(list(error.kind.types), value)
    if keyword == "enum":
        return wrong_value(list(error.kind.options), value, None)
    if keyword == "const":
        return wrong_value([error.kind.expected_value], value, None)
    if keyword in _TEXTS:
        return _TEXTS[keyword](error.kind.value, value)
    return (
        "the pattern took too many steps on this value" if "acktrack" in keyword else f"breaks the rule {cut(keyword)}"
    )


def _count(value: Any, one: str) -> str:
    return f"got 1 {one}" if len(value) == 1 else f"got {len(value)} {one}s"


_TEXTS: Final[dict[str, Callable[[Any, Any], str]]] = {
    "falseSchema": lambda _, __: "is not allowed here",
    "minimum": lambda limit, value: f"must be >= {limit}; got {quote(value)}",
    "maximum": lambda limit, value: f"must be <= {limit}; got {quote(value)}",
    "exclusiveMinimum": lambda limit, value: f"must be > {limit}; got {quote(value)}",
    "exclusiveMaximum": lambda limit, value: f"must be < {limit}; got {quote(value)}",
    "multipleOf": lambda step, value: f"must be a multiple of {step}; got {quote(value)}",
    "minLength": lambda limit, value: f"must have a length >= {limit}; {_count(value, 'character')}",
    "maxLength": lambda limit, value: f"must have a length <= {limit}; {_count(value, 'character')}",
    "minItems": lambda limit, value: f"must have at least {limit} items; {_count(value, 'item')}",
    "maxItems": lambda limit, value: f"must have at most {limit} items; {_count(value, 'item')}",
    "minProperties": lambda limit, value: f"must have at least {limit} fields; {_count(value, 'field')}",
    "maxProperties": lambda limit, value: f"must have at most {limit} fields; {_count(value, 'field')}",
    "pattern": lambda pattern, value: f"must match the pattern {cut(str(pattern))}; got {quote(value)}",
    "format": lambda name, value: f"must be in the format {cut(str(name))}; got {quote(value)}",
    "uniqueItems": lambda _, __: "must not repeat items",
    "contains": lambda _, __: "lacks an item that is required",
    "not": lambda _, __: "has a form that is forbidden",
    "contentEncoding": lambda name, _: f"must be {cut(str(name))} text",
    "contentMediaType": lambda name, _: f"must be {cut(str(name))}",
}
"""Keyword → (its value, the part of the value) → text."""
