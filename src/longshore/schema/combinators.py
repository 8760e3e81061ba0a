"""Combinators of a schema (`allOf`, `anyOf`, `oneOf`) merged into one object schema, with a sentence for the rest."""

from __future__ import annotations

from typing import Any, Final, final

from longshore.schema.kinds import as_array, as_object, is_object
from longshore.schema.phrase import quote
from longshore.schema.rewrite import definition_of
from longshore.schema.walk import ANNOTATIONS, Schema, has_type, listed_values, without

ROOT_COMBINATORS: Final = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const")

MAX_BRANCHES: Final = 100
"""Alternatives, or parts of one `allOf`, that are read. No model can use more than a few dozen."""

MAX_SENTENCE: Final = 600
"""Characters of the sentence. One client cuts a description at 2,048, and the author's own words come first."""

_CHECKED: Final = "Further conditions on the arguments are checked when it is called."


def without_root_combinators(schema: Any) -> tuple[Any, str]:
    """The schema without combinators at its root, which some clients refuse, and a sentence that replaces them.

    `allOf` is merged. For alternatives, every property of any of them is allowed; the sentence says which belong
    together, and the server checks it. Nothing is refused that was accepted before, with one exception: if one
    alternative describes a property and another doesn't mention it, the description holds for both. Without that, a
    model would know no property's type.
    """
    if not is_object(schema) or not set(ROOT_COMBINATORS).intersection(schema):
        return schema, ""
    merging = _Merging(schema)
    return merging.merge(schema), " ".join(dict.fromkeys(merging.sentences))[:MAX_SENTENCE]


@final
class _Merging:
    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = MAX_BRANCHES
        self.sentences: list[str] = []

    def merge(self, schema: Schema) -> Schema:
        if not set(ROOT_COMBINATORS).intersection(schema):
            return schema
        base = without(schema, *ROOT_COMBINATORS, "unevaluatedProperties")
        for part in self._branches(schema, "allOf"):
            base = _merge(base, part)
        for keyword in ("anyOf", "oneOf"):
            if branches := self._branches(schema, keyword):
                self.sentences.append(_say(keyword, base, branches))
                base = _alternate(base, branches)
        if not {"not", "if", "enum", "const"}.isdisjoint(schema):
            self.sentences.append(_CHECKED)
        return base

    def _branches(self, schema: Schema, keyword: str) -> list[Schema]:
        """The branches that an object can match. A branch beyond the limit becomes `{}`."""
        branches: list[Schema] = []
        for each in as_array(schema.get(keyword)):
            self._left -= 1
            branch = definition_of(each, self._root)
            if branch is False or (is_object(branch) and "type" in branch and not has_type(branch, "object")):
                continue
            readable = is_object(branch) and self._left >= 0 and "$ref" not in branch
            branches.append(self.merge(branch) if readable else {})
        return branches


def _required(schema: Schema) -> list[str]:
    return [each for each in as_array(schema.get("required")) if isinstance(each, str)]


def _distinct(values: list[Any]) -> list[Any]:
    """Without repeats. To Python, `True` is 1, but its text is another."""
    return [*{_spelling(value): value for value in values}.values()]


def _spelling(value: Any) -> object:
    """A key that is equal for equal values. A value that is too deep to be written has a key of its own."""
    try:
        return repr(value)
    except RecursionError:
        return id(value)


def _put(schema: Schema, keyword: str, value: Any) -> Schema:
    return {**schema, keyword: value} if value else without(schema, keyword)


# allOf


def with_all_joined(schema: Schema) -> Schema:
    """The parts of `allOf` merged into the schema, as far as that is possible. The rest is left out."""
    joined = without(schema, "allOf")
    for part in as_array(schema.get("allOf"))[:MAX_BRANCHES]:
        if is_object(part):
            simple = _combine(joined, part)
            if simple is not None:
                joined = simple
            elif _is_of_object(joined) and _is_of_object(part):
                joined = _merge(joined, part)
    return joined


def _combine(ours: Schema, theirs: Schema) -> Schema | None:
    """Both schemas in one if no keyword of one affects the other; else None."""
    if ours.keys().isdisjoint(theirs) and not _needs_company(ours) and not _needs_company(theirs):
        return {**ours, **theirs}
    return {**theirs, **ours} if theirs.keys() <= ANNOTATIONS else None


def _needs_company(schema: Schema) -> bool:
    """Whether the meaning of some keyword depends on the keywords beside it."""
    return not {"additionalProperties", "additionalItems", "items", "if", "contains", "$ref"}.isdisjoint(schema) or any(
        str(keyword).startswith("unevaluated") for keyword in schema
    )


def _is_of_object(schema: Schema) -> bool:
    return schema.get("type") == "object" or ("type" not in schema and "properties" in schema)


def _merge(base: Schema, part: Schema) -> Schema:
    """An object schema for values that match both. A keyword of the part that can't be merged is left out."""
    ours, theirs = as_object(base.get("properties")), as_object(part.get("properties"))
    both = {name: _both(ours[name], theirs[name]) for name in theirs if name in ours}
    merged = _put(base, "properties", {**ours, **theirs, **both})
    merged = _put(merged, "required", [*dict.fromkeys([*_required(base), *_required(part)])])
    return {**merged, "additionalProperties": False} if _is_closed(part) else merged


def _both(ours: Any, theirs: Any) -> Any:
    if theirs is True or _spelling(ours) == _spelling(theirs):
        return ours
    simple = _combine(ours, theirs) if is_object(ours) and is_object(theirs) else None
    return {"allOf": [ours, theirs]} if simple is None else simple


# anyOf and oneOf


def _alternate(base: Schema, branches: list[Schema]) -> Schema:
    """An object schema for values that match a branch: required is what all require, allowed what any names."""
    ours, shut = as_object(base.get("properties")), base.get("additionalProperties") is False
    described: dict[str, list[Any]] = {}
    for branch in branches:
        for name, each in as_object(branch.get("properties")).items():
            if name in ours or not shut:
                described.setdefault(name, []).append(each)
    joined = {name: _any_of(_distinct(schemas)) for name, schemas in described.items()}
    narrowed = {name: _narrowed(ours[name], joined.get(name)) for name in ours}
    common = set(_required(branches[0])).intersection(*map(_required, branches))
    opened = _put(base, "properties", {**ours, **joined, **narrowed})
    opened = _put(opened, "required", [*dict.fromkeys([*_required(base), *sorted(common)])])
    closed = {"additionalProperties", "patternProperties"}.isdisjoint(base) and all(map(_is_closed, branches))
    return {**opened, "additionalProperties": False} if closed else opened


def _is_closed(branch: Schema) -> bool:
    return branch.get("additionalProperties") is False and "patternProperties" not in branch


def _any_of(schemas: list[Any]) -> Any:
    if len(schemas) == 1:
        return schemas[0]
    values = [listed_values(each) for each in schemas if is_object(each) and each.keys() <= {"const", "enum", "type"}]
    if len(values) < len(schemas) or not all(values):
        return {"anyOf": schemas}
    kinds = _distinct([each.get("type") for each in schemas])
    kind = {"type": kinds[0]} if len(kinds) == 1 and kinds[0] is not None else {}
    return {**kind, "enum": _distinct([value for place in values for value in place])}


def _narrowed(ours: Any, joined: Any) -> Any:
    """A property that the root describes, too, with the keywords that the branches add, if they are independent."""
    if not is_object(ours) or not is_object(joined) or "anyOf" in joined or not ours.keys().isdisjoint(joined):
        return ours
    return ours if _needs_company(joined) or _needs_company(ours) else {**ours, **joined}


# the sentence


def _say(keyword: str, base: Schema, branches: list[Schema]) -> str:
    groups = [_group(branch, base) for branch in branches]
    if len(groups) < 2 or not all(groups) or len({str(group) for group in groups}) < len(groups):
        return _CHECKED
    start = "Exactly one" if keyword == "oneOf" else "At least one"
    listed = "; ".join(" and ".join(group) for group in groups)
    sentence = f"{start} of these must be given: {listed}."
    return sentence if len(sentence) <= MAX_SENTENCE else _CHECKED


def _group(branch: Schema, base: Schema) -> list[str]:
    """The requirements of one branch: the values that it fixes, and the arguments that the root doesn't require."""
    properties = as_object(branch.get("properties"))
    fixed = {name: listed_values(found) for name in _required(branch) if is_object(found := properties.get(name))}
    values = {name: found[0] for name, found in fixed.items() if len(found) == 1}
    others = [name for name in _required(branch) if name not in values and name not in _required(base)]
    return [*(f"{name} = {quote(value)}" for name, value in values.items()), *others]
