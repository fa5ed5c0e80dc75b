// Draw the part of a laid-out graph that is on screen. Pure: layout and style in, markup out.
import { attributes, nothing, repeat, svg } from "#template";
import { inkOn } from "../_shared/colour.js";
import { fit, lastPart } from "../_shared/scale.js";
import { shape } from "../_shared/format.js";
import { fitEnd } from "./names.js";
import { patterns } from "../_shared/parts.js";
import { tr, trn } from "../_shared/words.js";

// Pixels of a letter in a block's title and in the words right of it, in a wide font.
const BOLD = 7.2,
  PLAIN = 6.2;

const visible = (range) => (thing) => {
  const [y0, y1] = "y" in thing ? [thing.y, thing.y + thing.h] : [thing.y0, thing.y1];
  return y1 >= range[0] && y0 <= range[1];
};

/** A block's title in `room`; how often the block repeats stays. */
function blockTitle(label, room) {
  const [times = ""] = label.match(/ ×\d+$/) || [];
  const title = label.slice(0, label.length - times.length);
  return fit(title, room - times.length * BOLD, BOLD) + times;
}

const nodeLabel = (node) => node.label || lastPart(node.name) || node.op;

/** Below a node or a closed block, beside the edge that leaves it: the shape of what it gives. */
function shapeBelow(b) {
  const last = b.kind === "node" ? b.node : b.block.nodes[b.block.nodes.length - 1];
  const dims = (last.output_shapes || [])[0];
  if (!dims || !dims.length) return nothing;
  const x = b.kind === "node" ? b.x + b.w / 2 : b.mid;
  return svg`<text class="shape" x="${x + 6}" y="${b.y + b.h + 15}">${shape(dims)}</text>`;
}

/**
 * `range` is [y0, y1] in layout units. `style`: fill(node) hex, text(node), border(node) width,
 * first(node), hatch(node) pattern, note(block) right-hand text of a header, copies(node) names,
 * key "k" or "src" (which data attribute names a node), cls(name) extra classes; `wide`: whole
 * names without their common {prefix}, and the shape below each node.
 */
export function paintGraph(plan, range, style, paint) {
  const seen = visible(range);
  const boxes = plan.items.filter(seen);
  const edge = (e) => svg`<path class="edge${e.far ? " far" : ""}" d=${e.d} />`;
  const edges = plan.edges.filter(seen).map(edge);
  const blocks = repeat(
    boxes.filter((b) => b.kind === "block"),
    (b) => b.block.path,
    (b) => blockBox(b, style),
  );
  const leaves = repeat(
    boxes.filter((b) => b.kind !== "block"),
    (b) => (b.node ? b.node.name : b),
    (b) => leaf(b, style),
  );
  const copies = boxes
    .filter((b) => b.kind === "node")
    .flatMap((b) => style.copies(b.node).map((name) => diamond(b, name, paint)));
  const told = style.wide
    ? boxes.filter((b) => b.kind === "node" || (b.kind === "block" && !b.open)).map(shapeBelow)
    : nothing;
  return svg`${patterns(paint)}${blocks}${edges}${leaves}${copies}${told}`;
}

function blockBox(b, style) {
  const { block, x, y, w, h, open } = b;
  const alarm = !open && block.nodes.some((n) => style.first(n));
  const count = trn("{n} layer", "{n} layers", block.nodes.length);
  const note = style.note(block),
    title = lastPart(block.label),
    whole = note ? `${count} · ${note}` : count;
  const beside = (text) => w - 24 - 10 - text.length * PLAIN - 8;
  // The count of layers, which is also in the tip, makes room for the name.
  const right = !note || title.length * BOLD <= beside(whole) ? whole : note;
  const room = beside(right);
  const chevron = open ? `M${x + 9} ${y + 11}l4 5 4-5` : `M${x + 11} ${y + 9}l5 4-5 4`;
  return svg`<rect
      class="block${alarm ? " alarm" : ""}"
      x="${x}"
      y="${y}"
      width="${w}"
      height="${h}"
      rx="6"
    />
    <g
      class="bhead"
      data-block="${block.path}"
      tabindex="0"
      role="button"
      aria-expanded="${open}"
      aria-label="${block.label}, ${whole}${block.evidence ? `. ${block.evidence}` : ""}"
      data-tip=${block.evidence || right !== whole ? [block.label, whole, block.evidence].filter(Boolean).join("\n") : nothing}
      ><rect x="${x}" y="${y}" width="${w}" height="${open ? 26 : h}" rx="6" fill="transparent" />
      <path class="chev" d="${chevron}" /><text class="t1 b" x="${x + 24}" y="${y + 17}"
        >${blockTitle(title, room)}</text
      >
      <text x="${x + w - 10}" y="${y + 17}" text-anchor="end">${right}</text></g
    >`;
}

function leaf(b, style) {
  if (b.kind === "io") return pill(b);
  return b.kind === "cell" ? cell(b, style) : node(b, style);
}

function pill(b) {
  const [first] = b.tensors;
  const more = b.tensors.length > 1 ? tr(" and {count} more", { count: b.tensors.length - 1 }) : "";
  const label = `${first.name}  ${shape(first.shape)}${more}`;
  return svg`<g data-tip="${b.tensors.map((t) => `${t.name}  ${shape(t.shape)}`).join("\n")}"
    ><rect class="io" x="${b.x}" y="${b.y}" width="${b.w}" height="22" rx="11" /><text
      x="${b.x + b.w / 2}"
      y="${b.y + 15}"
      text-anchor="middle"
      >${fit(label, b.w - 16)}</text
    ></g
  >`;
}

const named = (style, name) => attributes({ [`data-${style.key}`]: name });

function cell(b, style) {
  const { node, x, y, h } = b;
  const w = Math.max(b.w - 1, 1);
  const hatch = style.hatch(node);
  return svg`<g ${named(style, node.name)} class="${style.cls(node.name)}"
    ><rect
      class="nd thin mark"
      x="${x.toFixed(1)}"
      y="${y}"
      width="${w.toFixed(1)}"
      height="${h}"
      fill="${style.solid(node)}" />${
        hatch
          ? svg`<rect
            x="${x.toFixed(1)}"
            y="${y}"
            width="${w.toFixed(1)}"
            height="${h}"
            fill="${hatch}"
            pointer-events="none"
          />`
          : nothing
      }${
        style.first(node)
          ? svg`<rect
            x="${x}"
            y="${y - 2}"
            width="${w}"
            height="15"
            fill="none"
            stroke="var(--bad)"
            stroke-width="2"
          />`
          : nothing
      }<rect
      class="ring"
      x="${(x - 1).toFixed(1)}"
      y="${y - 2}"
      width="${(w + 2).toFixed(1)}"
      height="15"
      rx="2"
  /></g>`;
}

function node(b, style) {
  const { node: n, x, y, w, h } = b;
  const fill = style.fill(n),
    ink = fill.startsWith("#") ? inkOn(fill) : "var(--ink)";
  const first = style.first(n),
    hatch = style.hatch(n);
  const own = nodeLabel(n).length * 6.4;
  const text = style.text(n);
  let value = fit(text, Math.max(w * 0.55 - 8, w - 24 - own), 6.8);
  if (value !== text && /^[−\d]/.test(text)) value = ""; // half a number is another number
  const flag =
    first && w > 130
      ? svg`<g pointer-events="none"
          ><path
            d="M${x + w + 7} ${y + 12.5}l7-9h96a3 3 0 0 1 3 3v12a3 3 0 0 1-3 3h-96z"
            fill="var(--bad)"
          />
          <text x="${x + w + 17}" y="${y + 16.5}" class="b" style="fill:var(--bg)"
            >${tr("first to diverge")}</text
          ></g
        >`
      : nothing;
  const whole = style.wide && n.name.slice(style.wide.prefix.length);
  let label = whole
    ? fitEnd(whole, w - 24 - value.length * 6.4, 6.4)
    : fit(nodeLabel(n), w - 24 - value.length * 6.4, 6.4);
  if (label.length < 5 && label !== nodeLabel(n)) {
    value = ""; // a small box: its name says more than its number
    label = fit(nodeLabel(n), w - 14, 6.4);
  }
  return svg`<g ${named(style, n.name)} class="${style.cls(n.name)}"
      ><rect
        class="nd mark${first ? " first" : ""}"
        x="${x}"
        y="${y}"
        width="${w}"
        height="${h}"
        rx="4"
        fill="${fill}"
        stroke-width=${first ? nothing : style.border(n).toFixed(1)} />${
          hatch
            ? svg`<rect
              x="${x}"
              y="${y}"
              width="${w}"
              height="${h}"
              rx="4"
              fill="${hatch}"
              pointer-events="none"
            />`
            : nothing
        } <text x="${x + 8}" y="${y + 16}" style="fill:${ink}">${label}</text
      ><text x="${x + w - 8}" y="${y + 16}" text-anchor="end" style="fill:${ink}">${value}</text>
      <rect class="ring" x="${x - 3}" y="${y - 3}" width="${w + 6}" height="${h + 6}" rx="6" /></g
    >${flag}`;
}

function diamond(b, name, paint) {
  const cx = b.x + b.w / 2,
    cy = b.y - 4.5;
  return svg`<g data-k="${name}"
    ><rect
      class="nd mark"
      x="${cx - 5}"
      y="${cy - 5}"
      width="10"
      height="10"
      transform="rotate(45 ${cx} ${cy})"
      fill="${paint.copy}"
      stroke="var(--ink)" /><rect
      class="ring"
      x="${cx - 9}"
      y="${cy - 9}"
      width="18"
      height="18"
      rx="3"
  /></g>`;
}
