// A report that runs its model in this browser: the runtime as WebAssembly, one thread, no server.
// `#lite-live` is the bar above the widgets of its section, `#lite-live-data` says what there is:
// {runtime, roofs: {compute, memory}, models: [{title, file, image?, values?}], drop, runs}; what
// is fetched is beside the page, or a data: address in it.
import { foundRows, imageBytes, valueRows } from "lite-web/found.js";
import { fetchBytes, loadRuntime } from "lite-web/lite.js";
import { html, nothing, render } from "#template";
import { bareView, comparisonData, graphData, meanRun, profileData, roofOf } from "./live_data.js";
import { onThemeChange, pageIsDark } from "./theme.js";
import { tr } from "./words.js";

const MOST_PIXELS = 1 << 26;
const MOST_MS = 4000; // of the timed runs together
const SAMPLE_MS = 40; // of the runs behind one time: a clock here has steps of up to 0.1 ms
const MOST_RUNS = 1000; // behind one time
const ROOF_RUNS = 7;
const ARRAYS = {
  f32: Float32Array, f64: Float64Array, i8: Int8Array, u8: Uint8Array, i16: Int16Array,
  u16: Uint16Array, i32: Int32Array, u32: Uint32Array, i64: BigInt64Array, bool: Uint8Array,
};

const { modelOf } = await globalThis.liteReport; // of report.js, which the page has before this script
const bar = document.getElementById("lite-live");
const config = JSON.parse(document.getElementById("lite-live-data").textContent);
const state = { status: "", bad: false, busy: false, answer: null, image: null, title: "" };
let runtime, model, pipeline, view, roof, entry;

/** Lets the page draw before the next long call. */
const breath = () => new Promise((resolve) => setTimeout(resolve));

function put(module, values) {
  for (const element of bar.closest("section").querySelectorAll("[data-mount]"))
    if (modelOf(element).module === module) modelOf(element).put(values);
}

function say(status, bad = false) {
  Object.assign(state, { status, bad });
  draw();
}

/** Runs `task` unless something runs; what it throws is said. */
async function alone(task) {
  if (state.busy) return;
  state.busy = true;
  try {
    await task();
  } catch (error) {
    say(error.message, true);
  }
  state.busy = false;
  draw();
}

// Numbers between 0 and 1, the same in every run.
function filler(input) {
  const count = input.shape.reduce((a, b) => a * b, 1);
  const Type = ARRAYS[input.dtype] ?? Uint16Array;
  let seed = 1;
  const next = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
  if (Type === BigInt64Array) return new Type(count);
  return Type.from({ length: count }, () => (input.dtype[0] === "f" ? next() : 100 * next()));
}

/** Runs the model on the image, or on numbers, and says what it answers; the input stays for the timed runs. */
function answered() {
  if (state.image && pipeline) {
    const { answers } = pipeline.run(state.image.bytes);
    const [found] = Object.values(answers);
    if (found.kind === "text") return { text: found.text };
    if (found.kind !== "values") return { rows: foundRows(answers).map(([, ...cells]) => cells) };
  } else {
    model.run(Object.fromEntries(model.inputs.map((input) => [input.name, filler(input)])));
  }
  return { rows: valueRows(model.values()) };
}

/** Times of one run: the mean of as many as a coarse clock needs. */
function sample(of) {
  const runs = [];
  for (let ms = 0; ms < SAMPLE_MS && runs.length < MOST_RUNS; ms += runs.at(-1).run_ms) {
    of.run();
    runs.push(of.times());
  }
  return meanRun(runs);
}

async function measureRoof() {
  if (roof !== undefined || !config.roofs) return;
  const rates = {};
  for (const [kind, amount] of [["compute", "flops"], ["memory", "bytes"]]) {
    const roofModel = runtime.open(await fetchBytes(config.roofs[kind]));
    const { steps } = viewOf(roofModel);
    const index = steps.findIndex(({ name }) => name === "measured");
    const runs = [];
    for (let i = 0; i < ROOF_RUNS; ++i) runs.push(sample(roofModel));
    roofModel.close();
    rates[kind] = roofOf(steps[index][amount], index, runs);
    await breath();
  }
  roof = { gflops: rates.compute, gbytes_per_s: rates.memory, what: tr("1 thread, this browser") };
}

const viewOf = (opened) => {
  const bytes = opened.section("VIEW.web");
  return bytes ? JSON.parse(new TextDecoder().decode(bytes)) : null;
};

async function open(bytes, title) {
  const opened = runtime.open(bytes);
  model?.close();
  model = opened;
  state.title = title;
  pipeline = model.pipeline();
  model.run();
  view = viewOf(model) ?? bareView(model.times().steps);
  put("graph_view", { graph: graphData(view, model), profile: null, comparison: null });
  put("error_strip", { comparison: null });
}

async function measure() {
  say(tr("running {model} …", { model: state.title }));
  await breath();
  state.answer = answered();
  const runs = [];
  const began = performance.now();
  while (runs.length < config.runs && performance.now() - began < MOST_MS) {
    runs.push(sample(model));
    await breath();
  }
  await measureRoof();
  const profile = profileData(view, runs);
  for (const module of ["timing_line", "layer_table", "graph_view", "type_summary"])
    put(module, { profile });
  put("roofline", { profile, roof: roof ?? null });
  const { median, min } = profile.total_ms;
  say(tr("{model}: median {median} ms, least {least} ms, {count} times measured", {
    model: state.title, median: median.toFixed(3), least: min.toFixed(3), count: runs.length,
  }));
}

// ---- the recorded values: {tolerance, arrays: [{name, dtype, input, offset, bytes}]} and the bytes

async function recordedOf({ values }) {
  const about = JSON.parse(new TextDecoder().decode(await fetchBytes(values.about)));
  const { buffer } = await fetchBytes(values.data);
  const arrays = about.arrays.map(({ name, dtype, input, offset, bytes }) => {
    const Type = ARRAYS[dtype];
    return { name, input, data: new Type(buffer, offset, bytes / Type.BYTES_PER_ELEMENT) };
  });
  return { tolerance: about.tolerance, arrays };
}

/** What is recorded of this model: its own, or that of a shipped one with the same values. */
async function fittingValues() {
  const known = new Set(model.known.tensors.map((t) => t.name));
  for (const one of [entry, ...config.models].filter((e) => e?.values)) {
    const recorded = await recordedOf(one);
    if (recorded.arrays.every(({ name }) => known.has(name))) return recorded;
  }
  return null;
}

async function compare(bytes) {
  const recorded = await fittingValues();
  if (!recorded) return;
  const other = runtime.open(bytes); // keeping every value would slow the timed runs
  try {
    const inner = recorded.arrays.filter((a) => !a.input);
    other.tap(inner.map(({ name }) => name));
    const given = recorded.arrays.filter((a) => a.input).map(({ name, data }) => [name, data]);
    other.run(Object.fromEntries(given));
    const made = new Map(Object.entries(other.tapped()).map(([name, t]) => [name, t.data]));
    const wanted = new Map(inner.map(({ name, data }) => [name, data]));
    const { tolerance } = recorded;
    const comparison = comparisonData(view, wanted, made, tolerance);
    put("error_strip", { comparison, tolerance });
    if (!comparison.agrees) put("graph_view", { comparison, tolerance });
  } finally {
    other.close();
  }
}

// ---- what a person gives

/** An image as the runtime reads it and as the page shows it. */
async function imageOf(blob, name) {
  const bitmap = await createImageBitmap(blob, { colorSpaceConversion: "none" }).catch(() => {
    throw new Error(tr("{file} is not an image that this browser reads", { file: name }));
  });
  if (bitmap.width * bitmap.height > MOST_PIXELS) throw new Error(tr("the image is too large"));
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: bitmap.width, height: bitmap.height });
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(bitmap, 0, 0);
  const bytes = await imageBytes(blob, () => context.getImageData(0, 0, canvas.width, canvas.height));
  return { name, bytes, url: canvas.toDataURL() };
}

async function choose(next) {
  say(tr("loading {model} …", { model: next.title }));
  runtime ??= await loadRuntime(await fetchBytes(config.runtime));
  entry = next;
  const bytes = next.bytes ?? (await fetchBytes(next.file));
  await open(bytes, next.title);
  state.image = next.image
    ? await imageOf(new Blob([await fetchBytes(next.image)]), next.imageTitle ?? next.image)
    : null;
  await measure();
  await compare(bytes);
}

const take = (file) =>
  alone(async () => {
    if (file.name.endsWith(".lite")) {
      await choose({ title: file.name, bytes: new Uint8Array(await file.arrayBuffer()) });
      return;
    }
    if (!model) throw new Error(tr("open a model first"));
    if (!pipeline) throw new Error(tr("{model} does not take an image", { model: state.title }));
    state.image = await imageOf(file, file.name);
    await measure();
  });

// ---- the bar

function answer() {
  const said = state.answer;
  if (!said) return nothing;
  if (said.text !== undefined) return html`<p class="big" data-answer>${said.text}</p>`;
  return html`<table data-answer>
    ${said.rows.map((cells) => html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>`)}
  </table>`;
}

const picker = (id, label, accept) =>
  html`<label class="btn" for=${id}>${label}</label
    ><input
      class="sr"
      type="file"
      id=${id}
      accept=${accept}
      ?disabled=${state.busy}
      @change=${({ target }) => target.files.length && take(target.files[0])}
    />`;

function draw() {
  const models = config.models.map(
    (one, i) => html`<option value=${i} ?selected=${one === entry}>${one.title}</option>`,
  );
  const choice = html`<label class="lbl"
    >${tr("Model")}
    <select
      class="sel"
      id="live-model"
      ?disabled=${state.busy}
      @change=${({ target }) => target.value && alone(() => choose(config.models[+target.value]))}
    >
      ${entry ? nothing : html`<option value="">${tr("choose one")}</option>`}${models}
    </select></label
  >`;
  const again = html`<button
    type="button"
    class="btn pri"
    id="live-run"
    ?disabled=${state.busy}
    @click=${() => alone(() => (model ? measure() : choose(config.models[0])))}
  >
    ${tr("Run in this browser")}
  </button>`;
  render(
    html`<div class="row">
        ${config.drop ? choice : nothing}${again}${
          config.drop ? picker("live-file", tr("Open a .lite file…"), ".lite") : nothing
        }${picker("live-image", tr("Open an image…"), "image/*")}
        ${config.drop ? html`<span class="mu">${tr("or drop it here")}</span>` : nothing}
      </div>
      <p id="live-status" class=${state.bad ? "bad" : "mu"} role="status">${state.status}</p>
      <div class="row">
        ${state.image ? html`<img src=${state.image.url} alt=${state.image.name} />` : nothing}${answer()}
      </div>`,
    bar,
  );
}

bar.classList.add("lite", "lite-live");
const paint = () => (bar.dataset.theme = pageIsDark() ? "dark" : "light");
paint();
onThemeChange(paint);
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  if (event.dataTransfer.files.length) take(event.dataTransfer.files[0]);
});
draw();
if (config.drop) alone(() => choose(config.models[0]));
