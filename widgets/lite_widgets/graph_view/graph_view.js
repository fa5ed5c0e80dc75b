// The model as a chain of blocks that open in place, coloured by time, kind or error.
import { html, nothing, render, STILL } from "#template";
import { widget } from "#view";
import { isCopy } from "../_shared/encode.js";
import { overview, span } from "../_shared/overview.js";
import * as colour from "../_shared/colour.js";
import { hatchKey, key, keyed, square } from "../_shared/parts.js";
import { afterClick } from "../_shared/selection.js";
import { drawMap, goOnMap, layerPane, markMap, setFull } from "./full.js";
import { graphStyle } from "./graph_style.js";
import { arrange, find, firstWrong, openBlocks, related, show, toggle } from "./navigate.js";
import { Pane } from "./pane.js";
import { tr, trn } from "../_shared/words.js";

const STYLED_BY = [
  ["profile", "comparison", "changes", "tolerance", "op_tolerances"],
  ["colour_by", "baseline", "hidden_types"],
].flat();

const styleOf = (c) =>
  c.memo("style", [c.dark, ...STYLED_BY.map((n) => c.get(n))], () =>
    graphStyle({
      profile: c.get("profile"),
      comparison: c.get("comparison"),
      changes: c.get("changes"),
      tolerance: c.get("tolerance"),
      byOp: c.get("op_tolerances"),
      by: c.get("colour_by"),
      baseline: c.get("baseline"),
      hidden: c.get("hidden_types"),
      paint: c.paint,
    }),
  );

function legend(c) {
  const { dark } = c.paint;
  if (c.get("comparison"))
    return html`<span class="lg"
      >${key(square(colour.scale("within", 0.6, dark)), tr("within"))}${hatchKey(
        c.paint.carried,
        tr("propagated"),
      )}${key(square("#d55e00"), tr("fails on its own"))}</span
    >`;
  const { added, deleted, changed } = colour.DIFF;
  if (c.get("changes"))
    return html`<span class="lg"
      >${key(square(added), tr("added"))}${key(square(changed), tr("changed"))}${key(
        square(deleted),
        tr("deleted"),
      )}</span
    >`;
  return nothing;
}

function foot(c) {
  const { e } = c.local.style;
  const notes = [];
  if (c.get("comparison")) notes.push(tr("number: accumulated error"));
  else if (e) notes.push(tr("number: {unit}", { unit: e.unit }));
  if (e && (c.get("comparison") || e.by !== "time")) notes.push(tr("border width: share of time"));
  else notes.push(tr("click a block to open or close it"));
  if (!c.get("comparison") && c.get("profile")?.layers.some(isCopy)) notes.push(tr("◆ copy or cast"));
  return html`${notes.map((n) => html`<span>${n}</span>`)}`;
}

/** A pane for the element of this name, with the zoom of the one before. */
function makePane(c, name, graph, style, share, before) {
  const pane = new Pane(c, c.root.querySelector(`[data-pane=${name}]`), graph, style, share);
  pane.zoom = before?.zoom || 1;
  pane.wide = Boolean(c.local.full);
  return pane;
}

function build(c) {
  const { local } = c,
    graph = c.get("graph"),
    file = c.get("source_graph");
  const style = () => local.style,
    share = (n) => local.style.share(n);
  local.pane = makePane(c, "main", graph, style, share, local.pane);
  local.pane.onView = () => bracket(c);
  if (!file) {
    local.source = null;
    return;
  }
  const made = new Map();
  for (const n of graph.nodes)
    for (const s of n.sources || []) made.set(s, [...(made.get(s) || []), n.name]);
  const changes = c.get("changes");
  const plain = () =>
    c.memo("plain", [c.dark, changes], () =>
      graphStyle({ profile: null, comparison: null, changes, side: "before", paint: c.paint }),
    );
  const lit = () => {
    const names = related(c);
    const cls = (name) => (names.has(name) ? "sel" : "") + (made.has(name) ? "" : " gone");
    return { ...plain(), key: "src", cls };
  };
  local.made = made;
  local.source = makePane(c, "source", file, lit, () => 1, local.source);
}

const strip = (c) => c.root.querySelector(".ov");

/** The overview, as high as the graph beside it. */
function drawStrip(c) {
  const { style } = c.local,
    box = strip(c),
    height = box.clientHeight;
  if (c.local.full) return drawMap(c, box);
  const all = overview(c.get("graph").nodes, {
    height,
    weight: style.marked ? (n) => style.at.get(n.name)?.acc ?? 0 : style.share,
    fill: style.solid,
    flag: style.first,
    hatch: style.hatch,
    paint: c.paint,
  });
  render(
    html`${all}
      <div class="viewport"></div>`,
    box,
  );
  return undefined;
}

/** Mark in the overview what the pane shows. */
function bracket(c) {
  if (c.local.full) return markMap(c, strip(c));
  const [y0, y1] = c.local.pane.view;
  const mark = strip(c).querySelector(".viewport");
  if (!mark) return undefined;
  const { nodes } = c.get("graph"),
    { at } = c.local.pane.plan;
  const seen = nodes.flatMap(({ name }, i) => {
    const b = at.get(name);
    return b && b.y < y1 && b.y + b.h > y0 ? [i] : [];
  });
  mark.hidden = !seen.length;
  if (!seen.length) return undefined;
  const s = span(nodes.length, seen[0], seen[seen.length - 1], strip(c).clientHeight);
  Object.assign(mark.style, { top: `${s.top}px`, height: `${s.height}px`, left: "", right: "", width: "" });
  return undefined;
}

const paneOf = (c, target) =>
  target.closest("[data-pane=source]") ? c.local.source : c.local.pane;

const mostOpen = (c) => (c.local.open || []).length * 2 > c.local.pane.allPaths().length;

function paneBox(c, name, label, note) {
  const pane = () => (name === "main" ? c.local.pane : c.local.source);
  const help = tr("{label}. Arrow keys move the selection, Enter opens or closes its block.", { label });
  const wheel = { handleEvent: (event) => pane()?.wheel(event), passive: false };
  return html`<div class="half">
    <div
      class="gv"
      data-pane=${name}
      ${keyed(help, "shift")}
      @scroll=${() => pane()?.scrolled()}
      @wheel=${wheel}
    >
      <div class="sheet"><svg class="slice"></svg></div>
    </div>
    ${note ? html`<div class="cap lg"><span>${note}</span></div>` : nothing}
  </div>`;
}

const controls = (c) =>
  html`<input
      type="search"
      placeholder=${tr("Find a layer")}
      aria-label=${tr("Find a layer")}
      data-find="layer"
    />${legend(c)} <span class="sp"></span
    ><span class="row" style="gap:4px"
      ><button type="button" class="btn sm hide-s" data-all>${tr("Open blocks")}</button>
      <button type="button" class="btn sm sqb" data-zoom="-1" aria-label=${tr("Zoom out")}>−</button
      ><button type="button" class="btn sm sqb" data-zoom="1" aria-label=${tr("Zoom in")}>+</button
      ><button type="button" class="btn sm only-full" data-fit>${tr("Fit")}</button
      >${
        STILL
          ? nothing
          : html`<button type="button" class="btn sm" data-full>
              ${c.local.full ? tr("Close") : tr("Enlarge")}
            </button>`
      }</span
    >`;

function enlarge(c, on) {
  setFull(c, on);
  c.draw();
}

export default widget({
  name: "graph",
  empty: { title: tr("No model yet"), text: tr("The graph shows every layer, grouped by block.") },
  ready: (c) => Boolean(c.get("graph") && c.get("graph").nodes.length),
  view(c) {
    c.local.style = styleOf(c);
    const file = c.get("source_graph"),
      layers = c.get("graph").nodes.length;
    const diff = c.get("changes");
    const read = diff?.baseline || (file ? trn("{n} node as read", "{n} nodes as read", file.nodes.length) : "");
    const made = diff?.candidate
      || (file ? trn("{n} layer after optimization", "{n} layers after optimization", layers) : "");
    return html`<div
      class="card gcard${c.get("comparison") ? " errors" : ""}${c.local.full ? " full" : ""}"
      style="height:${c.get("height")}px"
    >
      <div class="ch">
        <h3>${c.get("title")}</h3>
        ${controls(c)}
      </div>
      <div class="gr${file ? " both" : ""}">
        ${file ? paneBox(c, "source", diff ? tr("Graph before") : tr("Graph of the original file"), read) : nothing}
        ${paneBox(c, "main", tr("Model graph"), made)}
        <div class="ov" data-drag=${c.local.full ? "map" : nothing}></div>
        ${c.local.full ? html`<aside class="about" aria-live="polite">${layerPane(c)}</aside>` : nothing}
      </div>
      <div class="lg gf">${foot(c)}</div>
    </div>`;
  },
  watch: [...STYLED_BY, "graph", "source_graph", "height", "title", "open_blocks", "selected"],
  after(c) {
    const { local } = c,
      data = ["graph", "source_graph", "profile", "comparison", "changes"].map((n) => c.get(n));
    if (c.changed("data", data)) {
      if (local.pane && !c.get("open_blocks")) local.open = null;
      build(c);
      local.fresh = true;
    }
    if (!c.root.clientWidth) return;
    const { pane, source, style } = local,
      height = c.get("height");
    const arranged = c.changed("room", [pane, c.root.clientWidth, height, c.get("open_blocks"), local.full]);
    if (arranged) arrange(c);
    else if (c.changed("style", [style])) pane.paint(true);
    if (source && c.changed("lit", [source, c.selected, c.dark])) source.paint(true);
    if (c.changed("full", [local.full]) && local.full) pane.home();
    if (c.changed("strip", [pane, style, strip(c).clientHeight, pane.plan])) drawStrip(c);
    c.root.querySelector("[data-all]").textContent = mostOpen(c) ? tr("Close blocks") : tr("Open blocks");
    const target = c.current || firstWrong(style);
    if (local.fresh && target) show(c, target);
    local.fresh = false;
    bracket(c);
  },
  order: (c) => c.get("graph").nodes.map((n) => n.name),
  reveal: show,
  say: (c, name) => c.local.style.say(name),
  tip(c, name) {
    const node = c.get("graph").nodes.find((n) => n.name === name);
    const said = c.local.style.tip(name);
    return said === name && node ? `${name}\n${node.op}` : said;
  },
  input: (c, name, value) => find(c, value),
  within: (c, area, rect) => {
    const pane = paneOf(c, area),
      names = pane.within(rect);
    return pane === c.local.source
      ? [...new Set(names.flatMap((s) => c.local.made.get(s) || []))]
      : names;
  },
  pan: (c, event, area) => paneOf(c, area).pan(event),
  drag: (c, name, event) => goOnMap(c, strip(c), event),
  key(c, event) {
    if (event.key === "Escape" && c.local.full) {
      enlarge(c, false);
      return true;
    }
    const head = event.target.closest("[data-block]");
    if (head && (event.key === "Enter" || event.key === " ")) {
      toggle(c, paneOf(c, head), head.dataset.block);
      return true;
    }
    if (event.target.dataset.find && event.key === "Enter") {
      find(
        c,
        event.target.value,
        c.get("graph").nodes.findIndex((n) => n.name === c.current),
      );
      return true;
    }
    if (event.key === "Enter" && event.target.dataset.pane === "main" && c.current) {
      const trail = c.local.pane.trail(c.current);
      if (trail) toggle(c, c.local.pane, trail[trail.length - 1]);
      return true;
    }
    return false;
  },
  click(c, event) {
    if (c.local.full && event.target.closest(".ov")) {
      goOnMap(c, strip(c), event);
      return true;
    }
    const t = event.target.closest("[data-block],[data-all],[data-zoom],[data-src],[data-full],[data-fit]");
    if (!t || event.target.closest("[data-k]")) return false;
    if (t.dataset.block !== undefined) toggle(c, paneOf(c, t), t.dataset.block);
    else if (t.dataset.full !== undefined) enlarge(c, !c.local.full);
    else if (t.dataset.fit !== undefined) c.local.pane.fit();
    else if (t.dataset.zoom)
      for (const p of [c.local.pane, c.local.source]) p?.setZoom(p.zoom * 1.2 ** +t.dataset.zoom);
    else if (t.dataset.src) {
      const [name] = c.local.made.get(t.dataset.src) || [];
      if (name) c.select(afterClick(c.selected, name, event.shiftKey || event.ctrlKey));
      else if (c.get("changes")) c.say(tr("{layer} was deleted", { layer: t.dataset.src }));
      else c.say(tr("{layer} was removed by the optimization", { layer: t.dataset.src }));
    } else {
      const all = c.local.pane.allPaths();
      openBlocks(c, mostOpen(c) ? [] : all);
    }
    return true;
  },
});
