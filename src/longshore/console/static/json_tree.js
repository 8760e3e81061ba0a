// A JSON value as a tree whose branches are built when they are opened.

import { h } from "./dom.js";
import { cut } from "./format.js";

const OPEN_DEPTH = 2;
const PAGE = 100;
const LONG_TEXT = 400;

export function jsonTree(value) {
  return h("div", { class: "json" }, node(value, null, 0));
}

function node(value, key, depth) {
  return typeof value === "object" && value !== null ? branch(value, key, depth) : leaf(value, key);
}

function leaf(value, key) {
  const kind = value === null ? "null" : typeof value;
  const text = typeof value === "string" ? JSON.stringify(value) : String(value);
  const shown = h("span", { class: `json-${kind}` }, cut(text, LONG_TEXT));
  const row = h("div", { class: "json-row" }, name(key), shown);
  if (text.length > LONG_TEXT) {
    const more = h("button", { type: "button", class: "link", on: { click: () => { shown.textContent = text; more.remove(); } } }, `all ${text.length.toLocaleString("en-GB")} characters`);
    row.append(more);
  }
  return row;
}

function branch(value, key, depth) {
  const isArray = Array.isArray(value);
  const entries = isArray ? value.map((each, at) => [at, each]) : Object.entries(value);
  const size = isArray ? `[${entries.length}]` : `{${entries.length}}`;
  if (!entries.length) return h("div", { class: "json-row" }, name(key), h("span", { class: "json-size" }, isArray ? "[ ]" : "{ }"));
  const children = h("div", { class: "json-children" });
  const preview = h("span", { class: "json-preview" }, isArray ? "" : cut(entries.map(([each]) => each).join(", "), 60));
  const element = h("details", {}, h("summary", {}, name(key), h("span", { class: "json-size" }, size), " ", preview), children);
  const fill = (from) => {
    children.append(...entries.slice(from, from + PAGE).map(([each, part]) => node(part, each, depth + 1)));
    const left = entries.length - from - PAGE;
    if (left <= 0) return;
    const more = h("button", { type: "button", class: "small", on: { click: () => { more.remove(); fill(from + PAGE); } } }, `${Math.min(left, PAGE)} more of ${left}`);
    children.append(more);
  };
  const open = () => { if (element.open && !children.hasChildNodes()) fill(0); };
  element.addEventListener("toggle", open);
  if (depth < OPEN_DEPTH && entries.length <= PAGE) element.open = true;
  if (element.open) fill(0);
  return element;
}

function name(key) {
  return key === null ? null : h("span", { class: "json-key" }, `${key}: `);
}
