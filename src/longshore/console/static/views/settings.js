// The settings: every key with its documentation and origin, toolsets and tools on and off; saved where they came from.

import { get, post } from "../api.js";
import { announce, emptyState, h, problemBox, show } from "../dom.js";
import { plural } from "../format.js";
import { settingControl } from "../setting_control.js";

export function settingsView(app) {
  const body = h("div", { class: "parts" });
  const message = h("div", { role: "status" });
  const save = h("button", { type: "button", class: "main", disabled: true }, "Save");
  const discard = h("button", { type: "button", disabled: true }, "Discard");
  const changed = h("span", { class: "status" }, "No changes");
  const search = h("input", { type: "search", "data-search": "", placeholder: "Search settings  ( / )", "aria-label": "Search settings", autocomplete: "off", spellcheck: "false" });
  const file = h("p", { class: "facts" });
  const bar = h("div", { class: "save-bar", role: "group", "aria-label": "Changes" }, changed, discard, save);
  const element = h("div", { class: "page settings" }, h("h1", {}, "Settings"), file, h("div", { class: "filters" }, search), message, body, bar);
  const edits = new Edits(() => {
    changed.textContent = edits.size ? plural(edits.size, "change") : "No changes";
    save.disabled = discard.disabled = edits.size === 0 || !writable;
  });
  let writable = false;
  let version = null;
  let loaded = false;

  const load = async () => {
    try {
      const settings = await get("settings");
      loaded = true;
      writable = settings.writable === true && !app.readOnly;
      version = settings.version;
      const why = app.readOnly ? "your token may only look" : settings.why_not;
      const files = [settings.file, settings.other_file].filter(Boolean).join(" and ");
      file.textContent = `Saved in ${files}${writable ? "" : ` · locked: ${why}`}`;
      draw(settings);
    } catch (problem) {
      show(body, problem.status === 404 ? emptyState("No settings", problem.message) : problemBox(problem.message));
    }
  };
  const draw = (settings) => {
    edits.rows.clear();
    const context = { edits, writable };
    const main = new Set(settings.main);
    const all = settings.sections.flatMap((section) => section.keys);
    const first = settings.main.map((key) => all.find((each) => each.key === key)).filter(Boolean);
    const rest = settings.sections.map((section) => ({ ...section, keys: section.keys.filter(({ key }) => !main.has(key)) }));
    const toolsets = settings.toolsets.map((each) => toolsetBox(each, context));
    if (settings.tools.length) toolsets.push(box({ title: "Tools of no toolset" }, settings.tools.map((tool) => toolRow(tool, context))));
    show(body,
      first.length > 0 && group("Main settings", [h("div", { class: "settings-box" }, first.map((key) => keyRow(key, context, key.key)))]),
      toolsets.length > 0 && group("Toolsets and tools", toolsets),
      group("Everything else", rest.filter(({ keys }) => keys.length).map((section) => sectionBox(section, context))));
    edits.showAll();
    filter();
  };
  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    body.querySelectorAll("[data-words]").forEach((row) => { row.hidden = !words.every((word) => row.dataset.words.includes(word)); });
    body.querySelectorAll("details.settings-box").forEach((box) => {
      const any = box.querySelector("[data-words]:not([hidden])") !== null;
      box.hidden = words.length > 0 && !any;
      if (words.length) box.open = any;
    });
  };
  const submit = async () => {
    save.disabled = true;
    edits.complain([]);
    try {
      const { applied = [], waiting = [] } = await post("settings", { changes: edits.changes(), version });
      edits.clear();
      const parts = [applied.length && `${plural(applied.length, "setting")} in effect`, waiting.length && `${waiting.join(", ")}: at the next start`].filter(Boolean);
      show(message, h("div", { class: "good-box" }, `Saved. ${parts.join("; ")}`));
      announce("Saved");
      await load();
    } catch (problem) {
      const left = edits.complain(problem.problems ?? []);
      const again = problem.status === 409 && h("button", { type: "button", class: "small", on: { click: () => { show(message); load(); } } }, "Read the file again, keep my changes");
      show(message, h("div", { class: "problem-box", role: "alert" }, [problem.message, ...left].join(" "), " ", again));
      save.disabled = edits.size === 0;
    }
  };
  search.addEventListener("input", filter);
  save.addEventListener("click", submit);
  discard.addEventListener("click", () => { edits.clear(); show(message); load(); });
  return { element, onShow: () => { if (!loaded || edits.size === 0) load(); }, run: () => { if (!save.disabled) submit(); } };
}

/** What the user has changed, and the rows that show it. */
class Edits {
  constructor(onChange) {
    this.values = new Map();
    this.rows = new Map();
    this.onChange = onChange;
  }

  get size() {
    return this.values.size;
  }

  set(key, value) {
    this.values.set(key, value);
    this.after(key);
  }

  forget(key) {
    this.values.delete(key);
    this.after(key);
  }

  after(key) {
    this.rows.get(key)?.mark(this.values.has(key));
    this.onChange();
  }

  changes() {
    return Object.fromEntries(this.values);
  }

  clear() {
    this.values.clear();
    this.onChange();
  }

  /** Put edits into rows that were made anew. */
  showAll() {
    for (const [key, value] of this.values) {
      this.rows.get(key)?.set(value);
      this.rows.get(key)?.mark(true);
    }
    this.onChange();
  }

  /** Show each problem at its row; the texts of those that have none. */
  complain(problems) {
    this.rows.forEach((row) => row.complain(""));
    const left = problems.filter(({ key, text }) => !this.rows.get(key)?.complain(text)).map(({ key, text }) => `${key}: ${text}`);
    this.rows.get(problems[0]?.key)?.focus();
    return left;
  }
}

function group(title, boxes) {
  return h("section", { "aria-label": title }, h("h2", {}, title), boxes);
}

function box({ title, facts, docs }, rows) {
  return h("details", { class: "settings-box" }, h("summary", {}, h("strong", {}, title), " ", h("span", { class: "facts" }, facts)), docs && h("p", { class: "description" }, docs), rows);
}

function sectionBox({ name, title, docs, keys }, context) {
  return box({ title: title ?? name, facts: `[${name}]`, docs }, keys.map((key) => keyRow(key, context)));
}

function toolsetBox({ name, enabled, unavailable, keys, tools }, context) {
  const on = tools.filter((tool) => tool.enabled).length;
  const facts = `${enabled ? `${on} of ${plural(tools.length, "tool")} on` : "off"}${unavailable ? ` · unavailable: ${unavailable}` : ""}`;
  return box({ title: name, facts }, [...keys.map((each) => keyRow(each, context)), ...tools.map((tool) => toolRow(tool, context))]);
}

/** A tool: on or off, and its other keys behind a summary. */
function toolRow(tool, context) {
  const [enabled, ...others] = [...tool.keys].sort((a, b) => b.key.endsWith(".enabled") - a.key.endsWith(".enabled"));
  const notes = [tool.timeout ? `stopped after ${tool.timeout} s` : "no time limit", tool.group && `group ${tool.group}`, tool.listed === false && "not listed"];
  const unset = enabled.value === null || enabled.value === undefined ? `as usual: ${tool.enabled ? "on" : "off"}` : "as usual";
  const row = keyRow({ ...enabled, docs: "", notes, unset, value: enabled.value ?? null }, context, tool.name);
  const more = h("details", { class: "tool-more" }, h("summary", {}, "Timeout and limits", h("span", { class: "visually-hidden" }, ` of ${tool.name}`)), others.map((each) => keyRow(each, context)));
  return h("div", { class: "tool-settings" }, row, more);
}

/** One key: its documentation and origin, its control, and its problem. */
function keyRow(given, { edits, writable }, name = lastPart(given.key)) {
  const { key, docs, notes = [], origin, locked, waits, value } = given;
  const disabled = !writable || !!locked;
  const same = (next) => JSON.stringify(next) === JSON.stringify(value ?? null);
  const control = settingControl(given, { disabled, onChange: (next) => (same(next) ? edits.forget(key) : edits.set(key, next)) });
  const isDefault = JSON.stringify(value ?? null) === JSON.stringify(given.default ?? null);
  const reset = h("button", { type: "button", class: "small", hidden: disabled || isDefault, on: { click: () => { control.set(given.default); edits.set(key, null); } } }, "Default");
  const problem = h("p", { class: "problem", id: `${control.id}-problem`, hidden: true });
  const facts = [...notes, `from ${origin}`, !isDefault && `default ${given.default === null ? "unset" : JSON.stringify(given.default)}`, waits && "effective at the next start"].filter(Boolean).join(" · ");
  const element = h("div", { class: `setting${locked ? " locked" : ""}`, "data-words": `${key} ${docs ?? ""}`.toLowerCase(), "data-key": key },
    h("div", { class: "setting-text" }, h("label", { for: control.id }, name), docs && h("p", { class: "description", id: `${control.id}-docs` }, docs), h("p", { class: "facts" }, facts, locked && h("span", { class: "lock" }, ` · locked: ${locked}`)), problem),
    h("div", { class: "setting-control" }, control.element, reset));
  edits.rows.set(key, {
    set: (next) => control.set(next === null ? given.default : next),
    mark: (yes) => element.classList.toggle("edited", yes),
    focus: () => control.focus(),
    complain: (text) => {
      problem.hidden = !text;
      problem.textContent = text;
      for (let outer = text ? element.closest("details") : null; outer; outer = outer.parentElement.closest("details")) outer.open = true;
      return true;
    },
  });
  return element;
}

const lastPart = (key) => key.split(".").at(-1);
