import { bmpOf, foundRows, imageBytes, jsonText } from "./found.js";
import { decoded, find, median, rows, say, showDrawn, start, takeCamera, takeFiles } from "./parts.js";

let pipeline, about;
const totals = [];

function showTimes({ total_ms, decode_ms, stages }) {
  totals.push(total_ms);
  find("times").textContent = totals.length === 1 ? `${total_ms.toFixed(1)} ms`
    : `${total_ms.toFixed(1)} ms, median of ${totals.length} runs ${median(totals).toFixed(1)} ms`;
  const part = (ms) => (ms === undefined ? "" : ms.toFixed(1));
  rows(find("stages"), [
    ["decode", "", decode_ms.toFixed(1), "", "", ""],
    ...stages.map((s) => [
      s.name, String(s.pictures), s.ms.toFixed(1), part(s.prepare_ms), part(s.model_ms), part(s.read_ms),
    ]),
  ]);
}

/** The bytes of an image or sound file → the answer, which the page shows. */
async function run(bytes) {
  const answer = pipeline.run(bytes);
  await showDrawn(pipeline.drawn());
  const found = foundRows(answer.answers);
  rows(find("answer"), found.length ? found : [["", "nothing was found", "", ""]]);
  const { times, ...said } = answer;
  find("json").textContent = jsonText(said);
  showTimes(times);
  say("done");
  return answer;
}

async function runFile(file) {
  if (about.sound) return run(new Uint8Array(await file.arrayBuffer()));
  return run(await imageBytes(file, () => decoded(file)));
}

start("pipeline.json", (said, runtime, file) => {
  about = said;
  pipeline = runtime.openPipeline(file);
  find("facts").textContent = `Lite Workbench ${runtime.version}, ${runtime.features.join(" ")}`;
  find("picture").ariaLabel = "The image with the answer drawn on it";
  find("kind").textContent = about.sound ? "Sound" : "Image";
  find("file").accept = about.sound ? ".wav,audio/wav" : "image/*";
  find("camera").hidden = about.sound;
  find("input").hidden = false;
  takeFiles(runFile);
  takeCamera((pixels) => run(bmpOf(pixels)));
  say(about.sound ? "Choose a WAV file, or drop one here." : "Choose an image, or drop one here.");
  globalThis.lite = { pipeline, about, run, runFile };
});
