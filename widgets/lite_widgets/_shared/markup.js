// Text that is markup, and text that is not: everything put into html`…` is escaped unless it was
// made by html`…` itself. Layer names come from model files, which are not ours to trust.

class Markup {
  constructor(text) {
    this.text = text;
  }
  toString() {
    return this.text;
  }
}

const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export function escape(value) {
  return String(value).replace(/[&<>"']/g, (c) => ENTITIES[c]);
}

function piece(value) {
  if (value instanceof Markup) return value.text;
  if (Array.isArray(value)) return value.map(piece).join("");
  if (value === null || value === undefined || value === false) return "";
  return escape(value);
}

export function html(strings, ...values) {
  let out = strings[0];
  for (let i = 0; i < values.length; i++) out += piece(values[i]) + strings[i + 1];
  return new Markup(out);
}

/** Join pieces of markup (or plain text, escaped) without anything between. */
export function join(parts) {
  return new Markup(parts.map(piece).join(""));
}
