// A form from a JSON Schema: labelled fields that are read into arguments and written from them.

import { h, uniqueId } from "./dom.js";
import { constraints, isObject, shapeOf } from "./schema.js";
import { FieldProblem, simpleControls } from "./fields/simple.js";
import { structureControls } from "./fields/structure.js";

const DEEPEST = 12;
const controls = { ...simpleControls, ...structureControls(makeField) };
const COMPOSITE = new Set(["object", "array", "tuple", "map", "choice", "several"]);

/** A form for an object schema: {element, read, write, mode}. `read` gives {value, problems} and shows the problems. */
export function makeForm(schema) {
  const root = isObject(schema) ? schema : {};
  const context = { root, depth: 0 };
  const shape = shapeOf(root, root);
  const fields = makeField(context, { ...root, description: undefined, default: undefined }, { name: "arguments", required: true, bare: true });
  const json = makeField(context, { type: "object", description: "The arguments as JSON." }, { name: "Arguments", required: true });
  const element = h("div", { class: "form" }, fields.element);
  let raw = false;
  if (shape.kind === "json") fields.write({});
  return {
    element,
    isEmpty: shape.kind === "object" && !Object.keys(shape.schema.properties).length,
    /** The arguments, and what is wrong with them; the first wrong field gets the focus. */
    read() {
      const problems = [];
      const value = (raw ? json : fields).read(problems);
      problems[0]?.focus();
      return { value, problems };
    },
    /** The arguments as far as they are filled in. */
    peek: () => (raw ? json : fields).read(null) ?? {},
    write(value) {
      (raw ? json : fields).write(value);
    },
    /** Edit the arguments as fields, or as one JSON text. False if what is there can't be shown so. */
    show(asJson) {
      if (asJson === raw) return true;
      const problems = [];
      const value = (raw ? json : fields).read(asJson ? null : problems);
      if (problems.length) return false;
      raw = asJson;
      element.replaceChildren((raw ? json : fields).element);
      (raw ? json : fields).write(value ?? {});
      return true;
    },
  };
}

/**
 * One field with its label. It may be left out if it is not required; `read` gives undefined then.
 * `read(null)` says nothing of problems.
 */
export function makeField(context, schema, { name, required, bare = false, inList = false }) {
  const inner = { root: context.root, depth: context.depth + 1 };
  const found = shapeOf(schema, context.root);
  const shape = inner.depth > DEEPEST ? { kind: "json", schema: found.schema, nullable: false } : found;
  const frame = new Frame(shape, { name, required, bare, inList });
  let control = null;
  const make = () => {
    if (control) return;
    control = controls[shape.kind](inner, shape, frame.options);
    frame.hold(control.element);
    if (shape.schema.default !== undefined) control.set(shape.schema.default);
  };
  const lazy = COMPOSITE.has(shape.kind) && !required;
  if (!lazy) make();
  frame.onInclude = make;
  frame.refresh();
  return {
    element: frame.element,
    rename: (text) => frame.rename(text),
    read(problems) {
      if (problems) frame.complain(null);
      if (!frame.included) return undefined;
      if (frame.isNull) return null;
      make();
      try {
        return control.get(problems);
      } catch (problem) {
        if (!(problem instanceof FieldProblem)) throw problem;
        if (!problems) return undefined;
        frame.complain(problem.message);
        problems.push({ text: `${frame.label} ${problem.message}`, focus: () => frame.focus() });
        return undefined;
      }
    },
    write(value) {
      frame.include(value !== undefined || required);
      frame.setNull(value === null && !!shape.nullable);
      if (value !== undefined && !(value === null && shape.nullable)) {
        make();
        control.set(value);
      }
      frame.refresh();
    },
  };
}

/** What surrounds a control: its label, whether it is sent, whether it is null, its description and its problem. */
class Frame {
  constructor(shape, { name, required, bare, inList }) {
    this.id = uniqueId("field");
    this.shape = shape;
    this.label = name;
    this.required = required;
    this.options = { id: this.id, name, required };
    this.composite = COMPOSITE.has(shape.kind);
    this.sent = required ? null : h("input", { type: "checkbox", class: "send", title: "Send this value", "aria-label": `Send ${name}` });
    this.nulled = shape.nullable ? h("input", { type: "checkbox", id: `${this.id}-null`, "aria-label": `${name} is null` }) : null;
    this.body = h("div", { class: "control" });
    this.problem = h("p", { class: "problem", id: `${this.id}-problem`, hidden: true });
    this.description = shape.schema.description ? h("p", { class: "description", id: `${this.id}-description` }, shape.schema.description) : null;
    this.element = h("div", { class: `field kind-${shape.kind}${bare ? " bare" : ""}${inList ? " in-list" : ""}`, "data-name": name });
    this.element.append(...[!bare && this.head(name), this.description, this.body, this.problem].filter(Boolean));
    this.listen();
  }

  head(name) {
    const title = this.shape.schema.title && this.shape.schema.title !== name ? h("span", { class: "title" }, this.shape.schema.title) : null;
    this.name = h("span", {}, name);
    const label = this.composite || this.shape.kind === "const"
      ? h("span", { class: "label", id: `${this.id}-label` }, this.name)
      : h("label", { class: "label", for: this.id }, this.name, this.required && h("span", { class: "required", title: "required", "aria-hidden": "true" }, "*"));
    if (this.composite) {
      this.element.setAttribute("role", "group");
      this.element.setAttribute("aria-labelledby", `${this.id}-label`);
    }
    const facts = constraints(this.shape).join(" · ");
    const nulled = this.nulled && h("label", { class: "check null-check" }, this.nulled, "null");
    return h("div", { class: "field-head" }, this.sent, label, title, facts && h("span", { class: "facts" }, facts), nulled);
  }

  listen() {
    this.body.addEventListener("input", () => {
      if (this.sent && !this.sent.checked) {
        this.sent.checked = true;
        this.refresh();
      }
      this.complain(null);
    });
    this.sent?.addEventListener("change", () => this.refresh());
    this.nulled?.addEventListener("change", () => {
      if (this.sent && this.nulled.checked) this.sent.checked = true;
      this.refresh();
    });
  }

  get included() {
    return this.sent ? this.sent.checked : true;
  }

  get isNull() {
    return !!this.nulled?.checked;
  }

  include(yes) {
    if (this.sent) this.sent.checked = yes;
  }

  setNull(yes) {
    if (this.nulled) this.nulled.checked = yes;
  }

  hold(control) {
    this.body.replaceChildren(control);
    const target = control.matches("input, textarea, select") ? control : control.querySelector(`#${this.id}`);
    if (!target) return;
    if (this.element.classList.contains("bare") || this.composite) target.setAttribute("aria-label", this.label);
    if (this.required) target.setAttribute("aria-required", "true");
    target.setAttribute("aria-describedby", [this.description?.id, this.problem.id].filter(Boolean).join(" "));
  }

  /** Show whether it is sent. A field with parts is only open if it is. */
  refresh() {
    if (this.included && !this.isNull) this.onInclude?.();
    this.element.classList.toggle("left-out", !this.included);
    this.body.hidden = this.isNull || (this.composite && !this.included);
  }

  rename(text) {
    this.label = text;
    if (this.name) this.name.textContent = text;
  }

  complain(text) {
    this.problem.hidden = !text;
    this.problem.textContent = text ? `${this.label} ${text}` : "";
    this.element.classList.toggle("wrong", !!text);
    this.body.querySelector(`#${this.id}`)?.setAttribute("aria-invalid", text ? "true" : "false");
  }

  focus() {
    (this.body.querySelector(`#${this.id}`) ?? this.body.querySelector("input, textarea, select, button"))?.focus();
  }
}
