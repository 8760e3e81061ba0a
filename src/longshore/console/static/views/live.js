// What happens now: calls with their cancel buttons, the timeline, usage by tool, sessions, and what tools look like.

import { get, post } from "../api.js";
import { announce, emptyState, h, problemBox, show } from "../dom.js";
import { ago, count, cut, duration, milliseconds } from "../format.js";
import { endedCalls, hasFailed } from "../live_store.js";
import { latencyDots, rateColumns, shareBar, timeline } from "../plots.js";
import { keptButton, table } from "../table.js";
import { earlierCalls } from "./earlier.js";
import { screens } from "./screens.js";

const SPANS = { 60: "1 minute", 300: "5 minutes", 900: "15 minutes" };
const TICK = 1000;
const PADDING = 26; // of a plot, at both sides
const USAGE_EVERY = 3;

export function liveView(app) {
  const figures = h("dl", { class: "figures" });
  const problem = h("div", {});
  const calls = callsTable(app, problem);
  const plots = plotsBox(app);
  const usage = usageTable(app);
  const sessions = sessionsTable(app);
  const looks = screens(app);
  const events = eventsTable(app);
  const element = h("div", { class: "page live" },
    h("h1", {}, "Live"), notes(app.overview), figures, problem,
    section("Calls in flight", calls.element), section("Timeline", plots.element), section("Screens", looks.element),
    section("Usage by tool", usage.element, earlierCalls()), section("Sessions", sessions.element), section("Events", events.element));
  let ticking = 0;
  let ticks = 0;
  let unsubscribe = () => {};

  const drawFigures = () => {
    const { state, records, dropped } = app.live;
    const minute = endedCalls(records).filter((call) => call.to > Date.now() / 1000 - 60);
    const failed = minute.filter((call) => hasFailed(call.outcome)).length;
    const spent = minute.reduce((sum, call) => sum + (call.tokens_in ?? 0) + (call.tokens_out ?? 0), 0);
    show(figures, [["Running", state.calls.length + (state.more_calls ?? 0)], ["Sessions", state.sessions.length + (state.more_sessions ?? 0)], ["Calls in the last minute", minute.length], ["of them failed", failed, failed ? "bad" : ""], ["Tokens in the last minute", spent], ...(dropped ? [["Records not shown", dropped]] : [])].map(([name, value, kind]) => h("div", {}, h("dt", {}, name), h("dd", { class: kind }, count(value)))));
  };
  const draw = () => {
    drawFigures();
    calls.draw();
    sessions.draw();
    events.draw();
  };
  const tick = () => {
    calls.draw();
    plots.draw();
    looks.refresh();
    if (ticks++ % USAGE_EVERY === 0) usage.refresh();
  };
  return {
    element,
    onShow() {
      this.onHide();
      unsubscribe = app.live.subscribe(draw);
      ticking = setInterval(tick, TICK);
      ticks = 0;
      draw();
      tick();
    },
    onHide() {
      unsubscribe();
      clearInterval(ticking);
    },
  };
}

/** What this view can't show. */
function notes({ records, transport }) {
  return [
    records === false && "Records are off (telemetry.records), so there is no timeline, usage or event; calls in flight and sessions are shown.",
    transport?.workers > 1 && `The server has ${count(transport.workers)} processes. This page shows the one that answers it.`,
  ].filter(Boolean).map((text) => h("p", { class: "note" }, text));
}

function section(title, ...content) {
  return h("section", { "aria-label": title }, h("h2", {}, title), content);
}

function callsTable(app, problem) {
  const rows = table("Calls in flight", [["Tool"], ["For", "number"], ["Progress"], ["By"], ["", "actions"]]);
  rows.element.classList.add("stacks");
  const nothing = emptyState("No call runs", "Calls of every client appear here while they run, each with a button to cancel it.");
  const element = h("div", {}, nothing);
  const cancel = (call) => async (event) => {
    event.target.disabled = true;
    try {
      await post(`calls/${encodeURIComponent(call.key)}/cancel`);
      announce(`${call.tool} was cancelled`);
      show(problem);
    } catch (refused) {
      show(problem, problemBox(refused.message));
      event.target.disabled = false;
    }
  };
  const draw = () => {
    const { state, stateAt } = app.live;
    const late = stateAt ? (performance.now() - stateAt) / 1000 : 0;
    show(element, state.calls.length ? rows.element : nothing);
    rows.fill(state.calls.map((call) => ({
      key: call.key,
      cells: [
        call.tool,
        duration(Math.round(call.seconds + late)).replace("0 µs", "0 s"),
        progressText(call),
        [call.principal, call.session && `session ${call.session}`, call.transport, call.parent !== null && call.parent !== undefined && `within call ${call.parent}`].filter(Boolean).join(" · "),
        keptButton(() => h("button", { type: "button", class: "danger small", disabled: app.readOnly, title: app.readOnly ? "Your token may only look" : null, "aria-label": `Cancel ${call.tool}`, on: { click: cancel(call) } }, "Cancel")),
      ],
    })));
  };
  return { element, draw };
}

function progressText({ progress, waits }) {
  if (!progress) return waits ? "waits" : "–";
  const share = progress.total ? `${count(progress.done)} of ${count(progress.total)}` : count(progress.done);
  return progress.message ? `${share} · ${cut(progress.message, 80)}` : share;
}

function plotsBox(app) {
  let span = 60;
  const buttons = Object.entries(SPANS).map(([seconds, text]) => h("button", { type: "button", "aria-pressed": String(Number(seconds) === span), on: { click: () => pick(Number(seconds)) } }, text));
  const place = h("div", { class: "plots" });
  const numbers = table("Latest calls", [["Tool"], ["Outcome"], ["Took", "number"], ["Ended"]]);
  const details = h("details", {}, h("summary", {}, "The same as a table"), numbers.element);
  const pick = (seconds) => {
    span = seconds;
    buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(Number(Object.keys(SPANS)[at]) === span)));
    draw();
  };
  const draw = () => {
    const now = Date.now() / 1000;
    const width = Math.max(280, place.clientWidth - PADDING);
    const ended = endedCalls(app.live.records).filter((call) => call.to > now - span);
    const running = app.live.state.calls.map((call) => ({ tool: call.tool, from: now - call.seconds, to: now, running: true }));
    if (!ended.length && !running.length) show(place, emptyState(`No call in the last ${SPANS[span]}`, "The timeline draws each call as a bar."));
    else show(place, timeline([...ended, ...running], now, span, width), rateColumns(ended, now, span, width), legend());
    if (details.open) numbers.fill(ended.slice(-100).reverse().map((call) => ({ key: call.n, cells: [call.tool, call.outcome, duration(call.seconds), ago(call.to)] })));
  };
  details.addEventListener("toggle", draw);
  return { element: h("div", {}, h("div", { class: "segments", role: "group", "aria-label": "Time shown" }, buttons), place, details), draw };
}

function legend() {
  return h("ul", { class: "legend" }, [["ok", "answered"], ["failed", "failed (×)"], ["cancelled", "cancelled"], ["running", "running"]].map(([kind, text]) => h("li", {}, h("span", { class: `swatch swatch-${kind}`, "aria-hidden": "true" }), text)));
}

function usageTable(app) {
  const rows = table("Usage by tool", [["Tool"], ["Calls", "number"], ["Failed", "number"], ["Tokens in", "number"], ["Tokens out", "number"], ["Latest calls"], ["p50", "number"], ["p95", "number"], ["Slowest", "number"], ["Last", "number"]]);
  const nothing = emptyState("No tool has been called yet", "Tokens, latency and failures by tool are counted from the server's start.");
  const element = h("div", {}, nothing);
  const refresh = async () => {
    const usage = await get("usage").catch(() => null);
    if (!usage) return;
    const calls = endedCalls(app.live.records);
    const most = Math.max(...usage.tools.map((tool) => tool.tokens_out), 1);
    show(element, usage.tools.length ? rows.element : nothing);
    rows.fill(usage.tools.map((tool) => ({
      key: tool.name,
      cells: [
        [h("a", { href: `#/tools/${encodeURIComponent(tool.name)}` }, tool.name)],
        count(tool.calls),
        tool.failures ? [shareBar(tool.failures, tool.calls, "failed"), h("span", { class: "bad" }, count(tool.failures))] : "0",
        count(tool.tokens_in),
        [shareBar(tool.tokens_out, most), count(tool.tokens_out)],
        [latencyDots(calls.filter((call) => call.tool === tool.name), tool.name)],
        milliseconds(tool.p50_ms), milliseconds(tool.p95_ms), milliseconds(tool.max_ms), tool.last ? ago(tool.last) : "–",
      ],
    })));
  };
  return { element, refresh };
}

function sessionsTable(app) {
  const rows = table("Sessions", [["Client"], ["Revision"], ["Transport"], ["By"], ["Calls", "number"], ["Tokens", "number"], ["Idle", "number"]]);
  const nothing = emptyState("No session is open", "Clients of 2026-07-28 have none: each of their requests stands for itself.");
  const element = h("div", {}, nothing);
  const draw = () => {
    const { sessions } = app.live.state;
    show(element, sessions.length ? rows.element : nothing);
    rows.fill(sessions.map((each, at) => ({ key: each.key || at, cells: [[each.client || "unnamed", each.version].filter(Boolean).join(" "), each.revision || "–", each.transport, each.principal || "–", count(each.calls), count(each.tokens), each.idle_seconds === null || each.idle_seconds === undefined ? "–" : duration(each.idle_seconds).replace("0 µs", "0 s")] })));
  };
  return { element, draw };
}

const QUIET = new Set(["request_received", "tool_invoked", "tool_completed", "request_completed"]);

function eventsTable(app) {
  const rows = table("Events", [["Time"], ["Event"], ["What"], ["By"]]);
  const nothing = emptyState("Nothing unusual", "Refusals, limits, problems, sessions and processes that start and end are listed here.");
  const element = h("div", {}, nothing);
  let last = null;
  const draw = () => {
    const { records } = app.live;
    if (records === last) return;
    last = records;
    const found = records.filter((record) => !QUIET.has(record.kind)).slice(-50).reverse();
    show(element, found.length ? rows.element : nothing);
    rows.fill(found.map((record) => ({ key: record.n, cells: [new Date(record.time * 1000).toLocaleTimeString("en-GB"), record.kind.replaceAll("_", " "), cut([record.tool || record.method, record.message].filter(Boolean).join(": "), 300), record.principal ?? ""] })));
  };
  return { element, draw };
}
