// The graph in the whole window: a map of all of it, and beside it everything about one layer.
import { html, nothing, render, svg } from "#template";
import { bytes, shape } from "../_shared/format.js";
import { tr } from "../_shared/words.js";

const MAP_WIDTH = 120;
/** So many boxes are drawn one by one; of more only the blocks. */
const MOST_BOXES = 1500;

/** Into the whole window and back. The element stays where it is in the page: as a popover it is
 * above everything, whatever its ancestors clip. */
export function setFull(c, on) {
  const card = c.root.querySelector(".gcard");
  c.local.full = on;
  c.root.style.minHeight = on ? `${card.offsetHeight}px` : ""; // the page below stays where it is
  card.classList.toggle("full", on);
  if (on && card.showPopover) {
    card.popover = "manual";
    card.showPopover();
  } else card.removeAttribute("popover");
  for (const pane of [c.local.pane, c.local.source]) if (pane) pane.wide = on;
  c.root.querySelector(on ? "[data-pane=main]" : "[data-full]").focus({ preventScroll: true });
}

// ---- the map

const mapScale = (plan, height) => Math.min(MAP_WIDTH / plan.width, height / plan.height);

/** Every block and node as a rectangle, and what is on screen. */
export function drawMap(c, box) {
  const { pane, style } = c.local,
    { plan } = pane,
    height = box.clientHeight;
  const scale = mapScale(plan, height);
  const many = plan.items.length > MOST_BOXES;
  const rects = plan.items
    .filter((b) => b.kind === "block" || (!many && (b.kind === "node" || b.kind === "cell")))
    .map(
      (b) => svg`<rect class=${b.kind === "block" ? "block" : "nd thin"} x=${b.x} y=${b.y} width=${b.w}
        height=${b.h} fill=${b.kind === "block" ? nothing : style.solid(b.node)} />`,
    );
  const flags = plan.items
    .filter((b) => b.node && style.first(b.node))
    .map((b) => svg`<circle cx=${b.x} cy=${b.y + b.h / 2} r=${5 / scale} fill="var(--bad)" />`);
  render(
    html`<svg width=${MAP_WIDTH} height=${height} aria-hidden="true"
        ><g transform="scale(${scale})">${rects}${flags}</g></svg
      ><div class="viewport"></div>`,
    box,
  );
}

/** Marks what the pane shows. */
export function markMap(c, box) {
  const mark = box.querySelector(".viewport");
  if (!mark) return;
  const { pane } = c.local,
    seen = pane.window,
    scale = mapScale(pane.plan, box.clientHeight);
  const [x0, x1] = [seen.x, seen.x + seen.w].map((x) => Math.min(MAP_WIDTH, Math.max(0, x * scale)));
  const [y0, y1] = [seen.y, seen.y + seen.h].map((y) => Math.min(box.clientHeight, Math.max(0, y * scale)));
  Object.assign(mark.style, {
    left: `${x0}px`, width: `${x1 - x0}px`, right: "auto", top: `${y0}px`, height: `${y1 - y0}px`,
  });
}

/** Moves the pane to where the pointer is on the map. */
export function goOnMap(c, box, { clientX, clientY }) {
  const { left, top, height } = box.getBoundingClientRect(),
    { pane } = c.local,
    scale = mapScale(pane.plan, height);
  pane.center((clientX - left) / scale, (clientY - top) / scale);
}

// ---- the layer

const list = (title, rows) =>
  rows.length
    ? html`<h3>${title}</h3>
        <dl class="kv">${rows.map(([name, value]) => html`<dt>${name}</dt><dd>${value}</dd>`)}</dl>`
    : nothing;

/** A layer's operator, shapes, attributes and weights, and what was measured. */
export function layerPane(c) {
  const { nodes, inputs } = c.get("graph");
  const node = nodes.find((n) => n.name === c.current);
  if (!node)
    return html`<p class="mu">${tr("Click a layer to see its shapes, attributes and weights.")}</p>`;
  const shapeOf = (name) =>
    (nodes.find((n) => n.name === name)?.output_shapes || [])[0] ??
    inputs.find((i) => i.name === name)?.shape;
  const [, ...measured] = c.local.style.tip(node.name).split("\n");
  const sources = (node.sources || []).filter((s) => s !== node.name);
  return html`<h3>${node.name}</h3>
    <p class="mu">${node.op}${node.block ? ` · ${node.block}` : ""}</p>
    ${measured.length ? html`<p>${measured.map((line) => html`${line}<br />`)}</p>` : nothing}
    ${list(tr("Inputs"), (node.inputs || []).map((name) => [name, shape(shapeOf(name))]))}
    ${list(tr("Outputs"), (node.output_shapes || []).map((dims, i) => [`${i + 1}`, shape(dims)]))}
    ${list(tr("Attributes"), Object.entries(node.attributes || {}))}
    ${list(tr("Weights"), (node.weights || []).map((w) => [w.name, html`${w.type}<br />${bytes(w.bytes)}`]))}
    ${sources.length ? list(tr("From"), [[tr("file"), sources.join(" + ")]]) : nothing}`;
}
