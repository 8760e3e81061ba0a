// Suggestions of the server for the arguments of prompts and templates (completion/complete).

import { h, show } from "./dom.js";

const PAUSE = 200;
const SHOWN = 12;

/** Show suggestions below the fields of a form. `reference` is what the server completes for. */
export function offerSuggestions(app, form, reference) {
  if (!app.discovered?.capabilities?.completions) return;
  let waiting = 0;
  let controller = null;
  const refresh = (field) => {
    clearTimeout(waiting);
    waiting = setTimeout(async () => {
      controller?.abort();
      controller = new AbortController();
      const values = form.peek();
      const name = field.dataset.name;
      const { [name]: value = "", ...others } = values;
      const params = { ref: reference, argument: { name, value }, context: { arguments: others } };
      const result = await app.mcp.request("completion/complete", params, { quiet: true, signal: controller.signal }).catch(() => null);
      if (result) draw(field, result.completion?.values ?? [], value);
    }, PAUSE);
  };
  form.element.addEventListener("focusin", (event) => fieldOf(event) && refresh(fieldOf(event)));
  form.element.addEventListener("input", (event) => fieldOf(event) && refresh(fieldOf(event)));
}

const control = (field) => field.querySelector("textarea, input:not([type=checkbox])");
const fieldOf = (event) => (event.target.matches("textarea, input:not([type=checkbox])") ? event.target.closest(".field[data-name]") : null);

function draw(field, values, typed) {
  const name = field.dataset.name;
  let place = field.querySelector(".suggestions");
  if (!place) {
    place = h("div", { class: "suggestions", role: "group", "aria-label": `Suggestions for ${name}` });
    field.append(place);
  }
  const buttons = values.filter((value) => value !== typed).slice(0, SHOWN).map((value) => h("button", { type: "button", class: "small", on: { click: () => {
    const input = control(field);
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
    input.focus();
  } } }, value));
  show(place, buttons);
}
