// What is in a tensor: a thumbnail per channel, one of them large, figures and histogram.
import { html, nothing } from "#template";
import { widget } from "#view";
import { backendName, scale } from "../_shared/colour.js";
import { figure, percent, shape, THIN } from "../_shared/format.js";
import { histogramSvg } from "../_shared/histogram.js";
import { choice, rampLegend, segments } from "../_shared/parts.js";
import { tr, trn } from "../_shared/words.js";

const GAP = 2,
  HIGH = 272,
  LEVELS = 254,
  BROKEN = 255;

/** The view on show with its own bytes. */
export function viewOf(tensor, tiles, shown) {
  const views = tensor.views,
    at = Math.min(shown, views.length - 1);
  const size = (v) => v.lows.length * v.tile[0] * v.tile[1];
  const from = views.slice(0, at).reduce((sum, v) => sum + size(v), 0);
  const bytes = new Uint8Array(tiles.buffer ?? tiles, tiles.byteOffset ?? 0, tiles.byteLength);
  return { ...views[at], values: bytes.subarray(from, from + size(views[at])) };
}

/** Rows and columns of a channel, before blocks of it became pixels. */
const sizeOf = ({ tile, factor }) => tile.map((n, i) => n * factor[i]);

/** Columns of thumbnails and their size, as large as fits into the width and a height. */
export function grid(count, [h, w], width, high = HIGH) {
  const ratio = Math.max(0.25, Math.min(8, w / h));
  for (let ch = Math.min(160, high); ; ch--) {
    const cw = ch * ratio,
      columns = Math.max(1, Math.min(count, Math.floor((width + GAP) / (cw + GAP))));
    const rows = Math.ceil(count / columns);
    if (ch <= 12 || (cw <= width && rows * (ch + GAP) <= high)) {
      const wide = Math.min(cw, width);
      return { columns, rows, cw: wide, ch, high: rows * (ch + GAP) };
    }
  }
}

/** Lowest and highest value of the colours of channel i; symmetrical where values have both signs. */
export function limits(view, i, colours) {
  const own = colours === "own",
    [low, high] = own ? [view.lows[i], view.highs[i]] : view.scale;
  if (!(low < 0 && high > 0)) return { low, high, name: "rate", cut: !own && [view.low < low, view.high > high] };
  const most = Math.max(-low, high);
  return { low: -most, high: most, name: "change", cut: !own && [view.low < -most, view.high > most] };
}

/** RGBA of channel i. */
export function tilePixels(view, i, colours, dark) {
  const [h, w] = view.tile,
    { low, high, name } = limits(view, i, colours);
  const out = new Uint8ClampedArray(h * w * 4),
    least = view.lows[i],
    step = (view.highs[i] - least) / LEVELS;
  const table = Array.from({ length: LEVELS + 1 }, (_, level) => {
    const hex = scale(name, (least + level * step - low) / (high - low || 1), dark);
    return [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16));
  });
  for (let p = 0; p < h * w; p++) {
    const level = view.values[i * h * w + p],
      at = p * 4;
    if (level === BROKEN) {
      out[at + 3] = view.not_finite ? 255 : 0; // not a number; or the empty end of a grid of kernels
      if (dark) out.fill(255, at, at + 3);
    } else {
      out.set(table[level], at);
      out[at + 3] = 255;
    }
  }
  return out;
}

const histogram = (counted, width) =>
  histogramSvg(counted, {
    width,
    height: 116,
    ends: [figure(counted.low), figure(counted.high)],
    title: tr("Histogram of values"),
  });

const fact = (name, value) => html`<span>${name} <span class="ink">${value}</span></span>`;

function facts(view) {
  const zeros = view.zeros ? fact(tr("zeros"), percent(100 * view.zeros)) : nothing;
  const broken = view.not_finite
    ? html`<span class="bad">${trn("{n} value is not finite", "{n} values are not finite", view.not_finite)}</span>`
    : nothing;
  return html`${fact(tr("shape"), shape(view.shape))} ${fact(tr("type"), view.dtype)}
  ${fact(tr("range"), `${figure(view.low)} … ${figure(view.high)}`)} ${fact(tr("mean"), figure(view.mean))}
  ${fact(tr("standard deviation"), figure(view.std))} ${zeros} ${broken}`;
}

function sheet(c, view, width) {
  const g = grid(view.lows.length, sizeOf(view), width);
  c.local.grid = g;
  return html`<canvas
    class="sheet"
    data-sheet
    width="1"
    height="1"
    style="width:${Math.ceil(g.columns * (g.cw + GAP))}px;height:${Math.ceil(g.high)}px"
  ></canvas>`;
}

/** How many values one pixel stands for, and how many channels are left out. */
function cut(view) {
  const [fy, fx] = view.factor,
    shown = view.lows.length;
  const parts = [];
  if (view.channels > shown)
    parts.push(tr("the first {shown} of {n} channels", { shown, n: view.channels }));
  const block = { rows: fy, columns: fx };
  if (fy * fx > 1)
    parts.push(
      view.largest
        ? tr("one pixel is the largest of {rows}×{columns} values", block)
        : tr("one pixel is the mean of {rows}×{columns} values", block),
    );
  return parts.join(" · ");
}

function body(c, view) {
  const i = Math.min(c.get("channel"), view.lows.length - 1),
    many = view.lows.length > 1;
  const { low, high, name, cut: beyond } = limits(view, Math.max(i, 0), c.get("colours"));
  const ends = [`${beyond && beyond[0] ? "≤ " : ""}${figure(low)}`, `${beyond && beyond[1] ? "≥ " : ""}${figure(high)}`];
  const note = cut(view);
  return html`<div class="row mu facts">${facts(view)}</div>
    <div class="inside${many ? "" : " one"}">
      <div>
        <div class="row">
          <h3>${many ? trn("{n} channel", "{n} channels", view.channels) : tr("Values")}</h3>
          <span class="lg">${rampLegend(name, ...ends, c.dark)}</span>
          ${note ? html`<span class="mu">${note}</span>` : nothing}
        </div>
        <div
          data-part="sheet"
          tabindex="0"
          role="application"
          aria-label=${many ? tr("Thumbnails of the channels. Arrow keys choose a channel.") : tr("The values as an image")}
        >
          ${c.fitted((width) => (width < 60 || i < 0 ? nothing : sheet(c, view, width)))}
        </div>
      </div>
      <div class="side">
        ${
          many
            ? html`<h3>${tr("Channel {channel}", { channel: i })}</h3>
                <canvas class="large" data-large width="1" height="1"></canvas>
                <span class="mu">${figure(view.lows[i])} … ${figure(view.highs[i])}</span>`
            : nothing
        }
        <h3>${tr("Distribution of the values")}</h3>
        <div>${c.fitted((width) => (width < 120 ? nothing : histogram(view.histogram, width)))}</div>
      </div>
    </div>`;
}

const viewNow = (c) => {
  const from = [c.get("tensor"), c.get("tiles"), c.get("shown")];
  return c.memo("view", from, () => viewOf(...from));
};

function put(canvas, pixels, [h, w]) {
  canvas.width = w;
  canvas.height = h;
  canvas.getContext("2d").putImageData(new ImageData(pixels, w, h), 0, 0);
}

/** Draws the thumbnails, and the chosen channel large. */
function paint(c) {
  const canvas = c.root.querySelector("[data-sheet]");
  if (!canvas || !c.get("tensor")) return;
  const view = viewNow(c),
    g = c.local.grid,
    at = Math.min(c.get("channel"), view.lows.length - 1);
  const large = c.root.querySelector("[data-large]");
  if (!c.changed("painted", [canvas, large, view, c.dark, c.get("colours"), at, g.cw, g.columns])) return;
  const dense = window.devicePixelRatio || 1,
    one = document.createElement("canvas");
  canvas.width = Math.ceil(g.columns * (g.cw + GAP) * dense);
  canvas.height = Math.ceil(g.high * dense);
  const pen = canvas.getContext("2d");
  pen.scale(dense, dense);
  pen.imageSmoothingEnabled = false;
  view.lows.forEach((_, i) => {
    put(one, tilePixels(view, i, c.get("colours"), c.dark), view.tile);
    const x = (i % g.columns) * (g.cw + GAP),
      y = Math.floor(i / g.columns) * (g.ch + GAP);
    pen.drawImage(one, x, y, g.cw, g.ch);
    if (i === at && large) {
      pen.lineWidth = 2;
      pen.strokeStyle = getComputedStyle(c.root).getPropertyValue("--accent");
      pen.strokeRect(x + 1, y + 1, g.cw - 2, g.ch - 2);
    }
  });
  if (!large) return;
  put(large, tilePixels(view, at, c.get("colours"), c.dark), view.tile);
  const [h, w] = sizeOf(view);
  large.style.aspectRatio = `${Math.max(0.5, Math.min(8, w / h))}`;
}

function choose(c, channel) {
  const view = viewNow(c),
    next = Math.max(0, Math.min(view.lows.length - 1, channel));
  c.set({ channel: next });
  c.say(tr("channel {channel}, {low} to {high}", { channel: next, low: figure(view.lows[next]), high: figure(view.highs[next]) }));
}

export default widget({
  name: "tensor",
  empty: {
    title: tr("Pick a layer"),
    text: tr("Its output and its weights: a thumbnail per channel, and how the values are distributed."),
  },
  ready: (c) => Boolean(c.get("tensor")),
  view(c) {
    const tensor = c.get("tensor"),
      views = tensor.views.map((v, i) => [String(i), backendName(v.name)]);
    const others = c.get("tensors");
    return html`<div class="card">
      <div class="ch">
        <h3>${tensor.layer || tensor.name}</h3>
        ${others.length > 1 ? choice("chosen", others, c.get("chosen") || tensor.name, tr("Tensor")) : nothing}
        <span class="mu">${tensor.note || ""}</span><span class="sp"></span>${
          views.length > 1 ? segments("shown", views, String(c.get("shown")), tr("Side")) : nothing
        }${segments(
          "colours",
          [
            ["shared", tr("One scale")],
            ["own", tr("Scale per channel")],
          ],
          c.get("colours"),
          tr("Colors"),
        )}
      </div>
      <div class="cb body">${body(c, viewNow(c))}</div>
    </div>`;
  },
  watch: ["tensor", "tiles", "tensors", "chosen", "shown", "channel", "colours"],
  after: paint,
  set(c, name, value) {
    c.set({ [name]: name === "shown" ? +value : value });
  },
  click(c, event) {
    const canvas = event.target.closest("[data-sheet]");
    if (!canvas) return false;
    const box = canvas.getBoundingClientRect(),
      g = c.local.grid;
    const column = Math.floor((event.clientX - box.left) / (g.cw + GAP)),
      row = Math.floor((event.clientY - box.top) / (g.ch + GAP));
    if (column < g.columns) choose(c, row * g.columns + column);
    return true;
  },
  key(c, event) {
    if (event.target.dataset.part !== "sheet") return false;
    const down = c.local.grid?.columns ?? 1;
    const by = { ArrowRight: 1, ArrowDown: down, ArrowLeft: -1, ArrowUp: -down }[event.key];
    if (by) choose(c, c.get("channel") + by);
    return Boolean(by);
  },
});
