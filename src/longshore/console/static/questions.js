// The questions of a call, answered in the page; those to a language model by the person in its place.

import { h, linkTarget, problemBox, uniqueId } from "./dom.js";
import { count } from "./format.js";
import { makeForm } from "./form.js";
import { jsonTree } from "./json_tree.js";
import { contentBlock } from "./result.js";

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
    panel.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
      event.preventDefault();
      event.target.closest("form")?.requestSubmit();
    });
    place.append(panel);
    focusFirst(panel);
    if (!keys.length) resolve({});
  });
}

function focusFirst(panel) {
  (panel.querySelector("input:not([type=checkbox]), select, textarea") ?? panel.querySelector("button"))?.focus();
}

function question(key, { method, params = {} }, answer) {
  const element = h("section", { class: "question", "data-key": key });
  if (method === "sampling/createMessage") element.append(...modelQuestion(params, answer));
  else if (method !== "elicitation/create") element.append(...cantAnswer(method, params));
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

/** The messages for a model, and a field for what it would say. */
function modelQuestion({ messages = [], systemPrompt, maxTokens }, answer) {
  const id = uniqueId("model-answer");
  const field = h("textarea", { id, rows: 4, required: true });
  const send = (event) => {
    event.preventDefault();
    answer({ role: "assistant", content: { type: "text", text: field.value }, model: "human", stopReason: "endTurn" });
  };
  const said = [systemPrompt && saying("system", { type: "text", text: systemPrompt }), ...messages.flatMap(({ role, content }) => [content].flat().map((block) => saying(role, block)))];
  const label = h("label", { for: id }, "Answer in its place", maxTokens !== undefined && h("span", { class: "facts" }, ` at most ${count(maxTokens)} tokens`));
  return [heading("The call asks the client's language model. This page has none."), ...said.filter(Boolean), h("form", { on: { submit: send } }, label, field, h("div", { class: "row" }, h("button", { type: "submit", class: "main" }, "Answer")))];
}

function saying(role, block) {
  return h("div", { class: "saying" }, h("p", { class: "facts" }, role), contentBlock(block));
}

function cantAnswer(method, params) {
  return [heading(`The call asks the client for ${method}. This page can't answer that; cancel the call, or make it from a client that can.`), jsonTree(params)];
}

function heading(text) {
  return h("p", { class: "question-text" }, text);
}
