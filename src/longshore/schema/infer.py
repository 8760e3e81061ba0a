"""The JSON Schema of a type, in the plain form that all clients accept, and the form that asks a person for a value.

Models are written where they are used; `$defs` appear only for recursive ones and for those used very often. There are
no titles, no boolean sub-schemas but `additionalProperties: false`; every array has `items` and every object
`properties`, and what may be null is a list of types where it can be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec import NODEFAULT
from msgspec import inspect as mi

from longshore.schema.custom_type import CustomType, Mode, RecordSlot, Schema, is_model
from longshore.schema.header_params import ANNOTATION
from longshore.schema.kinds import is_array
from longshore.schema.output import encode_special
from longshore.schema.signature import Signature, SignatureProblem
from longshore.schema.walk import edit_subschemas, list_null, resolve, without, without_null

INLINE_USES = 12
"""A record used more often than this in one schema is moved to `$defs`: nested sharing would double at each level."""


def input_schema(signature: Signature, descriptions: Mapping[str, str]) -> Schema:
    """The schema of a function's arguments, as lists show it: without those that are hidden.

    A description in the signature wins over one from the docstring.
    """
    schemas = Schemas("validation", lower=True)
    properties: dict[str, Schema] = {}
    for p in [p for p in signature.parameters if not p.hidden]:
        extra = p.extra or {}
        written = schemas.optional(schemas.of(p.type), p.default, headed=ANNOTATION in extra)
        written |= {} if p.default is None else _default(p.default)
        described = p.description or descriptions.get(p.name)
        properties[p.name] = written | ({"description": described} if described else {}) | extra
    schema: Schema = {"type": "object", "properties": properties}
    if required := [p.name for p in signature.parameters if p.required]:
        schema["required"] = required
    schema["additionalProperties"] = False
    return schemas.close(schema)


def output_schema(returns: Any, *, wrap: bool) -> Schema:
    """The schema of structured content: the type's own if that is an object, else an object that holds `result`."""
    schemas = Schemas("serialization")
    schema = schemas.of(returns)
    if not wrap:
        return schemas.close(schemas.opened(schema))
    wrapped = {
        "type": "object",
        "properties": {"result": schema},
        "required": ["result"],
        "additionalProperties": False,
    }
    return schemas.close(wrapped)


def type_schema(tp: Any, *, mode: Mode = "validation") -> Schema:
    """The schema of any supported type."""
    from longshore.schema.types import read_type

    schemas = Schemas(mode)
    return schemas.close(schemas.of(read_type(tp)))


def _default(value: Any) -> Schema:
    """The keyword `default`, where the value has a JSON form."""
    if value is NODEFAULT:
        return {}
    try:
        return {"default": msgspec.to_builtins(value, enc_hook=encode_special, str_keys=True)}
    except Exception:
        return {}


_translator: Any = vars(mi)["_Translator"]  # not public: msgspec sorts the values of a Literal, and has no switch


class _Translator(_translator):  # type: ignore[misc]
    """msgspec's, except that the values of a Literal stay in the order in which the author wrote them."""

    def _translate_inner(self, t: Any, args: Any, **constraints: Any) -> mi.Type:
        if t is Literal:
            return mi.LiteralType(args)
        translated: mi.Type = _translator._translate_inner(self, t, args, **constraints)
        return translated


# Titles repeat the names; a discriminator's mapping refers to `$defs`, which are inlined here.
_NOISE = ("title", "$defs", "discriminator")
_NOISY: tuple[tuple[str, Any], ...] = (("required", []), ("additionalProperties", True))


class Schemas:
    """Builds the schemas of several types that share one `$defs`."""

    def __init__(self, mode: Mode, *, lower: bool = False) -> None:
        self.mode: Mode = mode
        self.lower = lower
        self.defs: dict[str, Schema] = {}
        self.names: dict[Any, str] = {}
        self.walking: list[Any] = []
        self.referenced: set[Any] = set()
        self.uses: dict[Any, int] = {}

    def of(self, tp: Any) -> Schema:
        """The schema of a type that is ready for msgspec."""
        return self.node(_Translator([tp]).run()[0])

    def node(self, node: mi.Type) -> Schema:
        """The schema of one node of msgspec's description of a type."""
        if isinstance(node, mi.Metadata):
            extra: Any = getattr(node, "extra_json_schema", None)
            return self.node(node.type) | (extra or {})
        return _WRITERS[type(node)](self, node)

    def close(self, schema: Schema) -> Schema:
        """Add the definitions that were referred to."""
        return {**schema, "$defs": self.defs} if self.defs else schema

    def opened(self, schema: Schema) -> Schema:
        """A root must have a type of its own, so a bare reference is replaced by its target."""
        found = resolve({"$defs": self.defs}, schema.get("$ref"))
        return schema if found is None else {**found, **without(schema, "$ref")}

    def optional(self, schema: Schema, default: Any, *, headed: bool = False) -> Schema:
        """`T | None = None` is written as T that may be left out: some clients choke on a union with null.

        An argument that a header repeats must have one plain type, so any default has the same effect there.
        """
        may_go = default is None or (headed and default is not NODEFAULT)
        return without_null(schema) if self.lower and may_go else schema

    def named(self, key: Any, name: str, write: Callable[[], Schema]) -> Schema:
        """A schema that may occur several times: in place, or as a reference if it is recursive or frequent."""
        if key not in self.names:
            taken = set(self.names.values())
            free = (n for i in range(1, len(taken) + 2) if (n := name if i == 1 else f"{name}_{i}") not in taken)
            self.names[key] = next(free)
        name = self.names[key]
        self.uses[key] = self.uses.get(key, 0) + 1
        if key in self.walking or self.uses[key] > INLINE_USES:
            self.referenced.add(key)
        if key not in self.walking and name not in self.defs:
            self.walking.append(key)
            schema = write()
            self.walking.pop()
            if key not in self.referenced:
                return schema
            self.defs[name] = schema
        return {"$ref": f"#/$defs/{name}"}

    def record(self, origin: Any, slots: list[RecordSlot], *, array: bool, options: dict[str, Any]) -> Schema:
        """The schema of a record that a custom type decodes."""
        fields = _tagged(options) + [(s.key, self.of(s.type), s.required, s.default) for s in slots]
        return self._fields(origin, fields, array=array, closed=options.get("forbid_unknown_fields", False))

    def foreign(self, schema: Any, definitions: dict[str, Schema] | None = None) -> Schema:
        """A schema from another library, in our form: inlined, without noise, with `items` on every array."""
        if isinstance(schema, bool):
            return {} if schema else {"not": {}}
        defs = schema.get("$defs", {}) if definitions is None else definitions
        noise = {key for key, value in schema.items() if key in _NOISE or (key, value) in _NOISY}
        written = edit_subschemas(without(schema, "$ref", *noise), partial(self._foreign_part, schema, defs))
        if ref := str(schema.get("$ref", "")).removeprefix("#/$defs/"):
            # Models of one name have different schemas.
            return self.named((ref, repr(defs[ref])), ref, lambda: self.foreign(defs[ref], defs)) | written
        written = readable(written)
        if written.get("type") == "array" and not isinstance(written.get("items"), dict):
            written["items"] = {}
        if written.get("type") == "object":
            written.setdefault("properties", {})
        return list_null((common_type(written["enum"]) if "enum" in written else {}) | written)

    def _foreign_part(self, parent: Schema, defs: dict[str, Schema], part: Any, keyword: str, name: Any) -> Any:
        if is_array(part) or (keyword, part) == ("additionalProperties", False):
            return part
        written = self.foreign(part, defs)
        if keyword != "properties" or name in parent.get("required", ()):
            return written
        default = written.get("default", NODEFAULT)
        lowered = self.optional(written, default, headed=ANNOTATION in written)
        return lowered if lowered is written or default is not None else without(lowered, "default")

    def written(self, node: Any) -> Schema:
        """A Struct, dataclass, TypedDict or NamedTuple."""
        cls = getattr(node.cls, "__origin__", node.cls)
        array = getattr(node, "array_like", issubclass(node.__class__, mi.NamedTupleType))
        closed = getattr(node, "forbid_unknown_fields", False)

        def write() -> Schema:
            tag = {name: getattr(node, name, None) for name in ("tag", "tag_field")}
            fields = _tagged(tag) + [(f.encode_name, self.node(f.type), f.required, f.default) for f in node.fields]
            return self._fields(cls, fields, array=array, closed=closed)

        return self.named(node.cls, cls.__name__, write)

    def _fields(self, cls: Any, fields: list[tuple[str, Schema, bool, Any]], *, array: bool, closed: bool) -> Schema:
        required = [key for key, _, needed, _ in fields if needed]
        if array:
            schemas = [schema for _, schema, _, _ in fields]
            return tuple_schema(schemas, len(required)) | _doc(cls)
        properties = {key: self._field(schema, default) for key, schema, _, default in fields}
        schema: Schema = {"type": "object", **_doc(cls), "properties": properties}
        if required:
            schema["required"] = required
        return {**schema, "additionalProperties": False} if closed else schema

    def _field(self, schema: Schema, default: Any) -> Schema:
        lowered = self.optional(schema, default, headed=ANNOTATION in schema)
        return lowered if default is None and lowered is not schema else {**lowered, **_default(default)}


def _tagged(options: dict[str, Any]) -> list[tuple[str, Schema, bool, Any]]:
    """The field with the tag of a Struct in a union."""
    name, tag = options.get("tag_field"), options.get("tag")
    return [] if name is None else [(name, common_type([tag]) | {"const": tag}, True, NODEFAULT)]


def tuple_schema(schemas: list[Schema], least: int | None = None) -> Schema:
    """A fixed row of values. Some clients drop `prefixItems`, so a row of one kind is written without it."""
    schema: Schema = {"type": "array"}
    if schemas and all(s == schemas[0] for s in schemas):
        schema["items"] = schemas[0]
    elif schemas:
        schema |= {"prefixItems": schemas, "items": {}}
    else:
        schema["items"] = {}
    return {**schema, "minItems": len(schemas) if least is None else least, "maxItems": len(schemas)}


def _doc(cls: Any) -> Schema:
    """The class's own docstring, not one generated by a dataclass or a namedtuple, or inherited."""
    doc: Any = cls.__dict__.get("__doc__")
    if not isinstance(doc, str) or doc.startswith(f"{cls.__name__}("):
        return {}
    return {"description": " ".join(doc.split())}


_LIMITS = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}


def _limits(node: Any, noun: str = "Length") -> Schema:
    keywords = _LIMITS | {"min_length": f"min{noun}", "max_length": f"max{noun}"}
    return {k: v for name, k in keywords.items() if (v := getattr(node, name, None)) is not None}


def _constant(schema: Schema) -> Callable[[Schemas, Any], Schema]:
    def write(_: Schemas, __: Any) -> Schema:
        return dict(schema)

    return write


def _bytes(_: Schemas, node: Any) -> Schema:
    schema: Schema = {"type": "string", "contentEncoding": "base64"}
    # Three bytes are four characters of base64.
    return schema | {k: 4 * ((v + 2) // 3) for k, v in _limits(node).items()}


def _collection(schemas: Schemas, node: Any) -> Schema:
    unique: Schema = {"uniqueItems": True} if isinstance(node, (mi.SetType, mi.FrozenSetType)) else {}
    return {"type": "array", "items": schemas.node(node.item_type), **unique, **_limits(node, "Items")}


def _mapping(schemas: Schemas, node: Any) -> Schema:
    keys = {k: v for k, v in schemas.node(node.key_type).items() if k != "type"}
    schema: Schema = {"type": "object", "properties": {}}
    if keys and isinstance(getattr(node.key_type, "type", node.key_type), mi.StrType):
        schema["propertyNames"] = keys
    if values := schemas.node(node.value_type):
        schema["additionalProperties"] = values
    return schema | _limits(node, "Properties")


def _union(schemas: Schemas, node: Any) -> Schema:
    """`anyOf` without unions inside and without repeats, null at the end; one type or null is a list of the two."""
    flat: list[Schema] = []
    for each in sorted(node.types, key=lambda each: isinstance(each, mi.NoneType)):
        option = schemas.node(each)
        for member in option["anyOf"] if option.keys() == {"anyOf"} else [option]:
            if member not in flat:
                flat.append(member)
    return list_null({"anyOf": flat}) if len(flat) > 1 else flat[0]


def _values(values: list[Any]) -> Schema:
    return common_type(values) | {"enum": values}


def _custom(schemas: Schemas, node: Any) -> Schema:
    tp: Any = node.cls
    if isinstance(tp, CustomType):
        if tp.constrain is not None:
            return tp.describe(schemas)
        name = getattr(tp.origin, "__name__", "Value")
        return schemas.named(tp, name, lambda: tp.describe(schemas))
    if is_model(tp):
        return schemas.foreign(tp.model_json_schema(mode=schemas.mode))
    return {"type": "string"}  # a path


_WRITERS: dict[type, Callable[[Schemas, Any], Schema]] = {
    mi.AnyType: _constant({}),
    mi.RawType: _constant({}),
    mi.NoneType: _constant({"type": "null"}),
    mi.BoolType: _constant({"type": "boolean"}),
    mi.IntType: lambda _, node: {"type": "integer", **_limits(node)},
    mi.FloatType: lambda _, node: {"type": "number", **_limits(node)},
    mi.StrType: lambda _, node: {"type": "string", **readable(_limits(node))},
    mi.BytesType: _bytes,
    mi.ByteArrayType: _bytes,
    mi.DateTimeType: _constant({"type": "string", "format": "date-time"}),
    mi.DateType: _constant({"type": "string", "format": "date"}),
    mi.TimeType: _constant({"type": "string", "format": "time"}),
    mi.TimeDeltaType: _constant({"type": "string", "format": "duration"}),
    mi.UUIDType: _constant({"type": "string", "format": "uuid"}),
    mi.DecimalType: _constant({"type": "string", "format": "decimal"}),
    mi.ListType: _collection,
    mi.SetType: _collection,
    mi.FrozenSetType: _collection,
    mi.VarTupleType: _collection,
    mi.TupleType: lambda schemas, node: tuple_schema([schemas.node(t) for t in node.item_types]),
    mi.DictType: _mapping,
    mi.UnionType: _union,
    mi.LiteralType: lambda _, node: _values(list(node.values)),
    mi.EnumType: lambda _, node: _values([m.value for m in node.cls]) | _doc(node.cls),
    mi.StructType: Schemas.written,
    mi.DataclassType: Schemas.written,
    mi.TypedDictType: Schemas.written,
    mi.NamedTupleType: Schemas.written,
    mi.CustomType: _custom,
}


# -- values and patterns

_TYPES: dict[Any, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def common_type(values: list[Any]) -> Schema:
    """The keyword `type` for an enum whose values are all of one type, or null. Some clients require it."""
    types = {_TYPES.get(v.__class__, "") for v in values}
    others = types - {"null"}
    if len(others) > 1 or "" in types:
        return {}
    kind = others.pop() if others else "null"
    return {"type": kind if types == {kind} else [kind, "null"]} if types else {}


def readable(schema: Schema) -> Schema:
    """The schema with its pattern as JavaScript writes it, or without: one client drops all tools for a bad one."""
    if not isinstance(pattern := schema.get("pattern"), str):
        return schema
    from longshore.schema.patterns import translate

    written = translate(pattern)
    return {k: written if k == "pattern" else v for k, v in schema.items() if k != "pattern" or written is not None}


# -- the form that asks a person for a type: a flat object of texts, numbers, yes-or-no and choices

_FORM_KEYWORDS = {
    "string": ("minLength", "maxLength", "format", "enum", "oneOf"),
    "integer": ("minimum", "maximum"),
    "number": ("minimum", "maximum"),
    "boolean": (),
    "array": ("minItems", "maxItems", "items"),
}
"""Keywords of a field beside type, title, description and default. The others are checked when the answer comes."""
_FORM_FORMATS = ("email", "uri", "date", "date-time")
_FLAT = "ask for a bool, a text, a number, a Literal, an enum, a list of choices, or a flat record of those"


def form_schema(tp: Any, key: str) -> tuple[Schema, bool]:
    """The form of a type, and whether it is a single field, named `key`. SignatureProblem if there is no form."""
    from longshore.schema.rewrite import inlined

    schema = inlined(type_schema(tp))
    record = without_null(schema)  # a record or nothing: to give nothing is to decline
    if record.get("type") != "object":
        return _form({key: schema}, [key]), True
    if not record.get("properties"):
        raise SignatureProblem("a form needs named fields", _FLAT)
    return _form(record["properties"], record.get("required", [])), False


def _form(fields: dict[str, Schema], required: list[str]) -> Schema:
    properties = {name: _field(name, schema) for name, schema in fields.items()}
    form: Schema = {"type": "object", "properties": properties}
    needed = [name for name in required if without_null(fields[name]) is fields[name]]
    return {**form, "required": needed} if needed else form


def _field(name: str, schema: Schema) -> Schema:
    """One field as forms write it. A field that may be null may be left out."""
    schema = without_null(schema)
    kind = schema.get("type", "string" if "enum" in schema else None)
    items = schema.get("items", {})
    choices = items.get("type") == "string" and "enum" in items
    if kind not in _FORM_KEYWORDS or (kind == "array" and not choices):
        raise SignatureProblem(f"a form has no field for {name!r}, which is {kind or 'of several types'}", _FLAT)
    kept = {
        k: schema[k] for k in ("title", "description", "default", *_FORM_KEYWORDS[kind]) if schema.get(k) is not None
    }
    if kept.get("format") not in _FORM_FORMATS:
        kept.pop("format", None)
    if "enum" not in schema:
        return {"type": kind, **kept}
    # Choices are texts in a form; numbers among them are read back as numbers.
    default = {} if schema.get("default") is None else {"default": str(schema["default"])}
    return {"type": "string", **kept, "enum": [str(choice) for choice in schema["enum"]], **default}
