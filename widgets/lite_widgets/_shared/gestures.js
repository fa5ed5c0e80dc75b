// What a person does in a widget: clicks, keys, pointer, hovering. `c` is the view (view.js), whose
// attributes and functions these are.

import { announce } from "./link.js";
import { copyText } from "./parts.js";
import { follow, inside, lasso } from "./pointer.js";
import { afterClick, afterKey } from "./selection.js";

const TARGETS = "[data-action],[data-copy],button[data-set],[data-k]";

export function onGestures(c) {
  const handlers = {
    click: (e) => click(c, e),
    keydown: (e) => key(c, e),
    pointerdown: (e) => pointer(c, e),
    change: ({ target }) => change(c, target, written(target)),
    input: ({ target }) => input(c, target),
    mouseover: (e) => hover(c, e),
    mousemove: (e) => c.tip.place(e),
    mouseleave: () => leave(c),
  };
  for (const [event, handler] of Object.entries(handlers)) c.root.addEventListener(event, handler);
}

function click(c, event) {
  if (event.target.closest("[aria-disabled=true]")) return;
  if (c.spec.click?.(c, event)) return;
  const target = event.target.closest(TARGETS);
  if (!target) return;
  const d = target.dataset;
  if (d.action) c.act(d.action, d.payload ? JSON.parse(d.payload) : {});
  else if (d.copy !== undefined) copyText(target);
  else if (d.set) change(c, event.target, d.value ?? written(event.target));
  else c.select(afterClick(c.selected, d.k, event.shiftKey || event.ctrlKey || event.metaKey));
}

const written = (field) => (field.type === "checkbox" ? field.checked : field.value);

function change(c, target, value) {
  const name = target.closest("[data-set]")?.dataset.set;
  if (!name) return;
  if (c.spec.set) c.spec.set(c, name, value);
  else c.set({ [name]: value });
}

function input(c, field) {
  const name = field.dataset.range || field.dataset.find;
  if (name) c.spec.input?.(c, name, field.value);
}

function key(c, event) {
  if (c.spec.key?.(c, event)) {
    event.preventDefault();
    return;
  }
  if (event.key === "Escape" && c.selected.length) {
    c.select([]);
    event.preventDefault();
    return;
  }
  const target = event.target;
  if (!target.closest("[data-keys]") || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
  const next = c.spec.order && afterKey(c.spec.order(c), c.current, event.key);
  if (next === null || next === undefined) return;
  event.preventDefault();
  const adds = event.shiftKey && c.current !== next;
  c.select(adds ? [...c.selected.filter((n) => n !== next), next] : [next]);
}

function pointer(c, event) {
  if (event.button !== 0) return;
  const handle = event.target.closest("[data-drag]");
  if (handle) {
    drag(c, event, handle);
    return;
  }
  const area = event.target.closest("[data-lasso]");
  if (!area || event.target.closest("button,input,select,a")) return;
  if (area.dataset.lasso === "drag" || event.shiftKey) {
    lasso(event, c.root, (rect) => {
      c.select(c.spec.within ? c.spec.within(c, area, rect) : inside(area, rect));
    });
  } else c.spec.pan?.(c, event, area);
}

function drag(c, event, handle) {
  event.preventDefault();
  handle.focus({ preventScroll: true });
  follow(
    (e) => c.spec.drag(c, handle.dataset.drag, e),
    () => c.save(),
  );
}

function hover(c, event) {
  const target = event.target.closest("[data-k],[data-tip]");
  const name = target?.dataset.k || null;
  if (name !== (c.local.hovered || null)) point(c, name);
  c.tip.say(target && (target.dataset.tip || (name && c.spec.tip?.(c, name, target))));
}

function leave(c) {
  c.tip.say("");
  if (c.local.hovered) point(c, null);
}

/** The layer under the pointer is marked here and in the widgets that follow. */
function point(c, name) {
  c.local.hovered = name;
  c.mark();
  announce(c.get("link"), c.uid, { hovered: name });
}
