"""Relations at the root of a schema (`anyOf`, `oneOf`, `allOf`), which some clients refuse, turned into a sentence.

What `allOf` joins is joined. Of alternatives, all that any of them names may be given; which go together is said in
words, and checked by the server.
"""

from __future__ import annotations

from typing import Any, Final, final

import msgspec

from longshore.schema.kinds import is_array, is_object
from longshore.schema.rewriting.everywhere import ANNOTATIONS, Schema, less
from longshore.schema.rewriting.plain import has_type
from longshore.schema.rewriting.references import resolve

ROOT_COMBINATORS: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const")

MOST_BRANCHES: Final = 100
"""Alternatives, or parts of one `allOf`, that are looked at. No model could make anything of more than a few dozen."""

MOST_NESTED: Final = 8
"""Alternatives inside of alternatives."""

MOST_SAID: Final = 600
"""Characters of the sentence. A description is cut at 2,048 by one client, and the author's own words come first."""

_CHECKED: Final = "Further conditions on the arguments are checked when it is called."


def without_root_combinators(schema: Any) -> tuple[Any, str]:
    """The schema without them, and what they said in words; empty words if there were none.

    Nothing is refused that was taken before, with one exception: if an alternative describes a property, and another
    says nothing of it, the description holds for both. Without that, a model would know no property's type.
    """
    if not is_object(schema) or not set(ROOT_COMBINATORS).intersection(schema):
        return schema, ""
    joining = _Joining(schema)
    return joining.join(schema, MOST_NESTED), " ".join(dict.fromkeys(joining.said))[:MOST_SAID]


@final
class _Joining:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = MOST_BRANCHES
        self.said: list[str] = []

    def join(self, schema: Schema, levels: int) -> Schema:
        """The schema without combinators at its root, of which the words are kept."""
        if not set(ROOT_COMBINATORS).intersection(schema):
            return schema
        base = less(schema, *ROOT_COMBINATORS, "unevaluatedProperties")
        for part in self._branches(schema, "allOf", levels):
            base = _merge(base, part)
        for keyword in ("anyOf", "oneOf"):
            if branches := self._branches(schema, keyword, levels):
                self.said.append(_say(keyword, base, branches))
                base = _alternate(base, branches)
        if not {"not", "if", "enum", "const"}.isdisjoint(schema):
            self.said.append(_CHECKED)
        return base

    def _branches(self, schema: Schema, keyword: str, levels: int) -> list[Schema]:
        """What may hold of an object. Where it gets too much, anything may."""
        found = schema.get(keyword)
        opened = [self._open(each, levels - 1) for each in found] if is_array(found) else []
        return [each for each in opened if each is not None]

    def _open(self, branch: Any, levels: int) -> Schema | None:
        self._left -= 1
        branch = resolve(branch, self._root)
        if branch is False or (is_object(branch) and "type" in branch and not has_type(branch, "object")):
            return None
        if not is_object(branch) or self._left < 0 or levels <= 0 or "$ref" in branch:
            return {}
        return self.join(branch, levels)


def _properties(schema: Schema) -> Schema:
    found = schema.get("properties")
    return found if is_object(found) else {}


def _required(schema: Schema) -> list[str]:
    found = schema.get("required")
    return [each for each in found if isinstance(each, str)] if is_array(found) else []


def _distinct(values: list[Any]) -> list[Any]:
    return [*{_text(value): value for value in values}.values()]


def _text(value: Any) -> str:
    """What tells one value from another, as JSON tells them: 1 is not true."""
    try:
        return repr(value)
    except RecursionError:  # deeper than anything that a client would take
        return f"at {id(value)}"


def _put(schema: Schema, keyword: str, value: Any) -> Schema:
    return {**schema, keyword: value} if value else less(schema, keyword)


# -- allOf


def with_all_joined(schema: Schema) -> Schema:
    """What stands in `allOf` written beside it, as far as that can be done. The rest is left out."""
    parts = schema.get("allOf")
    joined = less(schema, "allOf")
    for part in parts[:MOST_BRANCHES] if is_array(parts) else []:
        joined = _merge_any(joined, part) if is_object(part) else joined
    return joined


def _merge_any(base: Schema, part: Schema) -> Schema:
    if base.keys().isdisjoint(part) and not _needs_company(base) and not _needs_company(part):
        return {**base, **part}
    if part.keys() <= ANNOTATIONS:
        return {**part, **base}
    return _merge(base, part) if _is_of_object(base) and _is_of_object(part) else base


def _is_of_object(schema: Schema) -> bool:
    return schema.get("type") == "object" or ("type" not in schema and "properties" in schema)


_BY_ITSELF: Final = frozenset(
    ("minProperties", "maxProperties", "propertyNames", "dependentRequired", "dependentSchemas", "$comment")
)
"""Keywords that hold wherever they stand, whatever stands beside them."""


def _merge(base: Schema, part: Schema) -> Schema:
    """Both must hold. What can't be written in one is left out."""
    ours, theirs = _properties(base), _properties(part)
    both = {name: _both(ours[name], theirs[name]) for name in theirs if name in ours}
    merged = _put(base, "properties", {**ours, **theirs, **both})
    merged = _put(merged, "required", [*dict.fromkeys([*_required(base), *_required(part)])])
    merged |= {keyword: value for keyword, value in part.items() if keyword in _BY_ITSELF and keyword not in base}
    return _close(_match(merged, base, part), base, part)


def _both(ours: Any, theirs: Any) -> Any:
    if theirs is True or _text(ours) == _text(theirs):
        return ours
    if is_object(ours) and is_object(theirs):
        if ours.keys() == {"allOf"}:
            return {"allOf": [*ours["allOf"], theirs]}
        if ours.keys().isdisjoint(theirs) and not _needs_company(ours) and not _needs_company(theirs):
            return {**ours, **theirs}
        if theirs.keys() <= ANNOTATIONS:
            return {**theirs, **ours}
    return {"allOf": [ours, theirs]}


def _needs_company(schema: Schema) -> bool:
    """Some keyword of it looks at what stands beside it."""
    return not {"additionalProperties", "additionalItems", "items", "if", "contains", "$ref"}.isdisjoint(schema) or any(
        str(keyword).startswith("unevaluated") for keyword in schema
    )


def _match(merged: Schema, base: Schema, part: Schema) -> Schema:
    """`patternProperties`, which like `properties` tell what `additionalProperties` does not speak of."""
    ours, theirs = base.get("patternProperties"), part.get("patternProperties")
    if not is_object(theirs):
        return merged
    ours = ours if is_object(ours) else {}
    both = {name: _both(ours[name], theirs[name]) for name in theirs if name in ours}
    return {**merged, "patternProperties": {**ours, **theirs, **both}}


def _close(merged: Schema, base: Schema, part: Schema) -> Schema:
    """Closed by either: what neither names is refused. Two different descriptions of the rest are none."""
    found = [each["additionalProperties"] for each in (base, part) if "additionalProperties" in each]
    if any(each is False for each in found):
        return {**merged, "additionalProperties": False}
    alike = len(_distinct(found)) == 1
    return {**merged, "additionalProperties": found[0]} if alike else less(merged, "additionalProperties")


# -- anyOf and oneOf


def _alternate(base: Schema, branches: list[Schema]) -> Schema:
    """One of them holds: what all require is required, and what any names may be given."""
    ours, shut = _properties(base), base.get("additionalProperties") is False
    named = {name: None for branch in branches for name in _properties(branch) if name in ours or not shut}
    joined = {name: _either(name, branches) for name in named}
    properties = {**joined, **{name: _narrowed(ours[name], joined.get(name)) for name in ours}}
    common = set(_required(branches[0])).intersection(*map(_required, branches))
    opened = _put(base, "properties", {name: properties[name] for name in [*ours, *joined]})
    opened = _put(opened, "required", [*dict.fromkeys([*_required(base), *sorted(common)])])
    closed = "additionalProperties" not in base and all(_is_closed(branch) for branch in branches)
    return {**opened, "additionalProperties": False} if closed and "patternProperties" not in base else opened


def _is_closed(branch: Schema) -> bool:
    return branch.get("additionalProperties") is False and "patternProperties" not in branch


def _either(name: str, branches: list[Schema]) -> Any:
    """What the alternatives say of one property."""
    return _any_of(_distinct([_properties(branch)[name] for branch in branches if name in _properties(branch)]))


def _any_of(schemas: list[Any]) -> Any:
    if len(schemas) == 1:
        return schemas[0]
    values = [_values(each) for each in schemas if is_object(each) and each.keys() <= {"const", "enum", "type"}]
    if len(values) < len(schemas) or not all(values):
        return {"anyOf": schemas}
    kinds = _distinct([each.get("type") for each in schemas])
    kind = {"type": kinds[0]} if len(kinds) == 1 and kinds[0] is not None else {}
    return {**kind, "enum": _distinct([value for place in values for value in place])}


def _values(schema: Schema) -> list[Any]:
    found = schema.get("enum")
    return [schema["const"]] if "const" in schema else (found if is_array(found) else [])


def _narrowed(ours: Any, joined: Any) -> Any:
    """A property that the root describes too. What the alternatives add is added if it is plain."""
    if not is_object(ours) or not is_object(joined) or "anyOf" in joined or not ours.keys().isdisjoint(joined):
        return ours
    return ours if _needs_company(joined) or _needs_company(ours) else {**ours, **joined}


# -- the sentence


def _say(keyword: str, base: Schema, branches: list[Schema]) -> str:
    """Which arguments go together, for whoever reads the description."""
    groups = [_group(branch, base) for branch in branches]
    if len(groups) < 2 or not all(groups) or len({str(group) for group in groups}) < len(groups):
        return _CHECKED
    start = "Exactly one" if keyword == "oneOf" else "At least one"
    said = f"{start} of these must be given: {'; '.join(_and(group) for group in groups)}."
    return said if len(said) <= MOST_SAID else _CHECKED


def _group(branch: Schema, base: Schema) -> list[str]:
    """What one alternative asks for: a value that it fixes, or an argument that not all ask for."""
    properties = _properties(branch)
    fixed = {name: _values(found) for name in _required(branch) if is_object(found := properties.get(name))}
    told = [f"{name} = {_json(values[0])}" for name, values in fixed.items() if len(values) == 1]
    already = {*_required(base), *(name for name, values in fixed.items() if len(values) == 1)}
    return [*told, *(name for name in _required(branch) if name not in already)]


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except Exception:  # an author may have put anything there
        return "…"


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
