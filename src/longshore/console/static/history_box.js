// The earlier requests of one entry, with buttons to fill the form with one and to run it again.

import { h, show } from "./dom.js";
import { ago, cut, duration } from "./format.js";
import { entriesOf, forgetAll } from "./history.js";

const SHOWN = 12;

/** `use(entry, again)` fills the form, and runs it if `again`. */
export function historyBox(method, name, use) {
  const list = h("ol", { class: "history" });
  const title = h("summary", {}, "History");
  const element = h("details", { class: "history-box" }, title, list);
  const refresh = () => {
    const found = entriesOf(method, name).slice(0, SHOWN);
    title.textContent = found.length ? `History (${found.length})` : "History";
    if (!found.length) {
      show(list, h("li", { class: "quiet" }, "Nothing yet. Requests that you make here are kept in this browser, without secrets and results."));
      return;
    }
    show(list, found.map(row), h("li", {}, h("button", { type: "button", class: "small", on: { click: () => { forgetAll(); refresh(); } } }, "Forget all history")));
  };
  const row = (entry) => {
    const text = cut(JSON.stringify(entry.arguments ?? {}), 160);
    const buttons = [h("button", { type: "button", class: "small", on: { click: () => use(entry, false) } }, "Fill in")];
    if (!entry.shortened) buttons.push(h("button", { type: "button", class: "small", on: { click: () => use(entry, true) } }, "Run again"));
    const facts = `${entry.outcome} · ${duration(entry.seconds)} · ${ago(entry.at)}${entry.shortened ? " · secrets and long values were left out" : ""}`;
    return h("li", {}, h("div", { class: "history-text" }, h("code", {}, text), h("span", { class: `facts outcome-${entry.outcome}` }, facts)), h("div", { class: "row" }, buttons));
  };
  element.addEventListener("toggle", () => { if (element.open) refresh(); });
  refresh();
  return { element, refresh };
}
