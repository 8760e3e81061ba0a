// The questions of a call, answered in the page. Questions to a model can't be: this page has none.

import { h, linkTarget, problemBox } from "./dom.js";
import { makeForm } from "./form.js";
import { jsonTree } from "./json_tree.js";

/** Show the questions in `place`; the answers by key once all are answered. Rejects if `signal` ends the call. */
export function ask(place, questions, signal) {
  const keys = Object.keys(questions);
  const panel = h("div", { class: "questions", role: "group", "aria-label": "Questions of the call" });
  return new Promise((resolve, reject) => {
    const answers = {};
    const answered = (key, answer) => {
      answers[key] = answer;
      panel.querySelector(`[data-key="${CSS.escape(key)}"]`)?.remove();
      if (keys.every((each) => each in answers)) {
        panel.remove();
        resolve(answers);
      } else {
        focusFirst(panel);
      }
    };
    signal.addEventListener("abort", () => { panel.remove(); reject(signal.reason); }, { once: true });
    panel.append(...keys.map((key) => question(key, questions[key], (answer) => answered(key, answer))));
    place.append(panel);
    focusFirst(panel);
    if (!keys.length) resolve({});
  });
}

function focusFirst(panel) {
  panel.querySelector("input:not([type=checkbox]), select, textarea, button")?.focus();
}

function question(key, { method, params = {} }, answer) {
  const element = h("section", { class: "question", "data-key": key });
  if (method !== "elicitation/create") element.append(...cantAnswer(method, params));
  else if (params.mode === "url") element.append(...urlQuestion(params, answer));
  else element.append(...formQuestion(params, answer));
  return element;
}

function refusals(answer) {
  return [
    h("button", { type: "button", on: { click: () => answer({ action: "decline" }) } }, "Decline"),
    h("button", { type: "button", class: "quiet-button", on: { click: () => answer({ action: "cancel" }) } }, "Dismiss"),
  ];
}

function formQuestion({ message, requestedSchema }, answer) {
  const form = makeForm(requestedSchema ?? {});
  const send = () => {
    const { value, problems } = form.read();
    if (!problems.length) answer({ action: "accept", content: value });
  };
  const element = h("form", { novalidate: true, on: { submit: (event) => { event.preventDefault(); send(); } } }, form.element, h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Answer"), refusals(answer)));
  return [heading(message), element];
}

function urlQuestion({ message, url = "" }, answer) {
  const target = linkTarget(url);
  const link = target
    ? h("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, "Open the page in a new tab")
    : problemBox("This address is not one of the web, so it is not offered as a link.");
  const done = h("button", { type: "button", class: "main", disabled: !target, on: { click: () => answer({ action: "accept" }) } }, "I am done there");
  return [heading(message), h("p", {}, "The tool asks you to open this page:"), h("p", { class: "uri" }, url), link, h("div", { class: "row" }, done, refusals(answer))];
}

function cantAnswer(method, params) {
  const what = method === "sampling/createMessage" ? "asks the client's language model" : `asks the client for ${method}`;
  return [heading(`The call ${what}. This page can't answer that; cancel the call, or make it from a client that can.`), jsonTree(params)];
}

function heading(text) {
  return h("p", { class: "question-text" }, text);
}
