// How close each layer is to what this device was measured to do.
import { html, nothing, svg } from "#template";
import { widget } from "#view";
import { log } from "../_shared/scale.js";
import {
  encode,
  inIntegers,
  intensity,
  isCopy,
  limitOf,
  roofPart,
  rowTip,
} from "../_shared/encode.js";
import { fixed, ms, tail, THIN, wholePercent } from "../_shared/format.js";
import { button, empty, keyed } from "../_shared/parts.js";
import { tr, trn } from "../_shared/words.js";
import { along, aroundDot, boxOf, isFree, placeBeside } from "./places.js";

/** What a line of words and its margin take: most often there is one above the chart. */
const LINE = 28;
const LEFT = 48,
  RIGHT = 16,
  TOP = 24,
  BOTTOM = 36;
/** Of a layer's name in its label: how many letters there are at most. */
const LETTERS = 24;
/** Of the height of words. */
const HALF = 7;
/** A label as near as this needs no line to its dot. */
const FREE_FROM_LINE = 12;

/** [{row, x, y, roof, part}]: part is the share of its own roof that a layer reaches. */
export function points(profile, roof) {
  return profile.layers
    .filter((r) => !isCopy(r) && r.gflops > 0 && intensity(r))
    .map((row) => ({
      row,
      x: intensity(row),
      y: row.gflops,
      roof: limitOf(row, roof),
      part: roofPart(row, roof),
    }))
    .sort((a, b) => b.row.median_ms - a.row.median_ms);
}

const decades = (lo, hi) =>
  Array.from({ length: Math.floor(hi) - Math.ceil(lo) + 1 }, (_, i) => 10 ** (Math.ceil(lo) + i));

export function rooflineSvg(all, { width, height, roof, e, hidden }) {
  const off = new Set(hidden);
  const shown = all.filter((p) => !off.has(p.row.type));
  // sorted, slowest first: what takes next to no time must not stretch the axes
  const seen = all.filter((p) => p.row.median_ms > 0.003 * all[0].row.median_ms);
  const xs = seen.map((p) => p.x),
    ys = seen.map((p) => p.y);
  const knee = roof.gflops / roof.gbytes_per_s;
  const integers =
    all.some((p) => inIntegers(p.row)) && roof.integer_gops > roof.gflops ? roof.integer_gops : 0;
  const x0 = Math.min(0.2, ...xs) / 1.4,
    x1 = Math.max(knee * 3, ...xs) * 1.6;
  const y0 = Math.max(Math.min(1, ...ys) / 1.6, 0.01),
    y1 = Math.max(roof.gflops, integers, ...ys) * 2;
  const bottom = height - BOTTOM,
    right = width - RIGHT;
  const inX = log([x0, x1], [LEFT, right]),
    X = (v) => Math.max(LEFT, Math.min(right, inX(v))),
    Y = log([y0, y1], [bottom, TOP]);
  const clampY = (v) => Math.min(bottom - 3, Y(v));
  const angle = (Math.atan2(Y(10) - Y(1), inX(10) - inX(1)) * 180) / Math.PI;
  const startX = Math.max(x0, y0 / roof.gbytes_per_s);
  const grid = [
    ...decades(Math.log10(x0), Math.log10(x1)).map(
      (v) =>
        svg`<line class="grid" x1="${X(v)}" x2="${X(v)}" y1="${TOP}" y2="${bottom}" /><text
            x="${X(v)}"
            y="${bottom + 14}"
            text-anchor="middle"
            >${+v.toPrecision(1)}</text
          >`,
    ),
    ...decades(Math.log10(y0), Math.log10(y1)).map(
      (v) =>
        svg`<line class="grid" x1="${LEFT}" x2="${right}" y1="${Y(v)}" y2="${Y(v)}" /><text
            x="${LEFT - 6}"
            y="${Y(v) + 4}"
            text-anchor="end"
            >${+v.toPrecision(1)}</text
          >`,
    ),
  ];
  const most = Math.max(...all.map((p) => p.row.median_ms), 1e-9);
  const radius = (p) => 3 + 9 * Math.sqrt(p.row.median_ms / most);
  const dots = shown.map(
    (p) =>
      svg`<g data-k="${p.row.name}"
        ><circle
          class="nd mark"
          cx="${X(p.x).toFixed(1)}"
          cy="${clampY(p.y).toFixed(1)}"
          r="${radius(p).toFixed(1)}"
          fill="${e.fill(p.row)}"
          fill-opacity=".88"
          stroke="var(--ink2)"
          stroke-opacity=".5" />
        <circle
          class="ring"
          cx="${X(p.x).toFixed(1)}"
          cy="${clampY(p.y).toFixed(1)}"
          r="${(radius(p) + 3).toFixed(1)}"
      /></g>`,
  );
  const at = new Map(
    shown.map((p) => [p, { x: X(p.x), y: clampY(p.y), r: radius(p) }]),
  );
  const slope = along([X(startX), Y(roof.gbytes_per_s * startX)], [X(knee), Y(roof.gflops)]);
  const taken = [
    ...[...at.values()].map(aroundDot),
    ...along([X(knee), Y(roof.gflops)], [right, Y(roof.gflops)]),
    ...(integers ? along([X(integers / roof.gbytes_per_s), Y(integers)], [right, Y(integers)]) : []),
  ];
  /** Words on a level line: at its right or left end, above or below, the first place that is free;
   * the short ones where there is none for the long ones. */
  const onLine = (long, short, from, y) => {
    const places = [long, short].flatMap((text) =>
      [-7, 16].flatMap((up) => [
        { text, x: right, y: y + up, anchor: "end" },
        { text, x: from, y: y + up, anchor: "start" },
      ]),
    );
    const inside = ({ text, x, y: top, anchor }) => {
      const box = boxOf(text, x, top, anchor);
      return box.x > LEFT && box.x + box.w <= right + 1 && isFree(box, taken);
    };
    const place = places.find(inside) ?? places.find(({ text }) => text === short);
    const { text } = place;
    taken.push(boxOf(text, place.x, place.y, place.anchor));
    return svg`<text class="t1 halo" x="${place.x.toFixed(1)}" y="${place.y.toFixed(1)}" text-anchor="${place.anchor}"
      >${text}</text
    >`;
  };
  /** The words along the memory line, where they are clear of dots and other words; in a corner
   * where there is no such place. */
  function alongMemory(text) {
    const turn = (angle * Math.PI) / 180,
      half = text.length * 3.3;
    const words = (v) => {
      const [x, y] = [X(v) + 11 * Math.sin(turn), Y(v * roof.gbytes_per_s) - 11 * Math.cos(turn)];
      const [dx, dy] = [half * Math.cos(turn), half * Math.sin(turn)];
      return along([x - dx, y - dy], [x + dx, y + dy], HALF);
    };
    const inside = (boxes) =>
      boxes.every((b) => b.x > LEFT && b.x + b.w < X(knee) && b.y > TOP && b.y + b.h < bottom);
    const place = [0.5, 0.42, 0.58, 0.35, 0.65, 0.28, 0.73, 0.2, 0.8, 0.12, 0.88]
      .map((part) => startX * (knee / startX) ** part)
      .find((v) => inside(words(v)) && words(v).every((box) => isFree(box, taken)));
    if (place) {
      taken.push(...words(place));
      return svg`<text
        class="t1"
        transform="translate(${X(place)},${Y(place * roof.gbytes_per_s)}) rotate(${angle})"
        dy="-6"
        text-anchor="middle"
        >${text}</text
      >`;
    }
    const corner = [8, 23, 38, 53]
      .map((up) => bottom - up)
      .find((y) => isFree(boxOf(text, right, y, "end"), taken));
    if (corner === undefined) return nothing;
    taken.push(boxOf(text, right, corner, "end"));
    return svg`<text class="t1 halo" x="${right}" y="${corner}" text-anchor="end">${text}</text>`;
  }
  const rate = fixed(roof.gflops, roof.gflops < 10 ? 1 : 0);
  const peak = onLine(
    tr("{rate} GFLOP/s measured ({what})", { rate, what: roof.what }),
    tr("{rate} GFLOP/s measured", { rate }),
    X(knee) + 8,
    Y(roof.gflops),
  );
  const inInt8 = tr("{rate} GOP/s in int8 measured", { rate: fixed(integers, 0) });
  const ofIntegers = integers
    ? onLine(
        inInt8,
        inInt8,
        X(integers / roof.gbytes_per_s) + 8,
        Y(integers),
      )
    : nothing;
  const speed = tr("{rate} GB/s measured", { rate: fixed(roof.gbytes_per_s, 1) });
  const memory = alongMemory(speed);
  taken.push(...slope);
  const area = { x: LEFT + 4, y: TOP - 12, w: right - LEFT - 4, h: bottom - TOP + 8 };
  const labels = shown.slice(0, 3).map((p) => {
    const dot = at.get(p);
    const text = `${tail(p.row.name, LETTERS)} ${ms(p.row.median_ms)}${THIN}ms`;
    const place = placeBeside(dot, text, taken, area);
    if (!place) return nothing; // the tooltip and the table have it
    taken.push(place.box);
    const [dx, dy] = [place.x - dot.x, place.y - 4 - dot.y];
    const edge = dot.r / Math.hypot(dx, dy);
    return svg`${
      place.far > FREE_FROM_LINE
        ? svg`<path
            d="M${dot.x + dx * edge} ${dot.y + dy * edge}L${place.x} ${place.y - 4}"
            stroke="var(--ink2)"
            stroke-opacity=".6"
            fill="none"
          />`
        : nothing
    }<text
        class="t1 halo"
        pointer-events="none"
        x="${place.x.toFixed(1)}"
        y="${place.y.toFixed(1)}"
        text-anchor="${place.anchor}"
        >${text}</text
      >`;
  });
  return html`<svg
    class="chart"
    height="${height}"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-label=${tr("Roofline")}
  >
    ${grid}
    <path
      d="M${X(startX)} ${Y(roof.gbytes_per_s * startX)}L${X(knee)} ${Y(roof.gflops)}H${right}"
      fill="none"
      stroke="var(--ink)"
      stroke-width="1.5"
    />
    ${
      integers
        ? svg`<path
            data-part="integers"
            d="M${X(knee)} ${Y(roof.gflops)}L${X(integers / roof.gbytes_per_s)} ${Y(integers)}H${right}"
            fill="none"
            stroke="var(--ink)"
            stroke-dasharray="4 3"
          />`
        : nothing
    }
    <text x="${(LEFT + right) / 2}" y="${height - 4}" text-anchor="middle">
      ${tr("arithmetic intensity, FLOP per byte")}
    </text>
    <text x="${LEFT - 6}" y="12">${tr("GFLOP/s")}</text>
    ${dots}${memory}${peak}${ofIntegers}${labels}
  </svg>`;
}

const encoding = (c, rows = (profile) => profile) =>
  encode(rows(c.get("profile")), {
    by: c.get("colour_by"),
    roof: c.get("roof"),
    hidden: [],
    paint: c.paint,
  });

/** Copies do no arithmetic and have no dot. */
const withoutCopies = (profile) => ({ ...profile, layers: profile.layers.filter((r) => !isCopy(r)) });

const chart = (c, width) =>
  width < 160
    ? nothing
    : rooflineSvg(points(c.get("profile"), c.get("roof")), {
        width,
        height: c.get("height") - (c.local.words ?? LINE),
        roof: c.get("roof"),
        e: encoding(c, withoutCopies),
        hidden: c.get("hidden_types"),
      });

/** Above the line a layer says that the line is wrong. */
const ABOVE = 1.1;
const ofRoofline = (part) =>
  part > ABOVE ? tr("above the measured peak") : tr("{share} of the roofline", { share: wholePercent(part) });

function tooLow(c) {
  const n = points(c.get("profile"), c.get("roof")).filter((p) => p.part > ABOVE).length;
  if (!n) return nothing;
  const again = c.get("can_measure")
    ? button("remeasure", tr("Measure the roofline again"), { kind: "sm" })
    : nothing;
  return html`<p class="mu" data-part="words">${trn(
    "The roofline is too low: {n} layer is above it. The machine was busy when it was measured.",
    "The roofline is too low: {n} layers are above it. The machine was busy when it was measured.",
    n,
  )} ${again}</p>`;
}

const usable = (c) => c.get("roof") && !c.get("profile").emulated;

export default widget({
  name: "roofline",
  empty: {
    title: tr("Nothing measured yet"),
    text: tr("Each layer against the measured roofline of its device."),
  },
  ready: (c) => Boolean(c.get("profile")),
  view: (c) =>
    html`<div class="card pad">
      ${
        usable(c)
          ? html`<div class="lg" data-part="words">
                <span>${tr("area: share of time")}</span><span>${encoding(c, withoutCopies).legend}</span
                ><span>${tr("the further below the line, the more to gain")}</span>
              </div>
              <div
                data-part="chart"
                ${keyed(tr("Roofline. Arrow keys move from the slowest layer to the fastest."), "drag")}
              >
                ${c.fitted((width) => chart(c, width))}
              </div>
              ${tooLow(c)}`
          : empty({
              title: c.get("profile").emulated
                ? tr("No roofline under emulation")
                : tr("No roofline measured"),
              text: c.get("reason"),
              button: tr("Add a board"),
              action: "add_board",
            })
      }
    </div>`,
  /** The chart has the height that the words leave. */
  after(c) {
    const words = [...c.root.querySelectorAll("[data-part=words]")].reduce((sum, e) => {
      const { marginTop, marginBottom } = getComputedStyle(e);
      return sum + e.offsetHeight + parseFloat(marginTop) + parseFloat(marginBottom);
    }, 0);
    if (!c.width || words === c.local.words) return;
    c.local.words = words;
    c.draw();
  },
  watch: ["profile", "roof", "reason", "can_measure", "colour_by", "hidden_types", "height"],
  order: (c) => (usable(c) ? points(c.get("profile"), c.get("roof")).map((p) => p.row.name) : []),
  tip(c, name) {
    const p = points(c.get("profile"), c.get("roof")).find((q) => q.row.name === name);
    return (
      p &&
      `${rowTip(p.row, encoding(c))}\n` +
        tr("{rate} GFLOP/s at {intensity} FLOP/byte", { rate: fixed(p.y, 1), intensity: fixed(p.x, 1) }) +
        (p.part ? " · " + ofRoofline(p.part) : "")
    );
  },
  say(c, name) {
    const p = points(c.get("profile"), c.get("roof")).find((q) => q.row.name === name);
    return p
      ? `${name}, ${fixed(p.y, 1)} GFLOP/s` +
          (p.part ? ", " + ofRoofline(p.part) : "")
      : name;
  },
});
