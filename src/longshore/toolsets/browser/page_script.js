// What Longshore does inside a page. It runs in an isolated world of each frame, so the page can neither see nor change it.
// `prefix` begins the refs of this frame, `last` is the number of the last ref of the frame's earlier documents.
(prefix, last) => {
  "use strict";
  const MOST_NODES = 50000;
  const MOST_LINES = 20000;
  const MOST_WALK_MS = 1500; // a slow machine, or a slow page, is shown in part
  const MOST_TEXT = 400;
  const MOST_OPTIONS = 120;
  const MOST_HOSTS = 500;
  const MOST_LEVELS = 800; // a parser makes at most 512, a script can make any number

  // -- refs: bound to nodes, so they survive a change of label

  const refs = new WeakMap();
  const known = new Map(); // ref -> {node, role, name}
  const inAnswers = new Set(); // refs that an answer has shown
  // role and name -> {ref: the one that answers mean by them, latest: the one that had them last, several: whether two elements
  // had them at the same time}
  const owners = new Map();
  const ownerOf = ({ role, name }) => {
    const key = `${role} ${name}`;
    if (!owners.has(key)) owners.set(key, { ref: "", latest: "", several: false });
    return owners.get(key);
  };
  const refOf = (element, role, name) => {
    let ref = refs.get(element);
    if (!ref) refs.set(element, (ref = `${prefix}e${++last}`));
    const entry = known.get(ref);
    if (entry?.name === name && entry.role === role && entry.node.deref() === element) return ref;
    known.set(ref, { node: new WeakRef(element), role, name });
    const owner = ownerOf({ role, name });
    owner.ref ||= ref;
    if (owner.latest !== ref && known.get(owner.latest)?.node.deref()?.isConnected) owner.several = true;
    owner.latest = ref;
    return ref;
  };

  // -- reading elements. A form's fields can shadow its properties, so attributes are read through the prototype.

  const attributeOf = Element.prototype.getAttribute;
  const matchesOf = Element.prototype.matches;
  const attribute = (element, name) => attributeOf.call(element, name);
  const tagOf = (element) => (typeof element.localName === "string" ? element.localName : "form");
  const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0e\ufeff]/g;
  const fold = (text) => text.replace(/\s+/g, " ").replace(UNSEEN, "").trim();
  const cut = (text, most = MOST_TEXT) => (text.length > most ? `${text.slice(0, most)}…(${text.length} characters)` : text);
  const quote = (text, most) => `"${cut(text, most).replace(/"/g, "'")}"`;
  // A line is `e12 role,state name = value`, without quotes: JSON would escape each. So a name may not look like a value.
  const plain = (text, most) => cut(text, most).replace(/ = /g, "=");
  const TEXT = "> "; // begins a line of the page's text, which may look like any other line
  const SKIPPED = new Set(["script", "style", "noscript", "template", "head", "meta", "link", "base", "source", "track", "param"]);
  const FIELDS = new Set(["input", "select", "textarea"]);

  // Closed shadow roots can't be reached from here. Python asks the browser for those of `unexamined` and gives them to us.
  const closed = new WeakMap();
  const unexamined = new Set();
  const roots = new Set(); // all that were seen
  const shadowRootOf = Object.getOwnPropertyDescriptor(Element.prototype, "shadowRoot").get;
  const rootOf = (element) => {
    if (element.nodeType !== 1) return null;
    const open = shadowRootOf.call(element);
    if (open) roots.add(open);
    const tag = tagOf(element), isCustom = tag.includes("-");
    if (open || !(isCustom || HOSTS.has(tag))) return open;
    const root = closed.get(element);
    if (root === undefined && (isCustom ? element.matches(":defined") : isEmpty(element))) unexamined.add(element);
    return root ?? null;
  };
  // The other elements that may have a shadow root. They are examined where they have no content of their own. Not here, though
  // it may have one too: `span`. Pages have thousands that are empty, for icons.
  const HOSTS = new Set(["article", "aside", "blockquote", "body", "div", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "header", "main", "nav", "p", "section"]);
  const isEmpty = (element) => {
    const first = element.firstChild;
    return (!first || (first.nodeType === 3 && !first.nextSibling && !/\S/.test(first.data))) && element.checkVisibility();
  };
  const childNodesOf = Object.getOwnPropertyDescriptor(Node.prototype, "childNodes").get;
  const childrenOf = (node) => {
    const root = rootOf(node);
    if (root) return root.childNodes;
    if (node.nodeType === 1) {
      const tag = tagOf(node);
      if (tag === "slot") {
        const assigned = node.assignedNodes();
        if (assigned.length) return assigned;
      }
      if (tag === "details" && !node.open) return node.querySelectorAll(":scope > summary");
    }
    return childNodesOf.call(node);
  };
  const top = () => document.body ?? document.documentElement ?? document; // pictures and data have no body
  const parentOf = (node) => node.assignedSlot || node.parentElement || (node.getRootNode().host ?? null);
  const isVisible = (element) => {
    if (attribute(element, "aria-hidden") === "true") return false;
    const opacity = !FIELDS.has(tagOf(element)); // styled checkboxes are transparent fields
    if (element.checkVisibility({ opacityProperty: opacity, visibilityProperty: true })) return true;
    const style = getComputedStyle(element);
    return style.display === "contents" && style.visibility === "visible";
  };
  // Elements that show nothing of what is in them: transparent by a filter, clipped to nothing, folded to no size, or placed
  // where nobody scrolls to.
  const hidesAll = (element) => {
    const style = getComputedStyle(element), clip = style.clipPath;
    if (clip === "inset(50%)" || clip === "inset(100%)" || isClipped(style) || style.filter.includes("opacity(0)")) return true;
    const box = element.getBoundingClientRect(), { width, height } = box;
    const thin = width <= 1 || height <= 1;
    if (thin || ((width <= MOST_BORDERS || height <= MOST_BORDERS) && (element.clientWidth === 0 || element.clientHeight === 0))) {
      const folded = thin || !style.display.startsWith("inline");
      if (folded && style.display !== "contents" && (style.overflow !== "visible" || style.clip !== "auto"))
        return ![...element.children].some((child) => /^(absolute|fixed)$/.test(getComputedStyle(child).position)); // those are not clipped
      if (!width || !height) return false;
    }
    const { left, top } = box;
    if (left + view.x < 0 || top + view.y < 0 || left >= view.width) {
      outside.add(element);
      if (isAway(element, box) && !showsOutside(element)) return true;
    }
    return (box.right <= 0 || box.bottom <= 0 || left >= view.width || top >= view.height) && style.position === "fixed";
  };
  // Whether the older `clip`, which only positioned elements have, leaves no more than a pixel's line.
  const isClipped = ({ clip, position }) => {
    if (clip === "auto") return false;
    const [top, right, bottom, left] = clip.slice("rect(".length).split(", ").map(parseFloat);
    return (bottom - top <= 1 || right - left <= 1) && /^(absolute|fixed)$/.test(position);
  };
  let view = null; // the window: to ask for it anew takes as long as a look at a style
  const MOST_BORDERS = 12; // pixels: an element that is larger is not its borders only
  const FAR = 5000; // pixels to the right of the window
  // Whether a box is there, and neither the parts around it that scroll nor a document that begins at the right bring it back.
  const isAway = (element, box) => {
    let right = box.right + view.x, bottom = box.bottom + view.y, left = box.left, fromRight = false;
    if (right > 0 && bottom > 0 && left < view.width + FAR) return false;
    for (let each = parentOf(element); each; each = parentOf(each)) {
      const style = getComputedStyle(each), isDocument = each === document.documentElement;
      const scrolls = style.overflow !== "visible" && !isDocument && each !== document.scrollingElement;
      fromRight ||= style.direction === "rtl" && (scrolls || isDocument);
      if (scrolls && each.scrollHeight > each.clientHeight) bottom += each.scrollTop;
      if (scrolls && each.scrollWidth > each.clientWidth) {
        right += each.scrollLeft;
        if (each !== document.body) left -= each.scrollWidth - each.clientWidth - each.scrollLeft;
      }
    }
    return bottom <= 0 || (!fromRight && (right <= 0 || left >= view.width + FAR));
  };
  // Whether a part of an element that is away is not.
  const showsOutside = (element) => [...element.querySelectorAll("*")].slice(0, MOST_PARTS).some((part) => {
    const box = part.getBoundingClientRect();
    return box.width > 1 && box.height > 1 && box.right > 0 && box.bottom > 0 && box.left < view.width;
  });
  const MOST_PARTS = 200;
  let outside = new WeakSet(); // elements that begin outside of the document: their texts are looked at one by one
  const isTextAway = (element) => {
    const range = document.createRange();
    return [...childNodesOf.call(element)].filter((node) => node.nodeType === 3 && /\S/.test(node.data)).every((node) => {
      range.selectNode(node);
      return isAway(element, range.getBoundingClientRect());
    });
  };
  const isSeen = (element) => isVisible(element) && (FIELDS.has(tagOf(element)) || !hidesAll(element)); // styled fields are moved away
  const LEAST_FONT = 4; // pixels: smaller letters can't be told from each other
  // Text that nobody can see, though its element does not hide all: tiny, or moved away.
  const hidesText = (element) => {
    const style = getComputedStyle(element);
    if (parseFloat(style.fontSize) < LEAST_FONT || style.contentVisibility === "hidden") return true;
    if (outside.has(element) && isTextAway(element)) return true;
    const indent = parseFloat(style.textIndent);
    return indent < 0 && (indent < -500 || isIndentedAway(element));
  };
  // Whether the indent of a text, which may be in percent, moves it out of the part that clips it.
  const isIndentedAway = (element) => {
    let block = element;
    while (block && getComputedStyle(block).display.startsWith("inline")) block = parentOf(block);
    if (!block || getComputedStyle(block).overflow === "visible") return false;
    const range = document.createRange();
    range.selectNodeContents(element);
    return range.getBoundingClientRect().right <= block.getBoundingClientRect().left;
  };

  // -- roles

  const INPUT_ROLES = {
    checkbox: "checkbox", radio: "radio", button: "button", submit: "button", reset: "button", image: "button", range: "slider",
    number: "spinbutton", search: "searchbox", file: "file", color: "color", date: "date", time: "time", month: "month",
    week: "week", "datetime-local": "datetime", hidden: null,
  };
  const isSectioned = (element) => element.closest("article, aside, main, nav, section, dialog, [role=dialog]") !== null;
  const TAG_ROLES = {
    a: (e) => (e.hasAttribute("href") ? "link" : null), area: (e) => (e.hasAttribute("href") ? "link" : null),
    button: () => "button", textarea: () => "textbox", option: () => "option", summary: () => "button",
    select: (e) => (e.multiple || e.size > 1 ? "listbox" : "combobox"),
    input: (e) => (e.hasAttribute("list") && !(e.type in INPUT_ROLES) ? "combobox" : e.type in INPUT_ROLES ? INPUT_ROLES[e.type] : "textbox"),
    img: (e) => (attribute(e, "alt") === "" ? null : "img"), svg: (e) => (e.querySelector(":scope > title") ? "img" : null),
    nav: () => "navigation", main: () => "main", aside: () => "complementary", search: () => "search",
    header: (e) => (isSectioned(e) ? null : "banner"), footer: (e) => (isSectioned(e) ? null : "contentinfo"),
    form: (e) => (attribute(e, "aria-label") || attribute(e, "aria-labelledby") ? "form" : null),
    section: (e) => (attribute(e, "aria-label") || attribute(e, "aria-labelledby") ? "region" : null),
    li: () => "listitem", article: () => "article", table: () => "table", tr: () => "row", dialog: () => "dialog", iframe: () => "iframe", frame: () => "iframe",
    fieldset: () => "group", progress: () => "progressbar", meter: () => "meter", video: () => "video", audio: () => "audio",
    h1: () => "h1", h2: () => "h2", h3: () => "h3", h4: () => "h4", h5: () => "h5", h6: () => "h6", output: () => "status",
  };
  const CONTROLS = new Set([
    "link", "button", "combobox", "listbox", "textbox", "searchbox", "checkbox", "radio", "slider", "spinbutton", "switch", "tab",
    "menuitem", "menuitemcheckbox", "menuitemradio", "option", "treeitem", "file", "color", "date", "time", "month", "week", "datetime",
    "clickable",
  ]);
  const NAMED_BY_CONTENT = new Set([
    "link", "button", "checkbox", "radio", "switch", "tab", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "treeitem",
    "clickable", "h1", "h2", "h3", "h4", "h5", "h6", "tooltip", "cell", "gridcell", "columnheader", "rowheader", "row",
  ]);
  const CONTAINERS = new Set([
    "navigation", "main", "banner", "contentinfo", "complementary", "search", "form", "region", "dialog", "alertdialog", "alert", "status",
    "group", "radiogroup", "tablist", "tabpanel", "menu", "menubar", "toolbar", "tree", "grid", "table", "log", "figure", "feed", "listbox", "progressbar", "meter",
    "video", "audio",
  ]);
  const FIELD_ROLES = new Set(["textbox", "searchbox", "combobox", "listbox", "checkbox", "radio", "switch", "slider", "spinbutton", "file", "color", "date", "time", "month", "week", "datetime"]);
  const HEADING = /^h[1-6]$/;
  const roleOf = (element) => {
    const given = attribute(element, "role");
    if (given) {
      const role = given.trim().split(/\s+/)[0].toLowerCase();
      if (role === "none" || role === "presentation") return null;
      if (role === "heading") return `h${Math.min(6, Math.max(1, parseInt(attribute(element, "aria-level"), 10) || 2))}`;
      if (role === "image") return "img";
      return role;
    }
    if (element.isContentEditable && !element.parentElement?.isContentEditable) return "textbox";
    const find = TAG_ROLES[tagOf(element)];
    return find ? find(element) : null;
  };
  const POINTER_TAGS = new Set(["div", "span", "li", "td", "tr", "img", "svg", "p", "i", "label", "article", "section", "dt", "dd"]);
  const isClickable = (element) => {
    const tag = tagOf(element);
    if (element.hasAttribute("onclick") || tag === "button") return true;
    if (tag === "a") return element.hasAttribute("href") || !(element.hasAttribute("name") || element.hasAttribute("id")); // a script's link, or a place
    if (element.hasAttribute("tabindex") && element.tabIndex >= 0 && tag !== "body") return getComputedStyle(element).cursor === "pointer" || !element.querySelector("a[href],button,input,select,textarea,[tabindex]");
    if (!(POINTER_TAGS.has(tag) || element instanceof SVGElement) || (tag === "label" && element.control)) return false;
    if (getComputedStyle(element).cursor !== "pointer") return false;
    const parent = parentOf(element);
    return !parent || getComputedStyle(parent).cursor !== "pointer";
  };

  // -- names

  // Controls may be named by text that is clipped or moved away, for screen readers; `strict` leaves that out.
  const textOf = (node, most = MOST_TEXT * 2, strict = false) => {
    let text = "";
    const walk = (each) => {
      if (text.length > most) return;
      if (each.nodeType === 3 && !(strict && hidesText(each.parentElement ?? node))) text += each.data;
      if (each.nodeType !== 1 || SKIPPED.has(tagOf(each)) || !(strict ? isSeen(each) : isVisible(each))) return;
      const label = attribute(each, "aria-label");
      if (label) text += ` ${label} `;
      else if (tagOf(each) === "img") text += ` ${attribute(each, "alt") || ""} `;
      else if (tagOf(each) === "br") text += " ";
      else if (!FIELDS.has(tagOf(each))) {
        const block = !getComputedStyle(each).display.startsWith("inline");
        if (block) text += " ";
        for (const child of childrenOf(each)) walk(child);
        if (block) text += " ";
      }
    };
    if (node.nodeType === 1 && !node.firstElementChild && !rootOf(node) && tagOf(node) !== "slot")
      return strict && hidesText(node) ? "" : fold(node.textContent);
    for (const child of childrenOf(node)) walk(child);
    return fold(text);
  };
  // What nobody sees names nothing. What is only there for screen readers does.
  const isDisplayed = (element) => element.checkVisibility({ visibilityProperty: true });
  const shownText = (element) => (element && isDisplayed(element) ? textOf(element) : "");
  const byIds = (element, ids) => {
    const root = element.getRootNode();
    const parts = ids.split(/\s+/).map((id) => root.getElementById?.(id));
    return fold(parts.map((part) => (part && isDisplayed(part) ? part.textContent : "")).join(" "));
  };
  // The labels of a document or shadow root, by the controls that they label and by the ids that they are for. Made anew for
  // each call. The browser searches the document at each look at a control's `labels`, which takes minutes for 30,000 controls.
  let labels = new WeakMap();
  const labelsIn = (root) => {
    let known = labels.get(root);
    if (!known) {
      labels.set(root, (known = { byControl: new Map(), byId: new Map() }));
      for (const label of root.querySelectorAll("label")) {
        const control = label.control, id = attribute(label, "for");
        if (control && !known.byControl.has(control)) known.byControl.set(control, []);
        if (control) known.byControl.get(control).push(label);
        if (id && !known.byId.has(id)) known.byId.set(id, label);
      }
    }
    return known;
  };
  const labelsOf = (element) => labelsIn(element.getRootNode()).byControl.get(element) ?? [];
  const nameOf = (element, role) => {
    const tag = tagOf(element);
    const by = attribute(element, "aria-labelledby");
    const named = (by && byIds(element, by)) || fold(attribute(element, "aria-label") || "");
    if (named) return named;
    if (FIELDS.has(tag) || tag === "meter" || tag === "progress" || tag === "output" || tag === "button") {
      const label = labelsOf(element).map((each) => labelText(each, element)).join(" ");
      if (fold(label)) return fold(label);
    }
    if (tag === "img" || tag === "area") return fold(attribute(element, "alt") || attribute(element, "title") || "");
    if (tag === "svg") return fold(element.querySelector(":scope > title")?.textContent || "");
    if (tag === "input" && /^(submit|reset|button|image)$/.test(element.type))
      return fold(element.value || attribute(element, "alt") || attribute(element, "title") || element.type);
    if (FIELDS.has(tag)) return fold(attribute(element, "title") || attribute(element, "placeholder") || "") || labelAround(element, role) || fold(attribute(element, "name") || "");
    if (tag === "fieldset") return shownText(element.querySelector(":scope > legend"));
    if (tag === "table") return (element.caption && isSeen(element.caption) ? textOf(element.caption, undefined, true) : "");
    if (tag === "figure") return shownText(element.querySelector("figcaption"));
    if (tag === "iframe" || tag === "frame") return fold(attribute(element, "title") || attribute(element, "name") || "");
    if (NAMED_BY_CONTENT.has(role)) {
      const text = textOf(element, undefined, HEADING.test(role));
      if (text) return text;
      const picture = element.querySelector("img[alt]:not([alt='']), svg title, [aria-label]");
      if (picture) return fold(attribute(picture, "alt") || attribute(picture, "aria-label") || picture.textContent || "");
      const drawn = drawnText(element);
      if (drawn) return drawn;
    }
    return fold(attribute(element, "title") || attribute(element, "aria-placeholder") || attribute(element, "data-placeholder") || "") || labelAround(element, role);
  };
  // Text of a style sheet. Icon fonts are in the private use area.
  const drawnText = (element) => {
    const parts = ["::before", "::after"].map((part) => /^"(.*)"$/s.exec(getComputedStyle(element, part).content)?.[1] ?? "");
    return fold(parts.join(" ").replace(/[\ue000-\uf8ff]/g, ""));
  };
  // The label of a widget that the browser does not take for a field: around it, or by its id or its host's.
  const labelAround = (element, role) => {
    if (!FIELD_ROLES.has(role) && role !== "radiogroup" && role !== "clickable") return "";
    for (let each = element; each; each = each.getRootNode().host) {
      const id = attribute(each, "id");
      const label = (id && labelsIn(each.getRootNode()).byId.get(id)) || each.closest("label");
      if (label && label !== element) return labelText(label, element);
    }
    return "";
  };
  // A label's text without that of the field inside it.
  const labelText = (label, field) => {
    let text = "";
    const walk = (node) => {
      if (node === field || (node.nodeType === 1 && (FIELDS.has(tagOf(node)) || SKIPPED.has(tagOf(node))))) return;
      if (node.nodeType === 3) text += node.data;
      else for (const child of childrenOf(node)) if (child.nodeType !== 1 || isVisible(child)) walk(child);
    };
    if (isDisplayed(label)) walk(label);
    return fold(text);
  };

  // -- lines

  // A fieldset disables what is in it.
  const isDisabled = (element) => element.disabled === true || matchesOf.call(element, ":disabled") || attribute(element, "aria-disabled") === "true";
  const statesOf = (element) => {
    let text = "";
    const aria = (name) => attribute(element, `aria-${name}`);
    if (isDisabled(element)) text += ",disabled";
    if (element.readOnly === true) text += ",readonly";
    if (element.indeterminate === true || aria("checked") === "mixed") text += ",mixed";
    else if (element.checked === true || aria("checked") === "true") text += ",checked";
    if (aria("expanded") === "true" || (tagOf(element) === "summary" && element.parentElement?.open)) text += ",expanded";
    else if (aria("expanded") === "false" || tagOf(element) === "summary") text += ",collapsed";
    if (aria("selected") === "true") text += ",selected";
    if (aria("pressed") === "true") text += ",pressed";
    if (aria("current") && aria("current") !== "false") text += ",current";
    if (element.required === true || aria("required") === "true") text += ",required";
    if (aria("invalid") === "true" || matchesOf.call(element, ":user-invalid")) text += ",invalid";
    if (element.getRootNode().activeElement === element && document.hasFocus() && element !== document.body) text += ",focused";
    return text;
  };
  // A field that is, or was, a password's: a button of the page may show what was typed.
  const secrets = new WeakSet();
  const isSecret = (element) => {
    const isDotted = () => /^(input|textarea)$/.test(tagOf(element)) && getComputedStyle(element).webkitTextSecurity !== "none";
    if (element.type === "password" || /password/.test(attribute(element, "autocomplete") ?? "") || isDotted()) secrets.add(element);
    return secrets.has(element);
  };
  // Whether a list has an option to choose. One that is chosen is shown all the same.
  const isOffered = (option) => option.selected || [option, option.closest("optgroup")].every((each) => !each || getComputedStyle(each).display !== "none");
  const valueOf = (element, role) => {
    const tag = tagOf(element);
    if (tag === "select") {
      const options = [...element.options].filter((option, n) => n > MOST_OPTIONS || isOffered(option)).map((option) => fold(option.text));
      const chosen = [...element.selectedOptions].map((option) => fold(option.text)).join(", ");
      let shown = options.join("/");
      if (shown.length > MOST_OPTIONS) shown = `${shown.slice(0, Math.max(20, shown.lastIndexOf("/", MOST_OPTIONS)))}… (${options.length})`;
      return ` = ${plain(chosen, 80)} of ${shown}`;
    }
    if ((tag === "input" || tag === "textarea") && isSecret(element)) return element.value ? " = ••••" : "";
    if (tag === "input" && element.type === "file") return element.files?.length ? ` = ${plain([...element.files].map((file) => file.name).join(", "), 80)}` : "";
    if ((tag === "input" && !/^(checkbox|radio|button|submit|reset|image)$/.test(element.type)) || tag === "textarea")
      return element.value ? ` = ${plain(fold(element.value), 120)}` : "";
    if (element.isContentEditable && role === "textbox") return textOf(element) ? ` = ${plain(textOf(element), 120)}` : "";
    if (role === "combobox") {
      const name = nameOf(element, role), text = textOf(element);
      return name.includes(text) ? "" : ` = ${plain(fold(text.startsWith(name) ? text.slice(name.length) : text), 120)}`;
    }
    const now = attribute(element, "aria-valuetext") || attribute(element, "aria-valuenow");
    if (now) return ` = ${plain(fold(now), 40)}`;
    if (tag === "progress" || tag === "meter") return ` = ${element.value}`;
    return "";
  };
  const lineOf = (element, role, links) => {
    const name = nameOf(element, role);
    const ref = CONTROLS.has(role) || role === "iframe" ? refOf(element, role, name) : undefined;
    let text = (ref ? `${ref} ` : "") + role + statesOf(element) + (name ? ` ${plain(name)}` : "") + valueOf(element, role);
    if (links && role === "link") text += ` -> ${cut(fold(attribute(element, "href") || ""), 300)}`;
    return { text, ref, name };
  };

  // -- the snapshot

  const nodes = new WeakMap(); // line -> element, of lines without a ref: browser_find gives them one
  class Walk {
    constructor({ limit, links, behind = 0, level = 0, end = performance.now() + MOST_WALK_MS }) {
      this.lines = [];
      this.left = limit ?? MOST_NODES;
      this.end = end;
      this.links = links;
      this.behind = behind; // above 0 in a part that can be seen but not used, such as the page behind a dialog
      this.level = level; // how deep in the document
      this.isCut = false;
      this.text = "";
      this.textDepth = 0;
    }
    get full() {
      return this.left <= 0 || this.isCut || this.lines.length >= MOST_LINES;
    }
    add(depth, text, ref, frame) {
      this.flush();
      return this.push(frame ? { depth, text, ref, frame } : ref ? { depth, text, ref } : { depth, text });
    }
    push(line) {
      if (this.behind > 0) line.behind = true;
      this.lines.push(line);
      return line;
    }
    say(depth, text, element) {
      if (!this.text) [this.textDepth, this.textElement] = [depth, element];
      this.text += text;
    }
    flush() {
      const text = fold(this.text);
      this.text = "";
      if (text) {
        const line = this.push({ depth: this.textDepth, text: TEXT + cut(text) });
        if (this.textElement) nodes.set(line, this.textElement);
      }
    }
    // The lines of an element's children, on their own.
    inside(node, depth) {
      const inner = new Walk({ limit: this.left, links: this.links, behind: this.behind, level: this.level, end: this.end });
      inner.children(node, depth);
      inner.flush();
      this.left = inner.left;
      this.isCut ||= inner.isCut;
      return inner;
    }
    children(node, depth) {
      if (this.level >= MOST_LEVELS) return void (this.isCut = true);
      this.level += 1;
      for (const child of childrenOf(node)) this.visit(child, depth);
      this.level -= 1;
    }
    visit(node, depth) {
      if (this.left < 0) return;
      if (node.nodeType === 3) {
        if (/\S/.test(node.data) && !(node.parentElement && hidesText(node.parentElement))) this.say(depth, node.data, node.parentElement);
        else if (this.text) this.text += " ";
        return;
      }
      if (node.nodeType !== 1 || --this.left < 0 || this.lines.length >= MOST_LINES) return;
      if (performance.now() > this.end) return void (this.left = -1);
      const tag = tagOf(node);
      if (SKIPPED.has(tag)) return;
      if (!isVisible(node)) return this.hidden(node, depth);
      if (!FIELDS.has(tag) && hidesAll(node)) {
        if (!getComputedStyle(node).display.startsWith("inline")) this.flush();
        return;
      }
      if (tag === "br") return this.say(depth, " ");
      const change = node === modal ? -this.behind : node.hasAttribute("inert") ? 1 : 0;
      this.behind += change;
      this.visible(node, tag, depth);
      if (change) this.flush();
      this.behind -= change;
    }
    // What a person sees, or operates, all the same: the page behind a dialog, icons to click, and transparent fields.
    hidden(node, depth) {
      if (attribute(node, "aria-hidden") === "true") {
        if (!node.checkVisibility({ opacityProperty: true, visibilityProperty: true })) return;
        const box = node.getBoundingClientRect();
        if (node.querySelector(FOCUSABLE) && !hidesAll(node) && box.right > 0 && box.left < innerWidth) {
          this.flush();
          this.behind += 1;
          this.visible(node, tagOf(node), depth);
          this.flush();
          this.behind -= 1;
        } else if (isIcon(node)) {
          const ref = refOf(node, "clickable", "icon");
          this.add(depth, `${ref} clickable icon`, ref);
        }
      } else if (node.checkVisibility({ visibilityProperty: true }))
        for (const field of fieldsIn(node))
          if (isVisible(field) && field.tabIndex >= 0 && !hasNoBox(field) && getComputedStyle(field).pointerEvents !== "none") this.visit(field, depth);
    }
    visible(node, tag, depth) {
      const role = roleOf(node);
      if (role === "iframe") {
        const line = lineOf(node, role, false);
        return void this.add(depth, line.text, line.ref, true);
      }
      if (HEADING.test(role ?? "")) return this.heading(node, role, depth);
      if (CONTROLS.has(role)) return this.control(node, role, depth);
      if ((role === null || role === "listitem" || role === "article") && isClickable(node)) return this.clickable(node, depth);
      if (role === "img") {
        const name = nameOf(node, role);
        return name ? void this.add(depth, `img ${plain(name)}`) : undefined;
      }
      if (tag === "label" && node.control) return this.label(node, depth);
      if (role === "row") return this.row(node, depth);
      if (role === "listitem" || role === "article") return this.item(node, depth);
      const style = getComputedStyle(node), display = style.display;
      const inline = display.startsWith("inline") || display === "contents";
      if (!inline) this.flush();
      if (role === null && isShownLabel(node)) return;
      if (CONTAINERS.has(role)) return this.container(node, role, depth);
      if (style.overflowY === "auto" || style.overflowY === "scroll") depth = this.scrollable(node, depth);
      this.children(node, depth);
      if (!inline) this.flush();
    }
    // A part that scrolls on its own has a ref to scroll it by, above its lines.
    scrollable(node, depth) {
      const below = node.scrollHeight - node.clientHeight;
      if (below < LEAST_SCROLLED || node.clientHeight < LEAST_SCROLLED) return depth;
      const ref = refOf(node, "scrollable", "");
      this.add(depth, `${ref} scrollable = ${Math.round(node.scrollTop)} of ${below}px`, ref);
      return depth + 1;
    }
    heading(node, role, depth) {
      const line = lineOf(node, role, false);
      const made = this.add(depth, line.text);
      nodes.set(made, node);
      this.within(node, depth + 1, line.name);
      // A heading that is one link, or one button, is one line.
      const inner = this.lines.at(-1), [ref, its] = inner.text.split(" ", 2);
      if (this.lines.at(-2) === made && inner.ref === ref && inner.text.endsWith(` ${plain(line.name)}`)) {
        this.lines.splice(-2, 2, { ...inner, depth, text: inner.text.replace(its, `${its},${role}`) });
      }
    }
    control(node, role, depth) {
      if (role === "option" && hasNoBox(node)) return; // for screen readers: others are shown
      const line = lineOf(node, role, this.links);
      const made = this.add(depth, line.text, line.ref);
      if (role === "listbox" && tagOf(node) !== "select") {
        this.children(node, depth + 1);
        this.flush();
        if (this.lines.at(-1) === made && hasNoBox(node)) this.lines.pop(); // a popup that is closed
      } else if (NAMED_BY_CONTENT.has(role)) this.within(node, depth + 1, line.name);
      this.flush();
    }
    // An element that only its style or a handler shows to be one to click. Around controls alone it says nothing new.
    clickable(node, depth) {
      const inner = this.inside(node, depth + 1).lines;
      const refs = inner.filter((line) => line.ref).length;
      const texts = inner.some((line) => !line.ref && !line.text.startsWith("img "));
      if (refs && !texts && (refs === 1 || (refs === inner.length && !node.hasAttribute("onclick")))) {
        this.flush();
        for (const line of inner) this.lines.push({ ...line, depth: line.depth - 1 });
        return;
      }
      const line = lineOf(node, "clickable", this.links);
      if (!line.name && hasNoBox(node)) return;
      this.add(depth, line.text, line.ref);
      for (const each of inner) if (each.ref && !repeats(each, line.name)) this.lines.push(each);
    }
    // The controls inside an element whose text is already in its name.
    within(node, depth, name) {
      if (!node.firstElementChild && !rootOf(node)) return;
      for (const line of this.inside(node, depth).lines) if (line.ref && !repeats(line, name)) this.lines.push(line);
    }
    label(node, depth) {
      const field = node.control;
      if (field.type !== "hidden" && !field.checkVisibility()) return this.control(field, roleOf(field), depth); // the label stands for it
      if (field.hasAttribute("aria-label") || field.hasAttribute("aria-labelledby")) {
        const text = labelText(node, field);
        if (!nameOf(field, roleOf(field)).includes(text)) this.say(depth, ` ${text} `);
      }
      for (const child of childrenOf(node)) if (child.nodeType === 1) this.labelled(child, depth);
    }
    labelled(node, depth) {
      if (roleOf(node) !== null || FIELDS.has(tagOf(node))) this.visit(node, depth);
      else for (const child of childrenOf(node)) if (child.nodeType === 1) this.labelled(child, depth);
    }
    // The first line of a list's item is above its other lines.
    item(node, depth) {
      this.flush();
      const start = this.lines.length;
      this.children(node, depth + 1);
      this.flush();
      if (this.lines.length > start) this.lines[start].depth = depth;
    }
    container(node, role, depth) {
      const name = isNamedByHeading(node) ? "" : nameOf(node, role);
      const at = this.lines.length + (this.text && fold(this.text) ? 1 : 0);
      nodes.set(this.add(depth, role + (name ? ` ${plain(name)}` : "") + valueOf(node, role)), node);
      if (role === "progressbar" || role === "meter") return;
      if (role === "main") depth -= 1; // it is most of the page, so its lines are not indented
      for (const child of childrenOf(node))
        if (!(child.nodeType === 1 && ((tagOf(child) === "legend" && tagOf(node) === "fieldset") || tagOf(child) === "caption"))) this.visit(child, depth + 1);
      this.flush();
      const empty = this.lines.length === at + 1;
      if (empty && !name && !this.lines[at].text.includes(" = ")) this.lines.pop();
    }
    cell(node) {
      const name = nameOf(node, "cell"), ref = refOf(node, roleOf(node) ?? "clickable", name);
      return { text: `${ref} cell${statesOf(node)} ${plain(name)}`, ref };
    }
    // A table row is one line, unless a cell has a structure of its own.
    row(node, depth) {
      const cells = [...childrenOf(node)].filter((cell) => cell.nodeType === 1 && isVisible(cell));
      const plain = !node.querySelector("table, [role=row], ul, ol, h1, h2, h3, h4, h5, h6, iframe, article");
      if (!cells.length || !plain || /^(none|presentation)$/.test(node.closest("table")?.getAttribute("role"))) {
        this.flush();
        return this.children(node, depth);
      }
      const shown = [];
      const own = isClickable(node) ? refOf(node, "row", nameOf(node, "row")) : undefined;
      let ref = own;
      for (const cell of cells) {
        const inner = this.inside(cell, 0);
        if (!inner.lines.some((line) => line.ref) && (isClickable(cell) || (cell.hasAttribute("tabindex") && roleOf(cell) === "gridcell"))) inner.lines = [this.cell(cell)];
        shown.push(inner.lines.map(inCell).join(" ").replace(/\|/g, "/"));
        ref ??= inner.lines.find((line) => line.ref)?.ref;
      }
      if (shown.some((text) => text)) this.add(depth, `${own ? `${own} row ` : ""}| ${shown.join(" | ")}`, ref);
    }
  }
  // A line as a part of a row. Only its own ref may look like one.
  const inCell = (line) => {
    const own = line.ref ? line.ref.length : line.text.startsWith(TEXT) ? TEXT.length : 0;
    return (line.ref ?? "") + line.text.slice(own).replace(REF_IN_TEXT, "'$&'");
  };
  const REF_IN_TEXT = /(?<![^ ])(t\d+)?(f\d+)?e\d+(?![^ ])/g;
  const LEAST_SCROLLED = 50; // pixels
  const FOCUSABLE = "a[href]:not([tabindex='-1']), button:not([tabindex='-1']), input:not([type=hidden], [tabindex='-1']), select, textarea, [tabindex='0']";
  const hasNoBox = (element) => {
    const box = element.getBoundingClientRect();
    return box.width < 2 || box.height < 2;
  };
  const fieldsIn = (node) => (node.nodeType !== 1 ? [] : FIELDS.has(tagOf(node)) ? [node] : [...childrenOf(node)].flatMap(fieldsIn));
  // A picture to click that is hidden from screen readers, such as the cross of a chip.
  const isIcon = (element) => !element.hasAttribute("href") && !textOf(element) && isClickable(element) && !hasNoBox(element);
  // A clickable part whose name is that of the control around it.
  const repeats = (line, name) => {
    const entry = known.get(line.ref);
    return entry.role === "clickable" && line.text.startsWith(`${line.ref} clickable`) && (entry.name === name || !entry.name);
  };
  // What labels what, by the ids in a document or shadow root. Made anew for each call.
  let labelled = new WeakMap();
  // What is known of a page for the time of a call.
  const forget = () => {
    labels = new WeakMap();
    labelled = new WeakMap();
    outside = new WeakSet();
    view = { x: scrollX, y: scrollY, width: innerWidth, height: innerHeight };
  };
  let modal = null;
  const modals = () => [document, ...roots].flatMap((root) => [...root.querySelectorAll("dialog:modal")]);
  const labelledBy = (root, id) => {
    let ids = labelled.get(root);
    if (!ids) {
      labelled.set(root, (ids = new Map()));
      for (const element of root.querySelectorAll("[aria-labelledby]"))
        for (const each of attribute(element, "aria-labelledby").split(/\s+/)) {
          if (!ids.has(each)) ids.set(each, []);
          ids.get(each).push(element);
        }
    }
    return ids.get(id) ?? [];
  };
  // Whether an element's text is shown as the name of another.
  const isShownLabel = (element) => {
    const id = attribute(element, "id"), target = tagOf(element) === "label" && attribute(element, "for");
    if ((!id && !target) || element.querySelector(FOCUSABLE)) return false;
    const root = element.getRootNode();
    const its = [...(id ? labelledBy(root, id) : []), target && root.getElementById(target)];
    return its.some((each) => each && isVisible(each) && (CONTROLS.has(roleOf(each)) || CONTAINERS.has(roleOf(each))));
  };
  const isNamedByHeading = (element) => {
    const by = attribute(element, "aria-labelledby");
    const heading = by && element.getRootNode().getElementById?.(by.trim());
    return Boolean(heading && HEADING.test(roleOf(heading) ?? "") && element.contains(heading) && isVisible(heading));
  };
  const REF = /^(t\d+)?(f\d+)?e\d+$/;
  // Whether a line, or a cell of a row, is of this role or in this state.
  const hasRole = (text, role) => {
    const words = text.split(" ");
    if (words[0] !== "|" && !(words[1] === "row" && words[2] === "|")) return words[REF.test(words[0]) ? 1 : 0].split(",").includes(role);
    return role === "row" || words.some((word, n) => n > 0 && REF.test(words[n - 1]) && word.split(",").includes(role));
  };
  const withRef = (line) => {
    const node = nodes.get(line);
    if (line.ref || !node) return { text: line.text, ref: line.ref };
    const role = roleOf(node) ?? tagOf(node), ref = refOf(node, role, nameOf(node, role));
    return { text: `${ref} ${line.text}`, ref };
  };
  // A line of an element with its place in the window. The refs within a row have none.
  const withBox = (line) => {
    const element = line.ref && line.text.startsWith(line.ref) && known.get(line.ref)?.node.deref();
    if (!element) return line;
    const box = element.getBoundingClientRect();
    return { ...line, text: `${line.text} @${[box.x, box.y, box.width, box.height].map(Math.round)}` };
  };
  const isPdf = () => document.contentType === "application/pdf";
  const PDF = "(a PDF, whose text can't be read here; browser_screenshot shows it)";
  const lines = (root, options) => {
    if (isPdf()) return { lines: [{ depth: 0, text: PDF }], left: MOST_NODES, full: false };
    modal = modals().at(-1) ?? null;
    const walk = new Walk({ ...options, behind: modal && !modal.contains(root) ? 1 : 0 });
    if (root === document.body || root.nodeType !== 1) walk.children(root, 0);
    else walk.visit(root, 0);
    walk.flush();
    return walk;
  };

  // -- finding elements

  const everything = function* (root) {
    for (const element of root.querySelectorAll("*")) {
      yield element;
      const inner = rootOf(element);
      if (inner) yield* everything(inner);
    }
  };
  // All elements in a part of the page as it is shown: those in shadow roots and slots too.
  const within = function* (node) {
    for (const child of childrenOf(node)) {
      if (child.nodeType !== 1) continue;
      yield child;
      yield* within(child);
    }
  };
  const describeElement = (element) => {
    const role = roleOf(element) ?? (isClickable(element) ? "clickable" : tagOf(element));
    const name = nameOf(element, role) || cut(textOf(element), 80);
    return { ref: refOf(element, role, name), role, name };
  };
  const located = (element, foundAgain = false) => ({
    ...describeElement(element), tag: tagOf(element), type: element.type && typeof element.type === "string" ? element.type : "",
    secret: isSecret(element), multiple: element.multiple === true, found_again: foundAgain,
  });
  const several = (elements, what) => ({ problem: `${what} ${elements.length} elements`, candidates: elements.slice(0, 5).map(describeElement) });
  const same = (a, b) => fold(a).toLowerCase() === fold(b).toLowerCase();
  const withoutMarks = (text) => fold(text).replace(/[\s*:]+$/, "").replace(/\s*\((required|optional)\)$/i, "");
  const bySelector = (selector) => {
    const found = [...document.querySelectorAll(selector)];
    if (!found.length) for (const element of everything(document)) found.push(...(rootOf(element)?.querySelectorAll(selector) ?? []));
    const visible = found.filter(isVisible);
    return visible.length ? visible : found;
  };
  const byRef = (ref) => {
    const entry = known.get(ref);
    if (!entry) return { problem: "is not known on this page" };
    const node = entry.node.deref();
    if (node?.isConnected) return { node };
    if (!entry.name) return { problem: "is no longer on the page" };
    const again = [...everything(document)].filter((element) => (roleOf(element) ?? (entry.role === "clickable" && isClickable(element) ? "clickable" : null)) === entry.role && isVisible(element) && nameOf(element, entry.role) === entry.name);
    // It is another one where an answer has called it so, and may be where there were two: then one of a list has gone.
    const owner = ownerOf(entry);
    if (again.length === 1 && !inAnswers.has(refs.get(again[0])) && owner.ref === ref && !owner.several) {
      refs.set(again[0], ref);
      known.set(ref, { ...entry, node: new WeakRef(again[0]) });
      owner.latest = ref;
      return { node: again[0], again: true };
    }
    const like = ["", ", and what is like it may be another", ", and several are like it"][Math.min(2, again.length)];
    return { problem: `is no longer on the page${like}`, candidates: again.slice(0, 3) };
  };
  const nodeOf = (ref) => {
    const found = byRef(ref);
    if (!found.node) throw new Error(`${ref} ${found.problem}`);
    return found.node;
  };
  const byText = (text, role) => {
    const controls = [], exact = [], others = [];
    for (const element of everything(top())) {
      const its = roleOf(element) ?? (isClickable(element) ? "clickable" : null);
      if (role && its !== role) continue;
      if (CONTROLS.has(its) || (role && its === role)) {
        if (!isVisible(element)) continue;
        const name = nameOf(element, its);
        if (same(name, text)) exact.push(element);
        else if (name.toLowerCase().includes(text.toLowerCase())) controls.push(element);
      } else if (!role && [...element.childNodes].some((node) => node.nodeType === 3 && node.data.includes(text)) && isVisible(element)) others.push(element);
    }
    return exact.length ? exact : controls.length ? controls : others;
  };
  const byLabel = (label) => {
    const fields = [], groups = [];
    for (const element of everything(top())) {
      const role = roleOf(element);
      if (FIELD_ROLES.has(role) && (isVisible(element) || element.type === "file" || labelsOf(element).some(isVisible))) fields.push([element, nameOf(element, role)]);
      else if (role === "radiogroup" || (role === "group" && element.querySelector("input[type=radio], [role=radio]"))) groups.push([element, nameOf(element, role)]);
    }
    const wanted = withoutMarks(label).toLowerCase();
    const among = (list, test) => list.filter(([, name]) => test(withoutMarks(name).toLowerCase())).map(([element]) => element);
    for (const [list, test] of [[fields, (name) => name === wanted], [groups, (name) => name === wanted], [fields, (name) => name.startsWith(wanted)], [fields, (name) => name.includes(wanted)]]) {
      const found = among(list, test);
      const fields = found.filter((element) => tagOf(element) === "select" || roleOf(element) !== "listbox"); // a combobox and its list have one label
      if (found.length) return fields.length ? fields : found;
    }
    const all = [...fields, ...groups].map(([element]) => element);
    const byAttribute = all.filter((element) => [attribute(element, "placeholder"), attribute(element, "name"), attribute(element, "id")].some((text) => text && same(text, label)));
    return byAttribute.length ? byAttribute : besideText(wanted, all);
  };
  // The fields that stand beside a text which is bound to none. A field that has a label of its own is none of them.
  const besideText = (wanted, fields) => {
    const counts = new Map(); // part of the page -> the fields in it
    for (const field of fields) for (let part = field; part; part = aroundOf(part)) counts.set(part, (counts.get(part) ?? 0) + 1);
    const isWanted = (text) => withoutMarks(text).toLowerCase() === wanted;
    return fields.filter((field) => {
      const own = labelsOf(field).map((label) => labelText(label, field)).filter(Boolean);
      return own.length ? own.some(isWanted) : isBeside(field, isWanted, counts);
    });
  };
  const aroundOf = (node) => node.parentElement ?? node.getRootNode().host ?? null;
  // Whether such a text is beside a field, or beside the parts around it that hold no other field. A text is before its
  // field; it may be after one that is alone, and on either side of a box on its line.
  const isBeside = (field, isWanted, counts) => {
    const isBox = /^(checkbox|radio|switch)$/.test(roleOf(field));
    for (let part = field, n = 0; part && part !== document.body && n < MOST_AROUND; part = aroundOf(part), n += 1) {
      const around = aroundOf(part), isAlone = counts.get(around) === counts.get(part);
      const before = textsBeside(part, "previousSibling", isBox, counts);
      const after = isAlone || isBox ? textsBeside(part, "nextSibling", isBox, counts) : [];
      if (before.some(isWanted) || after.some(isWanted)) return true;
      if (!isAlone || before.length || after.length) return false;
    }
    return false;
  };
  const MOST_AROUND = 5;
  // The nearest text on a side of a part, as a whole and in its pieces, and the labels beyond it, up to the next field.
  const textsBeside = (part, side, onItsLine, counts) => {
    const texts = [];
    for (let node = part[side], n = 0; node && !counts.has(node) && n < MOST_BESIDE; node = node[side], n += 1) {
      const tag = tagOf(node), isLabel = tag === "label";
      if (onItsLine && tag === "br") break;
      if (!isLabel && texts.length) continue;
      const found = node.nodeType === 3 ? [fold(node.data.slice(0, MOST_TEXT))] : isLabel ? [labelText(node)] : node.nodeType === 1 ? textsIn(node) : [];
      texts.push(...found.filter(Boolean));
    }
    return texts;
  };
  // The texts of an element and of the elements in it that are, and hold, no controls.
  const textsIn = (element) => {
    const parts = [element, ...element.querySelectorAll("*")].slice(0, MOST_BESIDE);
    const isText = (part) => !SKIPPED.has(tagOf(part)) && isVisible(part) && !part.querySelector(FOCUSABLE);
    const inControl = (part) => element.contains(part.closest(FOCUSABLE)) || CONTROLS.has(roleOf(part));
    return parts.filter((part) => isText(part) && !inControl(part)).map((part) => textOf(part));
  };
  const MOST_BESIDE = 20;
  const resolve = (target) => {
    if (target.ref !== undefined) {
      const found = byRef(target.ref);
      if (found.node) return { element: found.node, again: found.again ?? false };
      return { problem: found.problem, candidates: (found.candidates ?? []).map(describeElement) };
    }
    let found, what;
    if (target.selector !== undefined) {
      try {
        found = bySelector(target.selector);
      } catch {
        return { problem: "is no valid CSS selector", candidates: [] };
      }
      what = "matches";
    } else if (target.label !== undefined) [found, what] = [byLabel(target.label), "is the label of"];
    else [found, what] = [byText(target.text, target.role), "is on"];
    if (found.length > 1) {
      // A parent and its only child are one thing to a person.
      const around = new Set();
      for (const element of found) for (let each = parentOf(element); each && !around.has(each); each = parentOf(each)) around.add(each);
      const inner = found.filter((element) => !around.has(element));
      const dialogs = modals();
      const usable = inner.filter((element) => !isBehind(element, dialogs));
      if (inner.length === 1 || usable.length === 1) return { element: usable[0] ?? inner[0], again: false };
      return several(usable.length ? usable : inner, what);
    }
    if (!found.length) return { problem: "is not on the page", candidates: nearest(target), missing: true };
    return { element: found[0], again: false };
  };
  const isBehind = (element, dialogs) => {
    if (dialogs.some((dialog) => !holds(dialog, element))) return true;
    for (let each = element; each; each = parentOf(each)) if (attribute(each, "aria-hidden") === "true" || each.hasAttribute("inert")) return true;
    return false;
  };
  // Fields for an unknown label, so that the next try has the right name.
  const nearest = (target) => {
    if (target.label === undefined) return [];
    return [...everything(top())].filter((element) => FIELD_ROLES.has(roleOf(element)) && isVisible(element)).slice(0, 8).map(describeElement);
  };

  // -- acting

  // In a document whose scripts are off, because of a sandbox for example, timers never fire. Each try is an error in the console.
  const hasTimers = () => !matchMedia("(scripting: none)").matches;
  const frames = async (count) => hasTimers() && new Promise((done) => {
    const timer = setTimeout(done, (document.hidden ? 50 : 250) * count); // a hidden page draws no frames
    const next = () => (count-- > 0 ? requestAnimationFrame(next) : (clearTimeout(timer), done()));
    next();
  });
  const UNMOVED = /color|shadow|fill|stroke|outline|filter|background|radius|cursor|decoration/i;
  // Whether something appears, goes or moves, and will be done within the time. Ripples and changes of colour are not waited for.
  const isMoving = (within) => [document, ...roots].flatMap((root) => root.getAnimations()).some((animation) => {
    if (animation.playState !== "running" || (animation.transitionProperty && UNMOVED.test(animation.transitionProperty))) return false;
    const effect = animation.effect, target = effect?.target, timing = effect?.getComputedTiming();
    if (!target || effect.pseudoElement || !(timing.endTime - (animation.currentTime ?? 0) < within)) return false;
    return target.textContent.trim() !== "" || target.querySelector("input, img, svg, slot") !== null || rootOf(target) !== null || getComputedStyle(target).position === "fixed";
  });
  // A script that changes the address shows the place of it a little later.
  const ROUTED_QUIET_MS = 180;
  const placeOf = (url) => url.replace(/#(?![!/]).*/, "");
  let shownAt = placeOf(location.href);
  const turn = async () => hasTimers() && new Promise((done) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(null);
  });
  // Fields whose suggestions come from key events.
  const wantsKeys = (element) => tagOf(element) === "input" && (roleOf(element) === "combobox" || isCompleted(element));
  const isCompleted = (element) => /^(list|both)$/.test(attribute(element, "aria-autocomplete"));
  const boxOf = (element) => {
    const rects = [...element.getClientRects()].filter((rect) => rect.width > 0 && rect.height > 0);
    return rects[0] ?? element.getBoundingClientRect();
  };
  const hit = (x, y) => {
    let found = document.elementFromPoint(x, y);
    for (let root; found && (root = rootOf(found)); ) {
      const inner = root.elementFromPoint(x, y);
      if (!inner || inner === found) break;
      found = inner;
    }
    return found;
  };
  const holds = (outer, inner) => {
    for (let each = inner; each; each = parentOf(each)) if (each === outer) return true;
    return false;
  };
  // What is over an element, in words: the outermost part that is not around the element too.
  const coveredBy = (over, element) => {
    let cover = over;
    while (cover && roleOf(cover) === null && parentOf(cover) && parentOf(cover) !== document.body && !(element && holds(parentOf(cover), element))) cover = parentOf(cover);
    if (!cover) return "is covered";
    const { role, name, ref } = describeElement(cover);
    return `is covered by ${role}${name ? ` ${quote(name, 60)}` : ""} ${ref}`;
  };
  // Transparent fields without a size are operated by their labels.
  const shownFor = (element) => {
    const box = element.getBoundingClientRect();
    const label = element.labels?.[0];
    return label && (box.width < 2 || box.height < 2 || getComputedStyle(element).opacity === "0") ? label : element;
  };
  // Whether a click at a point reaches an element, what stands for it, or its label.
  let pointerMoved = false;
  addEventListener("mousemove", ({ isTrusted }) => (pointerMoved ||= isTrusted), { capture: true, passive: true });
  const isHit = (element, shown, [x, y]) => {
    const found = hit(x, y);
    return Boolean(found) && [shown, element, element.control, ...(element.labels ?? []), frameOfList(element)].some((part) => part && holds(part, found));
  };
  // The part around the input of a list that is styled as one field: its chosen text lies over the input.
  const frameOfList = (element) => {
    if (!wantsKeys(element)) return null;
    let part = null;
    for (let each = parentOf(element), n = 0; each && n < 4; each = parentOf(each), n += 1) if (getComputedStyle(each).cursor === "pointer") part = each;
    return part;
  };
  const centre = (box) => [box.left + box.width / 2, box.top + box.height / 2];
  const inView = (box) => box.top >= 0 && box.left >= 0 && box.bottom <= innerHeight && box.right <= innerWidth;

  const setText = (element, text) => {
    const prototype = tagOf(element) === "textarea" ? HTMLTextAreaElement.prototype : HTMLInputElement.prototype;
    Object.getOwnPropertyDescriptor(prototype, "value").set.call(element, text);
    fire(element);
  };
  const fire = (element) => {
    element.dispatchEvent(new InputEvent("input", { bubbles: true, composed: true, inputType: "insertReplacementText" }));
    element.dispatchEvent(new Event("change", { bubbles: true }));
  };
  const elementsOf = Object.getOwnPropertyDescriptor(HTMLFormElement.prototype, "elements").get;
  const NO_TEXT = /^(checkbox|radio|range|color|file|hidden|button|reset|date|time|month|week|datetime-local)$/; // Enter submits no form of theirs without a button
  const FORMS = { date: "YYYY-MM-DD", time: "HH:MM", month: "YYYY-MM", week: "YYYY-Www", "datetime-local": "YYYY-MM-DDTHH:MM", color: "#rrggbb", number: "a number", range: "a number" };
  const choose = (element, value) => {
    const options = [...element.options];
    const find = (each) => options.find((option) => same(option.text, each)) ?? options.find((option) => option.value === each);
    let wanted = (Array.isArray(value) ? value : [value]).map(String);
    // A list in one text, as a snapshot shows what is chosen. None of it, if the text is empty.
    if (element.multiple && wanted.length === 1 && !find(wanted[0])) wanted = wanted[0].split(",").map((each) => each.trim()).filter(Boolean);
    const picked = wanted.map(find);
    const missing = picked.findIndex((option) => !option);
    if (missing >= 0) return { problem: `has no option ${quote(wanted[missing], 60)}`, options: options.slice(0, 20).map((option) => fold(option.text)) };
    if (!element.multiple && picked.length > 1) return { problem: "takes one option only", options: [] };
    if (picked.some((option) => option.disabled)) return { problem: "has that option disabled", options: [] };
    if (element.multiple) for (const option of options) option.selected = picked.includes(option);
    else element.value = picked[0].value;
    fire(element);
    return { done: true, shown: picked.map((option) => fold(option.text)).join(", ") };
  };
  const CHECKED = new Map([["true", true], ["on", true], ["yes", true], ["1", true], ["false", false], ["off", false], ["no", false], ["0", false]]);
  const STATE_MS = 500; // what a page may take to show the new state of a box
  const check = async (element, role, value) => {
    const wanted = CHECKED.get(String(value).trim().toLowerCase());
    if (wanted === undefined) return { problem: `takes true or false, not ${quote(String(value), 40)}`, options: [] };
    const now = () => (tagOf(element) === "input" ? element.checked : attribute(element, "aria-checked") === "true");
    if (role === "radio" && !wanted) return { problem: "is a radio button; choose another one instead", options: [] };
    const isDone = () => now() === wanted || !element.isConnected; // a page may draw it anew
    const shown = () => (now() ? "checked" : "not checked");
    if (isDone()) return { done: true, shown: shown() };
    element.click();
    for (const end = performance.now() + STATE_MS; !isDone() && hasTimers() && performance.now() < end; ) await frames(1);
    if (!isDone()) return { clicked: true, problem: `was clicked, and is still ${shown()}`, options: [] };
    return { done: true, shown: shown() };
  };
  const chooseRadio = (group, value) => {
    const radios = [...within(group)].filter((each) => roleOf(each) === "radio");
    const wanted = String(value);
    const radio = radios.find((each) => same(nameOf(each, "radio"), wanted)) ?? radios.find((each) => each.value === wanted);
    if (!radio) return { problem: `has no choice ${quote(wanted, 60)}`, options: radios.slice(0, 20).map((each) => nameOf(each, "radio")) };
    return check(radio, "radio", true);
  };

  const pick = (list, name) => {
    const options = [...list.querySelectorAll("[role=option]")];
    const option = options.find((each) => same(nameOf(each, "option"), name));
    if (!option) return { problem: `has no option ${quote(name, 60)}`, options: options.slice(0, 20).map((each) => nameOf(each, "option")) };
    option.click();
    return { done: true, shown: name };
  };
  // The options that a field has opened: in the list that it names, else all that can be seen.
  const optionsOf = (element) => {
    const root = element.getRootNode();
    const ids = `${attribute(element, "aria-controls") ?? ""} ${attribute(element, "aria-owns") ?? ""}`.split(/\s+/).filter(Boolean);
    const lists = ids.map((id) => root.getElementById?.(id) ?? document.getElementById(id)).filter(Boolean);
    const among = (parts) => parts.flatMap((part) => [...everything(part)]).filter((each) => roleOf(each) === "option" && tagOf(each) !== "option" && isVisible(each));
    const own = among(lists);
    return own.length ? own : among([root.host ? root : document]).concat(root.host ? among([root.host]) : []);
  };

  // -- text

  const markdown = (root, plain) => {
    const out = [];
    const numbers = new Map(); // list -> the number of its next item
    // What is before each line of a quote, and before the first line of a list's item: no part of the text.
    let line = "", quoted = "", lead = "";
    const put = (text) => {
      for (const each of text.split("\n")) {
        out.push((lead || quoted) + each);
        lead = "";
      }
    };
    const gap = () => out.length && !EMPTY_LINE.test(out.at(-1)) && out.push(quoted.trimEnd());
    const endQuote = (around) => {
      while (out.length && EMPTY_LINE.test(out.at(-1))) out.pop();
      [quoted, lead] = [around, ""];
      gap();
    };
    const end = (blank) => {
      const text = line.replace(/[^\S\n]+/g, " ").replace(UNSEEN_BUT_LINES, "").trim();
      if (text) put(text);
      if (blank) gap();
      line = "";
    };
    const marker = (item) => {
      const list = parentOf(item);
      if (!list || tagOf(list) !== "ol") return "- ";
      const first = list.hasAttribute("start") || !list.reversed ? list.start : list.querySelectorAll(":scope > li").length;
      const number = item.hasAttribute("value") ? item.value : (numbers.get(list) ?? first);
      numbers.set(list, number + (list.reversed ? -1 : 1));
      return `${number}. `;
    };
    const cell = (node) => (isSeen(node) ? fold(textOf(node, 2000, true)).replace(/\|/g, "/") : "");
    const table = (node) => {
      end(true);
      const rows = [...node.rows].filter(isVisible);
      rows.forEach((row, n) => {
        put(`| ${[...row.cells].map(cell).join(" | ")} |`);
        if (n === 0 && !plain) put(`|${" --- |".repeat(row.cells.length)}`);
      });
      gap();
    };
    const walk = (node, depth) => {
      if (node.nodeType === 3) {
        if (!/\S/.test(node.data)) line += line ? " " : "";
        else if (!(node.parentElement && hidesText(node.parentElement))) line += node.data.replace(/\s+/g, " ");
        return;
      }
      if (node.nodeType !== 1) return;
      const tag = tagOf(node);
      if (SKIPPED.has(tag) || tag === "svg" || !(tag === "hr" ? isVisible : isSeen)(node)) return; // a rule is its borders only
      if (tag === "br") return end(false);
      if (tag === "hr") return end(true), void (plain || (put("---"), gap()));
      if (tag === "table" && !node.querySelector("table")) return table(node);
      if (tag === "pre") return end(true), put(plain ? shownCopy(node).textContent : `\`\`\`\n${shownCopy(node).textContent.replace(/\n+$/, "")}\n\`\`\``), void gap();
      if (tag === "img") return void (attribute(node, "alt") && (line += plain ? ` ${attribute(node, "alt")} ` : ` ![${fold(attribute(node, "alt"))}] `));
      if (FIELDS.has(tag)) {
        if (tag === "select") line += ` ${fold(node.selectedOptions[0]?.text ?? "")} `;
        else if (!isSecret(node) && !/^(hidden|checkbox|radio|file)$/.test(node.type)) line += ` ${node.value} `;
        return;
      }
      if (tag === "a" && !plain && node.hasAttribute("href")) {
        const text = textOf(node, undefined, true);
        return void (text && (line += `[${text}](${cut(fold(attribute(node, "href")), 300)})`));
      }
      if (tag === "code" && !plain) return void (line += `\`${textOf(node)}\``);
      const heading = /^h([1-6])$/.exec(tag);
      const isQuote = tag === "blockquote" && !plain;
      const display = getComputedStyle(node).display, block = heading || isQuote || !/^(inline|contents)/.test(display);
      if (display.startsWith("inline-") && line) line += " ";
      const list = tag === "ul" || tag === "ol";
      const apart = tag === "p" || isQuote || heading !== null || (list && depth === 0);
      if (block) end(apart);
      if (heading && !plain) line += `${"#".repeat(Number(heading[1]))} `;
      const around = quoted;
      if (tag === "li" && !plain) lead = `${quoted}${"  ".repeat(Math.max(0, depth - 1))}${marker(node)}`;
      if (isQuote) {
        lead &&= `${lead}> `;
        quoted += "> ";
      }
      for (const child of childrenOf(node)) walk(child, depth + (list ? 1 : 0));
      if (block) end(apart);
      else if (display.startsWith("inline-")) line += " ";
      if (isQuote) endQuote(around);
    };
    walk(root, 0);
    end(false);
    return out.join("\n").replace(/\n{3,}/g, "\n\n").trim();
  };
  const EMPTY_LINE = /^[> ]*$/;
  const UNSEEN_BUT_LINES = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0e\ufeff]/g;
  // A copy without what is hidden, without comments, and without the values of passwords.
  const shownCopy = (root) => {
    // In a document of its own: here, a copy would load its images again and run the constructors of custom elements.
    const copy = document.implementation.createHTMLDocument("").importNode(root, true), removed = [];
    const originals = [root, ...root.querySelectorAll("*")], copies = [copy, ...copy.querySelectorAll("*")];
    originals.forEach((each, n) => {
      const tag = tagOf(each);
      if (n > 0 && (tag === "option" ? !isOffered(each) : tag !== "optgroup" && !isSeen(each))) removed.push(copies[n]);
      else if (hidesText(each)) removed.push(...[...copies[n].childNodes].filter((node) => node.nodeType === 3));
      else if (tag === "details" && !each.open) removed.push(...[...copies[n].childNodes].filter((node) => node.localName !== "summary"));
      if (isSecret(each)) {
        copies[n].removeAttribute("value");
        if (tagOf(each) === "textarea") removed.push(...copies[n].childNodes);
      }
    });
    const comments = document.createTreeWalker(copy, NodeFilter.SHOW_COMMENT);
    while (comments.nextNode()) removed.push(comments.currentNode);
    for (const each of removed) each.remove();
    return copy;
  };
  const html = (root) => {
    const copy = shownCopy(root);
    for (const each of copy.querySelectorAll("script, style, noscript, template, link, meta")) each.remove();
    return copy.outerHTML;
  };

  // -- what Python calls

  // The page's text as it is seen, on one line, where shadow roots have a part of it.
  const shadowText = () => {
    for (const element of everything(top())) if (rootOf(element)) return textOf(top(), MOST_WAITED_TEXT);
    return "";
  };
  const MOST_WAITED_TEXT = 1e6; // characters
  const MOST_PLACES = 100; // that something is looked for near

  let marks = null;
  const MARK_WIDTH = 28; // pixels of a ref of three digits
  const api = {
    snapshot({ mode, target, depth, links, boxes, limit }) {
      let root = top();
      if (target) {
        const found = resolve(target);
        if (!found.element) return { problem: found.problem, lines: [], title: fold(document.title.slice(0, MOST_TEXT)), url: location.href };
        root = found.element;
      }
      shownAt = placeOf(location.href);
      const walk = lines(root, { limit, links });
      let made = walk.lines;
      if (depth !== undefined && depth !== null) made = made.filter((line) => line.depth < depth);
      if (mode === "interactive") made = made.filter((line) => line.ref);
      if (boxes) made = made.map(withBox);
      return { lines: made, title: fold(document.title.slice(0, MOST_TEXT)), url: location.href, nodes: (limit ?? MOST_NODES) - walk.left, truncated: walk.full };
    },
    find({ text, regex, role, near, limit }) {
      let pattern;
      try {
        pattern = regex ? new RegExp(regex, "iu") : null;
      } catch (problem) {
        return { problem: `is no valid regular expression: ${problem.message.split(": ").at(-1)}`, matches: [], total: 0 };
      }
      const walk = lines(top(), { links: false });
      const found = [], above = [], places = [];
      walk.lines.forEach((line, at) => {
        above.length = Math.min(above.length, line.depth);
        const fits = (!text || line.text.toLowerCase().includes(text.toLowerCase())) && (!pattern || pattern.test(line.text)) && (!role || hasRole(line.text, role));
        if (near && line.text.toLowerCase().includes(near.toLowerCase()) && places.length < MOST_PLACES) places.push(at);
        if (fits) found.push({ line, at, above: above.filter(Boolean) });
        above[line.depth] = line.text;
      });
      if (near && !places.length) return { matches: [], total: 0, truncated: walk.full };
      if (near) {
        for (const each of found) each.distance = Math.min(...places.map((at) => (each.at < at ? at - each.at + 0.5 : each.at - at))); // a text is mostly above what it is about
        found.sort((a, b) => a.distance - b.distance);
      }
      const matches = found.slice(0, limit).map(({ line, above }) => ({ ...withRef(line), path: above.map((each) => cut(each, 60)) }));
      return { matches, total: found.length, truncated: walk.full };
    },
    read({ format, selector, ref, limit_chars: most }) {
      let root = top();
      if (selector || ref) {
        const found = resolve(ref ? { ref } : { selector });
        if (!found.element) return { problem: found.problem, text: "", total_chars: 0 };
        root = found.element;
      } else if (format === "markdown" || format === "text") root = document.querySelector("main, [role=main]") ?? root;
      let text;
      if (isPdf()) text = PDF;
      else if (format === "html") text = html(root);
      else if (format === "table") text = (root.matches("table") ? [root] : [...root.querySelectorAll("table")]).filter(isVisible).map((table) => markdown(table, true)).join("\n\n");
      else text = markdown(root, format === "text");
      return { text: text.slice(0, most), total_chars: text.length };
    },
    // Writes the refs of the controls that the window shows beside them, until `unmark`.
    mark({ most }) {
      api.unmark();
      const shown = lines(top(), { links: false }).lines.filter((line) => line.ref && line.text.startsWith(line.ref));
      marks = document.createElement("div");
      marks.style = "all: initial; position: fixed; inset: 0; pointer-events: none; z-index: 2147483647";
      const drawn = marks.attachShadow({ mode: "closed" }), refs = [];
      for (const { ref } of shown) {
        const box = known.get(ref).node.deref()?.getBoundingClientRect();
        if (!box || box.bottom <= 0 || box.right <= 0 || box.top >= innerHeight || box.left >= innerWidth || refs.length === most) continue;
        const label = drawn.appendChild(document.createElement("span"));
        label.textContent = ref;
        const left = box.left > MARK_WIDTH ? box.left - MARK_WIDTH : Math.max(0, box.left); // beside it, where there is room
        label.style = `position: fixed; left: ${left}px; top: ${Math.max(0, box.top)}px; font: bold 11px/13px monospace; color: #000; background: #fe0; border: 1px solid #000`;
        refs.push(ref);
      }
      document.documentElement.append(marks);
      return { refs };
    },
    unmark() {
      marks?.remove();
      marks = null;
      return {};
    },
    locate(target) {
      const found = resolve(target);
      return found.element ? located(found.element, found.again) : found;
    },
    async prepare(ref, { action }) {
      const element = nodeOf(ref);
      pointerMoved = false;
      const shown = shownFor(element);
      if (action !== "none" && isDisabled(element)) return { problem: "is disabled", retry: true };
      if (!isVisible(shown)) return { problem: "is not visible", retry: true };
      if (action !== "none" && element.closest("[inert]")) return { problem: "is in a part of the page that can't be used now", retry: true };
      if (!inView(boxOf(shown)) || !isHit(element, shown, centre(boxOf(shown)))) shown.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
      let box = boxOf(shown);
      await frames(1);
      let again = boxOf(shown);
      if (Math.abs(again.x - box.x) > 0.5 || Math.abs(again.y - box.y) > 0.5 || again.width !== box.width) {
        box = again;
        await frames(2);
        again = boxOf(shown);
        if (Math.abs(again.x - box.x) > 0.5 || Math.abs(again.y - box.y) > 0.5) return { problem: "is moving", retry: true };
      }
      box = again;
      if (box.width <= 0 || box.height <= 0) return { problem: "has no size", retry: true };
      const left = Math.max(0, box.left), top = Math.max(0, box.top), right = Math.min(innerWidth, box.right), bottom = Math.min(innerHeight, box.bottom);
      if (left >= right || top >= bottom) return { problem: "is outside the window and can't be scrolled to", retry: true };
      const made = (x, y) => ({ x, y, width: box.width, height: box.height });
      if (action === "none") return made((left + right) / 2, (top + bottom) / 2);
      let over = null;
      for (const [a, b] of [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75]]) {
        const x = left + (right - left) * a, y = top + (bottom - top) * b;
        if (isHit(element, shown, [x, y])) return made(x, y);
        over ??= hit(x, y);
      }
      if (getComputedStyle(shown).pointerEvents === "none") return { problem: "takes no clicks now (its style says pointer-events: none)", retry: true };
      return { problem: coveredBy(over, element), retry: true };
    },
    // Whether a point is still on an element: what the pointer left may have closed, and all below it moved.
    is_at(ref, x, y) {
      const element = nodeOf(ref);
      return { still: isHit(element, shownFor(element), [x, y]) };
    },
    // Whether the pointer has moved in this frame since an element was prepared.
    has_pointer() {
      return { moved: pointerMoved };
    },
    // What covers the frames at a point, if something does.
    covers_frame(x, y) {
      const found = hit(x, y);
      if (!found || roleOf(found) === "iframe" || tagOf(found) === "iframe") return { problem: "" };
      return { problem: coveredBy(found) };
    },
    set_value(ref, value) {
      const element = nodeOf(ref);
      const tag = tagOf(element), role = roleOf(element);
      if (element.disabled === true || element.matches(":disabled")) return { problem: "is disabled", options: [] };
      if (wantsKeys(element)) return { problem: element.readOnly ? "choose" : "type", options: [] };
      if (element.readOnly === true && tag !== "select") return { problem: "is readonly; click it to see what it opens", options: [] };
      if (tag === "select") return choose(element, value);
      if (tag === "input" && element.type === "file") return { problem: "file", options: [] };
      if (role === "checkbox" || role === "radio" || role === "switch" || role === "menuitemcheckbox") return check(element, role, value);
      if (role === "group" || role === "radiogroup") return chooseRadio(element, value);
      const text = String(value);
      if (tag === "input" || tag === "textarea") {
        if (element.maxLength >= 0 && text.length > element.maxLength) return { problem: `takes at most ${element.maxLength} characters`, options: [] };
        const before = element.value;
        element.focus({ preventScroll: true });
        setText(element, text);
        if (text && FORMS[element.type] && !element.value) {
          setText(element, before);
          return { problem: `takes ${FORMS[element.type]}, not ${quote(text, 40)}`, options: [] };
        }
        return { done: true, shown: isSecret(element) ? "••••" : element.value };
      }
      if (element.isContentEditable) {
        element.focus({ preventScroll: true });
        getSelection().selectAllChildren(element);
        document.execCommand("insertText", false, text);
        return { done: true, shown: textOf(element) };
      }
      if (role === "combobox" || attribute(element, "aria-haspopup") === "listbox") return { problem: "choose", options: [] };
      if (role === "slider" || role === "spinbutton") return { problem: "slide", options: [] };
      if (role === "listbox") return pick(element, String(value));
      return { problem: "is no field that can be filled; click it, or press keys", options: [] };
    },
    slider(ref) {
      const number = (name) => parseFloat(attribute(nodeOf(ref), `aria-value${name}`)) || 0;
      return { now: number("now"), min: number("min"), max: number("max") };
    },
    // The option of this name in the list that a field has opened, and the names of those that there are.
    option(ref, name) {
      const element = nodeOf(ref);
      const options = optionsOf(element);
      const open = attribute(element, "aria-expanded") === "true";
      const isIt = (each) => isVisible(each) && !hasNoBox(each) && (same(nameOf(each, "option"), name) || same(textOf(each), name));
      let found = options.filter(isIt);
      // Some lists show other elements than their options.
      if (!found.length && open) found = [...everything(top())].filter((each) => isClickable(each) && isIt(each)).slice(-1);
      const suggested = isCompleted(element) || attribute(element, "role") === "combobox"; // else the browser itself suggests, if at all
      return { ref: found.length ? describeElement(found[0]).ref : "", options: options.slice(0, 20).map((each) => nameOf(each, "option")), open, suggested };
    },
    // Fills fields in turn, up to the first that is not here, does not take its value, or wants keys. A box that was clicked in
    // vain is the last, with the problem: another click would be one too many.
    async fill(fields) {
      const done = [];
      for (const { target, value } of fields) {
        const found = resolve(target);
        if (!found.element || wantsKeys(found.element)) break;
        const field = located(found.element, found.again);
        const told = await api.set_value(field.ref, value);
        if (told.clicked) return { done: [...done, { ...field, problem: told.problem }] };
        if (told.problem || (String(value) && !told.shown)) break;
        done.push(field);
        await turn(); // the page may change the fields after this one
        forget();
      }
      return { done };
    },
    // How to submit the form of a field: by a button, by Enter in the field, or done already where a form without a button
    // takes no Enter. `invalid` is the field that keeps the browser from submitting.
    submit(ref) {
      const element = nodeOf(ref);
      const form = element.form ?? element.closest("form");
      const typed = tagOf(element) === "input" && !/^(checkbox|radio|range|color|file)$/.test(element.type);
      if (!form) return { enter: true, submits: false };
      const parts = [...elementsOf.call(form), ...Element.prototype.querySelectorAll.call(form, "input[type=image]")];
      const button = parts.find((each) => each.matches("button:not([type]), button[type=submit], input[type=submit], input[type=image]"));
      const wrong = form.noValidate === true || button?.formNoValidate ? undefined : parts.find((each) => each.willValidate && each.matches(":invalid"));
      const invalid = wrong ? nameOf(wrong, roleOf(wrong)) || tagOf(wrong) : "";
      if (button) return typed && !button.matches(":disabled") ? { enter: true, submits: true, invalid } : { ref: describeElement(button).ref, submits: true, invalid };
      const texts = parts.filter((each) => tagOf(each) === "input" && !NO_TEXT.test(each.type));
      if (typed && !NO_TEXT.test(element.type)) return { enter: true, submits: texts.length === 1, invalid };
      HTMLFormElement.prototype.requestSubmit.call(form);
      return { submits: true, invalid };
    },
    focus(ref) {
      const element = nodeOf(ref);
      element.scrollIntoView({ block: "nearest", behavior: "instant" });
      element.focus({ preventScroll: true });
      return { focused: element.getRootNode().activeElement === element };
    },
    describe(ref) {
      const element = nodeOf(ref);
      return { text: lineOf(element, roleOf(element) ?? "clickable", false).text };
    },
    // Waits until nothing has changed for so long, and what moves or fades has come to its end. Not where there are no timers.
    quiet({ quiet_ms: quiet, limit_ms: limit }) {
      if (!hasTimers()) return { quiet: true, waited: false };
      const end = performance.now() + limit;
      if (placeOf(location.href) !== shownAt) quiet = Math.max(quiet, ROUTED_QUIET_MS);
      return new Promise((done) => {
        let timer;
        const finish = (result) => {
          observer.disconnect();
          clearTimeout(timer);
          clearTimeout(last);
          done({ quiet: result, waited: true });
        };
        const again = () => {
          clearTimeout(timer);
          timer = setTimeout(() => (isMoving(end - performance.now()) ? again() : finish(true)), quiet);
        };
        const observer = new MutationObserver(again);
        const last = setTimeout(() => finish(false), limit);
        for (const root of roots) if (!root.isConnected) roots.delete(root);
        for (const root of [document, ...roots]) observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
        again();
      });
    },
    check({ text, text_gone: gone, ref, selector }) {
      const has = (part) => [() => document.body?.innerText ?? textOf(top(), MOST_WAITED_TEXT), shadowText].some((text) => text().toLowerCase().includes(part.toLowerCase()));
      if (text !== undefined && text !== null && !has(text)) return { holds: false };
      if (gone !== undefined && gone !== null && has(gone)) return { holds: false };
      if (ref) {
        const node = byRef(ref).node;
        if (!node || !isVisible(node)) return { holds: false };
      }
      if (selector) {
        try {
          if (!bySelector(selector).some(isVisible)) return { holds: false };
        } catch {
          return { holds: false, problem: "is no valid CSS selector" };
        }
      }
      return { holds: true };
    },
    element: (ref) => nodeOf(ref),
    box(target) {
      const found = resolve(target);
      if (!found.element) return { problem: found.problem, x: 0, y: 0, width: 0, height: 0 };
      found.element.scrollIntoView({ block: "nearest", behavior: "instant" });
      const box = found.element.getBoundingClientRect(), isMain = window.top === window;
      return { x: box.x + (isMain ? scrollX : 0), y: box.y + (isMain ? scrollY : 0), width: box.width, height: box.height };
    },
  };
  return {
    element: api.element,
    call(name, args) {
      const told = (value) => ({ value, last, unexamined: unexamined.size });
      forget();
      const value = api[name](...args);
      return value instanceof Promise ? value.then(told) : told(value);
    },
    // Note refs that an answer shows. One of an element that is gone may just stand in an error.
    show(given) {
      for (const ref of given) {
        const entry = known.get(ref);
        if (!entry || (inAnswers.has(ref) && !entry.node.deref()?.isConnected)) continue;
        inAnswers.add(ref);
        ownerOf(entry).ref = ref;
      }
    },
    // The elements that may have closed shadow roots, and those roots.
    hosts: () => [...unexamined].slice(0, MOST_HOSTS),
    reveal(...found) {
      for (const host of this.hosts()) {
        closed.set(host, null);
        unexamined.delete(host);
      }
      for (const root of found) {
        closed.set(root.host, root);
        roots.add(root);
      }
    },
  };
}
