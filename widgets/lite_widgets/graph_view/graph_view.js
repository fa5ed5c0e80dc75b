// The model as a chain of blocks that open in place, coloured by time, kind or error.
import { html } from "../_shared/markup.js";
import { widget } from "../_shared/view.js";
import { isCopy } from "../_shared/encode.js";
import { overview, span } from "../_shared/overview.js";
import * as colour from "../_shared/colour.js";
import { hatchKey, key, keyed, square } from "../_shared/parts.js";
import { lastPart } from "../_shared/scale.js";
import { afterClick } from "../_shared/selection.js";
import { graphStyle } from "./graph_style.js";
import { Pane } from "./pane.js";

/** First view: the two costliest blocks; in a comparison, the block of the first divergence. */
function defaultOpen(blocks, style) {
  const all = blocks.reduce((a, b) => a + b.nodes.length, 0);
  if (all <= 16) return blocks.map((b) => b.path);
  if (style.judged) {
    const at = Math.max(style.judged.own[0] ?? style.judged.first, 0);
    const name = style.judged.layers[at]?.name;
    const i = blocks.findIndex((b) => b.nodes.some((n) => n.name === name));
    return blocks.slice(Math.max(0, i - 1), i + 1).map((b) => b.path);
  }
  const cost = (b) => b.nodes.reduce((a, n) => a + style.share(n), 0);
  return [...blocks]
    .sort((a, b) => cost(b) - cost(a))
    .slice(0, 2)
    .map((b) => b.path);
}

const styleOf = (c) =>
  graphStyle({
    profile: c.get("profile"),
    comparison: c.get("comparison"),
    tolerance: c.get("tolerance"),
    byOp: c.get("op_tolerances"),
    by: c.get("colour_by"),
    baseline: c.get("baseline"),
    hidden: c.get("hidden_types"),
    paint: c.paint,
  });

function legend(c) {
  const { dark } = c.paint;
  if (c.get("comparison"))
    return html`<span class="lg"
      >${key(square(colour.scale("within", 0.6, dark)), "within")}${hatchKey(
        c.paint.carried,
        "carried",
      )}${key(square("#d55e00"), "own error")}</span
    >`;
  return "";
}

function foot(c) {
  const e = c.local.style.e;
  const notes = [];
  if (c.get("comparison")) notes.push("number: accumulated error");
  else if (e) notes.push(`number: ${e.unit}`);
  if (e && (c.get("comparison") || e.by !== "time")) notes.push("border width: share of time");
  else notes.push("click a block to open or close it");
  if (!c.get("comparison") && c.get("profile")?.layers.some(isCopy)) notes.push("◆ copy or cast");
  return html`${notes.map((n) => html`<span>${n}</span>`)}`;
}

const related = (c) => {
  const chosen = new Set(c.selected);
  return new Set(
    c
      .get("graph")
      .nodes.filter((n) => chosen.has(n.name))
      .flatMap((n) => n.sources || []),
  );
};

function build(c) {
  c.local.style = styleOf(c);
  const main = c.root.querySelector("[data-pane=main]");
  const pane = new Pane(
    c,
    main,
    c.get("graph"),
    () => c.local.style,
    (n) => c.local.style.share(n),
  );
  pane.zoom = c.local.zoom || 1;
  pane.onView = (y0, y1) => bracket(c, y0, y1);
  c.local.pane = pane;
  const side = c.root.querySelector("[data-pane=source]");
  c.local.source = null;
  if (side) {
    const made = new Map();
    for (const n of c.get("graph").nodes)
      for (const s of n.sources || []) made.set(s, [...(made.get(s) || []), n.name]);
    const plain = graphStyle({ profile: null, comparison: null, paint: c.paint });
    c.local.made = made;
    c.local.source = new Pane(
      c,
      side,
      c.get("source_graph"),
      () => {
        const lit = related(c);
        return {
          ...plain,
          key: "src",
          cls: (name) => (lit.has(name) ? "sel" : "") + (made.has(name) ? "" : " gone"),
        };
      },
      () => 1,
    );
  }
}

function bracket(c, y0, y1) {
  const mark = c.root.querySelector(".viewport");
  const names = c.local.rows;
  if (!mark || !names) return;
  const at = c.local.pane.plan.at;
  let first = -1,
    last = -1;
  names.forEach((row, i) => {
    const b = at.get(row.name);
    if (b && b.y < y1 && b.y + b.h > y0) {
      if (first < 0) first = i;
      last = i;
    }
  });
  mark.hidden = first < 0;
  if (first < 0) return;
  const s = span(names.length, first, last, c.local.stripHeight);
  mark.style.top = `${s.top}px`;
  mark.style.height = `${s.height}px`;
}

function open(c, list) {
  c.local.open = list;
  c.set({ open_blocks: list });
  arrange(c);
}

function arrange(c) {
  const { pane, source, style } = c.local;
  const wanted = c.get("open_blocks");
  c.local.open = wanted || c.local.open || defaultOpen(pane.blocks, style);
  pane.arrange(c.local.open);
  if (source)
    source.arrange(
      c.local.sourceOpen ||
        (c.local.sourceOpen =
          source.graph.nodes.length <= 40 ? source.allPaths() : source.allPaths().slice(0, 3)),
    );
  const all = pane.allPaths().length;
  const label = c.root.querySelector("[data-all]");
  if (label) label.textContent = c.local.open.length * 2 > all ? "Close blocks" : "Open blocks";
}

/** Open what hides `name`, then scroll to it. */
function show(c, name) {
  const { pane, source } = c.local;
  if (!pane?.plan) return; // made while it had no width: `resized` lays it out, and shows
  const target = c.get("graph").nodes.some((n) => n.name === name)
    ? name
    : [...c.get("graph").nodes].find((n) => c.local.style.copies(n).includes(name))?.name;
  const trail = target && pane.trail(target);
  if (!trail) return;
  const missing = trail.filter((p) => !pane.open.has(p));
  if (missing.length) open(c, [...pane.open, ...missing]);
  pane.reveal(target);
  if (!source) return;
  const first = source.graph.nodes.find((n) => related(c).has(n.name));
  const way = first && source.trail(first.name);
  if (way && way.some((p) => !source.open.has(p))) {
    c.local.sourceOpen = [...new Set([...source.open, ...way])];
    source.arrange(c.local.sourceOpen);
  }
  if (first) source.reveal(first.name);
  source.paint(true);
}

function toggle(c, pane, path) {
  const now = new Set(pane.open);
  if (now.has(path)) now.delete(path);
  else now.add(path);
  if (pane === c.local.pane) open(c, [...now]);
  else {
    c.local.sourceOpen = [...now];
    pane.arrange(c.local.sourceOpen);
  }
}

/** Nodes of exactly that name, or whose last part it is; where there is none, all that hold it. */
function matches(nodes, text) {
  const q = text.trim().toLowerCase();
  if (!q) return [];
  const exact = nodes.filter((n) => [n.name, lastPart(n.name)].some((s) => s.toLowerCase() === q));
  return exact.length
    ? exact
    : nodes.filter((n) => `${n.name} ${n.op}`.toLowerCase().includes(q));
}

function find(c, text, from = -1) {
  const nodes = c.get("graph").nodes;
  const hits = matches(nodes, text);
  if (!hits.length) {
    if (text.trim()) c.say(`nothing called ${text}`);
    return;
  }
  const after = hits.find((n) => nodes.indexOf(n) > from) || hits[0];
  c.select([after.name]);
  show(c, after.name);
}

const paneOf = (c, target) =>
  target.closest("[data-pane=source]") ? c.local.source : c.local.pane;

export default widget({
  name: "graph",
  empty: { title: "No model yet", text: "The graph shows every layer once, grouped by block." },
  ready: (c) => Boolean(c.get("graph") && c.get("graph").nodes.length),
  frame(c) {
    const both = Boolean(c.get("source_graph"));
    const read = both ? c.get("source_graph").nodes.length : 0;
    const pane = (name, label, note) =>
      html`<div class="half">
        <div
          class="gv"
          data-pane="${name}"
          ${keyed(
            `pane-${name}`,
            `${label}. Arrow keys move the selection, Enter opens or closes its block.`,
            "shift",
          )}
        ></div>
        ${both ? html`<div class="cap lg"><span>${note}</span></div>` : ""}
      </div>`;
    return html`<div
      class="card gcard${c.get("comparison") ? " errors" : ""}"
      style="height:${c.get("height")}px"
    >
      <div class="ch">
        <h3>${c.get("title")}</h3>
        <input
          type="search"
          placeholder="Find a layer"
          aria-label="Find a layer"
          data-find="layer"
          data-focus="find"
        />${legend(c)} <span class="sp"></span
        ><span class="row" style="gap:4px"
          ><button type="button" class="btn sm hide-s" data-all>Open blocks</button>
          <button type="button" class="btn sm sqb" data-zoom="-1" aria-label="Zoom out">−</button
          ><button type="button" class="btn sm sqb" data-zoom="1" aria-label="Zoom in">
            +
          </button></span
        >
      </div>
      <div class="gr${both ? " both" : ""}">
        ${both ? pane("source", "Graph of the original file", `${read} nodes as read`) : ""}${pane(
          "main",
          "Model graph",
          both ? `${c.get("graph").nodes.length} layers after optimising` : "",
        )}
        <div class="ov" data-part="overview"></div>
      </div>
      <div class="lg gf" data-part="foot"></div>
    </div>`;
  },
  parts: {
    overview(c, width, box) {
      const { style } = c.local;
      if (!style) return undefined;
      c.local.stripHeight = box.clientHeight;
      c.local.rows = c.get("graph").nodes;
      return html`${overview(c.local.rows, {
          height: box.clientHeight,
          weight: style.judged ? (n) => style.at.get(n.name)?.acc ?? 0 : style.share,
          fill: style.solid,
          flag: style.first,
          hatch: style.hatch,
          paint: c.paint,
        })}
        <div class="viewport"></div>`;
    },
    foot: (c) => (c.local.style ? foot(c) : undefined),
  },
  acts: {
    graph(c) {
      // redraw in place: same layout, new paint
      if (!c.local.pane?.plan) return;
      c.local.style = styleOf(c);
      c.local.pane.paint(true);
      c.parts(["overview", "foot"]);
      bracket(c, ...c.local.pane.view);
    },
    arrange(c) {
      if (c.local.pane?.plan) {
        arrange(c);
        bracket(c, ...c.local.pane.view);
      }
    },
    sources(c) {
      c.local.source?.paint(true);
    },
  },
  watch: {
    graph: ["frame"],
    source_graph: ["frame"],
    profile: ["frame"],
    comparison: ["frame"],
    height: ["frame"],
    title: ["frame"],
    tolerance: ["graph"],
    op_tolerances: ["graph"],
    colour_by: ["graph"],
    baseline: ["graph"],
    hidden_types: ["graph"],
    open_blocks: ["arrange"],
  },
  selection: ["sources"],
  after(c) {
    const scroll = c.local.pane ? c.local.pane.element.scrollTop : null;
    if (c.local.pane && !c.get("open_blocks")) c.local.open = null;
    build(c);
    if (!c.root.clientWidth) return;
    arrange(c);
    c.parts(["overview", "foot"]);
    const target =
      c.current ||
      (c.local.style.judged &&
        c.local.style.judged.layers[c.local.style.judged.own[0] ?? c.local.style.judged.first]
          ?.name);
    if (scroll) c.local.pane.element.scrollTop = scroll;
    if (target) show(c, target);
    bracket(c, ...c.local.pane.view);
  },
  resized(c) {
    if (c.local.pane) {
      const first = !c.local.pane.plan;
      arrange(c);
      c.parts(["overview"]);
      if (first && c.current) show(c, c.current);
      bracket(c, ...c.local.pane.view);
    }
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
  key(c, event) {
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
    const t = event.target.closest("[data-block],[data-all],[data-zoom],[data-src]");
    if (!t || event.target.closest("[data-k]")) return false;
    if (t.dataset.block !== undefined) toggle(c, paneOf(c, t), t.dataset.block);
    else if (t.dataset.zoom)
      for (const p of [c.local.pane, c.local.source]) p?.setZoom(p.zoom * 1.2 ** +t.dataset.zoom);
    else if (t.dataset.src) {
      const [name] = c.local.made.get(t.dataset.src) || [];
      if (name) c.select(afterClick(c.selected, name, event.shiftKey || event.ctrlKey));
      else c.say(`${t.dataset.src} is gone after optimising`);
    } else {
      const all = c.local.pane.allPaths();
      open(c, c.local.open.length * 2 > all.length ? [] : all);
    }
    return true;
  },
});
