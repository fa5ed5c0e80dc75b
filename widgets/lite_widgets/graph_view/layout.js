// The layered layout: a chain down the middle, side branches on the right, skip edges on the left,
// blocks that open in place. Only open blocks are laid out, one row per node in topological order,
// so the cost is linear and nothing moves above the block that is opened.
import { counted, regionLabel } from "../_shared/scale.js";
import { mainChain } from "./main_chain.js";

export const ROW = 33,
  NODE = 25,
  CLOSED = 46,
  HEAD = 30,
  GAP = 12;
const GUTTER = 28,
  BETWEEN = 20,
  LANE = 6,
  NEST_OVER = 14;
/** Room for a line of text between two nodes. */
const SHAPE = 16;

/**
 * Group nodes into a tree: {path, label, evidence, nodes, children}; children are blocks or nodes.
 * Blocks of one region, a part of the architecture, lie in it; `regions`: region → its evidence.
 */
export function tree(nodes, regions = {}) {
  const top = [];
  for (const node of nodes) {
    const last = top[top.length - 1];
    if (last && last.path === node.block) last.nodes.push(node);
    else top.push({ path: node.block, label: node.block, nodes: [node] });
  }
  for (const block of top) block.children = split(block.nodes, block.path);
  return regioned(top, regions);
}

/** A region that is one block gives it its name and evidence. */
function regioned(blocks, regions) {
  const out = [],
    again = counted();
  for (const block of blocks) {
    const { region } = block.nodes[0],
      last = out[out.length - 1];
    if (region && last?.region === region) last.children.push(block);
    else out.push({ region, children: [block] });
  }
  return out.map(({ region, children }) => {
    const [only] = children,
      evidence = regions[region];
    const label = region ? regionLabel(region, children.map((b) => b.label), again) : only.label;
    if (children.length === 1) return { ...only, label, evidence };
    const all = children.flatMap((b) => b.nodes);
    return { path: `region:${label}`, label, evidence, region, nodes: all, children };
  });
}

/** Blocks below the regions: [{block, way: the paths to open}]. */
export const inner = (blocks) =>
  blocks.flatMap((b) =>
    b.region
      ? b.children.map((block) => ({ block, way: [b.path, block.path] }))
      : [{ block: b, way: [b.path] }],
  );

/** Inside a long block, runs of a deeper name scope become blocks of their own. */
function split(nodes, path) {
  if (nodes.length <= NEST_OVER) return nodes;
  const scope = path.replace(/ \(\d+\)$/, "");
  const head = (node) => {
    const name = node.name.replace(/^\//, "");
    if (!name.startsWith(scope + "/")) return null;
    const rest = name.slice(scope.length + 1).split("/");
    return rest.length > 1 ? rest[0] : null;
  };
  const out = [],
    seen = new Map();
  for (const node of nodes) {
    const h = head(node),
      last = out[out.length - 1];
    if (h !== null && last && last.head === h) last.nodes.push(node);
    else out.push({ head: h, nodes: [node] });
  }
  const blocks = out.filter((run) => run.head !== null && run.nodes.length > 2);
  if (!blocks.length || out.length === 1) return nodes;
  return out.flatMap((run) => {
    if (run.head === null || run.nodes.length <= 2) return run.nodes;
    const times = (seen.get(run.head) || 0) + 1;
    seen.set(run.head, times);
    const sub = `${scope}/${run.head}${times > 1 ? ` (${times})` : ""}`;
    return [
      {
        path: sub,
        label: run.head + (times > 1 ? ` (${times})` : ""),
        nodes: run.nodes,
        children: split(run.nodes, sub),
      },
    ];
  });
}

/** All block paths, outermost first. */
export function paths(blocks) {
  return blocks.flatMap((b) => (b.children ? [b.path, ...paths(b.children)] : []));
}

/** The blocks that must be open for a node to be drawn as itself, outermost first. */
export function trail(blocks, name) {
  for (const block of blocks) {
    if (!block.children) continue;
    const inner = trail(block.children, name);
    if (inner) return [block.path, ...inner];
    if (block.nodes.some((n) => n.name === name)) return [block.path];
  }
  return null;
}

/** Smallest free lane for each [y0, y1] span, spans in order of y0. */
export function lanes(spans) {
  const ends = [];
  return spans.map(([y0, y1]) => {
    let lane = ends.findIndex((end) => end <= y0);
    if (lane < 0) lane = ends.length;
    ends[lane] = y1;
    return lane;
  });
}

const R = 6;
const line = (d, y0, y1, extra = {}) => ({
  d,
  y0: Math.min(y0, y1),
  y1: Math.max(y0, y1),
  ...extra,
});

/**
 * Lay a graph out. {blocks: tree(…), inputs, outputs, open: Set, width, share(node), wide} →
 * {items, edges, height, at: Map name → box, tops: Map path → y, order: names in drawing order}.
 * `wide` leaves room for whole names, and below each node for its shape.
 */
export function layout({ blocks, inputs = [], outputs = [], open, width, share, wide = false }) {
  const state = { items: [], edges: [], at: new Map(), tops: new Map(), order: [], open, share,
                  row: ROW + (wide ? SHAPE : 0), gap: GAP + (wide ? SHAPE : 0) };
  const far = farEdges(blocks);
  const margin = 6 + Math.min(3, far.lanes) * LANE;
  const nodeW = Math.min(wide ? 380 : 214, (width - 40) * 0.5);
  const mid = margin + GUTTER + nodeW / 2;
  let y = 8;
  if (inputs.length) y = pill(state, inputs, margin + GUTTER, y, nodeW);
  const top = { x: margin, w: width - margin - 6, nodeW, mid };
  y = stack(state, blocks, top, y, inputs.length ? y - 14 : null);
  for (const edge of far.edges) {
    const a = state.tops.get(edge.from),
      b = state.tops.get(edge.to);
    const x = margin - 2 - LANE * Math.min(edge.lane, 2);
    const [p, q] = [a.y + Math.min(a.h / 2, 20), b.y + 13];
    state.edges.push(
      line(
        `M${margin} ${p}H${x + R}a${R} ${R} 0 0 0 -${R} ${R}V${q - R}` +
          `a${R} ${R} 0 0 0 ${R} ${R}H${margin}`,
        p,
        q,
        { far: true },
      ),
    );
  }
  if (outputs.length) {
    state.edges.push(line(`M${mid} ${y - state.gap}V${y}`, y - state.gap, y));
    y = pill(state, outputs, margin + GUTTER, y, nodeW) - 14 + 8;
  }
  return { ...state, height: y, width };
}

function pill(state, tensors, x, y, w) {
  state.items.push({ kind: "io", tensors, x, y, w, h: 22 });
  return y + 36;
}

/** Blocks that feed a later block that is not the next one: drawn in lanes left of everything. */
function farEdges(blocks) {
  const home = new Map();
  blocks.forEach((b, i) => b.nodes.forEach((n) => home.set(n.name, i)));
  const pairs = new Map();
  blocks.forEach((b, j) =>
    b.nodes.forEach((n) =>
      (n.inputs || []).forEach((input) => {
        const i = home.get(input);
        if (i !== undefined && j - i > 1) pairs.set(`${i} ${j}`, [i, j]);
      }),
    ),
  );
  const sorted = [...pairs.values()].sort((p, q) => p[0] - q[0] || p[1] - q[1]);
  const lane = lanes(sorted.map(([i, j]) => [i + 0.5, j]));
  return {
    lanes: lane.length ? Math.max(...lane) + 1 : 0,
    edges: sorted.map(([i, j], k) => ({ from: blocks[i].path, to: blocks[j].path, lane: lane[k] })),
  };
}

/** Place blocks and stretches of nodes under each other; returns the y below them. */
function stack(state, children, frame, y, above) {
  let before = above;
  for (let i = 0; i < children.length;) {
    if (children[i].children) {
      if (before !== null) state.edges.push(line(`M${frame.mid} ${before}V${y}`, before, y));
      const bottom = block(state, children[i], frame, y);
      before = bottom;
      y = bottom + state.gap;
      i++;
      continue;
    }
    let j = i;
    while (j < children.length && !children[j].children) j++;
    const bottom = stretch(state, children.slice(i, j), frame, y, before);
    before = bottom - (state.row - NODE);
    y = j < children.length ? bottom + 4 : bottom;
    i = j;
  }
  return y;
}

function block(state, b, frame, y) {
  const { x, w, mid } = frame;
  const isOpen = state.open.has(b.path);
  const item = { kind: "block", block: b, x, y, w, mid, open: isOpen };
  state.items.push(item);
  if (!isOpen) {
    item.h = CLOSED;
    cells(state, b.nodes, x + 24, y + 27, w - 40);
    state.tops.set(b.path, { y, h: CLOSED });
    return y + CLOSED;
  }
  const inner = { x: x + 10, w: w - 20, nodeW: frame.nodeW, mid };
  const end = stack(state, b.children, inner, y + HEAD, y + HEAD - 4) + 4;
  item.h = end - y;
  state.tops.set(b.path, { y, h: item.h });
  return end;
}

/** A closed block is a bar of its layers: width = share, at least a sliver each. */
function cells(state, nodes, x, y, w) {
  const shares = nodes.map((n) => state.share(n));
  const least = Math.max(...shares, 1e-12) * 0.02;
  const sum = shares.reduce((a, s) => a + Math.max(s, least), 0) || 1;
  let at = x;
  nodes.forEach((node, i) => {
    const wide = (w * Math.max(shares[i], least)) / sum;
    const box = { kind: "cell", node, x: at, y, w: wide, h: 11 };
    state.items.push(box);
    state.at.set(node.name, box);
    state.order.push(node.name);
    at += wide;
  });
}

/** Consecutive nodes of one block: main chain in the middle, the others in the side column. */
function stretch(state, nodes, frame, y, above) {
  const { mid, nodeW } = frame;
  const left = mid - nodeW / 2,
    right = mid + nodeW / 2;
  const main = mainChain(nodes);
  const sideX = right + BETWEEN,
    sideW = Math.max(48, Math.min(frame.x + frame.w - sideX - 6, 160));
  nodes.forEach((node, i) => {
    const side = !main.has(node.name);
    const box = {
      kind: "node",
      node,
      side,
      x: side ? sideX : left,
      y: y + i * state.row,
      w: side ? sideW : nodeW,
      h: NODE,
      row: i,
    };
    state.items.push(box);
    state.at.set(node.name, box);
    state.order.push(node.name);
  });
  connect(state, nodes, { y, above, left, right, mid, sideX, sideW });
  const bottom = y + nodes.length * state.row,
    ends = nodes.findLastIndex((n) => main.has(n.name)),
    from = y + ends * state.row + NODE,
    to = bottom - (state.row - NODE);
  if (from < to) state.edges.push(line(`M${mid} ${from}V${to}`, from, to));
  return bottom;
}

function connect(state, nodes, g) {
  const boxes = new Map(nodes.map((n) => [n.name, state.at.get(n.name)]));
  const between = (a, b, side) =>
    nodes.slice(a.row + 1, b.row).some((n) => boxes.get(n.name).side === side);
  const skips = [];
  for (const node of nodes) {
    const b = boxes.get(node.name);
    const top = b.y,
      half = b.y + NODE / 2;
    let entered = g.above === null;
    for (const input of node.inputs || []) {
      const a = boxes.get(input);
      if (!a) {
        if (entered) continue;
        entered = true;
        const clear = !nodes.slice(0, b.row).some((n) => boxes.get(n.name).side === b.side);
        if (clear && !b.side) state.edges.push(line(`M${g.mid} ${g.above}V${top}`, g.above, top));
        else if (!b.side) skips.push({ y0: g.above, y1: half, hook: true });
        else
          state.edges.push(
            line(
              `M${g.mid} ${g.above}v4H${b.x + b.w / 2 - R}a${R} ${R} 0 0 1 ${R} ${R}V${top}`,
              g.above,
              top,
            ),
          );
        continue;
      }
      const bottom = a.y + NODE,
        middle = a.y + NODE / 2,
        ax = a.x + a.w / 2,
        bx = b.x + b.w / 2;
      if (!a.side && !b.side) {
        if (!between(a, b, false)) state.edges.push(line(`M${ax} ${bottom}V${top}`, bottom, top));
        else skips.push({ y0: middle, y1: half });
      } else if (a.side && b.side) {
        if (!between(a, b, true)) state.edges.push(line(`M${ax} ${bottom}V${top}`, bottom, top));
        else state.edges.push(gutter(a.x + a.w, b.x + b.w, a.x + a.w + 5, middle, half, 1));
      } else if (!a.side) {
        if (!between(a, b, true))
          state.edges.push(
            line(`M${a.x + a.w} ${middle}H${bx - R}a${R} ${R} 0 0 1 ${R} ${R}V${top}`, middle, top),
          );
        else state.edges.push(gutter(a.x + a.w, b.x, g.right + BETWEEN / 2, middle, half, 1, -1));
      } else if (!between(a, b, true)) {
        state.edges.push(
          line(
            `M${ax} ${bottom}V${half - R}a${R} ${R} 0 0 1 -${R} ${R}H${b.x + b.w}`,
            bottom,
            half,
          ),
        );
      } else {
        state.edges.push(gutter(a.x, b.x + b.w, g.right + BETWEEN / 2, middle, half, -1));
      }
    }
  }
  skips.sort((p, q) => p.y0 - q.y0);
  const lane = lanes(skips.map((s) => [s.y0, s.y1]));
  skips.forEach((s, i) => {
    const x = Math.max(g.left - 11 - LANE * lane[i], g.left - GUTTER + 6);
    const start = s.hook
      ? `M${x} ${s.y0}`
      : `M${g.left} ${s.y0}H${x + R}a${R} ${R} 0 0 0 -${R} ${R}`;
    state.edges.push(
      line(`${start}V${s.y1 - R}a${R} ${R} 0 0 0 ${R} ${R}H${g.left}`, s.y0, s.y1, { skip: true }),
    );
  });
}

/** From (x0, y0) into a vertical lane and out to (x1, y1). `out`: 1 leaves rightwards. */
function gutter(x0, x1, lane, y0, y1, out, into = 1) {
  const s = out > 0 ? 1 : -1;
  const t = into > 0 ? -1 : 1;
  return line(
    `M${x0} ${y0}H${lane - s * R}q${s * R} 0 ${s * R} ${R}V${y1 - R}q0 ${R} ${t * R} ${R}H${x1}`,
    y0,
    y1,
  );
}
