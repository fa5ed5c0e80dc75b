import { answerOf } from "./answer.js";
import { imageInput } from "./image.js";
import { fetchBytes, loadRuntime } from "./lite.js";

const find = (id) => document.getElementById(id);
const MOST_PIXELS = 1 << 26;
let model, about, runs = [], camera = null;

function say(text, bad = false) {
  find("status").textContent = text;
  find("status").className = bad ? "bad" : "";
}

function rows(table, lines) {
  table.replaceChildren(...lines.map((cells) => {
    const row = document.createElement("tr");
    for (const cell of cells) row.insertCell().textContent = cell;
    return row;
  }));
}

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
  const sorted = [...runs].sort((a, b) => a - b);
  const median = sorted[sorted.length >> 1];
  find("times").textContent =
    `last ${times.run_ms.toFixed(2)} ms, median ${median.toFixed(2)} ms, ` +
    `least ${sorted[0].toFixed(2)} ms of ${runs.length} runs`;
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

function pixelsOf(source, width, height) {
  const canvas = find("picture");
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(source, 0, 0);
  return context.getImageData(0, 0, width, height);
}

async function runFile(file) {
  try {
    const bitmap = await createImageBitmap(file, { colorSpaceConversion: "none" });
    if (bitmap.width * bitmap.height > MOST_PIXELS) throw new Error("the image is too large");
    run(pixelsOf(bitmap, bitmap.width, bitmap.height));
  } catch (error) {
    say(`${file.name}: ${error.message}`, true);
  }
}

async function toggleCamera() {
  if (camera) {
    for (const track of camera.getTracks()) track.stop();
    camera = null;
    find("camera").textContent = "Use the camera";
    return;
  }
  try {
    camera = await navigator.mediaDevices.getUserMedia({ video: true });
  } catch (error) {
    say(`the camera cannot be used: ${error.message}`, true);
    return;
  }
  find("camera").textContent = "Stop the camera";
  const video = document.createElement("video");
  video.srcObject = camera;
  await video.play();
  const next = () => {
    if (!camera) return;
    run(pixelsOf(video, video.videoWidth, video.videoHeight));
    requestAnimationFrame(next);
  };
  next();
}

function again() {
  for (let i = 0; i < 10; ++i) {
    model.run();
    showTimes();
  }
  say("ran ten times more with the same input");
}

async function main() {
  about = await (await fetch("model.json")).json();
  document.title = about.name;
  find("name").textContent = about.name;
  const runtime = await loadRuntime();
  model = runtime.open(await fetchBytes(about.file));
  find("facts").textContent = [
    ...model.inputs.map((t) => `input ${t.name} ${t.dtype} ${t.shape.join("×")}`),
    ...model.outputs.map((t) => `output ${t.name} ${t.dtype} ${t.shape.join("×")}`),
    `Lite Workbench ${runtime.version}, ${runtime.features.join(" ")}`,
  ].join("\n");
  const image = about.preprocess && ["f32", "u8", "i8"].includes(model.inputs[0].dtype);
  find("image").hidden = !image;
  find("again").onclick = again;
  find("camera").onclick = toggleCamera;
  find("file").onchange = (event) => event.target.files[0] && runFile(event.target.files[0]);
  document.body.ondragover = (event) => event.preventDefault();
  document.body.ondrop = (event) => {
    event.preventDefault();
    if (image && event.dataTransfer.files[0]) runFile(event.dataTransfer.files[0]);
  };
  say(image ? "choose an image, or drop one here" : "this model takes no image: run it on zeros");
  globalThis.lite = { model, about, run, runFile };
}

main().catch((error) => say(error.message, true));
