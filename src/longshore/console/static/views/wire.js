// The frames that go over the wire, while this view is shown: filtered, searched, paused.

import { copyButton, emptyState, h, problemBox, show } from "../dom.js";
import { bytes, clock, count } from "../format.js";
import { jsonTree } from "../json_tree.js";

const SHOWN = 300;

export function wireView(app) {
  const search = h("input", { type: "search", "data-search": "", placeholder: "Search frames  ( / )", "aria-label": "Search frames", autocomplete: "off", spellcheck: "false" });
  const direction = choice("Direction", { "": "in and out", in: "in", out: "out" });
  const session = choice("Session", { "": "all sessions" });
  const pause = h("button", { type: "button", "aria-pressed": "false" }, "Pause");
  const clear = h("button", { type: "button" }, "Clear");
  const status = h("p", { class: "facts", role: "status" });
  const list = h("ol", { class: "frames" });
  const place = h("div", {});
  const element = h("div", { class: "page wire" }, h("h1", {}, "Wire"), h("div", { class: "filters" }, search, direction.element, session.element, pause, clear), status, place);
  let frames = [];
  let from = -1;
  let unsubscribe = () => {};
  const rows = new Map();
  let shownKey = "";

  const draw = () => {
    if (app.readOnly) {
      show(place, problemBox("The wire log needs a token with all rights: frames hold arguments and results."));
      return;
    }
    if (pause.getAttribute("aria-pressed") !== "true") frames = app.live.frames;
    addSessions(session.select, frames);
    const words = search.value.toLowerCase();
    const found = frames.filter((frame) => frame.n > from && (!direction.select.value || frame.direction === direction.select.value) && (!session.select.value || frame.session === session.select.value) && (!words || frame.text.toLowerCase().includes(words)));
    const newest = found.slice(-SHOWN).reverse();
    const key = newest.map((frame) => frame.n).join();
    status.textContent = `${count(found.length)} of ${count(frames.length)} frames${found.length > SHOWN ? `, the newest ${SHOWN} shown` : ""}`;
    if (key === shownKey && place.hasChildNodes()) return;
    shownKey = key;
    for (const n of rows.keys()) if (n < (newest.at(-1)?.n ?? Infinity)) rows.delete(n);
    show(list, newest.map((frame) => {
      if (!rows.has(frame.n)) rows.set(frame.n, row(frame));
      return rows.get(frame.n);
    }));
    show(place, newest.length ? list : emptyState("No frames", "Requests and answers of every client appear here while this view is open. Secrets in them are removed."));
  };
  search.addEventListener("input", draw);
  direction.select.addEventListener("change", draw);
  session.select.addEventListener("change", draw);
  pause.addEventListener("click", () => {
    const paused = pause.getAttribute("aria-pressed") !== "true";
    pause.setAttribute("aria-pressed", String(paused));
    pause.textContent = paused ? "Resume" : "Pause";
    draw();
  });
  clear.addEventListener("click", () => {
    from = app.live.frames.at(-1)?.n ?? from;
    draw();
  });
  return {
    element,
    onShow() {
      this.onHide();
      if (!app.readOnly) app.live.followWire(true);
      unsubscribe = app.live.subscribe(draw);
      draw();
    },
    onHide() {
      unsubscribe();
      app.live.followWire(false);
    },
  };
}

function choice(label, options) {
  const select = h("select", { "aria-label": label }, Object.entries(options).map(([value, text]) => h("option", { value }, text)));
  return { select, element: select };
}

function addSessions(select, frames) {
  const known = new Set([...select.options].map((option) => option.value));
  const found = new Set(frames.map((frame) => frame.session).filter((key) => key && !known.has(key)));
  select.append(...[...found].slice(0, 200).map((key) => h("option", { value: key }, `session ${key}`)));
}

function row(frame) {
  const body = h("div", {});
  const isIn = frame.direction === "in";
  const summary = h("summary", {}, h("time", {}, clock(frame.time)), h("span", { class: `direction ${isIn ? "in" : "out"}`, title: isIn ? "to the server" : "to the client" }, isIn ? "→ in" : "← out"), h("span", { class: "frame-what" }, what(frame.text)), h("span", { class: "facts" }, bytes(frame.bytes)));
  const element = h("details", { class: "frame" }, summary, body);
  element.addEventListener("toggle", () => {
    if (!element.open || body.hasChildNodes()) return;
    let value;
    try {
      value = JSON.parse(frame.text);
    } catch {
      value = undefined; // it was cut
    }
    const facts = [frame.session && `session ${frame.session}`, frame.principal, frame.transport].filter(Boolean).join(" · ");
    show(body, h("div", { class: "row" }, h("span", { class: "facts" }, facts), copyButton(frame.text)), value === undefined ? h("pre", { class: "text" }, frame.text) : jsonTree(value));
  });
  return h("li", {}, element);
}

/** What a frame is, in a line: its method and name, or what it answers. */
function what(text) {
  const method = /"method":\s*"([^"]{1,80})"/.exec(text)?.[1];
  const name = /"(?:name|uri)":\s*"([^"]{1,120})"/.exec(text)?.[1];
  const id = /"id":\s*("[^"]{0,40}"|-?\d+)/.exec(text)?.[1];
  if (method) return [method, method.includes("/call") || method.includes("/get") || method.includes("/read") ? name : "", id && `#${id}`].filter(Boolean).join("  ");
  const error = /"error":\s*\{/.test(text.slice(0, 200));
  return `${error ? "error" : "result"}  ${id ? `#${id}` : ""}`;
}
