// What a row's colour means: one encoding for chart, graph, table, roofline and overview.
import { html } from "#template";
import * as colour from "./colour.js";
import { ms, percent, THIN } from "./format.js";
import { hatchKey, key, rampLegend, square } from "./parts.js";
import { tr } from "./words.js";

export const isCopy = (row) => row.type === "Copy";

/** Bar value of a row: median ms, or million instructions under emulation. */
export const valueOf = (profile) =>
  profile.emulated ? (row) => (row.instructions || 0) / 1e6 : (row) => row.median_ms || 0;

export const unitOf = (profile) => (profile.emulated ? tr("M instr.") : "ms");

const COLOUR_WORDS = {
  time: tr("time"),
  type: tr("layer type"),
  backend: tr("backend"),
  precision: tr("precision"),
  gflops: "GFLOP/s",
};

/** Which encodings this profile can show. */
export function colourOptions(profile, baseline) {
  const names = ["time", "type", "backend", "precision"];
  if (!profile.emulated && profile.layers.some((r) => r.gflops > 0)) names.push("gflops");
  if (!profile.emulated && baseline) names.push("change");
  return names.map((n) => [
    n,
    n === "time" && profile.emulated
      ? tr("instructions")
      : n === "change"
        ? tr("change from {backend}", { backend: colour.backendName(baseline.backend) })
        : COLOUR_WORDS[n],
  ]);
}

const present = (rows, of) => [...new Set(rows.filter((r) => !isCopy(r)).map(of))].filter(Boolean);

/**
 * {fill(row), legend, value(row), unit, max, total, categorical}. `hidden` types fade to the grid.
 */
export function encode(profile, { by = "time", baseline = null, hidden = [], roof = null, paint }) {
  const { dark } = paint;
  const rows = profile.layers;
  const value = valueOf(profile);
  const unit = unitOf(profile);
  const max = Math.max(...rows.map(value), 1e-9);
  const known = colourOptions(profile, baseline).some(([n]) => n === by) ? by : "time";
  const faded = dark ? "#2a2b2c" : "#f4f5f5";
  const squares = (names, of, word = (n) => n) =>
    html`${names.map((n) => key(square(of(n, dark)), word(n)))}`;
  let fill,
    legend,
    categorical = false;
  if (known === "time") {
    fill = (r) => colour.scale("time", Math.sqrt(value(r) / max), dark);
    legend = rampLegend("time", "0", tr("{value}, √ scale", { value: ms(max) + THIN + unit }), dark);
  } else if (known === "gflops") {
    const top = roof ? roof.gflops : Math.max(...rows.map((r) => r.gflops || 0), 1e-9);
    fill = (r) => colour.scale("rate", (r.gflops || 0) / top, dark);
    const rate = ms(top) + THIN + "GFLOP/s";
    legend = rampLegend("rate", "0", roof ? tr("{rate} (roof)", { rate }) : rate, dark);
  } else if (known === "change") {
    const before = new Map(baseline.layers.map((r) => [r.name, r.median_ms]));
    fill = (r) =>
      colour.scale(
        "change",
        before.get(r.name) > 0 && r.median_ms > 0
          ? 0.5 + Math.log2(r.median_ms / before.get(r.name)) / 4
          : 0.5,
        dark,
      );
    legend = rampLegend(
      "change",
      tr("4× faster"),
      tr("4× slower than {backend}", { backend: colour.backendName(baseline.backend) }),
      dark,
    );
  } else {
    categorical = true;
    const [of, paintOf, word] = {
      type: [(r) => r.type, colour.type, (n) => n],
      backend: [(r) => r.backend, colour.backend, colour.backendName],
      precision: [(r) => r.dtype, colour.precision, (n) => n],
    }[known];
    fill = (r) => paintOf(of(r), dark);
    legend = squares(present(rows, of), paintOf, word);
  }
  if (rows.some(isCopy)) legend = html`${legend}${hatchKey(paint.copy, tr("copy or cast"))}`;
  const off = new Set(hidden);
  return {
    by: known,
    value,
    unit,
    max,
    legend,
    categorical,
    total: rows.reduce((a, r) => a + value(r), 0),
    fill: (r) => (off.has(r.type) ? faded : fill(r)),
  };
}

/** Tooltip of a profile row. */
export function rowTip(row, e) {
  const share = percent((100 * e.value(row)) / (e.total || 1));
  if (isCopy(row)) {
    const why = row.copy ? `\n${row.copy.why}` : row.why ? `\n${row.why}` : "";
    return `${row.name}\n${ms(e.value(row))}${THIN}${e.unit} · ${share}${why}`;
  }
  const spread = row.ci_ms ? ` ± ${ms(row.ci_ms)}` : "";
  const where = tr("{kernel} on {backend}", { kernel: row.kernel || row.op, backend: colour.backendName(row.backend) });
  return `${row.name}\n${ms(e.value(row))}${THIN}${e.unit}${spread} · ${share}\n${where}`;
}

/** [{type, layers, value, macs, weights}], the costliest type first. */
export function totals(profile) {
  const value = valueOf(profile),
    sums = new Map();
  for (const row of profile.layers) {
    const entry = sums.get(row.type) || {
      type: row.type,
      layers: 0,
      value: 0,
      macs: 0,
      weights: 0,
    };
    entry.layers++;
    entry.value += value(row);
    entry.macs += row.macs || 0;
    entry.weights += row.weight_bytes || 0;
    sums.set(row.type, entry);
  }
  return [...sums.values()].sort((a, b) => b.value - a.value || b.macs - a.macs);
}

/** FLOP per byte moved, or null. */
export function intensity(row) {
  const moved = row.bytes || (row.gbytes_per_s || 0) * 1e6 * (row.median_ms || 0);
  return row.macs > 0 && moved > 0 ? (2 * row.macs) / moved : null;
}

/** Products of bytes are under a roof of their own. */
export const inIntegers = (row) => row.dtype === "i8" || row.dtype === "u8";

/** FLOP/s in 10^9 that the roofs allow a layer of this intensity, 0 where they are not known. */
export function limitOf(row, roof) {
  const x = roof && intensity(row),
    top = roof && inIntegers(row) ? roof.integer_gops : roof?.gflops;
  return x && top ? Math.min(top, x * roof.gbytes_per_s) : 0;
}

/** Share of its roof that a layer reaches: the engine's, which knows the caches, or by `limitOf`. */
export function roofPart(row, roof) {
  const limit = limitOf(row, roof);
  return row.roofline_fraction || (limit ? row.gflops / limit : 0);
}
