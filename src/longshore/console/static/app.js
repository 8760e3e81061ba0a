// The page: signs in, shows the rail, and one view for each address.

import { ApiError, ROOT, get, giveToken, takeToken } from "./api.js";
import { announce, h, icon, problemBox, show } from "./dom.js";
import { LiveStore } from "./live_store.js";
import { Mcp } from "./mcp.js";
import { setUpTheme, themeSwitch } from "./theme.js";
import { showUsage } from "./usage_border.js";
import { contextView } from "./views/context.js";
import { lintView } from "./views/lint.js";
import { liveView } from "./views/live.js";
import { promptsView } from "./views/prompts.js";
import { resourcesView } from "./views/resources.js";
import { settingsView } from "./views/settings.js";
import { toolsView } from "./views/tools.js";
import { wireView } from "./views/wire.js";

const VIEWS = {
  tools: ["Tools", toolsView],
  resources: ["Resources", resourcesView],
  prompts: ["Prompts", promptsView],
  live: ["Live", liveView],
  wire: ["Wire", wireView],
  settings: ["Settings", settingsView],
  lint: ["Lint", lintView],
  context: ["Context", contextView],
};

const main = document.getElementById("main");
const rail = document.getElementById("rail");
const made = new Map();
let current = null;

/** What the views share. */
const app = { mcp: null, overview: null, discovered: null, live: new LiveStore(), readOnly: false, needsToken: true, mcpUrl: "" };

async function begin() {
  setUpTheme();
  try {
    await takeToken();
    await connect();
  } catch (problem) {
    signIn(problem);
  }
}

async function connect() {
  const overview = await get("overview");
  app.overview = overview;
  app.readOnly = overview.read_only === true;
  app.needsToken = overview.auth?.required !== false;
  app.mcpUrl = new URL((overview.mcp ?? "/mcp").replace(/^\//, ""), ROOT).href;
  app.mcp = new Mcp(app.mcpUrl);
  app.discovered = await app.mcp.discover().catch(() => null);
  document.title = `${overview.title ?? overview.name} – Longshore console`;
  drawRail();
  app.live.toolsets = new Map((overview.toolsets ?? []).flatMap((each) => [each.tools ?? []].flat().map((tool) => [tool, each.name])));
  app.live.subscribe(drawStatus);
  app.live.start();
  setInterval(drawStatus, 500);
  window.addEventListener("hashchange", route);
  route();
}

// -- signing in

function signIn(problem) {
  show(rail);
  const input = h("input", { type: "password", id: "token", autocomplete: "off", required: true, spellcheck: "false" });
  const place = h("div", {});
  const submit = async (event) => {
    event.preventDefault();
    try {
      await giveToken(input.value.trim());
      await connect();
    } catch (refused) {
      show(place, problemBox(refused.status === 401 ? "The server does not accept this token." : refused.message));
    }
  };
  const asksForToken = problem instanceof ApiError && problem.status === 401;
  const text = asksForToken ? null : problemBox(problem.message || "The server can't be reached.");
  show(main, h("div", { class: "sign-in" }, h("h1", {}, "Longshore console"), text, asksForToken && h("p", {}, "Open the address that the server printed when it started (it ends with #token=…), or paste its token here."), h("form", { on: { submit } }, h("label", { for: "token" }, "Token"), input, place, h("button", { type: "submit", class: "main" }, "Sign in"))));
  input.focus();
}

// -- the rail

function drawRail() {
  const { name, title, version } = app.overview;
  const links = Object.entries(VIEWS).map(([key, [text]]) => h("li", {}, h("a", { href: `#/${key}`, "data-view": key }, icon(key), h("span", {}, text))));
  const toggle = h("button", { type: "button", class: "menu-button", "aria-expanded": "false", "aria-controls": "views" }, "Menu");
  const nav = h("nav", { id: "views", "aria-label": "Views" }, h("ul", {}, links));
  toggle.addEventListener("click", () => openMenu(!rail.classList.contains("open")));
  const status = h("div", { class: "rail-status", id: "status" });
  show(rail, h("div", { class: "brand" }, h("img", { src: new URL("icon.svg", import.meta.url).href, alt: "", width: 26, height: 26 }), h("div", { class: "brand-text" }, h("strong", {}, title ?? name), h("span", { class: "quiet" }, version ? `version ${version}` : "")), toggle), nav, status, themeSwitch());
}

function openMenu(yes) {
  rail.classList.toggle("open", yes);
  rail.querySelector(".menu-button")?.setAttribute("aria-expanded", String(yes));
}

function drawStatus() {
  const { live } = app;
  const running = live.running;
  showUsage(running);
  const status = document.getElementById("status");
  if (!status) return;
  const calls = live.state.calls.length;
  const words = Object.keys(live.state.tools_running ?? {}).filter((kind) => kind !== "other" && live.state.tools_running[kind] > 0);
  const now = calls === 0 ? "No call runs" : `${calls} ${calls === 1 ? "call runs" : "calls run"}${words.length ? `: ${words.join(", ")}` : ""}`;
  const text = live.connected ? now : live.problem ? `Not live: ${live.problem.message}` : "Connecting";
  const state = live.connected ? (calls ? "busy" : "ok") : "lost";
  const key = `${state}${text}`;
  if (status.dataset.key === key) return;
  status.dataset.key = key;
  show(status, h("span", { class: `dot ${state}`, "aria-hidden": "true" }), h("span", {}, text, " ", calls > 0 && h("a", { href: "#/live" }, "see and stop")));
}

// -- addresses

function route() {
  const [name, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  const key = VIEWS[name] ? name : "tools";
  const [title, make] = VIEWS[key];
  if (!made.has(key)) made.set(key, make(app));
  const view = made.get(key);
  if (current !== view) {
    current?.onHide?.();
    current = view;
    show(main, view.element);
    main.scrollTop = 0;
    view.onShow?.();
    announce(title);
  }
  let argument = "";
  try {
    argument = decodeURIComponent(rest.join("/"));
  } catch {
    // an address that somebody mistyped
  }
  view.open?.(argument);
  openMenu(false);
  rail.querySelectorAll("[data-view]").forEach((link) => {
    if (link.dataset.view === key) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
}

// -- keys

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, textarea, select");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    const search = main.querySelector("[data-search]");
    if (search) {
      event.preventDefault();
      search.focus();
    }
  } else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    current?.run?.();
  } else if (event.key === "Escape") {
    if (rail.classList.contains("open")) openMenu(false);
    else if (typing) event.target.blur();
  }
});

document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

// A page that nobody sees follows nothing: a browser has six connections to a server, for all its tabs.
function followIfSeen() {
  if (!app.overview) return;
  if (document.hidden) {
    current?.onHide?.();
    app.live.stop();
  } else {
    app.live.start();
    current?.onShow?.();
  }
}

document.addEventListener("visibilitychange", followIfSeen);
window.addEventListener("pageshow", (event) => { if (event.persisted) followIfSeen(); });
window.addEventListener("pagehide", () => app.live.stop());

begin();
