// The widgets' glue where there is no page: a state in, the drawing as text out. What view.js is to
// a browser. A widget that needs a page to draw has `still(c)`, or `still: false` for no picture.
import { html, nothing } from "#template";
import { notice } from "./parts.js";

const WIDTH = 860; // of every picture, in pixels

export const widget = (spec) => ({ spec, still: (state) => picture(spec, new StillView(state)) });

function picture(spec, c) {
  const status = c.get("status") || {},
    ready = spec.still !== false && (!spec.ready || spec.ready(c));
  if (status.kind === "error") return frame(spec, notice(status));
  if (!ready || status.kind === "empty") return "";
  return frame(spec, (spec.still || spec.view)(c));
}

const frame = (spec, drawing) =>
  drawing === nothing
    ? ""
    : String(html`<div class="lite lite-${spec.name}" data-theme="light">${drawing}</div>`);

class StillView {
  constructor(state) {
    this.state = state;
    this.local = {};
    this.dark = false;
  }

  get(name) {
    return this.state[name];
  }

  get selected() {
    return this.state.selected || [];
  }

  get current() {
    return this.selected[this.selected.length - 1] ?? null;
  }

  get paint() {
    return { dark: false, id: "still", copy: "url(#stillc)", carried: "url(#stille)" };
  }

  memo(name, inputs, make) {
    return make();
  }

  fitted(draw) {
    return draw(WIDTH);
  }

  /** Bytes come as {base64, byteLength}. */
  imageUrl(name) {
    const { base64 } = this.state[name] || {};
    if (!base64) return null;
    return `data:image/${base64.startsWith("iVBOR") ? "png" : "jpeg"};base64,${base64}`;
  }
}
