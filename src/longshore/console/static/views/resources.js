// Resources, and templates whose variables are filled in.

import { emptyState, h } from "../dom.js";
import { bytes } from "../format.js";
import { makeForm } from "../form.js";
import { historyBox } from "../history_box.js";
import { listPane } from "../list_pane.js";
import { resourceContents } from "../result.js";
import { runPanel } from "../run_panel.js";
import { snippetTabs } from "../snippets.js";
import { offerSuggestions } from "../suggestions.js";
import { expand, variables } from "../uri_template.js";

export function resourcesView(app) {
  const pane = listPane({ label: "Resources", word: "resource", base: "#/resources", nothing: ["No resources", "This server offers none. Tools may still answer with links to resources."] });
  const pages = new Map();
  let found = new Map();
  let shown = "";
  const list = (method, key) => app.mcp.all(method, key).catch((problem) => {
    if (problem.code === -32601) return []; // a server without resources
    throw problem;
  });
  const loading = Promise.all([list("resources/list", "resources"), list("resources/templates/list", "resourceTemplates")]).then(([resources, templates]) => {
    const entries = [...templates.map((each) => ({ ...each, template: each.uriTemplate })), ...resources];
    found = new Map(entries.map((each) => [each.uriTemplate ?? each.uri, each]));
    pane.fill(entries.map(entry));
  }).catch((problem) => pane.fail(problem));

  const open = async (key) => {
    shown = key;
    await loading;
    if (shown !== key) return;
    if (!key) {
      pane.open("", emptyState("Choose a resource", "Templates are filled in first; the server may suggest values."));
      return;
    }
    if (!pages.has(key)) pages.set(key, resourcePage(app, found.get(key) ?? { uri: key, name: key }));
    pane.open(key, pages.get(key).element);
  };
  return { element: pane.element, open, run: () => pages.get(shown)?.start() };
}

function entry(each) {
  const uri = each.uriTemplate ?? each.uri;
  const title = each.title ?? each.name ?? uri;
  return { key: uri, title, subtitle: uri, words: `${uri} ${title} ${each.description ?? ""}`.toLowerCase(), mark: each.template ? h("span", { class: "badge" }, "template") : null };
}

function resourcePage(app, resource) {
  const template = resource.uriTemplate;
  const names = template ? variables(template) : [];
  const schema = { type: "object", properties: Object.fromEntries(names.map(({ name }) => [name, { type: "string", minLength: 1 }])), required: names.filter((each) => each.required).map((each) => each.name) };
  const form = makeForm(schema);
  const address = h("p", { class: "uri" }, template ?? resource.uri);
  if (template) offerSuggestions(app, form, { type: "ref/resource", uri: template });
  const uriOf = (values) => (template ? expand(template, values) : resource.uri);
  const request = () => {
    const { value, problems } = form.read();
    if (problems.length) return null;
    address.textContent = uriOf(value ?? {});
    return { method: "resources/read", params: { uri: uriOf(value ?? {}) } };
  };
  const past = historyBox("resources/read", template ? undefined : resource.uri, (each, again) => {
    if (template) location.hash = `#/resources/${encodeURIComponent(each.name)}`;
    else if (again) panel.start();
  });
  const render = (result) => h("div", { class: "result" }, (result.contents ?? []).map(resourceContents));
  const panel = runPanel({ mcp: app.mcp, label: "Read", name: resource.name, request, render, onDone: past.refresh });
  const snippets = snippetTabs(app.mcpUrl, app.needsToken, () => ({ method: "resources/read", params: { uri: uriOf(form.peek()) } }));
  form.element.addEventListener("input", () => {
    if (template) address.textContent = expand(template, form.peek());
    snippets.refresh();
  });
  const facts = [resource.mimeType, resource.size !== undefined && bytes(resource.size)].filter(Boolean).join(" · ");
  const element = h("article", { class: "tool" }, h("h2", { class: "tool-name" }, resource.title ?? resource.name), address, facts && h("p", { class: "facts" }, facts), resource.description && h("p", { class: "long-text" }, resource.description), template && h("section", { "aria-label": "Variables" }, h("h3", {}, "Variables"), form.element), panel.element, past.element, snippets.element);
  return { element, start: panel.start };
}
