// An answer as rows of a table, and images as files that the runtime reads.

// Files that it decodes itself, with the same pixels on every device.
const READ = ["image/jpeg", "image/png", "image/bmp", "image/x-ms-bmp"];

const format = (score) => score.toPrecision(3);
const place = (box) => box.map((v) => v.toFixed(0)).join(", ");

/** [where, what, score, box] of everything in `answers`, crops' answers below what was cut out. */
export function foundRows(answers, within = "") {
  const out = [];
  for (const [model, answer] of Object.entries(answers)) {
    const at = within + model;
    if (answer.kind === "text") out.push([at, answer.text, format(answer.confidence), ""]);
    else if (answer.kind === "image") out.push([at, `${answer.width}×${answer.height}`, "", ""]);
    else if (answer.kind === "vector") out.push([at, `vector of ${answer.vector.length}`, "", ""]);
    (answer.items ?? []).forEach((item, index) => {
      const number = item.box ? `${at} ${index + 1}` : at;
      const score = item.score ?? item.share;
      out.push([number, item.label ?? "", format(score), item.box ? place(item.box) : ""]);
      out.push(...foundRows(item.answers ?? {}, `${number} → `));
    });
  }
  return out;
}

/** [name, type, least, greatest] of each of a model's outputs. */
export const valueRows = (outputs) =>
  Object.values(outputs).map(({ name, shape, dtype, data }) => {
    let low = Infinity, high = -Infinity;
    for (const value of data) {
      low = Math.min(low, Number(value));
      high = Math.max(high, Number(value));
    }
    return [name, `${dtype} ${shape.join("×")}`, low.toPrecision(4), high.toPrecision(4)];
  });

/** The bytes of an image for a pipeline: the file's own, or those of the `pixels` that a browser makes of it. */
export async function imageBytes(file, pixels) {
  if (READ.includes(file.type)) return new Uint8Array(await file.arrayBuffer());
  return bmpOf(await pixels());
}

/** JSON for people: lists of numbers stand on one line. */
export function jsonText(value) {
  const text = JSON.stringify(value, null, 2);
  return text.replace(/\[\n[^[\]{}"]*\]/g, (list) => `[${list.slice(1, -1).trim().replace(/\s+/g, " ")}]`);
}

/** An ImageData as a BMP file of 24 bits: the same pixels, without what was transparent. */
export function bmpOf({ width, height, data }) {
  const line = (3 * width + 3) & ~3, head = 54;
  const file = new Uint8Array(head + line * height);
  const view = new DataView(file.buffer);
  file.set([0x42, 0x4d]);
  view.setUint32(2, file.length, true);
  view.setUint32(10, head, true);
  view.setUint32(14, 40, true); // of the second header
  view.setInt32(18, width, true);
  view.setInt32(22, height, true);
  view.setUint16(26, 1, true);
  view.setUint16(28, 24, true);
  for (let y = 0; y < height; ++y) {
    let to = head + line * (height - 1 - y); // from the last line to the first
    for (let from = 4 * width * y, x = 0; x < width; ++x, from += 4) {
      file[to++] = data[from + 2];
      file[to++] = data[from + 1];
      file[to++] = data[from];
    }
  }
  return file;
}
