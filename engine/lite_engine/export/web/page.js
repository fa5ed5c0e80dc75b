import { answerOf } from "./answer.js";
import { imageInput } from "./image.js";
import { find, median, pixelsOf, rows, say, start, takeCamera, takeFiles } from "./parts.js";

let model, about, runs = [];

function show(outputs) {
  const answer = answerOf(outputs, about.labels);
  find("text").textContent = answer.kind === "text" ? answer.text : "";
  const format = (v) => v.toPrecision(4);
  if (answer.kind === "top") rows(find("answer"), answer.items.map((i) => [i.label, format(i.score)]));
  else if (answer.kind === "values")
    rows(find("answer"), answer.items.map((i) => [i.name, i.type, format(i.low), format(i.high)]));
  else rows(find("answer"), []);
}

function showTimes() {
  const times = model.times();
  runs.push(times.run_ms);
  find("times").textContent =
    `last ${times.run_ms.toFixed(2)} ms, median ${median(runs).toFixed(2)} ms, ` +
    `least ${Math.min(...runs).toFixed(2)} ms of ${runs.length} runs`;
  const total = times.steps.reduce((sum, step) => sum + step.ms, 0) || 1;
  const layers = [...times.steps].sort((a, b) => b.ms - a.ms);
  rows(find("layers"), layers.map((s) => [
    s.name, s.op, s.ms.toFixed(3), `${((100 * s.ms) / total).toFixed(1)} %`, s.variant,
  ]));
}

function run(pixels) {
  const began = performance.now();
  const [input] = model.inputs;
  const floats = imageInput(pixels, about.preprocess);
  const data = input.dtype === "f32" ? floats
    : input.dtype === "u8" ? Uint8Array.from(floats, Math.round) : Int8Array.from(floats, Math.round);
  const outputs = model.run({ [input.name]: data });
  show(outputs);
  showTimes();
  say(`done in ${(performance.now() - began).toFixed(0)} ms with preprocessing`);
  return outputs;
}

async function runFile(file) {
  const bitmap = await createImageBitmap(file, { colorSpaceConversion: "none" });
  return run(pixelsOf(bitmap, bitmap.width, bitmap.height));
}

function again() {
  for (let i = 0; i < 10; ++i) {
    model.run();
    showTimes();
  }
  say("ran ten times more with the same input");
}

start("model.json", (said, runtime, file) => {
  about = said;
  model = runtime.open(file);
  find("facts").textContent = [
    ...model.inputs.map((t) => `input ${t.name} ${t.dtype} ${t.shape.join("×")}`),
    ...model.outputs.map((t) => `output ${t.name} ${t.dtype} ${t.shape.join("×")}`),
    `Lite Workbench ${runtime.version}, ${runtime.features.join(" ")}`,
  ].join("\n");
  const image = about.preprocess && ["f32", "u8", "i8"].includes(model.inputs[0].dtype);
  find("input").hidden = !image;
  find("again").onclick = again;
  if (image) takeFiles(runFile);
  takeCamera(run);
  say(image ? "Choose an image, or drop one here." : "This model takes no image: run it on zeros.");
  globalThis.lite = { model, about, run, runFile };
});
