// Every tool as a form, its call and its result.

import { get } from "../api.js";
import { copyButton, emptyState, h, show } from "../dom.js";
import { count, tokens } from "../format.js";
import { makeForm } from "../form.js";
import { historyBox } from "../history_box.js";
import { jsonTree } from "../json_tree.js";
import { listPane } from "../list_pane.js";
import { callResult } from "../result.js";
import { runPanel } from "../run_panel.js";
import { clientConfig, snippetTabs } from "../snippets.js";

const NOTES = {
  readOnlyHint: ["read-only", "It changes nothing."],
  destructiveHint: ["destructive", "It may delete or overwrite."],
  idempotentHint: ["repeatable", "Calling it again with the same arguments changes nothing more."],
  openWorldHint: ["outside world", "It reaches beyond this machine."],
};

export function toolsView(app) {
  const pane = listPane({ label: "Tools", word: "tool", base: "#/tools", nothing: ["No tools", "This server offers none. Settings says which toolsets are off."] });
  const pages = new Map();
  let tools = new Map();
  let shown = "";
  let listed = "";
  let loading = null;

  /** Read the list again. Pages of tools that did not change keep what is filled in. */
  const load = async () => {
    try {
      const found = await app.mcp.all("tools/list", "tools");
      const text = JSON.stringify(found);
      if (text === listed) return false;
      listed = text;
      for (const tool of found) if (JSON.stringify(tools.get(tool.name)) !== JSON.stringify(tool)) pages.delete(tool.name);
      tools = new Map(found.map((tool) => [tool.name, tool]));
      pane.fill(found.map(entry));
      return true;
    } catch (problem) {
      if (!listed) pane.fail(problem);
      return false;
    }
  };
  const refresh = async () => {
    app.overview = await get("overview").catch(() => app.overview);
    if (!pages.get(shown)?.isRunning() && (await load() || !shown)) draw();
  };
  const open = async (name) => {
    shown = name;
    loading ??= load();
    await loading;
    if (shown === name) draw();
  };
  const draw = () => {
    const tool = tools.get(shown);
    if (!shown) pane.open("", welcome(app, [...tools.values()]));
    else if (!tool) pane.open(shown, emptyState("No such tool", `The server lists no tool named ${shown}.`));
    else {
      if (!pages.has(shown)) pages.set(shown, toolPage(app, tool));
      pane.open(shown, pages.get(shown).element);
    }
  };
  const onFocus = () => { if (pane.element.isConnected) refresh(); }; // the user comes back from an editor
  window.addEventListener("focus", onFocus);
  return { element: pane.element, open, onShow: () => { if (loading) refresh(); }, run: () => pages.get(shown)?.start() };
}

function entry(tool) {
  const title = tool.title ?? tool.annotations?.title;
  return {
    key: tool.name,
    title: tool.name,
    subtitle: title && title !== tool.name ? title : tool.description,
    words: `${tool.name} ${title ?? ""} ${tool.description ?? ""}`.toLowerCase(),
    mark: tool.annotations?.destructiveHint && !tool.annotations?.readOnlyHint ? h("span", { class: "entry-mark", title: "destructive", "aria-label": "destructive" }, "!") : null,
  };
}

/** What is shown before a tool is chosen: that the server works, what it costs, and where to stop it. */
function welcome(app, tools) {
  const { overview } = app;
  const cost = tools.reduce((sum, tool) => sum + tokens(JSON.stringify(tool)), 0);
  const toolsets = (overview.toolsets ?? []).map((each) => h("tr", {}, h("th", { scope: "row" }, each.name), h("td", { class: "number" }, count(tools.filter((tool) => each.tools.includes(tool.name)).length)), h("td", { class: "number" }, count(each.tools.length)), h("td", {}, !each.tools.length ? "off" : each.unavailable ? h("span", { class: "bad" }, `unavailable: ${each.unavailable === true ? "see the log" : each.unavailable}`) : each.open ? "in use" : "ready")));
  return h("div", { class: "welcome" },
    h("h2", {}, `${overview.title ?? overview.name} is running`),
    h("dl", { class: "figures" }, figure("Tools", count(tools.length)), figure("Tokens to list them", count(cost)), figure("Protocol", (overview.revisions ?? overview.revision ?? []).at?.(-1) ?? "2026-07-28"), figure("Your rights", app.readOnly ? "look only" : "all")),
    h("p", {}, "Choose a tool to call it. ", h("a", { href: "#/live" }, "Live"), " shows what agents do, what it costs, and stops calls; ", h("a", { href: "#/settings" }, "Settings"), " turns tools on and off."),
    h("h3", {}, "Connect a client"),
    h("div", { class: "copy-line" }, h("pre", { class: "code-block", tabindex: 0, role: "region", "aria-label": "The address of MCP" }, app.mcpUrl), copyButton(app.mcpUrl)),
    h("details", {}, h("summary", {}, "The entry for a client's configuration"), h("div", { class: "copy-line" }, h("pre", { class: "code-block", tabindex: 0, role: "region", "aria-label": "The entry for a client's configuration" }, clientConfig(app.mcpUrl, app.needsToken)), copyButton(clientConfig(app.mcpUrl, app.needsToken)))),
    toolsets.length > 0 && [h("h3", {}, "Toolsets"), h("div", { class: "table-box", tabindex: 0, role: "region", "aria-label": "Toolsets" }, h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Toolset"), h("th", { scope: "col", class: "number" }, "Tools listed"), h("th", { scope: "col", class: "number" }, "Callable"), h("th", { scope: "col" }, "State"))), h("tbody", {}, toolsets)))],
  );
}

function figure(name, value) {
  return h("div", {}, h("dt", {}, name), h("dd", {}, value));
}

function toolPage(app, tool) {
  const schema = tool.inputSchema ?? { type: "object" };
  const form = makeForm(schema);
  const place = h("div", { class: "form-place" }, form.element);
  const read = (uri) => app.mcp.request("resources/read", { uri }, { quiet: true });
  const request = () => {
    const { value, problems } = form.read();
    return problems.length ? null : { method: "tools/call", params: { name: tool.name, arguments: value ?? {} }, schema };
  };
  const past = historyBox("tools/call", tool.name, (entry, again) => {
    form.write(entry.arguments ?? {});
    snippets.refresh();
    if (again) panel.start();
  });
  const panel = runPanel({ mcp: app.mcp, label: "Call", name: tool.name, request, render: (result) => callResult(result, read), onDone: past.refresh });
  const snippets = snippetTabs(app.mcpUrl, app.needsToken, () => ({ method: "tools/call", params: { name: tool.name, arguments: form.peek() }, schema }));
  place.addEventListener("input", snippets.refresh);
  const element = h("article", { class: "tool" },
    ...heading(tool),
    h("section", { "aria-label": "Arguments" }, h("div", { class: "section-head" }, h("h3", {}, "Arguments"), modeButtons(form)), form.isEmpty ? h("p", { class: "quiet" }, "It takes no arguments.") : place),
    panel.element, past.element, snippets.element, schemas(tool));
  return { element, start: panel.start, isRunning: panel.isRunning };
}

function heading(tool) {
  const title = tool.title ?? tool.annotations?.title;
  const notes = Object.entries(NOTES).filter(([hint]) => tool.annotations?.[hint] === true).filter(([hint]) => !(hint === "destructiveHint" && tool.annotations.readOnlyHint));
  const cost = tokens(JSON.stringify(tool));
  return [
    h("h2", { class: "tool-name" }, tool.name),
    title && title !== tool.name && h("p", { class: "tool-title" }, title),
    h("p", { class: "badges" }, notes.map(([, [text, meaning]]) => h("span", { class: `badge ${text}`, title: meaning }, text)), h("span", { class: "facts" }, `${count(cost)} tokens in the list`)),
    tool.description && h("p", { class: "long-text" }, tool.description),
  ];
}

function modeButtons(form) {
  const buttons = ["Form", "JSON"].map((text) => h("button", { type: "button", "aria-pressed": String(text === "Form") }, text));
  buttons.forEach((button) => button.addEventListener("click", () => {
    if (!form.show(button === buttons[1])) return;
    buttons.forEach((each) => each.setAttribute("aria-pressed", String(each === button)));
  }));
  return h("div", { class: "segments", role: "group", "aria-label": "Edit as" }, buttons);
}

function schemas(tool) {
  const body = h("div", {});
  const element = h("details", {}, h("summary", {}, "Schemas"), body);
  element.addEventListener("toggle", () => {
    if (element.open) show(body, h("h4", {}, "Arguments"), jsonTree(tool.inputSchema ?? {}), tool.outputSchema && [h("h4", {}, "Result"), jsonTree(tool.outputSchema)]);
  });
  return element;
}
