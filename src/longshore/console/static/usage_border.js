// The border of the window, coloured while tools run: browser blue, filesystem green, terminal yellow.

const COLOURS = ["browser", "filesystem", "terminal"];
const border = document.getElementById("usage");
let shown = "";

export function showUsage(kinds) {
  const coloured = COLOURS.filter((kind) => kinds.includes(kind));
  const key = coloured.join(" ");
  if (key === shown) return;
  shown = key;
  border.dataset.kinds = key;
  const stops = coloured.map((kind) => `var(--usage-${kind})`);
  border.style.setProperty("--usage-colours", stops.length === 1 ? `${stops[0]}, ${stops[0]}` : stops.join(", "));
  border.classList.toggle("shown", coloured.length > 0);
}
