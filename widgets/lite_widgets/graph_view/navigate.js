// Which blocks of the graph are open, and the way to a layer.
import { inner } from "./layout.js";
import { lastPart } from "../_shared/scale.js";
import { tr } from "../_shared/words.js";

/** First view: the two costliest blocks; in a comparison, the block of the first divergence. */
function defaultOpen(blocks, style) {
  const all = blocks.reduce((a, b) => a + b.nodes.length, 0);
  const parts = inner(blocks);
  const ways = (some) => [...new Set(some.flatMap((part) => part.way))];
  if (all <= 16) return ways(parts);
  if (style.marked) {
    const name = firstWrong(style) ?? style.marked.layers[0]?.name;
    const i = parts.findIndex(({ block }) => block.nodes.some((n) => n.name === name));
    return ways(parts.slice(Math.max(0, i - 1), i + 1));
  }
  const cost = ({ block }) => block.nodes.reduce((a, n) => a + style.share(n), 0);
  return ways([...parts].sort((a, b) => cost(b) - cost(a)).slice(0, 2));
}

/** The layer that a comparison is about: the first that fails on its own, else the first. */
export const firstWrong = ({ marked }) =>
  marked ? marked.layers[marked.failing[0] ?? marked.first]?.name : undefined;

/** Nodes of exactly that name, or whose last part it is; where there is none, all that hold it. */
function matches(nodes, text) {
  const q = text.trim().toLowerCase();
  if (!q) return [];
  const exact = nodes.filter((n) => [n.name, lastPart(n.name)].some((s) => s.toLowerCase() === q));
  return exact.length ? exact : nodes.filter((n) => `${n.name} ${n.op}`.toLowerCase().includes(q));
}

/** Nodes of the original file that the selected layers came from. */
export const related = (c) => {
  const chosen = new Set(c.selected);
  return new Set(
    c
      .get("graph")
      .nodes.filter((n) => chosen.has(n.name))
      .flatMap((n) => n.sources || []),
  );
};

export function openBlocks(c, list) {
  c.local.open = list;
  c.set({ open_blocks: list });
  arrange(c);
}

/** Lay both graphs out with the blocks that are to be open. */
export function arrange(c) {
  const { pane, source, style } = c.local;
  c.local.open = c.get("open_blocks") || c.local.open || defaultOpen(pane.blocks, style);
  pane.arrange(c.local.open);
  if (!source) return;
  const all = source.allPaths();
  c.local.sourceOpen ??= source.graph.nodes.length <= 40 ? all : all.slice(0, 3);
  source.arrange(c.local.sourceOpen);
}

export function toggle(c, pane, path) {
  const now = new Set(pane.open);
  if (now.has(path)) now.delete(path);
  else now.add(path);
  if (pane === c.local.pane) openBlocks(c, [...now]);
  else {
    c.local.sourceOpen = [...now];
    pane.arrange(c.local.sourceOpen);
  }
}

/** Open what hides `name`, then scroll to it. */
export function show(c, name) {
  const { pane, source } = c.local,
    { nodes } = c.get("graph");
  if (!pane?.plan) return; // it has no width yet: laid out and shown when it has one
  const here = nodes.some((n) => n.name === name);
  const target = here ? name : nodes.find((n) => c.local.style.copies(n).includes(name))?.name;
  const trail = target && pane.trail(target);
  if (!trail) return;
  const missing = trail.filter((p) => !pane.open.has(p));
  if (missing.length) openBlocks(c, [...pane.open, ...missing]);
  pane.reveal(target);
  if (!source) return;
  const lit = related(c),
    first = source.graph.nodes.find((n) => lit.has(n.name));
  const way = first && source.trail(first.name);
  if (way && way.some((p) => !source.open.has(p))) {
    c.local.sourceOpen = [...new Set([...source.open, ...way])];
    source.arrange(c.local.sourceOpen);
  }
  if (first) source.reveal(first.name);
}

/** Select and show the first match after layer number `from`, or the first of all. */
export function find(c, text, from = -1) {
  const nodes = c.get("graph").nodes;
  const hits = matches(nodes, text);
  if (!hits.length) {
    if (text.trim()) c.say(tr("no layer matches {text}", { text }));
    return;
  }
  const after = hits.find((n) => nodes.indexOf(n) > from) || hits[0];
  c.select([after.name]);
  show(c, after.name);
}
