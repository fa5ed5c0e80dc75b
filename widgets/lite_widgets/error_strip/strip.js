// The chart of errors: stems are isolated errors, the hollow line is accumulated, on a log axis.
import { html, nothing, svg } from "#template";
import { brackets, bracketsHeight, log, power } from "../_shared/scale.js";
import { error, tail } from "../_shared/format.js";
import { grip, patterns } from "../_shared/parts.js";
import { tr, trn } from "../_shared/words.js";

const LEFT = 52,
  RIGHT = 12,
  TOP = 26,
  NAN_ROW = 22;
const METRICS = { rel_l2: tr("rel. L2"), max_abs: tr("max abs"), mean_abs: tr("mean abs") };

/** What the line marks, in a few words. */
export function overLine({ layers, first }) {
  const count = layers.filter((l) => l.state !== "within").length;
  if (count && layers.every((l) => l.state === "within" || l.state === "propagated"))
    return trn("{count} of {n} layer above it, none on its own", "{count} of {n} layers above it, none on its own", layers.length, {
      count,
    });
  return count
    ? trn("{count} of {n} layer above it, first {layer}", "{count} of {n} layers above it, first {layer}", layers.length, {
        count,
        layer: tail(layers[first].name),
      })
    : tr("no layer above it");
}

const anyNan = ({ layers }) =>
  layers.some((l) => l.nan || (l.acc === null && l.state !== "within"));

/** Powers of ten that hold all errors, [low, high]; the tolerance does not move them. */
export function logRange(layers) {
  const known = layers.flatMap((l) => [l.iso, l.acc]).filter((v) => v > 0);
  const low = Math.floor(Math.log10(Math.max(Math.min(...known, 1e-3), 1e-8))) - 0.4;
  return [low, Math.max(0, Math.ceil(Math.log10(Math.max(...known, 1e-6))))];
}

/** Runs of equal tolerance, as a stepped line: "M x y H …". */
export function steps(layers, x, y) {
  return layers
    .map(
      (l, i) => `${i ? "V" : `M${x(0).toFixed(1)} `}${y(l.tol).toFixed(1)}H${x(i + 1).toFixed(1)}`,
    )
    .join("");
}

const CHARACTER = 6.4;

/**
 * Where words of this width beside the line cover the fewest marks, [{x, from, to}]: above it or
 * below, at its left end or its right one; {x, y, anchor}.
 */
export function wordsPlace(marks, { width, limit, left, right, top, bottom }) {
  const rows = [limit - 6, limit + 14].filter((y) => y >= top + 8 && y <= bottom - 4);
  const places = (rows.length ? rows : [limit + 14]).flatMap((y) => [
    { x: left, y, anchor: "start", from: left, to: left + width },
    { x: right, y, anchor: "end", from: right - width, to: right },
  ]);
  const covered = (p) =>
    marks.filter((m) => m.x > p.from && m.x < p.to && m.from < p.y + 3 && m.to > p.y - 11).length;
  return places.reduce((best, place) => (covered(place) < covered(best) ? place : best));
}

export function stripSvg(marked, { width, height, tolerance, metric, paint }) {
  const { layers, failing, first } = marked;
  const n = layers.length,
    step = (width - LEFT - RIGHT) / Math.max(n, 1),
    right = width - RIGHT;
  const [low, high] = logRange(layers);
  const [bottom, top] = extent(height, marked);
  const scale = log([10 ** low, 10 ** high], [bottom, top]);
  const y = (v) => Math.max(top, Math.min(bottom, scale(Math.max(v ?? 0, 10 ** low))));
  const x = (i) => LEFT + i * step,
    mid = (i) => LEFT + (i + 0.5) * step;
  const limit = y(tolerance);
  const band = steps(layers, x, y);
  const grid = [];
  for (let e = Math.ceil(low); e <= high; e++) {
    grid.push(
      svg`<line class="grid" x1="${LEFT}" x2="${right}" y1="${y(10 ** e)}" y2="${y(10 ** e)}" />${
        (e - high) % 2 === 0
          ? svg`<text x="${LEFT - 8}" y="${y(10 ** e) + 4}" text-anchor="end">${power(e)}</text>`
          : nothing
      }`,
    );
  }
  const small = step < 7;
  const r = small ? Math.max(step / 3, 0.8) : 2.6;
  const nanY = TOP + 5;
  const marks = layers.map((l, i) => {
    const bad = l.state === "failing",
      over = l.state !== "within",
      cx = mid(i).toFixed(2);
    const iy = y(l.iso),
      ay = l.nan || l.acc === null ? nanY : y(l.acc);
    const stem =
      l.iso === null
        ? bad
          ? svg`<path d="M${cx} ${bottom}V${nanY}" stroke="var(--bad)" stroke-width="2.5" />`
          : nothing
        : svg`<path
            d="M${cx} ${bottom}V${iy.toFixed(1)}"
            stroke="${bad ? "var(--bad)" : "var(--ink2)"}"
            stroke-width="${bad ? 2.5 : small ? 1 : 1.5}"
            stroke-opacity="${bad ? 1 : 0.45}"
          />`;
    const head = bad
      ? svg`<path
          d="M${cx} ${((l.iso === null ? nanY : iy) - 6).toFixed(1)}l6 6-6 6-6-6z"
          fill="var(--bad)"
        />`
      : l.iso === null || step < 3
        ? nothing
        : svg`<circle
            cx="${cx}"
            cy="${iy.toFixed(1)}"
            r="${(r * 0.92).toFixed(1)}"
            fill="var(--ink2)"
          />`;
    const ring =
      step < 3 && !over
        ? nothing
        : svg`<circle
            class="mark"
            cx="${cx}"
            cy="${ay.toFixed(1)}"
            r="${r.toFixed(1)}"
            fill="var(--bg)"
            stroke="${over ? "var(--bad)" : "var(--ink2)"}"
            stroke-width="1.2"
          />`;
    return svg`<g data-k="${l.name}"
      ><rect
        class="hit"
        x="${x(i).toFixed(2)}"
        y="${TOP}"
        width="${step.toFixed(2)}"
        height="${bottom - TOP}" />${stem}${head}${ring}<rect
        class="ring"
        x="${(x(i) + 0.5).toFixed(2)}"
        y="${TOP + 1}"
        width="${Math.max(step - 1, 1.5).toFixed(2)}"
        height="${bottom - TOP - 2}"
        rx="2"
    /></g>`;
  });
  const line = layers
    .map(
      (l, i) =>
        `${i ? "L" : "M"}${mid(i).toFixed(1)} ` +
        (l.nan || l.acc === null ? nanY : y(l.acc)).toFixed(1),
    )
    .join("");
  const flag = failing[0] ?? first;
  const downstream = flag >= 0 && flag < n - 1;
  const names = failing.slice(0, 3).map((i, k) =>
    k && mid(i) - mid(failing[k - 1]) < 60
      ? nothing
      : svg`<text
            class="b tbad"
            x="${Math.min(Math.max(mid(i), LEFT + 24), right - 24)}"
            y="14"
            text-anchor="middle"
            >${layers[i].name}</text
          >`,
  );
  const after =
    downstream && failing.length
      ? svg`<line
            x1="${x(flag + 1)}"
            x2="${right}"
            y1="${TOP - 6}"
            y2="${TOP - 6}"
            stroke="var(--bad)"
            stroke-opacity=".5"
          />${
            right - x(flag + 1) > 220
              ? svg`<text class="tbad" x="${right}" y="14" text-anchor="end"
                  >${trn("{n} layer downstream", "{n} layers downstream", n - flag - 1)}</text
                >`
              : nothing
          }`
      : "";
  const said = tr("tolerance {value}: {what}", {
    value: error(tolerance),
    what: overLine(marked),
  });
  const drawn = layers.flatMap((l, i) => {
    const at = l.nan || l.acc === null ? nanY : y(l.acc);
    const marker = { x: mid(i), from: at - r, to: at + r };
    return l.iso === null ? [marker] : [{ x: mid(i), from: y(l.iso) - r, to: bottom }, marker];
  });
  const words = wordsPlace(drawn, {
    width: said.length * CHARACTER,
    limit,
    left: LEFT + 10,
    right: right - 6,
    top,
    bottom,
  });
  return html`<svg
    class="chart"
    height="${height}"
    viewBox="0 0 ${width} ${height}"
    role="group"
    aria-label=${tr("Error per layer")}
  >
    ${patterns(paint)}
    <path d="${band}V${bottom}H${LEFT}z" fill="var(--accent)" fill-opacity=".055" />
    ${
      downstream
        ? svg`<rect
            x="${x(flag + 1)}"
            y="${TOP}"
            width="${right - x(flag + 1)}"
            height="${bottom - TOP}"
            fill="${paint.carried}"
            opacity=".3"
          />`
        : nothing
    }${grid}
    <text x="${LEFT - 8}" y="10" text-anchor="end">${METRICS[metric]}</text>
    ${
      top > TOP
        ? svg`<text x="${LEFT - 8}" y="${nanY + 4}" text-anchor="end" class="tbad">${tr("NaN")}</text>`
        : nothing
    }
    <path d="${line}" fill="none" stroke="var(--ink2)" stroke-width="1.2" />
    ${marks}${names}${after}
    <g
      ${grip("tolerance", tr("Tolerance"), {
        low,
        high,
        now: Math.log10(tolerance).toFixed(2),
        said: error(tolerance),
      })}
    >
      <rect x="${LEFT - 12}" y="${limit - 12}" width="24" height="24" fill="transparent" />
      <rect x="${LEFT}" y="${limit - 6}" width="${right - LEFT}" height="12" fill="transparent" />
      <path d="${band}" fill="none" stroke="var(--accent)" stroke-width="1.5" />
      <rect x="${LEFT - 4}" y="${limit - 5}" width="8" height="10" rx="2" fill="var(--accent)" />
    </g>
    <text
      x="${words.x}"
      y="${words.y}"
      text-anchor=${words.anchor}
      class="b acc halo"
      pointer-events="none"
      >${said}</text
    >
    ${brackets(layers, { left: LEFT, step, y: bottom + 4 })}
    <line class="ax" x1="${LEFT}" x2="${right}" y1="${bottom}" y2="${bottom}" />
  </svg>`;
}

/** Where the axis of errors begins and ends, from the top. */
export const extent = (height, marked) => [
  height - bracketsHeight(marked.layers),
  TOP + (anyNan(marked) ? NAN_ROW : 0),
];
