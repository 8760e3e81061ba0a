// An MCP client for revision 2026-07-28: one POST for each request, answered as JSON or as a stream of events.

import { readEvents } from "./sse.js";

export const REVISION = "2026-07-28";
const PREFIX = "io.modelcontextprotocol/";
const CLIENT = { name: "longshore-console", title: "Longshore console", version: "1" };
const NAMED = { "tools/call": "name", "prompts/get": "name", "resources/read": "uri" };
const MOST_PAGES = 200;

/** A request that was answered with an error, or not at all. */
export class McpError extends Error {
  constructor(message, { code = null, data = null, status = 0 } = {}) {
    super(message);
    Object.assign(this, { code, data, status });
  }
}

export class Mcp {
  constructor(url) {
    this.url = url;
    this.lastId = 0;
  }

  /** Send a request and return its result. `signal` cancels it: the server stops the call when we hang up. */
  async request(method, params = {}, { signal, onProgress, onLog, headers = {}, quiet = false } = {}) {
    const body = this.message(method, params, { progress: !quiet, logs: !!onLog });
    const response = await fetch(this.url, {
      method: "POST",
      headers: { ...headersOf(method, params), ...headers },
      body: JSON.stringify(body),
      signal,
      cache: "no-store",
      credentials: "same-origin",
    });
    const message = await this.read(response, body.id, { onProgress, onLog });
    if (message.error) {
      const { code, message: text, data } = message.error;
      throw new McpError(text ?? "the server gave no reason", { code, data, status: response.status });
    }
    return message.result;
  }

  message(method, params, { progress, logs }) {
    const id = ++this.lastId;
    const meta = {
      ...params._meta,
      [`${PREFIX}protocolVersion`]: REVISION,
      [`${PREFIX}clientCapabilities`]: { elicitation: { form: {}, url: {} }, sampling: {} },
      [`${PREFIX}clientInfo`]: CLIENT,
    };
    if (progress) meta.progressToken = id;
    if (logs) meta[`${PREFIX}logLevel`] = "debug";
    return { jsonrpc: "2.0", id, method, params: { ...params, _meta: meta } };
  }

  async read(response, id, { onProgress, onLog }) {
    const type = response.headers.get("content-type") ?? "";
    if (type.startsWith("text/event-stream")) {
      for await (const event of readEvents(response.body)) {
        const message = JSON.parse(event.data);
        if (message.id === id && !message.method) return message;
        if (message.method === "notifications/progress") onProgress?.(message.params);
        if (message.method === "notifications/message") onLog?.(message.params);
      }
      throw new McpError("the connection ended before the answer came; is the server still running?");
    }
    const text = await response.text();
    let message;
    try {
      message = JSON.parse(text);
    } catch {
      throw new McpError(text.slice(0, 500) || `HTTP status ${response.status}`, { status: response.status });
    }
    if (message.error || "result" in message) return message;
    throw new McpError(message.text ?? `HTTP status ${response.status}`, { status: response.status });
  }

  /** Every entry of a list, from all its pages. */
  async all(method, key) {
    const entries = [];
    let cursor;
    for (let page = 0; page < MOST_PAGES; page++) {
      const result = await this.request(method, cursor === undefined ? {} : { cursor }, { quiet: true });
      entries.push(...(result[key] ?? []));
      cursor = result.nextCursor;
      if (cursor === undefined || cursor === null) break;
    }
    return entries;
  }

  discover() {
    return this.request("server/discover", {}, { quiet: true });
  }
}

/** The headers of a request that repeat its body, for proxies. */
export function headersOf(method, params) {
  const headers = {
    "Content-Type": "application/json",
    Accept: "application/json, text/event-stream",
    "MCP-Protocol-Version": REVISION,
    "Mcp-Method": method,
  };
  if (NAMED[method]) headers["Mcp-Name"] = headerValue(params[NAMED[method]]);
  return headers;
}

/** The headers for arguments that a schema marks with `x-mcp-header`. */
export function argumentHeaders(schema, values) {
  const headers = {};
  for (const [name, property] of Object.entries(schema?.properties ?? {})) {
    const value = values?.[name];
    if (value === undefined || value === null || typeof property !== "object") continue;
    if (typeof property["x-mcp-header"] === "string") headers[`Mcp-Param-${property["x-mcp-header"]}`] = headerValue(String(value));
    else if (typeof value === "object" && !Array.isArray(value)) Object.assign(headers, argumentHeaders(property, value));
  }
  return headers;
}

/** A text as a header can hold it: as it is, or in base64. */
export function headerValue(text) {
  const marked = text.startsWith("=?base64?") && text.endsWith("?=");
  if (!marked && /^[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?$/.test(text)) return text;
  const utf8 = new TextEncoder().encode(text);
  return `=?base64?${btoa(Array.from(utf8, (byte) => String.fromCharCode(byte)).join(""))}?=`;
}
