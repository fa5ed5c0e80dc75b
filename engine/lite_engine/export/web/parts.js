// What the pages share: how they begin and say things, and where files and camera frames come from.

import { fetchBytes, loadRuntime } from "./lite.js";

export const MOST_PIXELS = 1 << 26;
export const find = (id) => document.getElementById(id);

export function say(text, bad = false) {
  find("status").textContent = text;
  find("status").className = bad ? "bad" : "";
}

/** Calls `open` with what the file `named` says, the runtime and the model's bytes; what it throws is said. */
export async function start(named, open) {
  try {
    const about = await (await fetch(named)).json();
    document.title = find("name").textContent = about.name;
    const runtime = await loadRuntime();
    await open(about, runtime, await fetchBytes(about.file));
  } catch (error) {
    say(error.message, true);
  }
}

/** Replaces a table's rows by these texts; a number stands on the right, where its head says so. */
export function rows(table, lines) {
  const heads = [...(table.parentElement.tHead?.rows[0].cells ?? [])];
  table.replaceChildren(...lines.map((cells) => {
    const row = document.createElement("tr");
    cells.forEach((text, i) => {
      const cell = row.insertCell();
      cell.textContent = text;
      if (heads[i]?.className) cell.className = heads[i].className;
    });
    return row;
  }));
}

export const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

/** The canvas #picture, visible and of this size. */
export function pictureOf(width, height) {
  const canvas = find("picture");
  canvas.width = width;
  canvas.height = height;
  canvas.hidden = false;
  return canvas;
}

/** The pixels of `source`, which #picture shows from now on. Throws for too many of them. */
export function pixelsOf(source, width, height) {
  if (width * height > MOST_PIXELS) throw new Error("the image is too large");
  const canvas = pictureOf(width, height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(source, 0, 0);
  return context.getImageData(0, 0, width, height);
}

/** Shows an image that a pipeline has drawn, a PNG file. */
export async function showDrawn(png) {
  if (!png) return;
  const drawn = await createImageBitmap(new Blob([png], { type: "image/png" }));
  pictureOf(drawn.width, drawn.height).getContext("2d").drawImage(drawn, 0, 0);
}

/** The pixels of an image file as the browser decodes it, which #picture shows. */
export async function decoded(file) {
  const image = await createImageBitmap(file, { colorSpaceConversion: "none" });
  return pixelsOf(image, image.width, image.height);
}

/** Nothing of an earlier answer stays that could be taken for this file's. */
function forget() {
  for (const id of ["text", "answer", "ranges", "json"]) find(id)?.replaceChildren();
  find("picture").hidden = true;
}

/** Calls `run` with every file that is chosen or dropped; what it throws is said. */
export function takeFiles(run) {
  const take = async (file) => {
    if (!file) return;
    try {
      await run(file);
    } catch (error) {
      forget();
      say(`${file.name}: ${error.message}`, true);
    }
  };
  find("file").onchange = (event) => take(event.target.files[0]);
  document.body.ondragover = (event) => event.preventDefault();
  document.body.ondrop = (event) => {
    event.preventDefault();
    take(event.dataTransfer.files[0]);
  };
}

/** #camera starts and stops the camera; `run` gets one frame after the other, as an ImageData. */
export function takeCamera(run) {
  let camera = null;
  const stop = () => {
    for (const track of camera.getTracks()) track.stop();
    camera = null;
    find("camera").textContent = "Use the camera";
  };
  find("camera").onclick = async () => {
    if (camera) return stop();
    try {
      camera = await navigator.mediaDevices.getUserMedia({ video: true });
    } catch (error) {
      return say(`the camera cannot be used: ${error.message}`, true);
    }
    find("camera").textContent = "Stop the camera";
    const video = document.createElement("video");
    video.srcObject = camera;
    await video.play();
    const next = async () => {
      if (!camera) return;
      try {
        await run(pixelsOf(video, video.videoWidth, video.videoHeight));
        requestAnimationFrame(next);
      } catch (error) {
        stop();
        say(error.message, true);
      }
    };
    next();
  };
}
