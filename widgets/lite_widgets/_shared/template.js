// The templates that widgets are drawn with: lit-html's. A drawing changes only what differs from
// the one before, so elements keep their focus, their caret and a button that is held down. Values
// are text: layer names come from model files, which are not ours to trust.
import { nothing } from "lit-html";
import { AsyncDirective } from "lit-html/async-directive.js";
import { Directive, directive } from "lit-html/directive.js";

export { html, nothing, render, svg } from "lit-html";
export { live } from "lit-html/directives/live.js";
export { repeat } from "lit-html/directives/repeat.js";

/** Is this drawn for a picture, without a page that could be clicked? */
export const STILL = false;

/** `<div ${attributes({role: "slider", tabindex: 0})}>`; what is null is left out. */
export const attributes = directive(
  class extends Directive {
    update({ element }, [values]) {
      for (const [name, value] of Object.entries(values))
        if (value === null || value === undefined) element.removeAttribute(name);
        else element.setAttribute(name, value);
      return nothing;
    }
  },
);

/**
 * `<div>${fitted(draw, drawn)}</div>`: what `draw(width)` makes for the width of the div in pixels,
 * again when that changes; nothing while it has none. `drawn()` is called when it drew by itself.
 */
export const fitted = directive(
  class extends AsyncDirective {
    width = 0;
    watcher = new ResizeObserver(() => requestAnimationFrame(() => this.#resized()));

    update(part, [draw, drawn]) {
      Object.assign(this, { draw, drawn });
      if (this.box !== part.parentNode) {
        this.box = part.parentNode;
        this.disconnected();
        this.reconnected();
      }
      this.width ||= this.box.clientWidth;
      return this.#view();
    }

    #view() {
      return this.width ? this.draw(this.width) : nothing;
    }

    #resized() {
      const { clientWidth } = this.box;
      if (clientWidth === this.width || !this.isConnected) return;
      this.width = clientWidth;
      this.setValue(this.#view());
      this.drawn();
    }

    reconnected() {
      this.watcher.observe(this.box);
    }

    disconnected() {
      this.watcher.disconnect();
    }
  },
);
