// One scrollable, zoomable drawing of one graph. Only the slice on screen (and half a screen
// around it) is in the page, so 1000 nodes scroll as smoothly as ten.
import { render } from "#template";
import { layout, paths, trail, tree } from "./layout.js";
import { follow } from "../_shared/pointer.js";
import { commonPrefix } from "./names.js";
import { paintGraph } from "./paint.js";

const ZOOM = [0.2, 2.5];
/** Of a drawing in a wide window: edges and side branches stay near their chain. */
const WIDEST = 760;

/** `element` holds `.sheet`, which is as large as the whole drawing, and in it `svg.slice`. */
export class Pane {
  constructor(c, element, graph, style, share) {
    this.c = c;
    this.element = element;
    this.graph = graph;
    this.blocks = tree(graph.nodes, graph.regions);
    this.style = style;
    this.share = share;
    this.zoom = 1;
    this.wide = false; // fills the window: room on every side, shapes between the nodes
    this.pad = [0, 0];
    this.sheet = element.querySelector(".sheet");
    this.svg = element.querySelector(".slice");
  }

  /** What all names begin with, up to a slash or dot: it tells nobody anything. */
  get names() {
    return (this.prefix ??= { prefix: commonPrefix(this.graph.nodes.map((n) => n.name)) });
  }

  allPaths() {
    return paths(this.blocks);
  }

  /** Lay out with these blocks open, and draw what is on screen. */
  arrange(open) {
    this.open = new Set(open);
    const { clientWidth, clientHeight } = this.element;
    const width = Math.min(Math.max(280, clientWidth - 2), this.wide ? WIDEST : Infinity);
    this.pad = this.wide ? [clientWidth / 2, clientHeight / 2] : [0, 0];
    this.plan = layout({
      blocks: this.blocks,
      inputs: this.graph.inputs,
      outputs: this.graph.outputs,
      open: this.open,
      width,
      share: this.share,
      wide: this.wide,
    });
    this.#size();
    this.paint(true);
  }

  #size() {
    const [x, y] = this.pad;
    this.sheet.style.height = `${this.plan.height * this.zoom + 2 * y}px`;
    this.sheet.style.width = `${this.plan.width * this.zoom + 2 * x}px`;
  }

  /** The element was scrolled. */
  scrolled() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.paint();
    });
  }

  /** A point of the element, from its left top corner, in the layout. */
  #at(x, y) {
    const { scrollLeft, scrollTop } = this.element;
    return [(scrollLeft + x - this.pad[0]) / this.zoom, (scrollTop + y - this.pad[1]) / this.zoom];
  }

  /** Scroll so that this point of the layout is at x, y of the element. */
  #scroll([planX, planY], x, y) {
    this.element.scrollLeft = planX * this.zoom + this.pad[0] - x;
    this.element.scrollTop = planY * this.zoom + this.pad[1] - y;
  }

  /** The layout's y range on screen. */
  get view() {
    const { clientHeight } = this.element;
    return [this.#at(0, 0)[1], this.#at(0, clientHeight)[1]];
  }

  /** What is on screen, as a rectangle of the layout. */
  get window() {
    const { clientWidth, clientHeight } = this.element;
    const [x, y] = this.#at(0, 0);
    return { x, y, w: clientWidth / this.zoom, h: clientHeight / this.zoom };
  }

  /** The top in the middle: where a person starts to look. */
  home() {
    this.#scroll([this.plan.width / 2, 0], this.element.clientWidth / 2, 16);
    this.paint();
  }

  /** This point of the layout in the middle of the element. */
  center(x, y) {
    this.#scroll([x, y], this.element.clientWidth / 2, this.element.clientHeight / 2);
    this.paint();
  }

  /** As large as the width allows, at most as large as usual. */
  fit() {
    this.setZoom(Math.min(1, (this.element.clientWidth - 24) / this.plan.width));
    this.home();
  }

  paint(force = false) {
    if (!this.plan) return;
    const [y0, y1] = this.view;
    this.onView?.();
    if (
      !force &&
      this.drawn &&
      this.drawn[0] <= Math.max(0, y0) &&
      this.drawn[1] >= Math.min(y1, this.plan.height)
    )
      return;
    const spare = (y1 - y0) * 0.6;
    const range = [Math.max(0, y0 - spare), Math.min(this.plan.height, y1 + spare)];
    this.drawn = range;
    const { svg, zoom, plan } = this;
    const h = Math.max(1, range[1] - range[0]);
    svg.setAttribute("viewBox", `0 ${range[0]} ${plan.width} ${h}`);
    svg.setAttribute("width", plan.width * zoom);
    svg.setAttribute("height", h * zoom);
    svg.style.top = `${range[0] * zoom + this.pad[1]}px`;
    svg.style.left = `${this.pad[0]}px`;
    render(paintGraph(plan, range, { ...this.style(), wide: this.wide && this.names }, this.c.paint), svg);
    this.c.mark();
  }

  setZoom(zoom, at = null) {
    const next = Math.min(ZOOM[1], Math.max(ZOOM[0], zoom));
    const box = this.element.getBoundingClientRect();
    const [px, py] = at
      ? [at.clientX - box.left, at.clientY - box.top]
      : [box.width / 2, box.height / 2];
    const point = this.#at(px, py);
    this.zoom = next;
    this.#size();
    this.#scroll(point, px, py);
    this.paint(true);
  }

  /** Ctrl + wheel zooms around the pointer. */
  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    this.setZoom(this.zoom * Math.exp(-event.deltaY * 0.002), event);
  }

  pan(event) {
    const { scrollTop, scrollLeft } = this.element;
    follow((e) => {
      this.element.scrollTop = scrollTop - (e.clientY - event.clientY);
      this.element.scrollLeft = scrollLeft - (e.clientX - event.clientX);
    });
  }

  /** Blocks to open so that this node is drawn as itself, or null if it is not here. */
  trail(name) {
    return trail(this.blocks, name);
  }

  /** Scroll so that this node is on screen; its block's head too, when both fit. */
  reveal(name) {
    const box = this.plan.at.get(name);
    if (!box) return;
    if (this.wide) {
      const seen = this.window;
      const inside = box.x >= seen.x && box.x + box.w <= seen.x + seen.w
        && box.y >= seen.y + 40 && box.y + box.h + 40 <= seen.y + seen.h;
      if (!inside) this.center(this.plan.width / 2, box.y + seen.h / 8);
      return;
    }
    const el = this.element,
      y = box.y * this.zoom;
    if (y > el.scrollTop + 40 && y + 40 < el.scrollTop + el.clientHeight) return;
    const [outer] = this.trail(name) || [];
    const head = outer !== undefined ? this.plan.tops.get(outer).y * this.zoom - 10 : y;
    el.scrollTop = y - head < el.clientHeight - 150 ? head : y - el.clientHeight / 2.4;
    this.paint();
  }

  /** Nodes inside a rectangle of the page. */
  within(rect) {
    const box = this.element.getBoundingClientRect();
    const [x0, y0] = this.#at(rect.left - box.left, rect.top - box.top);
    const [x1, y1] = this.#at(rect.right - box.left, rect.bottom - box.top);
    return this.plan.order.filter((name) => {
      const b = this.plan.at.get(name);
      return b.x <= x1 && b.x + b.w >= x0 && b.y <= y1 && b.y + b.h >= y0;
    });
  }
}
