// Small plots in SVG. Each has a name for screen readers; its numbers are also in a table beside it.

import { h, s } from "./dom.js";
import { clock, duration, plural } from "./format.js";
import { hasFailed } from "./live_store.js";

const ROW = 22;
const NARROW = 560; // pixels: a phone, which gets shorter labels and fewer marks
const CHARACTER = 7.2; // pixels of a character of a label
const AXIS = 22;
const MOST_ROWS = 14;

/** The pixels at the left that labels take: the plots of one width share their time axis. */
const gutter = (width) => width < NARROW ? 92 : 170;

/** Calls as bars over the last `span` seconds, one row a tool; `width` in pixels. */
export function timeline(calls, now, span, width) {
  const labels = gutter(width);
  const from = now - span;
  const shown = calls.filter((call) => call.to >= from);
  const latest = new Map();
  for (const call of shown) latest.set(call.tool, Math.max(latest.get(call.tool) ?? 0, call.to));
  const tools = [...latest.keys()].sort((a, b) => latest.get(b) - latest.get(a)).slice(0, MOST_ROWS).sort();
  const height = Math.max(3, tools.length) * ROW + AXIS;
  const x = (at) => labels + ((Math.max(at, from) - from) / span) * (width - labels);
  const most = Math.floor(labels / CHARACTER);
  const rows = tools.map((tool, row) => [
    s("line", { class: "plot-grid", x1: 0, x2: width, y1: row * ROW + ROW, y2: row * ROW + ROW }),
    s("text", { class: "plot-label", x: 0, y: row * ROW + 15 }, tool.length > most ? `${tool.slice(0, most - 1)}…` : tool, s("title", {}, tool)),
  ]);
  const bars = shown.filter((call) => tools.includes(call.tool)).map((call) => bar(call, x, tools.indexOf(call.tool) * ROW + 4));
  return s("svg", { viewBox: `0 0 ${width} ${height}`, class: "plot timeline", role: "img", "aria-label": `${shown.length} calls in the last ${span} seconds` }, rows, axis(from, span, height - AXIS, x, width < NARROW ? 2 : 4), bars);
}

function bar(call, x, y) {
  const left = x(call.from);
  const width = Math.max(3, x(call.to) - left);
  const failed = hasFailed(call.outcome);
  const kind = call.running ? "running" : failed ? "failed" : call.outcome === "cancelled" ? "cancelled" : "ok";
  const mark = failed ? s("path", { class: "plot-cross", d: `M${left + width / 2 - 3} ${y + 4}l6 6m0-6l-6 6` }) : null;
  return s("g", {}, s("title", {}, `${call.tool}: ${call.running ? "running" : call.outcome}, ${duration(call.to - call.from)}`), s("rect", { class: `bar-${kind}`, x: left, y, width, height: ROW - 8, rx: 2 }), mark);
}

function axis(from, span, y, x, ticks) {
  return Array.from({ length: ticks + 1 }, (_, tick) => {
    const at = from + (tick * span) / ticks;
    const anchor = tick === ticks ? "end" : "middle";
    return s("g", {}, s("line", { class: "plot-tick", x1: x(at), x2: x(at), y1: 0, y2: y }), s("text", { class: "plot-axis", x: x(at), y: y + 16, "text-anchor": anchor }, tick === ticks ? "now" : clock(at).slice(0, 8)));
  });
}

const CELL = 150;
const HIGH = 34;
const DOTS = 60;

/** The latest calls of a tool: a dot each by its duration (logarithmic), a cross for a failure. */
export function latencyDots(calls, name) {
  const shown = calls.slice(-DOTS);
  const logs = shown.map((call) => Math.log10(Math.max(0.00005, call.seconds ?? 0)));
  const low = Math.min(...logs, -3);
  const high = Math.max(...logs, low + 1);
  const y = (log) => HIGH - 4 - ((log - low) / (high - low)) * (HIGH - 8);
  const dots = shown.map((call, at) => {
    const x = 4 + ((at + DOTS - shown.length) / DOTS) * (CELL - 8);
    if (!hasFailed(call.outcome)) return s("circle", { class: "dot-ok", cx: x, cy: y(logs[at]), r: 2 });
    return s("path", { class: "plot-cross", d: `M${x - 3} ${y(logs[at]) - 3}l6 6m0-6l-6 6` });
  });
  const line = s("line", { class: "plot-grid", x1: 0, x2: CELL, y1: HIGH - 1, y2: HIGH - 1 });
  return s("svg", { viewBox: `0 0 ${CELL} ${HIGH}`, class: "plot dots", role: "img", "aria-label": `Durations of the last ${shown.length} calls of ${name}, ${shown.filter((call) => hasFailed(call.outcome)).length} failed` }, line, dots);
}

const BINS = 60;
const TALL = 90;

/** Calls over time as columns, those that failed on top of the others; `width` in pixels. */
export function rateColumns(calls, now, span, width) {
  const seconds = span / BINS;
  const bins = Array.from({ length: BINS }, () => ({ ok: 0, failed: 0 }));
  for (const call of calls) {
    const at = BINS - 1 - Math.floor((now - call.to) / seconds);
    if (at >= 0 && at < BINS) bins[at][hasFailed(call.outcome) ? "failed" : "ok"] += 1;
  }
  const most = Math.max(1, ...bins.map((bin) => bin.ok + bin.failed));
  const labels = gutter(width);
  const column = (width - labels) / BINS;
  const columns = bins.map((bin, at) => {
    const ok = (bin.ok / most) * TALL;
    const failed = (bin.failed / most) * TALL;
    const x = labels + at * column + 0.5;
    return [
      bin.ok > 0 && s("rect", { class: "bar-ok", x, y: 14 + TALL - ok, width: column - 1, height: ok }),
      bin.failed > 0 && s("rect", { class: "bar-failed", x, y: 14 + TALL - ok - failed, width: column - 1, height: failed }),
    ];
  });
  const base = s("line", { class: "plot-tick", x1: labels, x2: width, y1: 14 + TALL, y2: 14 + TALL });
  const texts = [s("text", { class: "plot-axis", x: 0, y: 10 }, `${most} in ${Number(seconds.toFixed(1))} s`), s("text", { class: "plot-axis", x: labels, y: TALL + 30 }, `${plural(Math.round(span / 60), "minute")} ago`), s("text", { class: "plot-axis", x: width, y: TALL + 30, "text-anchor": "end" }, "now")];
  const total = bins.reduce((sum, bin) => sum + bin.ok + bin.failed, 0);
  const failures = bins.reduce((sum, bin) => sum + bin.failed, 0);
  return s("svg", { viewBox: `0 0 ${width} ${TALL + 36}`, class: "plot rate", role: "img", "aria-label": `${total} calls in the last ${plural(Math.round(span / 60), "minute")}, ${failures} failed` }, base, columns, texts);
}

/** A share as a bar behind a number in a table. */
export function shareBar(value, most, kind = "") {
  const bar = h("span", { class: `share ${kind}`, "aria-hidden": "true" });
  bar.style.setProperty("--share", `${most ? Math.round((value / most) * 100) : 0}%`);
  return bar;
}
