// Controls for values with parts: objects, lists, maps, and a choice of schemas. Parts are fields of their own.

import { h } from "../dom.js";
import { isObject, resolve, shapeOf } from "../schema.js";
import { FieldProblem } from "./simple.js";

const changed = (element) => element.dispatchEvent(new Event("input", { bubbles: true }));

/** These need `makeField`, which needs them: it comes in as a parameter. */
export function structureControls(makeField) {
  return { object, array, tuple, map, choice };

  function object(context, { schema }) {
    const required = new Set(schema.required ?? []);
    const names = Object.keys(schema.properties).sort((a, b) => required.has(b) - required.has(a));
    const fields = new Map(names.map((name) => [name, makeField(context, schema.properties[name], { name, required: required.has(name) })]));
    const element = h("div", { class: "fields" }, [...fields.values()].map((field) => field.element));
    const values = isObject(schema.additionalProperties) ? schema.additionalProperties : {};
    let others = null;
    const addOthers = () => {
      others ??= makeField(context, { title: "Other properties", type: "object", additionalProperties: values }, { name: "Other properties", required: false });
      if (!others.element.isConnected) element.append(others.element);
    };
    if (schema.additionalProperties === true || isObject(schema.additionalProperties)) addOthers();
    return {
      element,
      get(problems) {
        const value = {};
        for (const [name, field] of fields) {
          const part = field.read(problems);
          if (part !== undefined) Object.defineProperty(value, name, { value: part, enumerable: true, configurable: true, writable: true });
        }
        return { ...others?.read(problems), ...value };
      },
      set(given) {
        const value = isObject(given) ? given : {};
        for (const [name, field] of fields) field.write(Object.hasOwn(value, name) ? value[name] : undefined);
        const rest = Object.entries(value).filter(([name]) => !fields.has(name));
        if (rest.length) addOthers();
        others?.write(rest.length ? Object.fromEntries(rest) : undefined);
      },
    };
  }

  function array(context, { schema }, frame) {
    return list(context, schema, frame, () => schema.items);
  }

  function tuple(context, { schema }, frame) {
    const first = schema.prefixItems;
    const closed = schema.items === false || (schema.items === undefined && schema.maxItems === first.length);
    const most = closed ? first.length : schema.maxItems;
    return list(context, { ...schema, minItems: schema.minItems ?? first.length, maxItems: most }, frame, (at) => first[at] ?? schema.items ?? {});
  }

  function list(context, schema, { name, required }, schemaAt) {
    const rows = [];
    const body = h("div", { class: "items" });
    const add = h("button", { type: "button", class: "small", on: { click: () => { insert(); changed(body); focusLast(); } } }, "Add an item");
    const element = h("div", { class: "list" }, body, add);
    const insert = (value) => {
      const row = makeRow(makeField(context, schemaAt(rows.length), { name: `${rows.length + 1}`, required: true, inList: true }));
      if (value !== undefined) row.field.write(value);
      rows.push(row);
      arrange();
    };
    const makeRow = (field) => {
      const row = { field };
      const button = (text, label, click) => h("button", { type: "button", class: "small icon-button", "aria-label": `${label} of ${name}`, title: label, on: { click } }, text);
      row.up = button("↑", "Move up an item", () => move(row, -1));
      row.down = button("↓", "Move down an item", () => move(row, 1));
      row.remove = button("×", "Remove an item", () => drop(row));
      row.element = h("div", { class: "item" }, field.element, h("div", { class: "item-buttons" }, row.up, row.down, row.remove));
      return row;
    };
    const arrange = () => {
      body.replaceChildren(...rows.map((row) => row.element));
      rows.forEach((row, at) => {
        row.field.rename(`${at + 1}`);
        row.up.disabled = at === 0 || !!schema.prefixItems;
        row.down.disabled = at === rows.length - 1 || !!schema.prefixItems;
      });
      add.disabled = rows.length >= (schema.maxItems ?? Infinity);
    };
    const move = (row, by) => {
      const at = rows.indexOf(row);
      rows.splice(at + by, 0, ...rows.splice(at, 1));
      arrange();
      changed(body);
      (by < 0 ? row.up : row.down).focus();
    };
    const drop = (row) => {
      rows.splice(rows.indexOf(row), 1);
      arrange();
      changed(body);
      add.focus();
    };
    const focusLast = () => rows.at(-1).element.querySelector("input, textarea, select, button")?.focus();
    if (required) for (let at = 0; at < Math.min(schema.minItems ?? 0, 20); at++) insert();
    arrange();
    return {
      element,
      get(problems) {
        if (rows.length < (schema.minItems ?? 0)) throw new FieldProblem(`needs at least ${schema.minItems} items`);
        return rows.map((row) => row.field.read(problems));
      },
      set(value) {
        rows.length = 0;
        arrange();
        for (const each of Array.isArray(value) ? value : []) insert(each);
      },
    };
  }

  function map(context, { values }, { name }) {
    const rows = [];
    const body = h("div", { class: "items" });
    const add = h("button", { type: "button", class: "small", on: { click: () => { insert("", undefined); changed(body); rows.at(-1).key.focus(); } } }, "Add an entry");
    const insert = (key, value) => {
      const row = { key: h("input", { type: "text", value: key, class: "key", "aria-label": `Name of an entry of ${name}`, placeholder: "name", autocomplete: "off", spellcheck: "false" }) };
      row.field = makeField(context, values, { name: "value", required: true, inList: true });
      if (value !== undefined) row.field.write(value);
      const remove = h("button", { type: "button", class: "small icon-button", "aria-label": `Remove an entry of ${name}`, title: "Remove", on: { click: () => drop(row) } }, "×");
      row.element = h("div", { class: "item entry" }, row.key, row.field.element, h("div", { class: "item-buttons" }, remove));
      rows.push(row);
      body.append(row.element);
    };
    const drop = (row) => {
      rows.splice(rows.indexOf(row), 1);
      row.element.remove();
      changed(body);
      add.focus();
    };
    return {
      element: h("div", { class: "list" }, body, add),
      get(problems) {
        const entries = rows.map((row) => [row.key.value, row.field.read(problems)]);
        const twice = entries.find(([key], at) => entries.findIndex(([other]) => other === key) !== at);
        if (twice) throw new FieldProblem(`has the name "${twice[0]}" twice`);
        return Object.fromEntries(entries);
      },
      set(value) {
        rows.length = 0;
        body.replaceChildren();
        for (const [key, each] of Object.entries(isObject(value) ? value : {})) insert(key, each);
      },
    };
  }

  function choice(context, shape, { id, name, required }) {
    const { branches } = shape;
    const select = h("select", { id }, branches.map((branch, at) => h("option", { value: at }, branchLabel(branch, at, context.root))));
    const body = h("div", { class: "branch" });
    const made = new Map();
    let field = null;
    const pick = (at) => {
      select.value = String(at);
      if (!made.has(at)) made.set(at, makeField(context, { ...branches[at], title: undefined }, { name, required: true, bare: true }));
      field = made.get(at);
      body.replaceChildren(field.element);
    };
    select.addEventListener("change", () => pick(Number(select.value)));
    pick(0);
    return {
      element: h("div", { class: "choice" }, select, body),
      get: (problems) => field.read(problems),
      set(value) {
        const at = branches.findIndex((branch) => fits(value, branch, context.root));
        pick(Math.max(0, at));
        field.write(value);
      },
    };
  }
}

/** The name of a branch: its title, what tells it from others, or its type. */
function branchLabel(branch, at, root) {
  if (branch.title) return branch.title;
  for (const [name, part] of Object.entries(branch.properties ?? {})) {
    const constant = resolve(part, root);
    if ("const" in constant) return `${name}: ${constant.const}`;
  }
  if (branch.properties) return `object with ${Object.keys(branch.properties).slice(0, 3).join(", ")}`;
  return typeof branch.type === "string" ? branch.type : `option ${at + 1}`;
}

const TESTS = {
  text: (value) => typeof value === "string",
  number: (value, shape) => typeof value === "number" && (!shape.integer || Number.isInteger(value)),
  boolean: (value) => typeof value === "boolean",
  const: (value, shape) => JSON.stringify(value) === JSON.stringify(shape.value),
  enum: (value, shape) => shape.options.some((each) => JSON.stringify(each.value) === JSON.stringify(value)),
  array: Array.isArray,
  several: Array.isArray,
  tuple: Array.isArray,
  map: isObject,
};

/** Whether a value is one for this schema, as far as is needed to choose between branches. */
function fits(value, schema, root, depth = 0) {
  const shape = shapeOf(schema, root);
  if (value === null && shape.nullable) return true;
  if (shape.kind === "choice") return shape.branches.some((branch) => fits(value, branch, root, depth + 1));
  if (shape.kind === "json") return { object: isObject, array: Array.isArray }[shape.expects]?.(value) ?? true;
  if (shape.kind !== "object") return TESTS[shape.kind]?.(value, shape) ?? false;
  if (!isObject(value) || !(shape.schema.required ?? []).every((name) => name in value)) return false;
  const known = shape.schema.properties;
  if (shape.schema.additionalProperties === false && !Object.keys(value).every((name) => name in known)) return false;
  return depth > 4 || Object.entries(known).every(([name, part]) => !(name in value) || fits(value[name], part, root, depth + 1));
}
