// Prompts as forms, and the messages that they give.

import { emptyState, h } from "../dom.js";
import { makeForm } from "../form.js";
import { historyBox } from "../history_box.js";
import { listPane } from "../list_pane.js";
import { contentBlock } from "../result.js";
import { runPanel } from "../run_panel.js";
import { snippetTabs } from "../snippets.js";
import { offerSuggestions } from "../suggestions.js";

export function promptsView(app) {
  const pane = listPane({ label: "Prompts", word: "prompt", base: "#/prompts", nothing: ["No prompts", "This server offers none."] });
  const pages = new Map();
  let prompts = new Map();
  let shown = "";
  const loading = app.mcp.all("prompts/list", "prompts").catch((problem) => {
    if (problem.code === -32601) return []; // a server without prompts
    throw problem;
  }).then((found) => {
    prompts = new Map(found.map((each) => [each.name, each]));
    pane.fill(found.map((each) => ({ key: each.name, title: each.name, subtitle: each.title ?? each.description, words: `${each.name} ${each.title ?? ""} ${each.description ?? ""}`.toLowerCase() })));
  }).catch((problem) => pane.fail(problem));

  const open = async (name) => {
    shown = name;
    await loading;
    if (shown !== name) return;
    const prompt = prompts.get(name);
    if (!prompt) {
      pane.open(name, emptyState(name ? "No such prompt" : "Choose a prompt", name || "Its messages are shown as a client would get them."));
      return;
    }
    if (!pages.has(name)) pages.set(name, promptPage(app, prompt));
    pane.open(name, pages.get(name).element);
  };
  return { element: pane.element, open, run: () => pages.get(shown)?.start() };
}

function promptPage(app, prompt) {
  const given = prompt.arguments ?? [];
  const properties = Object.fromEntries(given.map(({ name, title, description }) => [name, { type: "string", title, description }]));
  const schema = { type: "object", properties, required: given.filter((each) => each.required).map((each) => each.name) };
  const form = makeForm(schema);
  offerSuggestions(app, form, { type: "ref/prompt", name: prompt.name });
  const read = (uri) => app.mcp.request("resources/read", { uri }, { quiet: true });
  const request = () => {
    const { value, problems } = form.read();
    return problems.length ? null : { method: "prompts/get", params: { name: prompt.name, arguments: value ?? {} }, schema };
  };
  const render = (result) => h("div", { class: "result" }, result.description && h("p", { class: "long-text" }, result.description), (result.messages ?? []).map(({ role, content }) => h("section", { class: `message role-${role === "user" ? "user" : "assistant"}` }, h("h4", {}, role), [content].flat().map((block) => contentBlock(block, read)))));
  const past = historyBox("prompts/get", prompt.name, (entry, again) => {
    form.write(entry.arguments ?? {});
    if (again) panel.start();
  });
  const panel = runPanel({ mcp: app.mcp, label: "Get the messages", name: prompt.name, request, render, onDone: past.refresh });
  const snippets = snippetTabs(app.mcpUrl, app.needsToken, () => ({ method: "prompts/get", params: { name: prompt.name, arguments: form.peek() } }));
  form.element.addEventListener("input", snippets.refresh);
  const element = h("article", { class: "tool" }, h("h2", { class: "tool-name" }, prompt.name), prompt.title && h("p", { class: "tool-title" }, prompt.title), prompt.description && h("p", { class: "long-text" }, prompt.description), h("section", { "aria-label": "Arguments" }, h("h3", {}, "Arguments"), given.length ? form.element : h("p", { class: "quiet" }, "It takes no arguments.")), panel.element, past.element, snippets.element);
  return { element, start: panel.start };
}
