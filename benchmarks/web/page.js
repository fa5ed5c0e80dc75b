// One engine in a page of its own: globalThis.bench, which __main__.py calls.
// Tensors: { name, dtype, shape, data }; as text, data is the base64 of its bytes.
const TYPES = { f32: Float32Array, i64: BigInt64Array };
const ORT_DTYPES = { f32: "float32", i64: "int64" };
const AT_LEAST = 3; // runs of a burst

async function openLite({ model, inputs, threads }) {
  const { fetchBytes, loadRuntime } = await import("./model/lite.js");
  const opened = (await loadRuntime(undefined, { threads })).open(await fetchBytes(model));
  const given = Object.fromEntries(inputs.map(({ name, data }) => [name, data]));
  return () => Object.values(opened.run(given));
}

async function openOnnxruntime({ model, inputs, threads }) {
  const ort = await import("./peer/ort.wasm.min.mjs");
  ort.env.wasm.numThreads = threads;
  const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"] });
  const given = Object.fromEntries(
    inputs.map(({ name, dtype, shape, data }) =>
      [name, new ort.Tensor(ORT_DTYPES[dtype], data, shape)]),
  );
  return async () => {
    const found = await session.run(given);
    return session.outputNames.map((name) =>
      ({ name, dtype: "f32", shape: [...found[name].dims], data: found[name].data }));
  };
}

const OPEN = { lite: openLite, "onnxruntime-web": openOnnxruntime };

function fromText({ data, ...tensor }) {
  const bytes = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  return { ...tensor, data: new TYPES[tensor.dtype](bytes.buffer) };
}

function toText({ name, dtype, shape, data }) {
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { name, dtype, shape, data: btoa(Array.from(bytes, (b) => String.fromCharCode(b)).join("")) };
}

let run;

/** Opens the model and runs it once: seconds of both, and the outputs. */
async function load({ engine, model, inputs, threads }) {
  if (!(engine in OPEN)) throw new Error(`no such engine: ${engine}`);
  const start = performance.now();
  run = await OPEN[engine]({ model, inputs: inputs.map(fromText), threads });
  const loaded = performance.now();
  const outputs = await run();
  const first = performance.now();
  return {
    load_s: (loaded - start) / 1e3, first_s: (first - loaded) / 1e3, outputs: outputs.map(toText),
  };
}

/** Milliseconds of each run, until `burst_ms` have passed. */
async function burst({ burst_ms }) {
  const ms = [];
  for (let spent = 0; ms.length < AT_LEAST || spent < burst_ms; spent += ms.at(-1)) {
    const start = performance.now();
    await run();
    ms.push(performance.now() - start);
  }
  return { ms };
}

globalThis.bench = { load, burst };
