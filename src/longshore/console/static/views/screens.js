// What browsers and terminals look like now.

import { get, getBlob } from "../api.js";
import { emptyState, h, show } from "../dom.js";
import { ago } from "../format.js";

const EVERY = 2; // ticks of a second
const SHOWN = 6; // screens before the others are asked for: each is loaded again and again

/** The screens: {element, refresh}. A screen that did not change is not loaded again. */
export function screens() {
  const grid = h("div", { class: "screens" }, nothing());
  const more = h("button", { type: "button", class: "small", hidden: true, on: { click: () => { all = true; more.hidden = true; } } });
  const element = h("div", {}, grid, more);
  let all = false;
  const cards = new Map();
  let busy = false;
  let ticks = 0;

  const refresh = async () => {
    if (busy || ticks++ % EVERY) return;
    busy = true;
    try {
      await update(await get("views"));
    } catch {
      // The next look may succeed; the rail says whether the server answers.
    }
    busy = false;
  };
  const update = async (found) => {
    const sorted = [...found].sort((a, b) => (a.kind === "text") - (b.kind === "text") || (b.updated ?? 0) - (a.updated ?? 0));
    const views = all ? sorted : sorted.slice(0, SHOWN);
    more.hidden = sorted.length <= views.length;
    more.textContent = `Show ${sorted.length - views.length} more`;
    const keys = new Set(views.map((view) => view.key));
    for (const [key, card] of cards) {
      if (!keys.has(key)) {
        card.close();
        cards.delete(key);
      }
    }
    for (const view of views) {
      if (!cards.has(view.key)) cards.set(view.key, card(view));
      await cards.get(view.key).update(view);
    }
    const wanted = views.length ? views.map((view) => cards.get(view.key).element) : null;
    if (!wanted) show(grid, nothing());
    else if (wanted.length !== grid.children.length || wanted.some((each, at) => grid.children[at] !== each)) show(grid, wanted);
    views.forEach((view) => cards.get(view.key).follow());
  };
  return { element, refresh };
}

function nothing() {
  return emptyState("Nothing to look at", "Open browsers appear here as live screenshots, and terminals with their screens.");
}

function card(first) {
  const title = h("strong", {});
  const subtitle = h("span", { class: "facts" });
  const body = h("div", { class: "screen-body" });
  const element = h("figure", { class: `screen screen-${first.kind === "image" ? "image" : "text"}` }, h("figcaption", {}, title, subtitle), body);
  const pre = h("pre", { tabindex: 0, role: "region", "aria-label": `Screen of ${first.title}` });
  let url = null;
  let shown = null;
  let follows = true; // the end, as a terminal does, until somebody scrolls up
  pre.addEventListener("scroll", () => { follows = pre.scrollTop + pre.clientHeight > pre.scrollHeight - 4; });
  const load = async (view) => {
    const blob = await getBlob(`views/${encodeURIComponent(view.key)}`);
    if (view.kind === "image") {
      const next = URL.createObjectURL(blob);
      const picture = h("img", { src: next, alt: `Screenshot of ${view.title}` });
      await picture.decode().catch(() => {});
      show(body, picture);
      if (url) URL.revokeObjectURL(url);
      url = next;
    } else {
      const text = await blob.text();
      if (text !== pre.textContent) pre.textContent = text;
      if (!body.contains(pre)) show(body, pre);
    }
  };
  return {
    element,
    async update(view) {
      title.textContent = view.title;
      subtitle.textContent = [view.toolset, view.owner, view.subtitle, view.updated && ago(view.updated)].filter(Boolean).join(" · ");
      if (view.updated && view.updated === shown && view.kind !== "image") return;
      shown = view.updated;
      await load(view).catch((problem) => show(body, h("p", { class: "quiet" }, problem.message)));
    },
    /** Scroll to the end, which works only once it is in the page. */
    follow() {
      if (follows) pre.scrollTop = pre.scrollHeight;
    },
    close() {
      if (url) URL.revokeObjectURL(url);
    },
  };
}
