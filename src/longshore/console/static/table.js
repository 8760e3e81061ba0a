// Tables that keep their rows: a row whose cells are the same is not made again, so focus and selection stay.

import { h, show } from "./dom.js";

/** A table: {element, fill}. `columns` are [title, class]; `fill` takes rows {key, cells, mark} of texts and elements. */
export function table(label, columns) {
  const head = h("tr", {}, columns.map(([title, kind]) => h("th", { scope: "col", class: kind }, title)));
  const body = h("tbody", {});
  const element = h("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": label }, h("table", {}, h("thead", {}, head), body));
  const known = new Map();
  const fill = (rows) => {
    const keys = new Set(rows.map((row) => row.key));
    for (const key of known.keys()) if (!keys.has(key)) known.delete(key);
    const elements = rows.map((row) => {
      if (!known.has(row.key)) known.set(row.key, h("tr", {}, columns.map(([, kind], at) => h(at === 0 ? "th" : "td", { class: kind, scope: at === 0 ? "row" : null }))));
      const found = known.get(row.key);
      row.cells.forEach((cell, at) => update(found.children[at], cell));
      return found;
    });
    if (elements.length !== body.children.length || elements.some((row, at) => body.children[at] !== row)) show(body, elements);
  };
  return { element, fill };
}

function update(place, cell) {
  if (cell instanceof Node || Array.isArray(cell)) show(place, cell);
  else if (cell?.keep) cell.keep(place);
  else if (place.textContent !== String(cell)) place.textContent = String(cell);
}

/** A button cell that is made once for its row. */
export const keptButton = (make) => ({ keep: (place) => { if (!place.firstChild) place.append(make()); } });
