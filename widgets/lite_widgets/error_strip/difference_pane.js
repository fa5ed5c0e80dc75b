// How one layer's two outputs differ: how much, in which channels, and where.
import { html, nothing, svg } from "#template";
import { widget } from "#view";
import { backendName, scale } from "../_shared/colour.js";
import { figure, fixed, error, shape, THIN } from "../_shared/format.js";
import { histogramSvg } from "../_shared/histogram.js";
import { isUsual, mark, notNumbers } from "../_shared/line.js";
import { chip, empty, segments } from "../_shared/parts.js";
import { mapMarkup, mapped, paint } from "./difference_map.js";
import { tr, trn } from "../_shared/words.js";

const MOST_CHANNELS = 512;

function channelStrip(channels, current, { width, dark, explained }) {
  const shown = channels.slice(0, MOST_CHANNELS);
  const most = Math.max(...shown.map((v) => v ?? 0), explained || 0, 1e-30);
  const perRow = Math.max(1, Math.min(shown.length, Math.floor(width / 9)));
  const rows = Math.ceil(shown.length / perRow),
    each = Math.ceil(shown.length / rows),
    cw = width / each;
  const cells = shown.map((v, i) => {
    const t = v === null ? 1 : v / most;
    return svg`<rect
      data-channel="${i}"
      data-tip=${tr("channel {channel}, rms {value}", {
        channel: i,
        value: v === null ? tr("not a number") : error(v),
      })}
      x="${((i % each) * cw).toFixed(2)}"
      y="${Math.floor(i / each) * 12}"
      width="${Math.max(cw - 1, 0.8).toFixed(2)}"
      height="11"
      fill="${t < 0.06 ? "var(--track)" : scale("over", t, dark)}"
      stroke=${i === current ? "var(--ink)" : nothing}
      stroke-width="1.6"
    />`;
  });
  return html`<svg
    class="chart"
    height="${rows * 12}"
    viewBox="0 0 ${width} ${rows * 12}"
    role="img"
    aria-label=${tr("Error per channel")}
  >
    ${cells}
  </svg>`;
}

const histogram = ({ limit, counts }, explained, caption, width) =>
  histogramSvg(
    { low: -limit, high: limit, counts },
    {
      width,
      height: 136,
      ends: [`−${error(limit)}`, `+${error(limit)}`],
      title: tr("Histogram of the difference"),
      caption,
      marked: (difference) => explained > 0 && Math.abs(difference) > explained,
    },
  );

const STATES = {
  failing: [tr("fails on its own"), "bad"],
  propagated: [tr("propagates an error"), "warn"],
  differing: [tr("exceeds the tolerance"), "warn"],
  within: [tr("within tolerance"), "ok"],
};

function stateChip(c) {
  const l = c.get("layer"),
    tolerance = c.get("tolerance"),
    usual = l.usual_tolerance;
  const found = isUsual(tolerance, usual) && l.state;
  return chip(...STATES[found || mark(l, tolerance, usual ?? tolerance)]);
}

function figures(c) {
  const l = c.get("layer"),
    tol = c.get("tolerance");
  const row = (name, f) =>
    f
      ? html`<tr>
          <td>${name}</td>
          <td class="num${(f.rel_l2 ?? 0) > tol ? " over" : ""}">${error(f.rel_l2)}</td>
          <td class="num">${error(f.max_abs)}</td>
          <td class="num">
            ${error(f.cosine === null || f.cosine === undefined ? null : 1 - f.cosine)}
          </td>
          <td class="num">
            ${Number.isFinite(f.sqnr_db) ? `${fixed(f.sqnr_db, 1)}${THIN}dB` : "–"}
          </td>
          <td class="num${notNumbers(f) ? " over" : ""}">${notNumbers(f)}</td>
        </tr>`
      : html`<tr>
          <td>${name}</td>
          <td class="mu" colspan="5">${tr("not measured")}</td>
        </tr>`;
  return html`<div class="tw">
    <table>
      <thead>
        <tr>
          <th></th>
          <th class="num">${tr("rel. L2")}</th>
          <th class="num">${tr("max abs")}</th>
          <th class="num">${tr("1 − cosine")}</th>
          <th class="num">${tr("SQNR")}</th>
          <th class="num">${tr("NaN")}</th>
        </tr>
      </thead>
      <tbody>
        ${row(tr("isolated"), l.isolated)}${row(tr("accumulated"), l)}
      </tbody>
    </table>
  </div>`;
}

/** Does the layer give the same values on both sides? */
export const equal = (d) => d.channels.every((v) => v === 0);

/** One of two values that differ: there is none only where it is NaN or infinite. */
const one = (v) => (v === null ? tr("not finite") : figure(v));

function where(c) {
  const l = c.get("layer"),
    d = c.get("detail"),
    a = backendName(c.get("a")),
    b = backendName(c.get("b"));
  const at =
    d && d.worst && d.worst.index.length && !equal(d)
      ? html`<span
          >${tr("worst at")} <span class="ink">[${d.worst.index.join(", ")}]</span>: ${a}
          ${one(d.worst.a)}, ${b} ${one(d.worst.b)}</span
        >`
      : nothing;
  const dims = (l.output_shapes || [])[0] || (d && d.shape);
  const from = l.sources && l.sources.length ? l.sources.join(", ") : "";
  return html`${dims ? html`<span>${tr("out")} <span class="ink">${shape(dims)}</span></span>` : ""}${
    l.kernel ? html`<span>${tr("kernel of {backend}:", { backend: b })} <code class="ink">${l.kernel}</code></span>` : ""
  }${at}${from ? html`<span>${tr("from {names}", { names: from })}</span>` : ""}`;
}

/** What the histogram shows, which holds finite differences only. */
function explained({ histogram, explained: limit, not_finite: broken }) {
  const more = histogram.limit > limit;
  if (!broken) return more ? tr("colored: more than the tolerance explains") : tr("all within rounding");
  return more
    ? trn(
        "{n} value is not finite; colored: more than the tolerance explains",
        "{n} values are not finite; colored: more than the tolerance explains",
        broken,
      )
    : trn(
        "{n} value is not finite, the others are within rounding",
        "{n} values are not finite, the others are within rounding",
        broken,
      );
}

function evidence(c, d) {
  if (!d)
    return html`<div class="empty"><p class="mu">${tr("Loading both outputs of this layer…")}</p></div>`;
  if (equal(d))
    return empty({ title: tr("No difference"), text: tr("All values of this output are equal.") });
  const { dark } = c;
  const channels = (width) => channelStrip(d.channels, c.get("channel"), { width, dark });
  const label = `${backendName(c.get("b"))} − ${backendName(c.get("a"))}`;
  return html`<div>
      <h3>${tr("Difference by position")}</h3>
      <div data-part="map">
        ${c.fitted((width) => (mapped(c) && width >= 200 ? mapMarkup(c, width) : nothing))}
      </div>
    </div>
    ${
      d.channels.length > 1
        ? html`<div>
            <div class="row" style="margin-bottom:6px">
              <h3>${tr("Which channels")}</h3>
              <span class="mu">${trn("{n} channel, click one", "{n} channels, click one", d.channels.length)}</span>
            </div>
            <div
              data-part="channels"
              tabindex="0"
              role="application"
              aria-label=${tr("Error per channel. Arrow keys choose a channel.")}
            >
              ${c.fitted(channels)}
            </div>
          </div>`
        : nothing
    }
    <div>
      <div class="row">
        <h3>${tr("Distribution of the difference")}</h3>
        <span class="mu">${explained(d)}</span>
      </div>
      <div>
        ${c.fitted((width) => histogram(d.histogram, d.explained, label, width))}
      </div>
    </div>`;
}

export default widget({
  name: "difference",
  empty: {
    title: tr("Pick a layer"),
    text: tr("Click a point in the strip or a node in the graph to see how the two outputs of the layer differ."),
  },
  ready: (c) => Boolean(c.get("layer")),
  view(c) {
    const kinds = [
      ["isolated", tr("Isolated")],
      ["accumulated", tr("Accumulated")],
    ];
    return html`<div class="card">
      <div class="ch">
        <h3>${c.get("layer").name}</h3>
        ${stateChip(c)}<span class="sp"></span>${segments(
          "kind",
          kinds,
          c.get("kind"),
          tr("Which error"),
        )}
      </div>
      <div class="cb body">
        ${figures(c)}
        <div class="row mu facts">${where(c)}</div>
        ${evidence(c, c.get("detail"))}
      </div>
    </div>`;
  },
  watch: ["layer", "detail", "kind", "a", "b", "map", "map_shape", "channel", "tolerance"],
  after: paint,
  click(c, event) {
    const cell = event.target.closest("[data-channel]");
    if (cell) c.set({ channel: +cell.dataset.channel });
    return Boolean(cell);
  },
  key(c, event) {
    if (event.target.dataset.part !== "channels") return false;
    const by = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (by) {
      const next = Math.max(
        0,
        Math.min(c.get("detail").channels.length - 1, c.get("channel") + by),
      );
      c.set({ channel: next });
      c.say(tr("channel {channel}, {value}", { channel: next, value: error(c.get("detail").channels[next]) }));
    }
    return Boolean(by);
  },
});
