// The verdict, and the error per layer on a log axis, with a tolerance to drag.
import { html, live, nothing, STILL, svg } from "#template";
import { widget } from "#view";
import { brackets, log, power } from "../_shared/scale.js";
import { isUsual, marks, ownTolerances, usualOf } from "../_shared/line.js";
import { error, plural, tail } from "../_shared/format.js";
import { button, grip, key, keyed, notice, patterns, tick } from "../_shared/parts.js";

const LEFT = 52,
  RIGHT = 12,
  TOP = 26,
  BOTTOM = 28,
  NAN_ROW = 22;
const METRICS = { rel_l2: "rel. L2", max_abs: "max abs", mean_abs: "mean abs" };

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

export function stripSvg(marked, { width, height, tolerance, metric, paint, anyNan }) {
  const { layers, failing, first } = marked;
  const n = layers.length,
    step = (width - LEFT - RIGHT) / Math.max(n, 1),
    right = width - RIGHT;
  const [low, high] = logRange(layers);
  const top = TOP + (anyNan ? NAN_ROW : 0),
    bottom = height - BOTTOM;
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
                  >${n - flag - 1} layers downstream</text
                >`
              : nothing
          }`
      : "";
  const labelAt = limit - 6 < top + 8 ? limit + 14 : limit - 6;
  return html`<svg
    class="chart"
    height="${height}"
    viewBox="0 0 ${width} ${height}"
    role="group"
    aria-label="Error per layer"
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
      anyNan
        ? svg`<text x="${LEFT - 8}" y="${nanY + 4}" text-anchor="end" class="tbad">NaN</text>`
        : nothing
    }
    <path d="${line}" fill="none" stroke="var(--ink2)" stroke-width="1.2" />
    ${marks}${names}${after}
    <g
      ${grip("tolerance", "Tolerance", {
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
    <text x="${LEFT + 10}" y="${labelAt}" class="b acc halo" pointer-events="none">
      tolerance ${error(tolerance)}: ${overLine(marked)}
    </text>
    ${brackets(layers, { left: LEFT, step, y: bottom + 4 })}
    <line class="ax" x1="${LEFT}" x2="${right}" y1="${bottom}" y2="${bottom}" />
  </svg>`;
}

/** {comparison, now}: the layers that the line marks now. */
function state(c) {
  const inputs = ["comparison", "tolerance", "op_tolerances", "metric"].map((n) => c.get(n));
  return c.memo("state", inputs, () => {
    const [comparison, tolerance, byOp, metric] = inputs;
    return { comparison, now: marks(comparison, tolerance, { byOp, metric }) };
  });
}

/** What was found: in the Workbench's words, or in the engine's. */
export const verdict = (comparison) =>
  comparison.notice ?? {
    kind: comparison.agrees ? "done" : "error",
    what: comparison.verdict,
    layer: comparison.first_divergence?.name,
  };

/** What the line marks, in a few words. */
export function overLine({ layers, first }) {
  const count = layers.filter((l) => l.state !== "within").length;
  return count
    ? `${count} of ${plural(layers.length, "layer")} over it, first ${tail(layers[first].name)}`
    : "no layer over it";
}

function setTolerance(c, value, soft = true) {
  const [low, high] = logRange(state(c).now.layers);
  const tolerance = +Math.min(10 ** high, Math.max(10 ** low, value)).toPrecision(2);
  c.set({ tolerance, ...band(c, tolerance) }, { soft });
}

/** The stepped band belongs to the line: it moves along. */
const band = (c, tolerance) =>
  c.get("by_operator") ? { op_tolerances: ownTolerances(c.get("comparison"), tolerance) } : {};

const usual = (c) => usualOf(c.get("comparison"));

const actions = (c, { layer, actions: own = [] }) =>
  layer && !(c.selected.length === 1 && c.selected[0] === layer)
    ? [["show", "Show it"], ...own]
    : own;

const anyNan = ({ layers }) =>
  layers.some((l) => l.nan || (l.acc === null && l.state !== "within"));

const legend = (a) =>
  html`<span class="lg"
    >${key(
      html`<svg width="14" height="12">
        <path d="M7 12V5" stroke="var(--ink2)" stroke-width="1.5" />
        <circle cx="7" cy="4" r="2.5" fill="var(--ink2)" />
      </svg>`,
      `isolated: on the input of ${a}`,
    )}${key(
      html`<svg width="20" height="12">
        <path d="M0 6h20" stroke="var(--ink2)" />
        <circle cx="10" cy="6" r="2.8" fill="var(--bg)" stroke="var(--ink2)" />
      </svg>`,
      "accumulated: on its own input",
    )}${key(
      html`<svg width="12" height="12"><path d="M6 0l6 6-6 6-6-6z" fill="var(--bad)" /></svg>`,
      "fails on its own",
    )}</span
  >`;

const BY_OPERATOR =
  "A convolution rounds more than an addition, so each operator has its own tolerance.";

function controls(c, now) {
  const [low, high] = logRange(now.layers),
    tolerance = c.get("tolerance");
  const own = c.get("comparison").layers.some((row) => row.tolerance > 0);
  return html`${
      own
        ? html`<label class="lbl" data-tip=${BY_OPERATOR}
            >${tick("data-set", "by_operator", c.get("by_operator"))}per operator</label
          >`
        : nothing
    }<label class="lbl"
      >Tolerance
      <input
        type="range"
        step="0.05"
        data-range="tolerance"
        style="width:120px"
        min=${Math.ceil(low)}
        max=${high}
        .value=${live(String(Math.log10(tolerance)))}
        aria-valuetext=${error(tolerance)}
      /><b class="ink" style="min-width:48px">${error(tolerance)}</b></label
    >${button("usual", `Use ${error(usual(c))}`, {
      kind: "sm",
      disabled: isUsual(tolerance, usual(c)),
    })}`;
}

export default widget({
  name: "errors",
  empty: {
    title: "Nothing compared yet",
    text:
      "Every layer of two backends, precisions or files on the same input. " +
      "The graph is not changed and fusions are kept.",
  },
  ready: (c) => Boolean(c.get("comparison") && c.get("comparison").layers.length),
  view(c) {
    const { comparison, now } = state(c);
    const said = verdict(comparison);
    return html`<div class="verdict">
        ${notice({ ...said, actions: actions(c, said) })}
      </div>
      <div class="card">
        <div class="ch">
          <h3>Error per layer</h3>
          ${legend(comparison.baseline)}<span class="sp"></span>${STILL ? nothing : controls(c, now)}
        </div>
        <div class="cb tight">
          <div
            data-part="strip"
            ${keyed("Error per layer. Left and right arrow keys select a layer.", "drag")}
          >
            ${c.fitted((width) =>
              width < 120
                ? nothing
                : stripSvg(now, {
                    width,
                    height: c.get("height"),
                    tolerance: c.get("tolerance"),
                    metric: c.get("metric"),
                    paint: c.paint,
                    anyNan: anyNan(now),
                  }),
            )}
          </div>
        </div>
      </div>`;
  },
  watch: [
    "comparison",
    "metric",
    "tolerance",
    "op_tolerances",
    "height",
    "by_operator",
    "selected",
  ],
  order: (c) => c.get("comparison").layers.map((l) => l.name),
  say(c, name) {
    const l = state(c).now.layers.find((x) => x.name === name);
    return l ? `${name}, isolated ${error(l.iso)}, accumulated ${error(l.acc)}` : name;
  },
  tip(c, name) {
    const l = state(c).now.layers.find((x) => x.name === name);
    return (
      l &&
      `${name}\nisolated ${error(l.iso)} · accumulated ${error(l.acc)}` +
        (l.nan ? `\n${l.nan} values are not numbers` : "") +
        `\ntolerance ${error(l.tol)}`
    );
  },
  set(c, name, value) {
    c.set({ [name]: value });
    if (name === "by_operator") {
      c.set({ op_tolerances: {} });
      setTolerance(c, c.get("tolerance"), false);
    }
  },
  input: (c, name, value) => setTolerance(c, 10 ** +value),
  drag(c, name, event) {
    const box = c.root.querySelector("[data-part=strip] svg").getBoundingClientRect(),
      { now } = state(c);
    const [low, high] = logRange(now.layers);
    const inverse = log(
      [10 ** low, 10 ** high],
      [c.get("height") - BOTTOM, TOP + (anyNan(now) ? NAN_ROW : 0)],
    ).invert;
    setTolerance(c, inverse(((event.clientY - box.top) * c.get("height")) / box.height));
  },
  key(c, event) {
    if (!event.target.closest("[data-drag]")) return false;
    const up = {
      ArrowUp: 0.1,
      ArrowRight: 0.1,
      ArrowDown: -0.1,
      ArrowLeft: -0.1,
      PageUp: 0.5,
      PageDown: -0.5,
    }[event.key];
    if (up) setTolerance(c, c.get("tolerance") * 10 ** up, false);
    return Boolean(up);
  },
  click(c, event) {
    const id = event.target.closest("[data-action]")?.dataset.action;
    const { layer } = verdict(c.get("comparison"));
    if (id === "show") c.select([layer]);
    else if (id === "usual") c.set({ tolerance: usual(c), ...band(c, usual(c)) });
    else if (id) c.act(id, { layer });
    return Boolean(id);
  },
});
