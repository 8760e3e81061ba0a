// A searchable list of links at the left, and what is chosen at its right.

import { emptyState, h, show } from "./dom.js";
import { plural } from "./format.js";

/**
 * `entries` are {key, title, subtitle, words, mark}. `base` is the address before a key.
 * The pane: {element, fill, open, detail}; on a phone it shows the list or the detail.
 */
export function listPane({ label, word, base, heading, nothing }) {
  const search = h("input", { type: "search", "data-search": "", placeholder: `Search ${label.toLowerCase()}  ( / )`, "aria-label": `Search ${label.toLowerCase()}`, autocomplete: "off", spellcheck: "false" });
  const count = h("p", { class: "facts", role: "status" });
  const list = h("ul", { class: "entries" });
  const detail = h("div", { class: "detail" });
  const nav = h("nav", { class: "list-pane", "aria-label": label }, h("div", { class: "list-head" }, h("h1", {}, heading ?? label), search, count), list);
  const element = h("div", { class: "split" }, nav, detail);
  let rows = [];
  let chosen = "";

  const matches = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    return rows.filter(({ entry }) => words.every((each) => entry.words.includes(each)));
  };
  const draw = () => {
    const found = matches();
    show(list, found.map((row) => row.element));
    count.textContent = found.length === rows.length ? plural(rows.length, word) : `${found.length} of ${plural(rows.length, word)}`;
    mark();
  };
  const mark = () => {
    const links = [...list.querySelectorAll("a")];
    links.forEach((link) => {
      const isChosen = link.dataset.key === chosen;
      if (isChosen) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      link.tabIndex = -1;
    });
    const first = links.find((link) => link.dataset.key === chosen) ?? links[0];
    if (first) first.tabIndex = 0;
  };
  const step = (event) => {
    const links = [...list.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: links.length - 1 }[event.key];
    if (to === undefined || (event.target === search && event.key !== "ArrowDown")) return;
    event.preventDefault();
    if (to < 0) search.focus();
    else if (links[to]) {
      links.forEach((link) => { link.tabIndex = -1; });
      links[to].tabIndex = 0;
      links[to].focus();
    }
  };
  search.addEventListener("input", draw);
  search.addEventListener("keydown", (event) => { if (event.key === "Enter") list.querySelector("a")?.click(); });
  nav.addEventListener("keydown", step);

  return {
    element,
    detail,
    fill(entries) {
      rows = entries.map((entry) => ({ entry, element: entryRow(entry, base) }));
      draw();
      if (!rows.length) show(list, h("li", {}, emptyState(nothing[0], nothing[1])));
    },
    /** Mark an entry and show its element; none: what to do first. */
    open(key, content) {
      chosen = key;
      element.classList.toggle("has-detail", key !== "");
      mark();
      const back = h("a", { class: "back", href: base }, `← ${label}`);
      show(detail, key ? [back, content] : content);
      if (key) {
        list.querySelector('a[aria-current="true"]')?.scrollIntoView({ block: "nearest" });
        detail.scrollTop = 0;
      }
    },
    fail(problem) {
      count.textContent = "";
      show(list, h("li", {}, h("div", { class: "problem-box", role: "alert" }, problem.message)));
    },
  };
}

function entryRow({ key, title, subtitle, mark }, base) {
  const text = h("span", { class: "entry-text" }, h("span", { class: "entry-title" }, title), subtitle && h("span", { class: "entry-subtitle" }, subtitle));
  return h("li", {}, h("a", { href: `${base}/${encodeURIComponent(key)}`, "data-key": key, class: "entry-link" }, text, mark));
}
