// One scrollable, zoomable drawing of one graph. Only the slice on screen (and half a screen
// around it) is in the page, so 1000 nodes scroll as smoothly as ten.
import { render } from "#template";
import { layout, paths, trail, tree } from "./layout.js";
import { follow } from "../_shared/pointer.js";
import { paintGraph } from "./paint.js";

const ZOOM = [0.35, 2.5];

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
    this.sheet = element.querySelector(".sheet");
    this.svg = element.querySelector(".slice");
  }

  allPaths() {
    return paths(this.blocks);
  }

  /** Lay out with these blocks open, and draw what is on screen. */
  arrange(open) {
    this.open = new Set(open);
    const width = Math.max(280, this.element.clientWidth - 2);
    this.plan = layout({
      blocks: this.blocks,
      inputs: this.graph.inputs,
      outputs: this.graph.outputs,
      open: this.open,
      width,
      share: this.share,
    });
    this.#size();
    this.paint(true);
  }

  #size() {
    this.sheet.style.height = `${this.plan.height * this.zoom}px`;
    this.sheet.style.width = `${this.plan.width * this.zoom}px`;
  }

  /** The element was scrolled. */
  scrolled() {
    this.pending ??= requestAnimationFrame(() => {
      this.pending = null;
      this.paint();
    });
  }

  /** The layout's y range on screen. */
  get view() {
    const top = this.element.scrollTop / this.zoom;
    return [top, top + this.element.clientHeight / this.zoom];
  }

  paint(force = false) {
    if (!this.plan) return;
    const [y0, y1] = this.view;
    this.onView?.(y0, y1);
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
    svg.style.top = `${range[0] * zoom}px`;
    render(paintGraph(plan, range, this.style(), this.c.paint), svg);
    this.c.mark();
  }

  setZoom(zoom, at = null) {
    const next = Math.min(ZOOM[1], Math.max(ZOOM[0], zoom));
    const box = this.element.getBoundingClientRect();
    const [px, py] = at
      ? [at.clientX - box.left, at.clientY - box.top]
      : [box.width / 2, box.height / 2];
    const x = (this.element.scrollLeft + px) / this.zoom,
      y = (this.element.scrollTop + py) / this.zoom;
    this.zoom = next;
    this.#size();
    this.element.scrollLeft = x * next - px;
    this.element.scrollTop = y * next - py;
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
    const sx = (v) => (v - box.left + this.element.scrollLeft) / this.zoom;
    const sy = (v) => (v - box.top + this.element.scrollTop) / this.zoom;
    const [x0, x1, y0, y1] = [sx(rect.left), sx(rect.right), sy(rect.top), sy(rect.bottom)];
    return this.plan.order.filter((name) => {
      const b = this.plan.at.get(name);
      return b.x <= x1 && b.x + b.w >= x0 && b.y <= y1 && b.y + b.h >= y0;
    });
  }
}
