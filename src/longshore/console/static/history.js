// The requests that were made in this page, in the browser's storage: few, small, and without secrets or results.

import { isObject, isSecret, resolve } from "./schema.js";

const KEY = "longshore.history.1";
const MOST = 50;
const MOST_BYTES = 200_000;
const MOST_ENTRY = 20_000;

/** The requests, newest first: {method, name, arguments, at, seconds, outcome, shortened}. */
export function entries() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((entry) => isObject(entry) && typeof entry.name === "string") : [];
  } catch {
    return [];
  }
}

export const entriesOf = (method, name) => entries().filter((entry) => entry.method === method && (name === undefined || entry.name === name));

/** Remember a request. Values that may be secrets are left out; arguments that are too long are too. */
export function remember(entry, schema) {
  const kept = withoutSecrets(entry.arguments ?? {}, schema);
  const isLong = JSON.stringify(kept.value).length > MOST_ENTRY;
  const added = { ...entry, arguments: isLong ? {} : kept.value, shortened: isLong || kept.removed };
  const all = [added, ...entries()].slice(0, MOST);
  while (all.length > 1 && JSON.stringify(all).length > MOST_BYTES) all.pop();
  try {
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    // A browser without storage has no history.
  }
}

export function forgetAll() {
  try {
    localStorage.removeItem(KEY);
  } catch {
    // as above
  }
}

/** A value without the parts whose schema or name says that they are secrets: {value, removed}. */
export function withoutSecrets(value, schema) {
  let removed = false;
  const copy = (part, given) => {
    const here = resolve(given, schema);
    if (Array.isArray(part)) return part.map((each, at) => copy(each, here.prefixItems?.[at] ?? here.items));
    if (!isObject(part)) return part;
    const kept = Object.entries(part).filter(([name]) => !propertySchemas(here, name, schema).concat({}).some((found) => isSecret(name, found)));
    if (kept.length < Object.keys(part).length) removed = true;
    return Object.fromEntries(kept.map(([name, each]) => [name, copy(each, propertySchemas(here, name, schema)[0])]));
  };
  return { value: copy(value, schema), removed };
}

/** What a schema and its branches say of one property. */
function propertySchemas(schema, name, root) {
  const branches = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].map((branch) => resolve(branch, root));
  const found = [schema, ...branches].map((each) => each.properties?.[name] ?? (isObject(each.additionalProperties) ? each.additionalProperties : undefined));
  return found.filter((each) => each !== undefined).map((each) => resolve(each, root));
}
