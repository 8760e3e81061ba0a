// Controls for values without parts. A control is {element, get, set}; `get` throws FieldProblem.

import { h } from "../dom.js";
import { label } from "../schema.js";

export class FieldProblem extends Error {}

const INPUT_TYPES = { email: "email", date: "date", password: "password" };
const LONG_TEXT = 120;

export const simpleControls = { text, number, boolean, enum: options, several, const: fixed, json, never };

function text(context, { schema }, { id, required }) {
  const secret = schema.format === "password" || schema.writeOnly;
  const single = secret || INPUT_TYPES[schema.format] || schema.format || (schema.maxLength ?? Infinity) <= LONG_TEXT;
  const attributes = { id, spellcheck: "false", autocomplete: secret ? "new-password" : "off", placeholder: placeholder(schema) };
  const element = single
    ? h("input", { ...attributes, type: secret ? "password" : INPUT_TYPES[schema.format] ?? "text" })
    : h("textarea", { ...attributes, rows: 1 });
  let touched = false;
  element.addEventListener("input", () => { touched = true; });
  return {
    element,
    get() {
      const value = element.value;
      if (value === "" && required && !touched) throw new FieldProblem("is required");
      checkText(value, schema);
      return value;
    },
    set(value) {
      touched = true;
      element.value = value ?? "";
    },
  };
}

function placeholder(schema) {
  const example = schema.examples?.[0];
  if (typeof example === "string") return example;
  return { "date-time": "2026-07-28T12:00:00Z", time: "12:00:00Z", uri: "https://…" }[schema.format] ?? "";
}

function checkText(value, schema) {
  const length = [...value].length;
  if (length < (schema.minLength ?? 0)) throw new FieldProblem(`needs at least ${schema.minLength} characters`);
  if (length > (schema.maxLength ?? Infinity)) throw new FieldProblem(`has ${length} characters; at most ${schema.maxLength}`);
}

function number(context, { schema, integer }, { id }) {
  const element = h("input", { id, type: "number", step: integer ? schema.multipleOf ?? 1 : "any", min: schema.minimum, max: schema.maximum, inputmode: integer ? "numeric" : "decimal", autocomplete: "off" });
  return {
    element,
    get() {
      if (element.validity.badInput) throw new FieldProblem("is no number");
      if (element.value === "") throw new FieldProblem("is required");
      const value = Number(element.value);
      checkNumber(value, schema, integer);
      return value;
    },
    set(value) {
      element.value = value === null || value === undefined ? "" : String(value);
    },
  };
}

function checkNumber(value, schema, integer) {
  if (integer && !Number.isInteger(value)) throw new FieldProblem("must be a whole number");
  if (value < schema.minimum) throw new FieldProblem(`must be at least ${schema.minimum}`);
  if (value > schema.maximum) throw new FieldProblem(`must be at most ${schema.maximum}`);
  if (value <= schema.exclusiveMinimum) throw new FieldProblem(`must be more than ${schema.exclusiveMinimum}`);
  if (value >= schema.exclusiveMaximum) throw new FieldProblem(`must be less than ${schema.exclusiveMaximum}`);
}

function boolean(context, shape, frame) {
  const values = [{ value: true, label: "true" }, { value: false, label: "false" }];
  return options(context, { ...shape, options: values }, frame);
}

function options(context, shape, { id }) {
  const blank = h("option", { value: "" }, "choose…");
  const element = h("select", { id }, blank, shape.options.map((each, at) => h("option", { value: at }, each.label)));
  return {
    element,
    get() {
      if (element.value === "") throw new FieldProblem("choose a value");
      return shape.options[Number(element.value)].value;
    },
    set(value) {
      const at = shape.options.findIndex((each) => JSON.stringify(each.value) === JSON.stringify(value));
      element.value = at < 0 ? "" : String(at);
    },
  };
}

function several(context, shape, { id }) {
  const boxes = shape.options.map((each, at) => h("input", { type: "checkbox", id: `${id}-${at}` }));
  const rows = boxes.map((box, at) => h("label", { class: "check", for: box.id }, box, shape.options[at].label));
  return {
    element: h("div", { class: "checks", id }, rows),
    get() {
      const chosen = shape.options.filter((each, at) => boxes[at].checked).map((each) => each.value);
      if (chosen.length < (shape.schema.minItems ?? 0)) throw new FieldProblem(`choose at least ${shape.schema.minItems}`);
      if (chosen.length > (shape.schema.maxItems ?? Infinity)) throw new FieldProblem(`choose at most ${shape.schema.maxItems}`);
      return chosen;
    },
    set(value) {
      const chosen = new Set((Array.isArray(value) ? value : []).map((each) => JSON.stringify(each)));
      boxes.forEach((box, at) => { box.checked = chosen.has(JSON.stringify(shape.options[at].value)); });
    },
  };
}

function fixed(context, shape, { id }) {
  return { element: h("code", { id, class: "fixed" }, label(shape.value)), get: () => shape.value, set() {} };
}

function json(context, shape, { id }) {
  const element = h("textarea", { id, class: "code", rows: 2, spellcheck: "false", autocomplete: "off", placeholder: { object: "{ }", array: "[ ]" }[shape.expects] ?? "JSON" });
  return {
    element,
    get: () => parseJson(element.value, shape.expects),
    set(value) {
      element.value = value === undefined ? "" : JSON.stringify(value, null, 2);
    },
  };
}

/** The value of a JSON text. Throws FieldProblem, which says what is wrong with it. */
export function parseJson(text, expects) {
  if (text.trim() === "") throw new FieldProblem(`is empty; write ${expects === "object" ? "an object, such as {}" : expects === "array" ? "an array, such as []" : "JSON"}`);
  let value;
  try {
    value = JSON.parse(text);
  } catch (problem) {
    throw new FieldProblem(`is not JSON: ${problem.message}`);
  }
  const isArray = Array.isArray(value);
  if (expects === "object" && (typeof value !== "object" || value === null || isArray)) throw new FieldProblem("must be an object: { … }");
  if (expects === "array" && !isArray) throw new FieldProblem("must be an array: [ … ]");
  return value;
}

function never() {
  return {
    element: h("p", { class: "quiet" }, "No value is accepted here."),
    get() { throw new FieldProblem("accepts no value; leave it out"); },
    set() {},
  };
}
