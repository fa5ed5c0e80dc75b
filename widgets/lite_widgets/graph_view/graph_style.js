// What a node looks like: from the profile, from the comparison, or plain.
import { encode, isCopy, rowTip } from "../_shared/encode.js";
import { marks } from "../_shared/line.js";
import * as colour from "../_shared/colour.js";
import { error, fixed, ms, shape, THIN } from "../_shared/format.js";
import { lastPart } from "../_shared/scale.js";
import { tr, trn } from "../_shared/words.js";

/** Right-hand text of a node that nothing was measured of: its operator, or its shape. */
function about(node) {
  const label = (node.label || lastPart(node.name)).toLowerCase(), op = node.op.toLowerCase();
  const named = label.startsWith(op) || lastPart(label).startsWith(op);
  const dims = (node.output_shapes || [])[0];
  return named ? (dims && dims.length ? shape(dims.slice(1)) : "") : node.op;
}

const KINDS = { added: tr("added"), deleted: tr("deleted"), changed: tr("changed") };

/** The style of a diff's graph; `side` "before" colours the baseline, "after" the candidate. */
function diffStyle(shared, changes, side, quiet, dark) {
  const of = new Map(changes.changes.filter((c) => c[side]).map((c) => [c[side], c]));
  const solid = (n) => (of.has(n.name) ? colour.DIFF[of.get(n.name).kind] : quiet);
  const told = (name, mark) => {
    const c = of.get(name);
    if (!c) return name;
    const lines = c.differences.map((d) => `${d.kind} ${d.name}: ${d.before || "–"} → ${d.after || "–"}`);
    return [name, KINDS[c.kind], ...lines].join(mark);
  };
  return {
    ...shared,
    solid,
    fill: (n) => (of.has(n.name) ? colour.tint(solid(n), dark) : quiet),
    text: (n) => (of.has(n.name) ? KINDS[of.get(n.name).kind] : ""),
    note: (block) => {
      const n = block.nodes.filter((node) => of.has(node.name)).length;
      return n ? trn("{n} change", "{n} changes", n) : "";
    },
    tip: (name) => told(name, "\n"),
    say: (name) => told(name, ", "),
  };
}

/**
 * {fill, solid, text, border, first, hatch, note, share, copies, tip, say} of nodes, by name.
 * With a comparison hue is the error and the border the share of time; else hue is `by`.
 */
export function graphStyle(given) {
  const { profile, comparison, tolerance, byOp, by, baseline, hidden, paint } = given;
  const { dark } = paint;
  const quiet = colour.scale("within", 0.5, dark);
  const rows = new Map((profile ? profile.layers : []).map((r) => [r.name, r]));
  const e = profile ? encode(profile, { by, baseline, hidden, paint }) : null;
  const value = (n) => (rows.has(n.name) && e ? e.value(rows.get(n.name)) : 0);
  const sum = (block) => block.nodes.reduce((a, n) => a + value(n), 0);
  const most = Math.max(...[...rows.values()].map((r) => (e ? e.value(r) : 0)), 1e-12);
  const copies = new Map();
  if (profile && !comparison)
    profile.layers.forEach((r, i) => {
      const next = isCopy(r) && profile.layers.slice(i + 1).find((x) => !isCopy(x));
      if (next) copies.set(next.name, [...(copies.get(next.name) || []), r.name]);
    });
  const shared = {
    key: "k",
    cls: () => "",
    copies: (n) => copies.get(n.name) || [],
    hatch: () => null,
    first: () => false,
    border: () => 1,
    share: (n) => (profile ? value(n) : 1),
    rows,
    e,
    tip: (name) => (rows.has(name) ? rowTip(rows.get(name), e) : name),
    say: (name) => (rows.has(name) ? `${name}, ${ms(e.value(rows.get(name)))} ${e.unit}` : name),
  };
  if (comparison) {
    const marked = marks(comparison, tolerance, { byOp });
    const at = new Map(marked.layers.map((l, i) => [l.name, { ...l, i }]));
    const fill = (n) => {
      const l = at.get(n.name);
      if (!l) return quiet;
      if (l.state === "within")
        return colour.scale(
          "within",
          1 + Math.log10(Math.max(l.acc ?? l.iso ?? 0, 1e-9) / l.tol) / 5,
          dark,
        );
      const of = l.state === "failing" ? l.iso : l.acc;
      const over = of === null ? 1 : Math.log10(Math.max(of / l.tol, 1)) / 2;
      return colour.scale(
        "over",
        l.state === "failing" ? 0.45 + over * 0.4 : Math.min(0.4, over * 0.3),
        dark,
      );
    };
    const worst = (block) => Math.max(...block.nodes.map((n) => at.get(n.name)?.acc ?? 0));
    const told = (name, mark) => {
      const l = at.get(name);
      return l ? name + mark + tr("isolated {isolated}, accumulated {accumulated}", { isolated: error(l.iso), accumulated: error(l.acc) }) : name;
    };
    return {
      ...shared,
      fill,
      solid: fill,
      marked,
      at,
      tip: (name) => told(name, "\n"),
      say: (name) => told(name, ", "),
      text: (n) => (at.has(n.name) ? (at.get(n.name).nan ? "NaN" : error(at.get(n.name).acc)) : ""),
      border: (n) => 1 + (profile ? (3 * value(n)) / most : 0),
      first: (n) => at.get(n.name)?.i === marked.first,
      hatch: (n) => 
        ["propagated", "differing"].includes(at.get(n.name)?.state) ? paint.carried : null,
      note: (block) => tr("max {value}", { value: error(worst(block)) }),
    };
  }
  if (given.changes) return diffStyle(shared, given.changes, given.side || "after", quiet, dark);
  if (!profile) {
    return { ...shared, fill: () => quiet, solid: () => quiet, text: about, note: () => "" };
  }
  const solid = (n) => (rows.has(n.name) ? e.fill(rows.get(n.name)) : quiet);
  return {
    ...shared,
    solid,
    fill: (n) => (e.categorical && rows.has(n.name) ? colour.tint(solid(n), dark) : solid(n)),
    text: (n) => (rows.has(n.name) ? fixed(value(n), e.unit === "ms" ? 3 : 2) : ""),
    border: (n) => (e.by === "time" ? 1 : 1 + (3 * value(n)) / most),
    note: (block) => `${ms(sum(block))}${THIN}${e.unit}`,
  };
}
