// Where one layer's two outputs differ: the map of one channel, its profiles and a magnifier.
import { html, nothing, svg } from "#template";
import { backendName, scale } from "../_shared/colour.js";
import { error, THIN } from "../_shared/format.js";
import { float32 } from "../_shared/float32.js";
import { rampLegend } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

const LEFT = 48,
  LENS_CELLS = 16,
  LENS = 132;

/** Column and row means of a map, and its largest finite value. */
export function profiles(values, [h, w]) {
  const columns = new Float64Array(w),
    rows = new Float64Array(h);
  let max = 0,
    broken = 0;
  for (let y = 0; y < h; y++)
    for (let x = 0; x < w; x++) {
      const v = values[y * w + x];
      if (!Number.isFinite(v)) {
        broken++;
        continue;
      }
      columns[x] += v / h;
      rows[y] += v / w;
      if (v > max) max = v;
    }
  return { columns, rows, max, broken };
}

/** Where the error sits along one axis: {index, share, edge} of its largest entry. */
export function concentration(profile) {
  let index = 0,
    sum = 0;
  profile.forEach((v, i) => {
    sum += v;
    if (v > profile[index]) index = i;
  });
  const edge = index === 0 ? tr("the first") : index === profile.length - 1 ? tr("the last") : "";
  return { index, share: sum > 0 ? profile[index] / sum : 0, edge };
}

/** One pixel per value, RGBA; nothing where the difference is nothing. */
export function mapPixels(values, max, dark) {
  const out = new Uint8ClampedArray(values.length * 4);
  const table = Array.from({ length: 64 }, (_, i) => scale("over", i / 63, dark));
  for (let i = 0; i < values.length; i++) {
    const v = values[i],
      t = Number.isFinite(v) ? v / (max || 1) : 1;
    const hex = Number.isFinite(v)
      ? table[Math.min(63, Math.floor(t * 63))]
      : dark
        ? "#ffffff"
        : "#000000";
    for (let k = 0; k < 3; k++) out[i * 4 + k] = parseInt(hex.slice(1 + 2 * k, 3 + 2 * k), 16);
    out[i * 4 + 3] = Math.round(255 * Math.min(1, t * 2.2));
  }
  return out;
}

/** The lens shows this square of cells around (x, y), kept inside the map. */
export function lensWindow([h, w], x, y, cells = LENS_CELLS) {
  const cw = Math.min(cells, w),
    ch = Math.min(cells, h);
  const clamp = (v, size, n) => Math.max(0, Math.min(n - size, Math.round(v - size / 2)));
  return { x: clamp(x, cw, w), y: clamp(y, ch, h), w: cw, h: ch };
}

function paintMap(canvas, pixels, [h, w]) {
  canvas.width = w;
  canvas.height = h;
  canvas.getContext("2d").putImageData(new ImageData(pixels, w, h), 0, 0);
}

export function mapMarkup(c, width) {
  const [h, w] = c.get("map_shape");
  const { columns, max } = mapped(c);
  const lens = (w > 24 || h > 24) && width > LEFT + LENS + 160;
  const room = width - LEFT - 8 - (lens ? LENS + 12 : 0);
  const high = Math.round(Math.max(h < 4 ? 24 : 72, Math.min(168, (room / w) * h)));
  c.local.mapBox = { left: LEFT, top: 40, width: room, height: high };
  const cw = room / w,
    peak = Math.max(...columns, 1e-30);
  const path =
    `M${LEFT} 34` +
    Array.from(
      columns,
      (v, i) =>
        `L${(LEFT + i * cw).toFixed(1)} ${(34 - 26 * (v / peak)).toFixed(1)}h${cw.toFixed(2)}`,
    ).join("") +
    "V34z";
  const at = concentration(columns),
    right = LEFT + at.index * cw > LEFT + room / 2;
  const says =
    at.share > 0.2 && w > 8
      ? svg`<text
          class="tbad halo"
          x="${LEFT + (at.index + (right ? 0 : 1)) * cw + (right ? -8 : 8)}"
          y="20"
          text-anchor="${right ? "end" : "start"}"
          >${tr("column {column}, {share}", {
            column: `${at.index}${at.edge ? ` (${at.edge})` : ""}`,
            share: `${Math.round(100 * at.share)}${THIN}%`,
          })}</text
        >`
      : nothing;
  const lastRow = svg`<text x="${LEFT - 6}" y="${40 + high}" text-anchor="end">${h - 1}</text>`;
  const total = Math.max(40 + high + 34, lens ? 40 + LENS + 20 : 0);
  return html`<div class="mapbox" style="height:${total}px">
    <svg
      class="chart"
      height="${total}"
      viewBox="0 0 ${width} ${total}"
      role="img"
      aria-label=${tr("Difference by position")}
    >
      <rect
        x="${LEFT}"
        y="40"
        width="${room}"
        height="${high}"
        fill="var(--sunk)"
        stroke="var(--line)"
      />
      <path d="${path}" fill="var(--bad)" fill-opacity=".8" />
      <line class="ax" x1="${LEFT}" x2="${LEFT + room}" y1="34" y2="34" />
      <text x="${LEFT - 6}" y="33" text-anchor="end">${tr("by col")}</text>
      ${says}
      <text x="${LEFT - 6}" y="49" text-anchor="end">y 0</text>
      ${high > 26 && h > 1 ? lastRow : nothing}
      <text x="${LEFT}" y="${54 + high}">x 0</text>
      <text x="${LEFT + room}" y="${54 + high}" text-anchor="end">${w - 1}</text>
      <text x="${LEFT + room / 2}" y="${54 + high}" text-anchor="middle">
        ${tr("|{b} − {a}| in channel {channel}", {
          a: backendName(c.get("a")),
          b: backendName(c.get("b")),
          channel: c.get("channel"),
        })}
      </text>
      <rect class="lensmark" fill="none" stroke="var(--ink)" x="-10" y="-10" width="0" height="0" />
    </svg>
    <canvas
      class="map"
      data-map
      @pointermove=${(event) => look(c, event)}
      style="left:${LEFT}px;top:40px;width:${room}px;height:${high}px"
    ></canvas
    >${
      lens
        ? html`<div class="lens" style="left:${LEFT + room + 12}px;top:40px;width:${LENS}px">
            <canvas style="width:${LENS}px;height:${LENS}px"></canvas><small></small>
          </div>`
        : nothing
    }
    <div class="lg ramp" style="top:${60 + high}px;left:${LEFT}px">
      ${rampLegend("over", "0", error(max), c.dark)}
    </div>
  </div>`;
}

function moveLens(c, x, y) {
  const lens = c.root.querySelector(".lens"),
    shapeOf = c.get("map_shape");
  if (!lens) return;
  const view = lensWindow(shapeOf, x, y),
    box = c.local.mapBox,
    [h, w] = shapeOf;
  const canvas = lens.firstElementChild;
  canvas.width = canvas.height = LENS * 2;
  const g = canvas.getContext("2d");
  g.imageSmoothingEnabled = false;
  g.drawImage(
    c.root.querySelector("[data-map]"),
    view.x,
    view.y,
    view.w,
    view.h,
    0,
    0,
    LENS * 2,
    (LENS * 2 * view.h) / view.w,
  );
  canvas.style.height = `${LENS}px`;
  const i =
    Math.max(0, Math.min(h - 1, Math.floor(y))) * w + Math.max(0, Math.min(w - 1, Math.floor(x)));
  const times = Math.round(LENS / view.w / (box.width / w));
  lens.lastElementChild.textContent = `×${times} · x ${Math.floor(x)}, y ${Math.floor(y)}: ${error(mapped(c).values[i])}`;
  const mark = c.root.querySelector(".lensmark");
  const px = box.width / w,
    py = box.height / h;
  for (const [name, v] of Object.entries({
    x: box.left + view.x * px,
    y: box.top + view.y * py,
    width: Math.max(view.w * px, 3),
    height: view.h * py,
  }))
    mark.setAttribute(name, v);
}

/** The values of the map and their profiles, or null where there is none. */
export function mapped(c) {
  const bytes = c.get("map"),
    dims = c.get("map_shape");
  return c.memo("map", [bytes, dims], () => {
    const values = float32(bytes);
    return dims[0] && values.length === dims[0] * dims[1]
      ? { values, dims, ...profiles(values, dims) }
      : null;
  });
}

/** The lens follows the pointer. */
function look(c, event) {
  const box = event.target.getBoundingClientRect(),
    [h, w] = c.get("map_shape");
  const part = (at, from, size) => (at - from) / size;
  moveLens(
    c,
    part(event.clientX, box.left, box.width) * w,
    part(event.clientY, box.top, box.height) * h,
  );
}

/** Draws the pixels when they, the theme or the room have changed. */
export function paint(c) {
  const canvas = c.root.querySelector("[data-map]");
  if (!canvas) return;
  const { values, dims, max, columns, rows } = mapped(c);
  if (!c.changed("painted", [canvas, values, c.dark, c.local.mapBox.width])) return;
  paintMap(canvas, mapPixels(values, max, c.dark), dims);
  moveLens(c, concentration(columns).index, concentration(rows).index);
}
