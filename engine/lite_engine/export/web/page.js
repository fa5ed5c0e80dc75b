import { bmpOf, foundRows, imageBytes, jsonText, valueRows } from "./found.js";
import { decoded, find, median, rows, say, showDrawn, start, takeCamera, takeFiles } from "./parts.js";

let model, pipeline, runs = [];

/** What the model answers; null after a run without an image. */
function show(answer) {
  const [found] = answer ? Object.values(answer.answers) : [];
  const read = found && found.kind !== "values";
  find("text").textContent = read && found.kind === "text" ? found.text : "";
  const answers = read ? foundRows(answer.answers).map(([, ...cells]) => cells) : valueRows(model.values());
  find("values").hidden = read;
  find("found").hidden = !read;
  rows(find(read ? "answer" : "ranges"), answers.length ? answers : [["nothing was found", "", ""]]);
  if (!answer) return;
  const { times, ...said } = answer;
  find("json").textContent = jsonText(said);
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

/** The bytes of an image file → the answer, which the page shows. */
async function run(bytes) {
  const answer = pipeline.run(bytes);
  await showDrawn(pipeline.drawn());
  show(answer);
  showTimes();
  say(`done in ${answer.times.total_ms.toFixed(0)} ms with preprocessing`);
  return answer;
}

const runFile = async (file) => run(await imageBytes(file, () => decoded(file)));

function again() {
  for (let i = 0; i < 10; ++i) {
    model.run();
    showTimes();
  }
  if (!find("values").hidden || find("found").hidden) show(null);
  say("ran ten times more with the same input");
}

start("model.json", (about, runtime, file) => {
  model = runtime.open(file);
  pipeline = model.pipeline();
  find("facts").textContent = [
    ...model.inputs.map((t) => `input ${t.name} ${t.dtype} ${t.shape.join("×")}`),
    ...model.outputs.map((t) => `output ${t.name} ${t.dtype} ${t.shape.join("×")}`),
    `Lite Workbench ${runtime.version}, ${runtime.features.join(" ")}`,
  ].join("\n");
  find("input").hidden = !pipeline;
  find("again").onclick = again;
  if (pipeline) takeFiles(runFile);
  takeCamera((pixels) => run(bmpOf(pixels)));
  say(pipeline ? "Choose an image, or drop one here." : "This model takes no image: run it on zeros.");
  globalThis.lite = { model, pipeline, run, runFile };
});
