// What tools, resources and prompts answer: texts, JSON, pictures, sound, links and files.

import { copyButton, h, linkTarget, problemBox, show } from "./dom.js";
import { bytes, count, cut, tokens } from "./format.js";
import { jsonTree } from "./json_tree.js";

const PICTURE = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/;
const SOUND = /^audio\/[\w.+-]+$/;
const LONG_TEXT = 100_000;

/** The result of a call. `read` reads a resource by its URI. */
export function callResult(result, read) {
  const blocks = result.content ?? [];
  const structured = result.structuredContent;
  const parts = blocks.map((block) => contentBlock(block, read));
  if (structured !== undefined && !repeats(blocks, structured)) parts.push(part("structured content", jsonTree(structured), JSON.stringify(structured, null, 2)));
  if (!parts.length) parts.push(h("p", { class: "quiet" }, "The answer is empty."));
  return h("div", { class: `result${result.isError ? " is-error" : ""}` }, result.isError && h("p", { class: "error-mark" }, "The tool reports an error"), parts);
}

/** Whether the only block is the structured content again, as text: it is shown once, as a tree. */
function repeats(blocks, structured) {
  if (blocks.length !== 1 || blocks[0].type !== "text") return false;
  return JSON.stringify(parsed(blocks[0].text)) === JSON.stringify(structured);
}

export function contentBlock(block, read) {
  switch (block.type) {
    case "text": return textPart(block.text ?? "");
    case "image": return mediaPart(block.mimeType, block.data);
    case "audio": return mediaPart(block.mimeType, block.data);
    case "resource_link": return linkPart(block, read);
    case "resource": return h("div", { class: "embedded" }, resourceContents(block.resource ?? {}));
    default: return part(block.type ?? "unknown content", jsonTree(block), JSON.stringify(block, null, 2));
  }
}

/** One of the contents of a resource: a text, or bytes in base64. */
export function resourceContents(contents) {
  const { uri, mimeType, text, blob } = contents;
  const shown = text !== undefined ? textPart(text, mimeType) : mediaPart(mimeType, blob ?? "", uri);
  return h("div", { class: "contents" }, uri && h("p", { class: "uri" }, uri), shown);
}

function part(kind, element, text, note = "") {
  const facts = text === undefined ? note : `${count(tokens(text))} tokens · ${bytes(new Blob([text]).size)}${note}`;
  const head = h("div", { class: "part-head" }, h("span", { class: "part-kind" }, kind), h("span", { class: "facts" }, facts), text !== undefined && copyButton(text));
  return h("section", { class: "part", "aria-label": kind }, head, element);
}

function parsed(text) {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textPart(text, mimeType = "text") {
  const value = text.length < 2_000_000 ? parsed(text) : undefined;
  const plain = () => longText(text);
  if (value === undefined) return part(mimeType, plain(), text);
  const body = h("div", {}, jsonTree(value));
  let asTree = true;
  const toggle = h("button", { type: "button", class: "small" }, "Show as text");
  toggle.addEventListener("click", () => {
    asTree = !asTree;
    toggle.textContent = asTree ? "Show as text" : "Show as tree";
    show(body, asTree ? jsonTree(value) : plain());
  });
  const element = part(`${mimeType}, JSON`, body, text);
  element.querySelector(".part-head").append(toggle);
  return element;
}

function longText(text) {
  const pre = h("pre", { class: "text", tabindex: 0, role: "region", "aria-label": "Text" }, cut(text, LONG_TEXT));
  if (text.length <= LONG_TEXT) return pre;
  const more = h("button", { type: "button", class: "small", on: { click: () => { pre.textContent = text; more.remove(); } } }, `Show all ${count(text.length)} characters`);
  return h("div", {}, pre, more);
}

function mediaPart(mimeType = "application/octet-stream", data = "", name = "content") {
  const size = Math.floor((data.length * 3) / 4);
  if (PICTURE.test(mimeType)) {
    const picture = h("img", { class: "picture", alt: `Picture in the answer (${mimeType})` });
    picture.addEventListener("error", () => picture.replaceWith(problemBox("This is no picture that the browser can show.")));
    picture.src = `data:${mimeType};base64,${data}`;
    return part(mimeType, picture, undefined, bytes(size));
  }
  if (SOUND.test(mimeType)) {
    return part(mimeType, h("audio", { controls: true, src: `data:${mimeType};base64,${data}`, "aria-label": `Sound in the answer (${mimeType})` }), undefined, bytes(size));
  }
  return part(mimeType, saveButton(data, mimeType, name), undefined, bytes(size));
}

function saveButton(data, mimeType, name) {
  return h("button", { type: "button", class: "small", on: { click: () => {
    let binary;
    try {
      binary = Uint8Array.from(atob(data), (character) => character.charCodeAt(0));
    } catch {
      return;
    }
    // Not with its own type: a page of a tool must not open as one of ours.
    const url = URL.createObjectURL(new Blob([binary], { type: "application/octet-stream" }));
    h("a", { href: url, download: name.split("/").pop() || "content" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  } } }, "Save the file");
}

function linkPart(block, read) {
  const { uri = "", name, title, description, mimeType, size } = block;
  const target = linkTarget(uri);
  const body = h("div", {});
  const button = h("button", { type: "button", class: "small", on: { click: async () => {
    button.disabled = true;
    try {
      const result = await read(uri);
      show(body, (result.contents ?? []).map(resourceContents));
    } catch (problem) {
      show(body, problemBox(problem.message));
    }
    button.disabled = false;
  } } }, "Read it");
  const facts = [mimeType, size !== undefined && bytes(size)].filter(Boolean).join(" · ");
  const outside = target && h("a", { href: target, target: "_blank", rel: "noopener noreferrer" }, "Open in a new tab");
  const element = h("div", {}, h("p", { class: "uri" }, uri), description && h("p", { class: "description" }, description), h("div", { class: "row" }, button, outside), body);
  return part(`link: ${title ?? name ?? ""}`, element, undefined, facts);
}
