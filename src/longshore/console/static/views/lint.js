// What the linter finds in the tools, and what each client would see of them.

import { get } from "../api.js";
import { emptyState, h, problemBox, show } from "../dom.js";
import { count, plural } from "../format.js";
import { table } from "../table.js";

const LEVELS = { error: "Errors", warning: "Warnings", info: "Notes" };
const SHOWN = 4; // findings of a rule before they are folded

export function lintView() {
  const body = h("div", { class: "parts", "aria-busy": "true" }, emptyState("Checking the tools", ""));
  const again = h("button", { type: "button" }, "Check again");
  const element = h("div", { class: "page lint" }, h("div", { class: "section-head" }, h("h1", {}, "Lint"), again), body);
  let loaded = false;
  const load = async () => {
    again.disabled = true;
    try {
      const { findings, more, profiles, tools, views } = await get("lint");
      loaded = true;
      show(body, findingsPart(findings, more, `${plural(tools, "tool")} checked for ${profiles.join(", ")}`), clientsPart(views));
    } catch (problem) {
      show(body, problemBox(problem.message));
    }
    body.removeAttribute("aria-busy");
    again.disabled = false;
  };
  again.addEventListener("click", load);
  return { element, onShow: () => { if (!loaded) load(); } };
}

function findingsPart(findings, more, facts) {
  const groups = Object.entries(LEVELS).map(([level, title]) => [title, level, findings.filter((each) => each.level === level)]).filter(([, , found]) => found.length);
  const lists = groups.map(([title, level, found]) => [h("h2", {}, `${title} (${found.length})`), h("ul", { class: "findings" }, cards(found, level))]);
  const nothing = emptyState("No findings", "Every tool follows the rules that apply.");
  return h("section", { "aria-label": "Findings" }, h("p", { class: "facts" }, facts), lists.length ? lists : nothing, more > 0 && h("p", { class: "facts" }, `${count(more)} more: longshore lint has all`));
}

/** The findings of one rule with one fix, as a card: many tools often have the same fault. */
function card(found, level) {
  const [{ rule, fix }] = found;
  const rows = found.map(({ tool, path, text }) => h("li", {}, tool && h("a", { href: `#/tools/${encodeURIComponent(tool)}` }, tool), tool && " ", h("span", {}, text), path && h("code", { class: "quiet" }, ` ${path}`)));
  const rest = rows.splice(SHOWN);
  const list = h("ul", {}, rows);
  const more = rest.length > 0 && h("button", { type: "button", class: "small", on: { click: () => { list.append(...rest); more.remove(); } } }, `${count(rest.length)} more`);
  return h("li", { class: `finding finding-${level}` }, h("div", { class: "finding-head" }, h("code", { class: "rule" }, rule), fix && h("span", { class: "fix" }, fix), found.length > 1 && h("span", { class: "facts" }, `${count(found.length)} times`)), list, more);
}

function cards(found, level) {
  const groups = new Map();
  for (const each of found) {
    const key = JSON.stringify([each.rule, each.fix]);
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  return [...groups.values()].map((group) => card(group, level));
}

function clientsPart(views) {
  return h("section", { "aria-label": "What clients see" }, h("h2", {}, "What clients see"), Object.entries(views).map(([client, view]) => {
    const body = h("div", { class: "client" });
    const verdict = view.is_refused ? "refuses the whole list" : view.lost.length ? `loses ${plural(view.lost.length, "tool")}` : view.fails ? "some calls fail" : "takes all tools";
    const bad = view.is_refused || view.lost.length > 0 || view.fails;
    const element = h("details", { class: "settings-box" }, h("summary", {}, h("strong", {}, view.title || client), " ", h("span", { class: bad ? "bad" : "facts" }, verdict), h("span", { class: "facts" }, ` · ${count(view.tokens)} tokens`)), body);
    element.addEventListener("toggle", () => { if (element.open && !body.hasChildNodes()) show(body, clientPart(view)); });
    return element;
  }));
}

function clientPart({ title, lost, renamed, effects, more }) {
  const effectTable = table(`Effects of ${title}`, [["Tool"], ["What happens"], ["Where"], ["Rule"]]);
  effectTable.fill(effects.map((each, at) => ({ key: at, cells: [each.tool || "all", each.what, each.path || "–", each.rule || "–"] })));
  const names = Object.entries(renamed);
  return [
    lost.length > 0 && h("p", {}, h("strong", { class: "bad" }, "Not offered: "), lost.join(", ")),
    names.length > 0 && h("p", {}, h("strong", {}, "Names: "), renaming(names)),
    effects.length ? effectTable.element : h("p", { class: "quiet" }, "Descriptions and schemas arrive as they are."),
    more > 0 && h("p", { class: "facts" }, `${count(more)} more: longshore lint --as has all`),
  ];
}

/** What happens to names, in short where all get one prefix. */
function renaming(names) {
  const [[first, sent]] = names;
  const prefix = sent.endsWith(first) ? sent.slice(0, -first.length) : "";
  if (prefix && names.every(([name, other]) => other === prefix + name)) return [h("code", {}, prefix), " goes before each"];
  const shown = names.slice(0, 20).map(([name, other]) => `${name} → ${other}`).join(", ");
  return names.length > 20 ? `${shown} and ${names.length - 20} more` : shown;
}
