// Numbers, sizes and times as people read them.

export function bytes(count) {
  if (count === null || count === undefined) return "–";
  if (count < 1000) return `${count} B`;
  if (count < 999_500) return `${short(count / 1000)} kB`;
  return `${short(count / 1_000_000)} MB`;
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${short(seconds * 1000)} ms`;
  if (seconds < 120) return `${short(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86_400)} days`;
}

export const milliseconds = (ms) => (ms === null || ms === undefined ? "–" : duration(ms / 1000));

export function count(number) {
  return number === null || number === undefined ? "–" : Math.round(number).toLocaleString("en-GB");
}

/** "1 tool", "2 tools". */
export const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

/** A time of day, with milliseconds. `at` is in seconds since 1970. */
export function clock(at) {
  const date = new Date(at * 1000);
  return `${date.toLocaleTimeString("en-GB", { hour12: false })}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

export const ago = (at) => `${duration(Math.max(0, Math.round(Date.now() / 1000 - at)))} ago`.replace("0 µs", "0 s");

/** Tokens of a JSON text: four characters each, as everywhere in Longshore. */
export const tokens = (text) => Math.ceil(text.length / 4);

export function cut(text, most = 200) {
  return text.length > most ? `${text.slice(0, most)}…` : text;
}

function short(number) {
  return number >= 100 ? String(Math.round(number)) : String(Number(number.toPrecision(3)));
}
