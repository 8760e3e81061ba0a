// The project memory: search, a node with its facts and neighbours, a picture of the neighbourhood, the history of a fact.

import { get, getBlob } from "../api.js";
import { emptyState, h, problemBox, show } from "../dom.js";
import { plural } from "../format.js";

export function contextView() {
  const search = h("input", { type: "search", "data-search": "", id: "context-search", placeholder: "What does the project know about …  ( / )", "aria-label": "Search the context", autocomplete: "off" });
  const hits = h("div", {}, emptyState("Looking", ""));
  const node = h("div", { class: "node" });
  const find = async (event) => {
    event?.preventDefault();
    try {
      const { hits: found, recent } = await get("context/search", { q: search.value });
      const facts = recent ? "What has changed last" : plural(found.length, "hit");
      show(hits, found.length ? [h("p", { class: "facts", role: "status" }, facts), h("ul", { class: "entries" }, found.map(hit))] : emptyState("Nothing found", recent ? "Agents have stored nothing yet." : "Other words may find it."));
    } catch (problem) {
      show(hits, problem.status === 404 ? emptyState("The context is off", problem.message) : problemBox(problem.message));
    }
  };
  const form = h("form", { class: "filters", role: "search", on: { submit: find } }, search, h("button", { type: "submit" }, "Search"));
  const element = h("div", { class: "page context" }, h("h1", {}, "Context"), form, h("div", { class: "context-columns" }, hits, node));
  let shown = "";
  const open = async (id) => {
    if (id === shown) return;
    shown = id;
    if (!id) {
      show(node);
      return;
    }
    try {
      const found = await get("context/node", { id });
      if (shown === id) show(node, nodePage(id, found));
    } catch (problem) {
      if (shown === id) show(node, problemBox(problem.message));
    }
  };
  return { element, open, onShow: () => { if (!search.value) find(); } };
}

function hit({ id, name, kind, path, texts = [], retracted }) {
  const text = texts[0] ?? path ?? "";
  return h("li", {}, h("a", { class: "entry-link", href: `#/context/${encodeURIComponent(id)}` }, h("span", { class: "entry-text" }, h("span", { class: "entry-title" }, name), text && h("span", { class: "entry-subtitle" }, text)), h("span", { class: "badge" }, retracted ? "retracted" : kind)));
}

function nodePage(id, node) {
  const { name, kind, path, pinned, retracted, attributes = {}, observations = [], edges = [], neighbours = {} } = node;
  const history = h("div", {});
  const showHistory = async () => {
    try {
      const past = await get("context/history", { id });
      const ended = past.observations.filter((each) => !each.current);
      const links = past.edges.filter((each) => !each.current);
      show(history, h("h3", {}, "History"), ended.length || links.length
        ? h("ul", { class: "facts-list" }, ended.map(fact), links.map((each) => edge(each, id, past.neighbours)))
        : h("p", { class: "quiet" }, "Nothing that was known of it has changed."));
    } catch (problem) {
      show(history, problemBox(problem.message));
    }
  };
  const marks = [kind, pinned && "pinned", retracted && "retracted"].filter(Boolean).map((text) => h("span", { class: "badge" }, text));
  const given = Object.entries(attributes);
  return h("article", {}, h("h2", { class: "tool-name" }, name), h("p", { class: "badges" }, marks, h("button", { type: "button", class: "small", on: { click: showHistory } }, "Show its history")), path && h("p", { class: "uri" }, path),
    given.length > 0 && h("dl", { class: "attributes" }, given.map(([key, value]) => [h("dt", {}, key), h("dd", {}, typeof value === "string" ? value : JSON.stringify(value))])),
    observations.length > 0 && [h("h3", {}, "What is known"), h("ul", { class: "facts-list" }, observations.map(fact))],
    edges.length > 0 && [h("h3", {}, "Links"), h("ul", { class: "facts-list" }, edges.map((each) => edge(each, id, neighbours)))],
    history, picturePart(id));
}

/** When something held, when it was recorded, and who said it. */
function times({ valid_from, valid_to, recorded, superseded, closed_as, reason, source, confidence, contradicts = [] }) {
  const said = source && [source.actor || source.client || source.type, source.uri].filter(Boolean).join(" ");
  return [valid_from && `since ${moment(valid_from)}`, valid_to && `until ${moment(valid_to)}`, recorded && recorded !== valid_from && `recorded ${moment(recorded)}`, superseded && `${closed_as || "superseded"} ${moment(superseded)}`, !superseded && closed_as, reason, confidence !== undefined && confidence !== null && confidence < 1 && `confidence ${confidence}`, contradicts.length > 0 && `contradicts ${contradicts.join(", ")}`, said].filter(Boolean).join(" · ");
}

function fact(given) {
  return h("li", { class: given.current === false ? "past" : "" }, h("p", { class: "long-text" }, given.text), h("p", { class: "facts" }, times(given)));
}

function edge(given, id, neighbours) {
  const isOut = given.from === id;
  const other = isOut ? given.to : given.from;
  const link = h("a", { href: `#/context/${encodeURIComponent(other)}` }, neighbours[other]?.name ?? other);
  return h("li", { class: given.current === false ? "past" : "" }, h("p", {}, isOut ? [`${given.relation} `, link] : [link, ` ${given.relation} this`]), h("p", { class: "facts" }, times(given)));
}

const moment = (at) => new Date(at * 1000).toISOString().slice(0, 16).replace("T", " ");

function picturePart(id) {
  const place = h("div", { class: "graph", tabindex: 0, role: "region", "aria-label": "Picture of the neighbourhood" });
  const depth = h("select", { "aria-label": "Steps away" }, [1, 2, 3].map((steps) => h("option", { value: steps, selected: steps === 1 }, plural(steps, "step"))));
  let url = null;
  const load = async () => {
    try {
      const blob = await getBlob(`context/picture?id=${encodeURIComponent(id)}&depth=${depth.value}`);
      if (url) URL.revokeObjectURL(url);
      url = URL.createObjectURL(new Blob([blob], { type: "image/svg+xml" }));
      show(place, h("img", { src: url, alt: "The node and its neighbours; the links are listed above" }));
    } catch (problem) {
      show(place, problemBox(problem.message));
    }
  };
  depth.addEventListener("change", load);
  load();
  return h("section", { "aria-label": "Neighbourhood" }, h("div", { class: "section-head" }, h("h3", {}, "Neighbourhood"), depth), place);
}
