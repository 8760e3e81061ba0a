// The console's own data, and the token with which it is read.

import { readEvents } from "./sse.js";

/** Where the page's files are: `/console/`, below the path that the server is mounted at. */
export const BASE = new URL(".", import.meta.url);
/** The server's root. */
export const ROOT = new URL("..", BASE);
const MOST_WAIT = 15_000;

/** A refusal of the console's data. */
export class ApiError extends Error {
  constructor(text, status, problems = []) {
    super(text);
    Object.assign(this, { status, problems });
  }
}

/** Take the token from the address, exchange it for a cookie that scripts can't read, and remove it from the address. */
export async function takeToken() {
  const found = /^#token=(.+)$/.exec(location.hash);
  if (!found) return;
  history.replaceState(null, "", `${location.pathname}${location.search}#/tools`);
  await giveToken(decodeURIComponent(found[1]));
}

/** Exchange a token for the cookie. Raises ApiError if the server does not take it. */
export async function giveToken(token) {
  const response = await fetch(new URL("auth/cookie", ROOT), {
    method: "POST",
    headers: { Authorization: `Bearer ${token}` },
    credentials: "same-origin",
  }).catch(() => { throw new ApiError("the token could not be sent: it has characters that no token has", 0); });
  if (!response.ok) throw await refusal(response);
}

export async function get(path, parameters = {}) {
  return (await fetchData(path, parameters)).json();
}

export async function getBlob(path) {
  return (await fetchData(path)).blob();
}

async function fetchData(path, parameters = {}) {
  const url = new URL(`api/${path}`, BASE);
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  const response = await fetch(url, { cache: "no-store", credentials: "same-origin" });
  if (!response.ok) throw await refusal(response);
  return response;
}

export async function post(path, body = {}) {
  const response = await fetch(new URL(`api/${path}`, BASE), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    credentials: "same-origin",
  });
  if (!response.ok) throw await refusal(response);
  const text = await response.text();
  return text ? JSON.parse(text) : {};
}

async function refusal(response) {
  const text = await response.text().catch(() => "");
  try {
    const body = JSON.parse(text);
    return new ApiError(body.text ?? body.error?.message ?? `HTTP status ${response.status}`, response.status, body.problems);
  } catch {
    return new ApiError(text.slice(0, 300) || `HTTP status ${response.status}`, response.status);
  }
}

/** Follow the console's events until `signal` ends it; connects again with growing pauses. */
export async function follow(parameters, { onEvent, onConnected, onLost, signal }) {
  let pause = 500;
  while (!signal.aborted) {
    try {
      const url = new URL("api/stream", BASE);
      for (const [name, value] of Object.entries(parameters())) url.searchParams.set(name, value);
      const response = await fetch(url, { signal, cache: "no-store", credentials: "same-origin" });
      if (!response.ok) throw await refusal(response);
      onConnected();
      pause = 500;
      for await (const { event, data } of readEvents(response.body)) onEvent(event, JSON.parse(data));
    } catch (problem) {
      if (signal.aborted) return;
      onLost(problem);
      if ([401, 403, 404].includes(problem.status)) return; // asking again would be refused again
    }
    await new Promise((resolve) => { setTimeout(resolve, pause); });
    pause = Math.min(pause * 2, MOST_WAIT);
  }
}
