// Builds elements. Texts become text nodes and never markup, so nothing that a server or a tool says is run as HTML.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open", "indeterminate", "selected"]);

/** An element: `h("button", {class: "main", on: {click: run}}, "Run")`. Null and false are left out. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else if (name === "style") {
      Object.entries(value).forEach(([key, text]) => element.style.setProperty(key, text)); // the CSP forbids style=""
    } else if (PROPERTIES.has(name)) {
      element[name] = value;
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Replace what an element shows. */
export function show(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

let ids = 0;
/** An id that no other element of the page has. */
export const uniqueId = (name) => `${name}-${++ids}`;

/** A URL that may be put into a link, or null: a server may send `javascript:`. */
export function linkTarget(text) {
  try {
    const url = new URL(text);
    return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

const PATHS = {
  tools: "M3 13.5 8.5 8m0 0a3.5 3.5 0 0 1 4.6-4.3L11 5.8l.4 1.8 1.8.4 2-2.1A3.5 3.5 0 0 1 10.9 10.4L6.5 15",
  resources: "M5 2.5h5.5L14 6v9.5H5zM10.5 2.5V6H14",
  prompts: "M3 3.5h12v8.500H9l-3.500 3v-3H3z",
  live: "M2 9.500h3l2-5.500 3.500 10 2-4.500H16",
  wire: "M3 6h11m-3-3 3 3-3 3M15 12H4m3-3-3 3 3 3",
  settings: "M2.500 5.500h6m4 0h3M2.500 12.500h3m4 0h6M12.500 5.500a2 2 0 1 1-4 0 2 2 0 0 1 4 0M9.500 12.500a2 2 0 1 1-4 0 2 2 0 0 1 4 0",
  lint: "M3.500 9.500 7 13l7.500-8.500",
  context: "M6.200 5.800 8 8m2.300 1.200 2.500 2M7.600 10l-1.400 2.200M6.500 4.500a2 2 0 1 1-4 0 2 2 0 0 1 4 0M10.500 8.800a1.700 1.700 0 1 1-3.400 0 1.700 1.700 0 0 1 3.400 0M16 12.500a2 2 0 1 1-4 0 2 2 0 0 1 4 0M7 13.800a1.800 1.800 0 1 1-3.600 0 1.800 1.800 0 0 1 3.600 0",
};

/** A small picture beside a word, which screen readers skip. */
export function icon(name) {
  const path = s("path", { d: PATHS[name], fill: "none", stroke: "currentColor", "stroke-width": 1.5 });
  path.setAttribute("stroke-linecap", "round");
  path.setAttribute("stroke-linejoin", "round");
  return s("svg", { viewBox: "0 0 18 18", class: "icon", "aria-hidden": "true" }, path);
}

/** A button that copies a text and says so. */
export function copyButton(text, label = "Copy") {
  const button = h("button", { type: "button", class: "small" }, label);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(typeof text === "function" ? text() : text);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed";
    }
    announce(button.textContent);
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

/** Say something to screen readers. */
export function announce(text) {
  const place = document.getElementById("announcements");
  if (place) place.textContent = text;
}

/** What a view shows where it has nothing to show. */
export function emptyState(title, text) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), text && h("p", {}, text));
}

/** A message about something that failed. */
export function problemBox(text) {
  return h("div", { class: "problem-box", role: "alert" }, text);
}
