// The request of a form as curl, as Python and as the line for a client's configuration. A token is never in them.

import { copyButton, h, show } from "./dom.js";
import { REVISION, argumentHeaders, headersOf } from "./mcp.js";

const TOKEN = "LONGSHORE_AUTH_TOKEN";

/** Tabs with the three; `request` gives {method, params, schema} as the form is now. */
export function snippetTabs(url, needsToken, request) {
  const kinds = { curl: () => curl(url, needsToken, request()), Python: () => python(url, needsToken, request()), "Client config": () => clientConfig(url, needsToken) };
  const code = h("pre", { class: "code-block", tabindex: 0, role: "region", "aria-label": "The request" });
  const buttons = Object.keys(kinds).map((kind) => h("button", { type: "button", role: "tab", "aria-selected": "false", on: { click: () => pick(kind) } }, kind));
  let chosen = "curl";
  const pick = (kind) => {
    chosen = kind;
    buttons.forEach((button) => {
      const isChosen = button.textContent === kind;
      button.setAttribute("aria-selected", String(isChosen));
      button.tabIndex = isChosen ? 0 : -1;
    });
    show(code, kinds[kind]());
  };
  const tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "The request as" }, buttons);
  tabs.addEventListener("keydown", (event) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!by) return;
    const at = (buttons.findIndex((button) => button.textContent === chosen) + by + buttons.length) % buttons.length;
    pick(buttons[at].textContent);
    buttons[at].focus();
  });
  const element = h("details", { class: "snippets" }, h("summary", {}, "This request as curl, Python or client configuration"), h("div", { class: "row" }, tabs, copyButton(() => code.textContent)), code);
  element.addEventListener("toggle", () => { if (element.open) pick(chosen); });
  return { element, refresh: () => { if (element.open) pick(chosen); } };
}

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

export function curl(url, needsToken, { method, params, schema }) {
  const meta = { "io.modelcontextprotocol/protocolVersion": REVISION, "io.modelcontextprotocol/clientCapabilities": {} };
  const body = { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: meta } };
  const headers = { ...headersOf(method, params), ...argumentHeaders(schema, params.arguments) };
  const lines = Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`);
  if (needsToken) lines.push(`-H "Authorization: Bearer $${TOKEN}"`);
  return [`curl -sS ${quoted(url)}`, ...lines, `-d ${quoted(JSON.stringify(body))}`].join(" \\\n  ");
}

export function python(url, needsToken, { method, params }) {
  const auth = needsToken ? `, auth=os.environ["${TOKEN}"]` : "";
  return [
    "import asyncio",
    ...(needsToken ? ["import os"] : []),
    "",
    "from longshore import Client",
    "",
    "",
    "async def main() -> None:",
    `    async with Client(${literal(url)}${auth}) as client:`,
    ...pythonCall(method, params).map((line) => `        ${line}`),
    "",
    "",
    "asyncio.run(main())",
    "",
  ].join("\n");
}

function pythonCall(method, params) {
  switch (method) {
    case "tools/call": return [`result = await client.call_tool(${literal(params.name)}, ${literal(params.arguments ?? {}, 8)})`, "print(result.text)"];
    case "prompts/get": return [`prompt = await client.get_prompt(${literal(params.name)}, ${literal(params.arguments ?? {}, 8)})`, "print(prompt.messages)"];
    default: return [`for contents in await client.read_resource(${literal(params.uri)}):`, "    print(contents)"];
  }
}

/** A JSON value as Python writes it. */
export function literal(value, indent = 0) {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value !== "object") return JSON.stringify(value); // a JSON text is a Python text too
  const isArray = Array.isArray(value);
  const parts = isArray ? value.map((each) => literal(each, indent + 4)) : Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${literal(each, indent + 4)}`);
  const [open, close] = isArray ? ["[", "]"] : ["{", "}"];
  const flat = open + parts.join(", ") + close;
  if (flat.length <= 80 && !flat.includes("\n")) return flat;
  const pad = " ".repeat(indent + 4);
  return `${open}\n${parts.map((each) => `${pad}${each},\n`).join("")}${" ".repeat(indent)}${close}`;
}

export function clientConfig(url, needsToken) {
  const headers = needsToken ? { headers: { Authorization: `Bearer \${${TOKEN}}` } } : {};
  return JSON.stringify({ mcpServers: { longshore: { type: "http", url, ...headers } } }, null, 2);
}
