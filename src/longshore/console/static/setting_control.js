// The control for one configuration key, by its type.

import { h, uniqueId } from "./dom.js";

const NUMBERS = new Set(["int", "count", "float", "seconds", "size"]);
const LISTS = new Set(["list", "folders"]);

/** {element, id, set, focus}; `onChange` gets the value as the configuration takes it, null for "unset". */
export function settingControl({ key, type, choices, minimum, maximum, value, default: usual, unset = "unset" }, { disabled, label, onChange }) {
  const id = uniqueId("setting");
  const attributes = { id, disabled, "aria-label": label, autocomplete: "off", spellcheck: "false", "aria-describedby": label ? null : `${id}-docs ${id}-problem` };
  const made = make(type, attributes, { choices, minimum, maximum, usual, value, unset });
  made.input.addEventListener(made.event ?? "input", () => onChange(made.read()));
  made.write(value);
  return { element: made.input, id, set: made.write, focus: () => made.input.focus() };
}

function make(type, attributes, { choices, minimum, maximum, usual, value, unset }) {
  if (type === "bool") return boolean(attributes, usual, value, unset);
  if (type === "choice" && choices?.length) return select(attributes, choices.map((each) => [each, String(each)]), usual, unset);
  if (NUMBERS.has(type)) return number(attributes, minimum, maximum, type);
  if (LISTS.has(type)) return list(attributes, type);
  if (type === "timeout") return timeout(attributes);
  return text(attributes, type);
}

/** On or off; where the value may be unset, that is a third choice. */
function boolean(attributes, usual, value, unset) {
  if (usual === null || value === null || value === undefined) return select(attributes, [[true, "on"], [false, "off"]], null, unset);
  const input = h("input", { ...attributes, type: "checkbox", class: "switch", role: "switch" });
  return { input, event: "change", read: () => input.checked, write: (given) => { input.checked = given === true; } };
}

function select(attributes, options, usual, unset) {
  const all = usual === null || usual === undefined ? [[null, unset], ...options] : options;
  const input = h("select", attributes, all.map(([, title], at) => h("option", { value: at }, title)));
  return {
    input,
    event: "change",
    read: () => all[Number(input.value)][0],
    write: (given) => { input.value = String(Math.max(0, all.findIndex(([each]) => each === (given ?? null)))); },
  };
}

function number(attributes, minimum, maximum, type) {
  const whole = type === "int" || type === "count" || type === "size";
  const input = h("input", { ...attributes, type: "number", min: minimum, max: maximum, step: whole ? 1 : "any", placeholder: "unset" });
  return { input, read: () => (input.value === "" ? null : Number(input.value)), write: (given) => { input.value = given ?? ""; } };
}

function timeout(attributes) {
  const input = h("input", { ...attributes, type: "text", inputmode: "decimal", placeholder: "unset", title: "Seconds, or off for no limit", size: 8 });
  return {
    input,
    read() {
      const given = input.value.trim().toLowerCase();
      if (given === "") return null;
      if (given === "off" || given === "false" || given === "none") return false;
      return Number.isNaN(Number(given)) ? given : Number(given);
    },
    write(given) {
      input.value = given === false ? "off" : given ?? "";
    },
  };
}

function list(attributes, type) {
  const input = h("textarea", { ...attributes, rows: 1, placeholder: type === "folders" ? "one folder a line" : "one a line" });
  return { input, read: () => input.value.split("\n").map((line) => line.trim()).filter(Boolean), write: (given) => { input.value = (given ?? []).join("\n"); } };
}

function text(attributes, type) {
  const input = h("input", { ...attributes, type: type === "secret" ? "password" : "text", placeholder: "unset" });
  return { input, read: () => (input.value === "" ? null : input.value), write: (given) => { input.value = given === null || given === undefined ? "" : typeof given === "string" ? given : JSON.stringify(given); } };
}
