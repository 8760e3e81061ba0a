// What a JSON Schema asks for, as one of the kinds of fields that a form has.

const DEEPEST = 32;
const KEYWORDS = {
  object: ["properties", "additionalProperties", "required", "patternProperties"],
  array: ["items", "prefixItems", "minItems"],
  string: ["minLength", "maxLength", "pattern", "format"],
  number: ["minimum", "maximum", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"],
};

export const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** The schema that a `$ref` means, with what stands beside it; and allOf merged. */
export function resolve(schema, root) {
  let here = isObject(schema) ? schema : {};
  for (let step = 0; typeof here.$ref === "string" && step < DEEPEST; step++) {
    const { $ref, ...beside } = here;
    here = { ...pointed($ref, root), ...beside };
  }
  return Array.isArray(here.allOf) ? here.allOf.reduce((whole, part) => merge(whole, resolve(part, root)), here) : here;
}

function pointed(ref, root) {
  if (!ref.startsWith("#")) return {};
  let here = root;
  for (const part of ref.slice(1).split("/").slice(1)) {
    here = here?.[decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~")];
  }
  return isObject(here) ? here : {};
}

function merge(whole, part) {
  const properties = whole.properties || part.properties ? { properties: { ...whole.properties, ...part.properties } } : {};
  const required = whole.required || part.required ? { required: [...(whole.required ?? []), ...(part.required ?? [])] } : {};
  return { ...part, ...whole, ...properties, ...required };
}

/** What a form shows for a schema: {kind, schema, nullable, …}. */
export function shapeOf(given, root) {
  if (given === false) return { kind: "never", schema: {} };
  const schema = resolve(given, root);
  if ("const" in schema) return { kind: "const", schema, value: schema.const };
  if (Array.isArray(schema.enum)) return choiceOfValues(schema, schema.enum.map((value) => ({ value, label: label(value) })));
  const branches = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(branches) && branches.length) return choice(schema, branches, root);
  if (Array.isArray(schema.type)) return severalTypes(schema, root);
  return ofType(schema, schema.type ?? guessedType(schema), root);
}

function choiceOfValues(schema, options) {
  const nullable = options.some(({ value }) => value === null);
  const others = options.filter(({ value }) => value !== null);
  if (!others.length) return { kind: "const", schema, value: null };
  return { kind: "enum", schema, options: others, nullable };
}

function choice(schema, branches, root) {
  const { oneOf, anyOf, ...beside } = schema;
  const resolved = branches.map((branch) => resolve(branch, root));
  if (resolved.every((branch) => "const" in branch)) {
    const options = resolved.map((branch) => ({ value: branch.const, label: branch.title ?? label(branch.const) }));
    return choiceOfValues(schema, options);
  }
  const others = resolved.filter((branch) => branch.type !== "null");
  const nullable = others.length < resolved.length;
  if (others.length === 1) return { ...shapeOf(merge(beside, others[0]), root), nullable };
  const shared = beside.properties ? { properties: beside.properties, required: beside.required ?? [] } : {};
  const whole = others.map((branch) => (shared.properties ? merge(branch, { type: "object", ...shared }) : branch));
  return { kind: "choice", schema: beside, branches: whole, nullable };
}

function severalTypes(schema, root) {
  const types = schema.type.filter((type) => type !== "null");
  const nullable = types.length < schema.type.length;
  if (types.length === 1) return { ...ofType({ ...schema, type: types[0] }, types[0], root), nullable };
  if (!types.length) return { kind: "const", schema, value: null };
  const branches = types.map((type) => ({ ...only(schema, type), type }));
  return { kind: "choice", schema: { description: schema.description, default: schema.default }, branches, nullable };
}

/** The keywords of a schema that mean something for one type. */
function only(schema, type) {
  const own = KEYWORDS[type === "integer" ? "number" : type] ?? [];
  const foreign = new Set(Object.values(KEYWORDS).flat().filter((keyword) => !own.includes(keyword)));
  const skipped = new Set([...foreign, "description", "title", "default", "type"]);
  return Object.fromEntries(Object.entries(schema).filter(([keyword]) => !skipped.has(keyword)));
}

function guessedType(schema) {
  return Object.keys(KEYWORDS).find((type) => KEYWORDS[type].some((keyword) => keyword in schema));
}

function ofType(schema, type, root) {
  switch (type) {
    case "string": return { kind: "text", schema };
    case "integer": case "number": return { kind: "number", schema, integer: type === "integer" };
    case "boolean": return { kind: "boolean", schema };
    case "null": return { kind: "const", schema, value: null };
    case "array": return arrayShape(schema, root);
    case "object": return objectShape(schema);
    default: return { kind: "json", schema };
  }
}

function arrayShape(schema, root) {
  if (Array.isArray(schema.prefixItems)) return { kind: "tuple", schema };
  if (!isObject(schema.items)) return { kind: "json", schema, expects: "array" };
  const items = shapeOf(schema.items, root);
  if (schema.uniqueItems && items.kind === "enum" && !items.nullable) return { kind: "several", schema, options: items.options };
  return { kind: "array", schema };
}

function objectShape(schema) {
  if (isObject(schema.properties) && (Object.keys(schema.properties).length || !isObject(schema.additionalProperties))) return { kind: "object", schema };
  const values = isObject(schema.additionalProperties) ? schema.additionalProperties : Object.values(schema.patternProperties ?? {})[0];
  if (isObject(values)) return { kind: "map", schema, values };
  if (schema.additionalProperties === false) return { kind: "object", schema: { ...schema, properties: {} } };
  return { kind: "json", schema, expects: "object" };
}

/** A value as the label of an option. */
export function label(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The type, bounds and format of a field in a few words. */
export function constraints(shape) {
  const { schema } = shape;
  const words = [];
  const names = { text: "text", number: shape.integer ? "integer" : "number", json: shape.expects ?? "any JSON", several: "list", tuple: "list", array: "list", map: "map" };
  if (names[shape.kind]) words.push(names[shape.kind]);
  if (schema.format) words.push(schema.format);
  const low = schema.minimum ?? schema.exclusiveMinimum;
  const high = schema.maximum ?? schema.exclusiveMaximum;
  if (low !== undefined && high !== undefined) words.push(`${low} to ${high}`);
  else if (low !== undefined) words.push(`${schema.minimum === undefined ? "more than" : "at least"} ${low}`);
  else if (high !== undefined) words.push(`${schema.maximum === undefined ? "less than" : "at most"} ${high}`);
  if (schema.multipleOf !== undefined) words.push(`in steps of ${schema.multipleOf}`);
  words.push(...span(schema.minLength, schema.maxLength, "characters"), ...span(schema.minItems, schema.maxItems, "items"));
  if (schema.pattern) words.push(`like ${schema.pattern}`);
  if (schema.default !== undefined) words.push(`default ${short(schema.default)}`);
  return words;
}

function span(low, high, what) {
  if (!low && high === undefined) return [];
  if (low && high !== undefined) return [low === high ? `${low} ${what}` : `${low} to ${high} ${what}`];
  return [low ? `at least ${low} ${what}` : `at most ${high} ${what}`];
}

function short(value) {
  const text = JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

const SECRET_NAME = /pass(word|wd|phrase)|secret|token|api[_-]?key|credential|authorization|cookie|private[_-]?key/i;

/** Whether a value is one that the page must not store: by its schema or by its name. */
export function isSecret(name, schema) {
  return schema?.format === "password" || schema?.writeOnly === true || (typeof name === "string" && SECRET_NAME.test(name) && !/max_?tokens|token_?budget/i.test(name));
}
