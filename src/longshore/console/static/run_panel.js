// Runs a request of a form: progress, log messages, questions, cancel, the result and its cost.

import { announce, h, problemBox, show } from "./dom.js";
import { bytes, clock, count, cut, duration, tokens } from "./format.js";
import { remember } from "./history.js";
import { jsonTree } from "./json_tree.js";
import { argumentHeaders } from "./mcp.js";
import { ask } from "./questions.js";

const MOST_LOGS = 200;
const MOST_ROUNDS = 20;
const CAPABILITY_MISSING = -32021;

/**
 * The button, the progress and the place for the result.
 * `request` gives {method, params, schema} or null if the form has problems; `render` shows the result.
 */
export function runPanel({ mcp, label, request, render, name, onDone = () => {} }) {
  const run = h("button", { type: "button", class: "main run" }, label, h("kbd", {}, "Ctrl ⏎"));
  const cancel = h("button", { type: "button", class: "danger", hidden: true }, "Cancel");
  const status = h("span", { class: "status", role: "status" });
  const bar = h("progress", { hidden: true, "aria-label": "Progress of the call" });
  const logs = h("ol", { class: "logs", hidden: true, "aria-label": "Log messages of the call" });
  const questions = h("div", {});
  const output = h("div", { class: "output" });
  let controller = null;

  const start = async () => {
    if (controller) return;
    const made = request();
    if (!made) return;
    controller = new AbortController();
    const began = performance.now();
    show(logs);
    logs.hidden = true;
    show(output);
    bar.hidden = false;
    bar.removeAttribute("value");
    run.disabled = true;
    cancel.hidden = false;
    output.setAttribute("aria-busy", "true");
    const seconds = () => (performance.now() - began) / 1000;
    const ticking = setInterval(() => { status.textContent = `Running for ${duration(Math.round(seconds()))}`.replace("0 µs", "0 s"); }, 1000);
    status.textContent = "Running";
    const outcome = await attempt(made, seconds);
    clearInterval(ticking);
    controller = null;
    bar.hidden = true;
    run.disabled = false;
    cancel.hidden = true;
    output.removeAttribute("aria-busy");
    show(questions);
    remember({ method: made.method, name: made.params.name ?? made.params.uri, arguments: made.params.arguments, at: Date.now() / 1000, seconds: seconds(), outcome }, made.schema);
    onDone();
  };

  const attempt = async (made, seconds) => {
    try {
      const result = await converse(made);
      const text = JSON.stringify(result);
      const failed = result.isError === true;
      status.textContent = `${failed ? "Failed" : "Done"} in ${duration(seconds())} · ${count(tokens(text))} tokens · ${bytes(new Blob([text]).size)}`;
      show(output, render(result), rawAnswer(result));
      announce(`${name}: ${status.textContent}`);
      return failed ? "error" : "ok";
    } catch (problem) {
      if (problem.name === "AbortError") {
        status.textContent = `Cancelled after ${duration(seconds())}`;
        announce(status.textContent);
        return "cancelled";
      }
      status.textContent = `Failed in ${duration(seconds())}`;
      show(output, refusal(problem));
      return "failed";
    }
  };

  /** Send the request, and again with the answers for as long as the server asks. */
  const converse = async ({ method, params, schema }) => {
    const { signal } = controller;
    const headers = argumentHeaders(schema, params.arguments);
    let extra = {};
    for (let round = 0; round < MOST_ROUNDS; round++) {
      const result = await mcp.request(method, { ...params, ...extra }, { signal, headers, onProgress, onLog });
      if (result.resultType !== "input_required") return result;
      status.textContent = "Waits for your answer";
      extra = { inputResponses: await ask(questions, result.inputRequests ?? {}, signal) };
      if (result.requestState !== undefined) extra.requestState = result.requestState;
    }
    throw new Error(`the call has asked ${MOST_ROUNDS} times; it was ended`);
  };

  const onProgress = ({ progress, total, message }) => {
    if (total) {
      bar.max = total;
      bar.value = progress;
    }
    const share = total ? `${count(progress)} of ${count(total)}` : count(progress);
    status.textContent = message ? `${share} · ${cut(message)}` : share;
  };

  const onLog = ({ level, data, logger }) => {
    logs.hidden = false;
    const text = typeof data === "string" ? data : JSON.stringify(data);
    logs.append(h("li", { class: `log-${String(level).replace(/\W/g, "")}` }, h("time", {}, clock(Date.now() / 1000)), h("span", { class: "level" }, level), logger && h("span", { class: "quiet" }, logger), h("span", {}, cut(text, 2000))));
    if (logs.children.length > MOST_LOGS) logs.firstChild.remove();
  };

  run.addEventListener("click", start);
  cancel.addEventListener("click", () => controller?.abort());
  const element = h("div", { class: "run-panel" }, h("div", { class: "row run-row" }, run, cancel, status), bar, logs, questions, output);
  return { element, start, cancel: () => controller?.abort(), isRunning: () => controller !== null };
}

function refusal(problem) {
  const hint = problem.code === CAPABILITY_MISSING ? "This tool needs something that only some clients have, such as a language model that uses tools. Call it from such a client." : null;
  return h("div", {}, problemBox(problem.message), hint && h("p", {}, hint), problem.code !== undefined && problem.code !== null && h("p", { class: "facts" }, `Error ${problem.code}${problem.status ? ` · HTTP ${problem.status}` : ""}`), problem.data ? jsonTree(problem.data) : null);
}

function rawAnswer(result) {
  const body = h("div", {});
  const element = h("details", { class: "raw" }, h("summary", {}, "The whole answer as JSON"), body);
  element.addEventListener("toggle", () => { if (element.open) show(body, jsonTree(result)); });
  return element;
}
