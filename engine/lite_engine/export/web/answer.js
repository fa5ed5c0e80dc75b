// What outputs say: a line of letters, the best classes, or each value's range.

const BLANKS = ["-", "_", "<blank>", "blank", "[blank]", ""];
const DICTIONARY = 10; // fewer labels than this are not taken for one that lacks its blank

// [label of each class, index of the blank] of CTC scores (steps, classes); null for no line.
function alphabet(classes, labels) {
  if (classes === labels.length) {
    const atEnd = BLANKS.includes(labels.at(-1)) && !BLANKS.includes(labels[0]);
    return [labels, atEnd ? classes - 1 : 0];
  }
  const more = classes - labels.length;
  if (more > 0 && more <= 2 && labels.length >= DICTIONARY) return [["", ...labels, " "], 0];
  return null;
}

function line(data, steps, classes, stride, next, [names, blank]) {
  let before = -1, text = "";
  for (let t = 0; t < steps; ++t) {
    let best = 0;
    for (let c = 1; c < classes; ++c)
      if (data[t * stride + c * next] > data[t * stride + best * next]) best = c;
    if (best !== before && best !== blank) text += names[best];
    before = best;
  }
  return text;
}

/** { kind: "text", text } | { kind: "top", items: [{ label, score }] } | { kind: "values", items } */
export function answerOf(outputs, labels = [], top = 5) {
  const list = Object.values(outputs);
  const [{ data, shape }] = list;
  const dims = shape.filter((n) => n !== 1);
  if (list.length === 1 && labels.length && dims.length === 2) {
    for (const last of [true, false]) {
      const [steps, classes] = last ? dims : [dims[1], dims[0]];
      const known = alphabet(classes, labels);
      const [stride, next] = last ? [classes, 1] : [1, steps];
      if (known) return { kind: "text", text: line(data, steps, classes, stride, next, known) };
    }
  }
  if (list.length === 1 && dims.length === 1 && data.length > 1) {
    const order = Array.from(data.keys()).sort((a, b) => data[b] - data[a] || a - b);
    const named = labels.length >= data.length;
    const items = order.slice(0, top).map((i) => ({
      label: named ? labels[i] : String(i), score: Number(data[i]),
    }));
    return { kind: "top", items };
  }
  const items = list.map(({ name, shape, dtype, data }) => {
    const values = Array.from(data, Number);
    const [low, high] = values.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)],
      [Infinity, -Infinity]);
    return { name, type: `${dtype} ${shape.join("×")}`, low, high };
  });
  return { kind: "values", items };
}
