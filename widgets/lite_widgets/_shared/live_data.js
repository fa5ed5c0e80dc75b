// What the widgets show of a run in this page: the file's own view of its steps (VIEW.web) with the
// times, values and roofs of this browser. Pure functions.
import { tr } from "./words.js";

/** How many layers a block has where their names tell of none. */
const BLOCK = 12;

/** The view of a file of an older version: names, operators and kernels are known, no work. */
export const bareView = (steps) => ({
  name: tr("model"), precision: "", pipeline: null,
  steps: steps.map(({ name, op }, i) => ({
    name: `${name} (${i + 1})`, op, block: "", inputs: [], values: [], output_shapes: [],
    input_shapes: [], sources: [], dtype: "", macs: 0, flops: 0, bytes: 0, weight_bytes: 0,
  })),
});

/** The block of each step: the scope of its name, or that of the next one; a dozen without any. */
function blocksOf(steps) {
  const scoped = 2 * steps.filter((s) => s.block).length >= steps.length;
  let next = steps.findLast((s) => s.block)?.block;
  return steps
    .map((step, i) => ({ step, first: i - (i % BLOCK) }))
    .reverse()
    .map(({ step, first }) => {
      if (scoped) return (next = step.block || next);
      return tr("layers {first} to {last}", { first: first + 1, last: first + BLOCK });
    })
    .reverse();
}

/** What every view needs of each step. */
function rowsOf(steps) {
  const blocks = blocksOf(steps);
  return steps.map(({ name, op, overhead }, index) => ({
    index, name, op, type: overhead ? "Copy" : op, block: blocks[index],
  }));
}

/** `GraphData` of GraphView: steps and what they read. */
export function graphData(view, model) {
  const last = new Map(view.steps.flatMap((s) => s.values.map((value) => [value, s.name])));
  const ports = (tensors) => tensors.map(({ name, shape }) => ({ name, shape }));
  return {
    name: view.name,
    inputs: ports(model.inputs),
    outputs: ports(model.outputs).map((o) => ({ ...o, from: last.get(o.name) ?? o.name })),
    nodes: rowsOf(view.steps).map(({ name, op, block, index }) => {
      const { inputs, output_shapes, sources } = view.steps[index];
      return { name, op, block, inputs, output_shapes, sources };
    }),
  };
}

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

/** Mean of several runs: a browser's clock is coarser than a layer. */
export function meanRun(runs) {
  const mean = (of) => runs.reduce((sum, run) => sum + of(run), 0) / runs.length;
  const steps = runs[0].steps.map((step, i) => ({ ...step, ms: mean((r) => r.steps[i].ms) }));
  return { ...runs[0], run_ms: mean((r) => r.run_ms), steps };
}

const rate = (amount, ms) => (ms > 0 ? amount / ms / 1e6 : null);

/** `Profile` of the views: `runs` are times as `model.times()` gives them, or means of several. */
export function profileData(view, runs) {
  const medians = view.steps.map((_, i) => median(runs.map((r) => r.steps[i].ms)));
  const sum = medians.reduce((a, b) => a + b, 0) || 1;
  const totals = runs.map((r) => r.run_ms).sort((a, b) => a - b);
  const rows = rowsOf(view.steps);
  const layers = view.steps.map((step, i) => ({
    ...step, ...rows[i], backend: "wasm", kernel: runs[0].steps[i].variant,
    median_ms: medians[i], min_ms: Math.min(...runs.map((r) => r.steps[i].ms)),
    share: medians[i] / sum, gflops: rate(step.flops, medians[i]),
    gbytes_per_s: rate(step.bytes, medians[i]),
  }));
  return {
    model: view.name, backend: "wasm", device: "browser", threads: runs[0].threads,
    environment: {}, layers, overhead_ms: 0, first_run_ms: totals[0], runs: runs.length,
    total_ms: {
      median: median(totals), min: totals[0], p90: totals[Math.floor(0.9 * (totals.length - 1))],
    },
    peak_memory_bytes: runs[0].arena_bytes + runs[0].packed_bytes, emulated: false,
  };
}

/** FLOP or bytes per nanosecond of a step in the fastest of several runs. */
export const roofOf = (amount, index, runs) =>
  rate(amount, Math.min(...runs.map((r) => r.steps[index].ms).filter((ms) => ms > 0)));

/** Figures of two arrays of numbers: how far `made` is from `wanted`. */
export function figures(wanted, made) {
  let most = 0, sum = 0, square = 0, norm = 0, nans = [0, 0];
  for (let i = 0; i < wanted.length; ++i) {
    const a = Number(wanted[i]), b = Number(made[i]);
    if (!Number.isFinite(a) || !Number.isFinite(b)) {
      if (Object.is(a, b)) continue;
      nans = [nans[0] + !Number.isFinite(a), nans[1] + !Number.isFinite(b)];
      continue;
    }
    const d = Math.abs(a - b);
    most = Math.max(most, d);
    sum += d;
    square += d * d;
    norm += a * a;
  }
  const rel = square === 0 ? 0 : norm > 0 ? Math.sqrt(square / norm) : null;
  return {
    max_abs: most, mean_abs: sum / Math.max(wanted.length, 1), rel_l2: rel, cosine: null,
    sqnr_db: null, nan_baseline: nans[0], nan_candidate: nans[1],
  };
}

const wrong = (row, tolerance) =>
  row.nan_baseline + row.nan_candidate > 0 || row.rel_l2 === null || row.rel_l2 > tolerance;

/**
 * `Comparison` of ErrorStrip: recorded values against those of this browser, both name → array. A
 * layer whose inputs all agree has its own error only: it fails on its own or it is right.
 */
export function comparisonData(view, recorded, made, tolerance) {
  const off = new Set(); // steps with a wrong output
  const layers = [], rows = rowsOf(view.steps);
  view.steps.forEach((step, i) => {
    const names = step.values.filter((name) => recorded.has(name) && made.has(name));
    const all = names.map((name) => figures(recorded.get(name), made.get(name)));
    const worst = all.sort((a, b) => (b.rel_l2 ?? Infinity) - (a.rel_l2 ?? Infinity))[0];
    const onRight = !step.inputs.some((name) => off.has(name));
    if (!worst || wrong(worst, tolerance)) {
      if (worst || !onRight) off.add(step.name);
    }
    if (!worst) return;
    const bad = off.has(step.name);
    layers.push({
      ...rows[i], ...worst, tolerance, within: !bad, isolated: onRight ? worst : null,
      state: !bad ? "within" : onRight ? "failing" : "differing", sources: step.sources,
      range_baseline: [], range_candidate: [],
    });
  });
  const first = layers.find((row) => row.state === "failing") ?? null;
  const agrees = layers.every((row) => row.within);
  return {
    baseline: tr("recorded values"), candidate: tr("this browser"), tolerance,
    usual_tolerance: tolerance, first_divergence: first && { name: first.name }, layers, agrees,
    notice: noticeOf(first, agrees, layers.length),
  };
}

function noticeOf(first, agrees, count) {
  if (agrees)
    return { kind: "done", what: tr("All {count} recorded layers agree with this browser.", { count }) };
  if (!first) return { kind: "error", what: tr("Layers differ from the recorded values.") };
  return {
    kind: "error", layer: first.name,
    what: tr("This browser goes wrong at **{layer}**: its inputs agree with the recorded values, its output has an error of {error}.", {
      layer: first.name, error: first.rel_l2 === null ? "∞" : first.rel_l2.toExponential(1),
    }),
  };
}
