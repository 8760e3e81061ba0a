// Calls that have ended, by tool and outcome, also from before the page was opened.

import { get } from "../api.js";
import { emptyState, h, problemBox, show } from "../dom.js";
import { count, duration, plural } from "../format.js";
import { table } from "../table.js";

const OUTCOMES = ["ok", "error", "failed", "timeout", "refused", "cancelled", "asked"];
const STEP = 100;

export function earlierCalls() {
  const tool = h("input", { type: "search", placeholder: "Any tool", "aria-label": "Tool of earlier calls", autocomplete: "off", spellcheck: "false" });
  const outcome = h("select", { "aria-label": "Outcome of earlier calls" }, h("option", { value: "" }, "any outcome"), OUTCOMES.map((each) => h("option", { value: each }, each)));
  const facts = h("p", { class: "facts", role: "status" });
  const place = h("div", {});
  const older = h("button", { type: "button", class: "small", hidden: true, on: { click: () => load(records.at(-1).n) } }, `The ${STEP} before`);
  const rows = table("Earlier calls", [["Time"], ["Tool"], ["Outcome"], ["Took", "number"], ["Tokens in", "number"], ["Tokens out", "number"], ["By"]]);
  let records = [];
  const load = async (before) => {
    try {
      const found = await get("history", { before, tool: tool.value.trim(), outcome: outcome.value, limit: STEP });
      records = before ? [...records, ...found.records] : found.records;
      facts.textContent = `${plural(records.length, "call")}, ${found.from === "history" ? "from the history's file" : "of those in memory"}`;
      older.hidden = found.records.length < STEP;
      rows.fill(records.map(row));
      show(place, records.length ? rows.element : emptyState("No such calls", "telemetry.history keeps them in a file, also those of earlier runs."));
    } catch (problem) {
      show(place, problemBox(problem.message));
    }
  };
  const form = h("form", { class: "filters", on: { submit: (event) => { event.preventDefault(); load(); } } }, tool, outcome, h("button", { type: "submit" }, "Show"));
  return h("details", { class: "earlier" }, h("summary", {}, "Search calls that have ended"), h("div", { class: "parts" }, form, facts, place, older));
}

function row(record) {
  const time = new Date(record.time * 1000);
  const isToday = time.toDateString() === new Date().toDateString();
  return { key: record.n, cells: [isToday ? time.toLocaleTimeString("en-GB") : time.toISOString().slice(0, 19).replace("T", " "), record.tool || record.method || "–", record.outcome || "–", duration(record.seconds), count(record.tokens_in ?? 0), count(record.tokens_out ?? 0), [record.principal, record.transport].filter(Boolean).join(" · ")] };
}
