// What the server tells of itself while the page is open: records, calls in flight, sessions and, if asked for, the wire.

import { follow } from "./api.js";

const MOST_RECORDS = 3000;
const MOST_FRAMES = 2000;
const ENDS = new Set(["tool_completed", "request_completed"]);
const FLASH = 800; // a call of a millisecond is still seen

export class LiveStore {
  constructor() {
    this.records = [];
    this.dropped = 0;
    this.state = { calls: [], sessions: [], tools_running: {} };
    this.frames = [];
    this.frameCount = 0;
    this.connected = false;
    this.problem = null;
    this.stateAt = 0;
    this.recent = {};
    this.toolsets = new Map(); // of each tool, for the colour of the border
    this.listeners = new Set();
    this.wire = false;
    this.pending = false;
    this.controller = null;
  }

  /** Have `listener` called after changes, at most once for each picture that the screen shows. */
  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  start() {
    this.controller?.abort();
    this.controller = new AbortController();
    follow(() => ({ records: 1, ...(this.wire && { wire: 1 }) }), {
      signal: this.controller.signal,
      onEvent: (event, data) => this.take(event, data),
      onConnected: () => this.set({ connected: true, problem: null }),
      onLost: (problem) => this.set({ connected: false, problem }),
    });
  }

  stop() {
    this.controller?.abort();
    this.controller = null;
  }

  /** Whether the wire is followed too; it costs the server work, so only while somebody looks. */
  followWire(yes) {
    if (this.wire === yes) return;
    this.wire = yes;
    if (this.controller) this.start();
  }

  set(values) {
    Object.assign(this, values);
    this.changed();
  }

  take(event, data) {
    if (event === "records") this.takeRecords(data);
    else if (event === "state") this.set({ state: data, stateAt: performance.now() });
    else if (event === "wire") this.takeFrames(data.frames);
    this.changed();
  }

  /** Each connection counts its frames from 1, the page goes on counting. */
  takeFrames(given) {
    const added = given.map((frame) => ({ ...frame, n: ++this.frameCount }));
    this.frames = [...this.frames, ...added].slice(-MOST_FRAMES);
  }

  takeRecords({ records: given, dropped = 0 }) {
    this.dropped += dropped;
    const last = this.records.at(-1)?.n ?? -1;
    const isNewServer = given.length > 0 && given.at(-1).n < last; // it counts from the beginning again
    const added = isNewServer ? given : given.filter((record) => record.n > last);
    this.records = [...this.records, ...added].slice(-MOST_RECORDS);
    const now = performance.now();
    for (const record of added) {
      if (record.tool && Date.now() / 1000 - record.time < 5) this.recent[this.toolsets.get(record.tool) ?? "other"] = now;
    }
  }

  /** The kinds of tools that run now, or did a moment ago. */
  get running() {
    const now = performance.now();
    const flashed = Object.entries(this.recent).filter(([, at]) => now - at < FLASH).map(([kind]) => kind);
    const named = Object.entries(this.state.tools_running ?? {}).filter(([, count]) => count > 0).map(([kind]) => kind);
    return [...new Set([...named, ...flashed])];
  }

  changed() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.listeners.forEach((listener) => listener());
    });
  }
}

/** The ended calls of tools among the records: {tool, from, to, seconds, outcome, session}. */
export function endedCalls(records) {
  return records
    .filter((record) => ENDS.has(record.kind) && record.tool)
    .map((record) => ({ ...record, from: record.time - (record.seconds ?? 0), to: record.time }));
}

export const hasFailed = (outcome) => !["ok", "asked", "cancelled", "", undefined].includes(outcome);
