// Light or dark: as the system has it, unless the user has chosen.

import { h } from "./dom.js";

const KEY = "longshore.theme";
const CHOICES = { system: "System", light: "Light", dark: "Dark" };

function stored() {
  try {
    return localStorage.getItem(KEY) ?? "system";
  } catch {
    return "system";
  }
}

function apply(choice) {
  if (choice === "light" || choice === "dark") document.documentElement.dataset.theme = choice;
  else delete document.documentElement.dataset.theme;
}

export const setUpTheme = () => apply(stored());

export function themeSwitch() {
  const select = h("select", { id: "theme", on: { change: () => {
    apply(select.value);
    try {
      localStorage.setItem(KEY, select.value);
    } catch {
      // it holds until the page is closed
    }
  } } }, Object.entries(CHOICES).map(([value, text]) => h("option", { value, selected: stored() === value }, text)));
  return h("div", { class: "theme" }, h("label", { for: "theme" }, "Colours"), select);
}
