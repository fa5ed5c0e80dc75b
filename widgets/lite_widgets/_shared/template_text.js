// The same templates as text, where there is no page: what template.js is to a browser.

class Markup {
  constructor(text) {
    this.text = text;
  }
  toString() {
    return this.text;
  }
}

class Attributes extends Markup {}

export const STILL = true;
export const nothing = new Markup("");

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (value) => String(value).replace(/[&<>"']/g, (c) => ENTITIES[c]);

function piece(value) {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(piece).join("");
  return value === null || value === undefined ? "" : escape(value);
}

/** An attribute that is to follow: `name=`, `?name=` (there or not), `.name=` (a property),
 * `@name=` (what to do, which text cannot). */
const ATTRIBUTE = /\s([?.@]?)([\w:-]+)=$/;

function attribute(sign, name, value) {
  if (value === nothing || sign === "@" || (sign && (value === false || value === null))) return "";
  return sign === "?" || value === true ? ` ${name}` : ` ${name}="${piece(value)}"`;
}

/** A tag function of template literals, whose result is text; values are escaped. */
export function html(strings, ...values) {
  let out = strings[0];
  let inTag = false;
  values.forEach((value, i) => {
    const before = strings[i];
    const at = Math.max(before.lastIndexOf("<"), before.lastIndexOf(">"));
    if (at >= 0) inTag = before[at] === "<";
    const found = inTag && ATTRIBUTE.exec(before);
    if (found) out = out.slice(0, -found[0].length) + attribute(found[1], found[2], value);
    else out += piece(value);
    out += strings[i + 1];
  });
  return new Markup(out);
}

export const svg = html;

export const live = (value) => value;

export const repeat = (items, key, draw) => items.map(draw ?? key);

export const attributes = (values) =>
  new Attributes(
    Object.entries(values)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value]) => `${name}="${escape(value)}"`)
      .join(" "),
  );

export function render() {
  throw new Error("there is no page to draw into");
}
