// Templates of URIs (RFC 6570): their variables, and the URI for values.

const EXPRESSION = /\{([+#./;?&]?)([^{}]+)\}/g;
const FORMS = {
  "": ["", ",", false, false],
  "+": ["", ",", false, true],
  "#": ["#", ",", false, true],
  ".": [".", ".", false, false],
  "/": ["/", "/", false, false],
  ";": [";", ";", true, false],
  "?": ["?", "&", true, false],
  "&": ["&", "&", true, false],
};

const namesIn = (list) => list.split(",").map((name) => name.trim().replace(/\*$|:\d+$/, ""));

/** The variables: {name, required}. Those of a query may be left out. */
export function variables(template) {
  const found = new Map();
  for (const [, operator, list] of template.matchAll(EXPRESSION)) {
    for (const name of namesIn(list)) if (!found.has(name)) found.set(name, { name, required: operator !== "?" && operator !== "&" });
  }
  return [...found.values()];
}

export function expand(template, values) {
  return template.replaceAll(EXPRESSION, (whole, operator, list) => {
    const [before, between, named, reserved] = FORMS[operator];
    const parts = namesIn(list).filter((name) => values[name] !== undefined).map((name) => {
      const text = reserved ? encodeURI(values[name]) : encode(values[name]);
      if (!named) return text;
      return text === "" && operator === ";" ? name : `${name}=${text}`;
    });
    return parts.length ? before + parts.join(between) : "";
  });
}

const encode = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
