"""Finds every place where a value breaks its schema, step by step, and gives up after a number of them.

The validator's own list of errors is made as a whole before the first can be looked at, with a copy of the value in
each: a million wrong items take it a quarter of a minute, while nothing else runs. So it only judges, which takes
microseconds, and what is wrong is looked for here: the parts of a schema that lead into a value are followed, and each
rule on the way is put to the validator by itself. What can't be found so is the first error of the validator's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Final, final

from longshore.nearest import nearest
from longshore.schema.failure import COUNTED_LINES, SAID, Breach, Place, to_leave_out, wrong_type, wrong_value
from longshore.schema.kinds import is_array, is_object
from longshore.schema.phrase import cut, describe, either, path, quote
from longshore.schema.pointer import look_up

STEPS: Final = 200_000
"""Places of a value that are looked at: half a second, and a second for what the validator goes through besides."""
HINTS: Final = 20
"""Names that are compared with those that are allowed. More lines than this are not shown."""
TAKEN: Final = 20
"""Names that are told of those that may be given."""
FORMS: Final = 20
"""Failures that are looked at of one form of several, to see which was meant."""

LARGE: Final = 40_000
"""Values inside of one that make it large. To have the validator go through them costs a step for every four."""
ROW: Final = 64
"""Items that are looked at one by one. Of a longer row, the halves that the validator takes are passed over."""
COPIED: Final = 2_000
"""Values inside of one that the validator is asked to tell about: it copies them for every alternative on the way,
at 110 levels a message of 8 MB is some 60 GB."""

Build = Callable[[dict[str, Any]], Any]
"""Compiles a schema, or gives None for one that can't be compiled by itself."""


class _Exhausted(Exception):
    """The search took too many steps."""


@final
class Search:
    """One search, in the order of the schema.

    `compiled` holds the rules that were put to the validator: it may be used again for the same schema.
    """

    def __init__(
        self, root: dict[str, Any], build: Build, compiled: dict[Any, Any], *, bare_refs: bool, taker: str | None
    ) -> None:
        self._root, self._build, self._compiled = root, build, compiled
        self._bare_refs = bare_refs
        """Whether what stands beside a `$ref` does not count, as in draft 7 and before."""
        self._taker = taker
        """What takes the value as its arguments; None where it is something else."""
        self._left, self._hints = STEPS, HINTS

    def look(self, value: Any) -> list[Breach]:
        """What is wrong with a value as a whole, at most `COUNTED_LINES`. Steps that were taken don't come back."""
        self._hints = HINTS
        breaches: list[Breach] = []
        try:
            breaches.extend(islice(self.found(self._root, value), COUNTED_LINES))
        except (_Exhausted, RecursionError):
            pass  # what was found until then is true
        return breaches

    def found(self, schema: Any, value: Any, where: Place = ()) -> Iterator[Breach]:
        """Every failure of a value, until the steps are used up."""
        self._spend(1)
        if schema is False:
            yield Breach(where, "is not allowed here")
        if not is_object(schema) or ("$id" in schema and schema is not self._root):
            return  # references inside of another `$id` lead elsewhere
        rules = {"$ref": schema["$ref"]} if self._bare_refs and "$ref" in schema else schema
        for keyword, wanted in rules.items():
            if keyword in _LEADING:
                yield from _LEADING[keyword](self, schema, wanted, value, where)
            elif keyword in SAID and self._breaks(schema, keyword, value):
                yield Breach(where, SAID[keyword](wanted, value))

    def _spend(self, steps: int) -> None:
        self._left -= steps
        if self._left < 0:
            raise _Exhausted

    # -- asking the validator

    def _breaks(self, schema: dict[str, Any], keyword: str, value: Any) -> bool:
        """Whether a value breaks this one rule. False as well where that can't be told."""
        rule = self._rule(schema, keyword)
        if keyword in _INNER:
            self._spend(_count(value) >> 2)
        return rule is not None and not rule.is_valid(value)

    def _rule(self, schema: dict[str, Any], keyword: str) -> Any:
        key = id(schema), keyword
        if key not in self._compiled:
            beside = {name: schema[name] for name in (keyword, *_BESIDE.get(keyword, ())) if name in schema}
            self._compiled[key] = self._build(beside)
        return self._compiled[key]

    def _holds(self, schema: Any, value: Any) -> bool | None:
        """Whether a value keeps a schema; None where that can't be told."""
        if not is_object(schema):
            return schema is not False
        if id(schema) not in self._compiled:
            self._compiled[id(schema)] = self._build(schema)
        rule = self._compiled[id(schema)]
        self._spend(_count(value) >> 2)
        return None if rule is None else rule.is_valid(value)

    # -- kinds and values

    def type(self, schema: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        if not self._breaks(schema, "type", value) or ("enum" in schema and self._breaks(schema, "enum", value)):
            return  # a list of values also tells their kind
        types = tuple(wanted) if is_array(wanted) else (str(wanted),)
        yield Breach(where, wrong_type(types, value), types, mend=_mend(types, value))

    def enum(self, schema: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        if is_array(wanted) and self._breaks(schema, "enum", value):
            yield self._none_of(wanted, value, where)

    def const(self, schema: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        if self._breaks(schema, "const", value):
            yield self._none_of([wanted], value, where)

    def _none_of(self, options: list[Any], value: Any, where: Place) -> Breach:
        kinds = tuple(dict.fromkeys(_type_name(option) for option in options))
        types = () if _type_name(value) in kinds else kinds
        close = self._nearest(value, [o for o in options if isinstance(o, str)]) if isinstance(value, str) else None
        return Breach(where, wrong_value(options, value, close), types, tuple(options), _mend(types, value))

    def _nearest(self, name: str, names: Any) -> str | None:
        self._hints -= 1
        return nearest(name, names) if self._hints >= 0 else None

    # -- objects

    def properties(self, schema: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        if not is_object(value) or not is_object(wanted):
            return
        self._spend(len(wanted) >> 3)
        required: Any = schema.get("required")
        for name in wanted:
            if name in value:
                may_go = value[name] is None and not (is_array(required) and name in required)
                for breach in self.found(wanted[name], value[name], (*where, name)):
                    yield Breach(breach.where, breach.said, breach.types, mend="omit") if may_go else breach

    def pattern_properties(self, _: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        if is_object(value) and is_object(wanted):
            for pattern in wanted:
                for name in value:
                    if self._matches(pattern, name):
                        yield from self.found(wanted[pattern], value[name], (*where, name))

    def _matches(self, pattern: str, name: str) -> bool:
        self._spend(1)
        if ("pattern", pattern) not in self._compiled:
            self._compiled["pattern", pattern] = self._build({"pattern": pattern})
        rule = self._compiled["pattern", pattern]
        return rule is not None and rule.is_valid(name)

    def additional_properties(self, schema: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        if not is_object(value) or wanted is True:
            return
        known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name in value:
            self._spend(1)
            if name in known or any(self._matches(pattern, name) for pattern in patterns):
                continue
            if wanted is False:
                yield self._unknown(name, [each for each in known if each not in value], known, where)
            else:
                yield from self.found(wanted, value[name], (*where, name))

    def _unknown(self, name: str, free: list[str], known: Any, where: Place) -> Breach:
        close = self._nearest(name, free) or self._nearest(name, known)
        hint = f"; did you mean {cut(close)}?" if close else ""
        if where or self._taker is None:
            return Breach((*where, name), f"unknown field{hint}")
        listed = ", ".join(cut(each) for each in islice(known, TAKEN)) + (", …" if len(known) > TAKEN else "")
        takes = f"takes: {listed}" if known else f"{cut(self._taker)} takes no arguments"
        return Breach((name,), f"unknown argument{hint} ({takes})")

    def required(self, schema: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        if not is_object(value) or not is_array(wanted):
            return
        self._spend(len(wanted) >> 3)
        known: Any = schema.get("properties")
        for name in wanted:
            if name not in value:
                inner: Any = known.get(name) if is_object(known) else None
                what = f" ({describe(inner)}, required)" if is_object(inner) else ""
                yield Breach((*where, name), f"missing{what}")

    def property_names(self, _: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        for name in value if is_object(value) else ():
            for breach in islice(self.found(wanted, name), 1):
                yield Breach(where, f"has a key that is not allowed: {quote(name)}: {breach.said}")

    def dependent(self, _: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        """`dependentRequired`, `dependentSchemas`, and `dependencies`, which was both."""
        if not is_object(value) or not is_object(wanted):
            return
        for name in wanted:
            if name not in value:
                continue
            if not is_array(wanted[name]):
                yield from self.found(wanted[name], value, where)
                continue
            for other in wanted[name]:
                if other not in value:
                    yield Breach((*where, other), f"missing (required with {cut(name)})")

    def unevaluated_properties(self, schema: dict[str, Any], _: Any, value: Any, where: Place) -> Iterator[Breach]:
        """Which they are depends on all that stands beside. Told once the rest is right."""
        if is_object(value) and self._holds(schema, value) is False:
            error: Any = first_error(self._compiled[id(schema)], value)
            if error is None:
                yield Breach(where, "has unknown fields, or fields that don't go together")
            elif error.kind.name == "unevaluatedProperties" and not error.instance_path:
                yield from (Breach((*where, name), "unknown field") for name in error.kind.unexpected)

    # -- arrays

    def items(self, schema: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        if not is_array(value):
            return
        if is_array(wanted):  # as before 2020-12
            yield from self.prefix_items(schema, wanted, value, where)
            return
        prefix: Any = schema.get("prefixItems")
        for index in self._suspects(schema, value, len(prefix) if is_array(prefix) else 0, len(value)):
            yield from self.found(wanted, value[index], (*where, index))

    def _suspects(self, schema: dict[str, Any], value: list[Any], low: int, high: int) -> Iterator[int]:
        """The items that may be wrong."""
        rule = self._rule(schema, "items") if high - low > ROW else None
        if rule is None:
            yield from range(low, high)
            return
        self._spend((high - low) >> 9)
        middle = (low + high) // 2
        for start, end in ((low, middle), (middle, high)):
            if not rule.is_valid(value[start:end]):
                yield from self._suspects(schema, value, start, end)

    def prefix_items(self, _: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        if is_array(value) and is_array(wanted):
            for index, (inner, item) in enumerate(zip(wanted, value, strict=False)):
                yield from self.found(inner, item, (*where, index))

    def additional_items(self, schema: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        before: Any = schema.get("items")
        if is_array(value) and is_array(before):
            for index in range(len(before), len(value)):
                yield from self.found(wanted, value[index], (*where, index))

    # -- other schemas for the same value

    def reference(self, _: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        yield from self.found(look_up(self._root, wanted), value, where)

    def all_of(self, _: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        for inner in wanted if is_array(wanted) else ():
            yield from self.found(inner, value, where)

    def condition(self, schema: dict[str, Any], wanted: Any, value: Any, where: Place) -> Iterator[Breach]:
        holds = self._holds(wanted, value)
        if holds is not None:
            yield from self.found(schema.get("then" if holds else "else"), value, where)

    def any_of(self, schema: dict[str, Any], _: Any, value: Any, where: Place) -> Iterator[Breach]:
        yield from self._forms(schema, "anyOf", value, where)

    def one_of(self, schema: dict[str, Any], _: Any, value: Any, where: Place) -> Iterator[Breach]:
        yield from self._forms(schema, "oneOf", value, where)

    def _forms(self, schema: dict[str, Any], keyword: str, value: Any, where: Place) -> Iterator[Breach]:
        if not self._breaks(schema, keyword, value):
            return
        forms = [list(islice(self.found(inner, value, where), FORMS)) for inner in schema[keyword]]
        if all(forms):
            yield from self._meant(forms, value, where)
        elif keyword == "oneOf":
            fitting = [inner for inner, form in zip(schema[keyword], forms, strict=True) if not form]
            yield Breach(where, f"fits several of the forms of which it may fit one{to_leave_out(fitting)}")

    def _meant(self, forms: list[list[Breach]], value: Any, where: Place) -> Iterator[Breach]:
        """The failures of the form that was meant, if that can be told; else what the forms expect."""
        kinds = [next((b for b in form if b.types and b.where == where), None) for form in forms]
        fitting = [form for form, other in zip(forms, kinds, strict=True) if other is None]
        if not fitting:
            types = tuple(t for other in kinds if other is not None for t in other.types)
            yield Breach(where, wrong_type(types, value), types, mend=_mend(types, value))
            return
        if mendable := next((form for form in fitting if all(breach.mend for breach in form)), None):
            yield from mendable  # whoever takes the value judges what comes of it
            return
        best = min(_distance(form, where) for form in fitting)
        nearest_forms = [form for form in fitting if _distance(form, where) == best]
        if len(nearest_forms) == 1 or all(form == nearest_forms[0] for form in nearest_forms):
            yield from nearest_forms[0]
        else:
            yield self._told_apart(nearest_forms, value, where)

    def _told_apart(self, forms: list[list[Breach]], value: Any, where: Place) -> Breach:
        """One line for several forms that are equally near: every mark that tells them apart, or the words of each."""
        tags = [_tag(form, where) for form in forms]
        places = {tag.where for tag in tags if tag is not None}
        if len(places) == 1 and None not in tags:
            place = places.pop()
            options = list({quote(o): o for tag in tags if tag is not None for o in tag.options}.values())
            return self._none_of(options, _at(value, place[len(where) :]), place)
        words = [f"{path(form[0].where[len(where) :])} {form[0].said}".strip() for form in forms]
        return Breach(where, f"fits none of the allowed forms: {either(words)}")


def first_error(validator: Any, value: Any) -> Any:
    """The validator's first error; None where the value is too large to ask for it."""
    if _count(value, COPIED) >= COPIED:
        return None
    try:
        validator.validate(value)
    except Exception as error:
        return error
    return None


def _count(value: Any, most: int = LARGE) -> int:
    """How many values are inside of one, characters by the hundred; no more than `most`."""
    count, waiting = 0, [value]
    while waiting and count < most:
        found = waiting.pop()
        count += 1 + (len(found) // 100 if isinstance(found, str) else 0)
        if is_object(found) or is_array(found):
            waiting.extend(islice(found.values() if is_object(found) else found, most))
    return min(count, most)


def _mend(types: tuple[str, ...], value: Any) -> Any:
    """An object or array is wanted, a string won't do, and here is one that looks like JSON."""
    wanted = "string" not in types and ("object" in types or "array" in types)
    return "parse" if wanted and isinstance(value, str) and value.lstrip().startswith(("[", "{")) else None


def _distance(form: list[Breach], where: Place) -> tuple[bool, int]:
    """How far a value is from a form: another form's mark is farther than any number of other failures."""
    return _tag(form, where) is not None, sum(breach.mend is None for breach in form)


def _tag(form: list[Breach], where: Place) -> Breach | None:
    return next((b for b in form if b.options and len(b.where) <= len(where) + 1), None)


def _at(value: Any, place: Place) -> Any:
    for step in place:
        value = value[step]
    return value


def _type_name(value: Any) -> str:
    for name, kinds in _TYPES:
        if isinstance(value, kinds):
            return name
    return "null"


_TYPES: Final[tuple[tuple[str, Any], ...]] = (
    ("boolean", bool),
    ("number", (int, float)),
    ("string", str),
    ("array", list),
    ("object", dict),
)
_BESIDE: Final = {
    "minimum": ("exclusiveMinimum",),  # a boolean in draft 4
    "maximum": ("exclusiveMaximum",),
    "contains": ("minContains", "maxContains"),
    "contentMediaType": ("contentEncoding",),
}
_INNER: Final = frozenset(("anyOf", "oneOf", "not", "contains", "items", "uniqueItems"))
"""The rules that the validator goes through a whole value for."""
_Rule = Callable[[Search, dict[str, Any], Any, Any, Place], Iterator[Breach]]
_LEADING: Final[dict[str, _Rule]] = {
    "type": Search.type,
    "enum": Search.enum,
    "const": Search.const,
    "properties": Search.properties,
    "patternProperties": Search.pattern_properties,
    "additionalProperties": Search.additional_properties,
    "required": Search.required,
    "propertyNames": Search.property_names,
    "dependentRequired": Search.dependent,
    "dependentSchemas": Search.dependent,
    "dependencies": Search.dependent,
    "unevaluatedProperties": Search.unevaluated_properties,
    "items": Search.items,
    "prefixItems": Search.prefix_items,
    "additionalItems": Search.additional_items,
    "$ref": Search.reference,
    "allOf": Search.all_of,
    "anyOf": Search.any_of,
    "oneOf": Search.one_of,
    "if": Search.condition,
}
"""The rules that lead into a value, or to more schemas for it."""
