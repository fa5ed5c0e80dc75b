// Runs .lite files in a page, in a worker or in Node.js. Types: lite.d.ts.
//
//   const runtime = await loadRuntime();                     // the module beside this file
//   const model = await runtime.open(await fetchBytes("model.lite"));
//   const outputs = model.run({ image: pixels });            // name → { data, shape, dtype }
//   const answer = model.pipeline().run(await fetchBytes("photo.jpg")); // as docs/pipelines.md describes it
//
//   const pipeline = runtime.openPipeline(await fetchBytes("app.lite")); // of several models
//   const found = pipeline.run(await fetchBytes("photo.jpg"));

const TYPES = [
  null, Float32Array, Uint16Array, Uint16Array, Float64Array, Int8Array, Uint8Array, Int16Array,
  Uint16Array, Int32Array, Uint32Array, BigInt64Array, BigUint64Array, Uint8Array,
];
const DTYPES = [
  "", "f32", "f16", "bf16", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool",
];
const ERRNO_BADF = 8;
const NANOSECONDS = 1e6; // in a millisecond, which is what performance.now counts in

export async function fetchBytes(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: the server answers ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/** Threads for an isolated page where none are asked for: half of what the processor runs at a time. */
const usualThreads = () => Math.max(1, Math.min(navigator.hardwareConcurrency >> 1, 8));
const PAGES = { initial: 512, maximum: 65535, shared: true }; // as cmake/wasm.cmake links the module
const STACK_BYTES = 1 << 20;

/** Compiles the module: from `source`, its bytes or its URL; without one, what lies beside this file: lite.wasm or, in a
 *  page that is isolated from other origins, lite_threads.wasm with `threads` threads. */
export async function loadRuntime(source, { threads = usualThreads() } = {}) {
  const memory = source === undefined && threads > 1 && globalThis.crossOriginIsolated ? sharedMemory() : null;
  const url = source ?? new URL(memory ? "lite_threads.wasm" : "lite.wasm", import.meta.url);
  const module = await WebAssembly.compile(url instanceof Uint8Array ? url : await fetchBytes(url));
  const runtime = new Runtime();
  const clock = () => performance.now();
  runtime.start(await WebAssembly.instantiate(module, imports(() => runtime.c.memory, clock, memory)));
  if (memory) await runtime.startThreads(module, memory, threads);
  return runtime;
}

// Null in a browser that does not reserve so much: one thread serves there.
function sharedMemory() {
  try {
    return new WebAssembly.Memory(PAGES);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    return null;
  }
}

/** What the module imports: a clock in milliseconds, and `shared`, the memory of all threads, where there is one. */
export function imports(memory, clock, shared) {
  const view = () => new DataView(memory().buffer);
  const wasi = {
    clock_time_get: (_clock, _precision, out) => {
      view().setBigUint64(out, BigInt(Math.round(clock() * NANOSECONDS)), true);
      return 0;
    },
    environ_sizes_get: (count, bytes) => {
      view().setUint32(count, 0, true);
      view().setUint32(bytes, 0, true);
      return 0;
    },
    environ_get: () => 0,
    fd_write: () => ERRNO_BADF,
    fd_close: () => ERRNO_BADF,
    fd_seek: () => ERRNO_BADF,
    proc_exit: (code) => {
      throw new Error(`the runtime stopped with code ${code}`);
    },
  };
  return { wasi_snapshot_preview1: wasi, ...(shared && { env: { memory: shared } }) };
}

class Runtime {
  start({ exports }) {
    this.c = exports;
    this.threads = 1;
    this.workers = [];
    exports._initialize();
    this.version = this.text(exports.lite_wasm_version());
    this.features = this.text(exports.lite_wasm_features()).split(" ");
  }

  // Every thread beside this one is a worker, which waits in the module for work.
  async startThreads(module, memory, threads) {
    const { timeOrigin } = performance;
    const started = Array.from({ length: threads - 1 }, (_, index) => {
      const stack = this.copied(new Uint8Array(STACK_BYTES)) + STACK_BYTES;
      const local = this.copied(new Uint8Array(this.c.__tls_size.value));
      const worker = new Worker(new URL("thread.js", import.meta.url), { type: "module" });
      this.workers.push(worker);
      return new Promise((resolve, reject) => {
        worker.onmessage = resolve;
        worker.onerror = ({ message }) => reject(new Error(`a thread does not start: ${message ?? "thread.js"}`));
        worker.postMessage({ module, memory, thread: index + 1, stack, local, timeOrigin });
      });
    });
    await Promise.all(started);
    this.c.lite_wasm_threads(threads - 1);
    this.threads = threads;
  }

  /** Ends the threads; nothing runs after it. */
  close() {
    for (const worker of this.workers) worker.terminate();
    this.workers = [];
  }

  // The zero-terminated text at an address.
  text(at) {
    const memory = new Uint8Array(this.c.memory.buffer);
    return new TextDecoder().decode(memory.slice(at, memory.indexOf(0, at))); // it refuses shared memory
  }

  // What a function of src/wasm returned as JSON.
  json(at) {
    if (!at) throw new Error("out of memory");
    const value = JSON.parse(this.text(at));
    this.c.lite_wasm_free(at);
    return value;
  }

  // An address that is not 0, or the reason why it is.
  checked(at) {
    if (!at) throw new Error(this.text(this.c.lite_wasm_error()));
    return at;
  }

  // The address of a copy in the module's memory, to be freed with lite_wasm_free.
  copied(bytes) {
    const at = this.c.lite_wasm_allocate(bytes.byteLength);
    if (!at) throw new Error(`${bytes.byteLength} bytes do not fit into memory`);
    new Uint8Array(this.c.memory.buffer).set(bytes, at);
    return at;
  }

  // What `make` makes of an opened file and of the address of its bytes, which live as long as it.
  opened(bytes, make) {
    const at = this.copied(bytes);
    let file = 0;
    try {
      file = this.checked(this.c.lite_wasm_open(at, bytes.byteLength));
      return make(at, file);
    } catch (error) {
      if (file) this.c.lite_wasm_close(file, 0);
      this.c.lite_wasm_free(at);
      throw error;
    }
  }

  /** A model from the bytes of a .lite file. */
  open(bytes) {
    return this.opened(bytes, (at, file) =>
      new Model(this, at, file, this.checked(this.c.lite_wasm_program(file, this.threads))));
  }

  /** A pipeline from the bytes of its .lite file. */
  openPipeline(bytes) {
    return this.opened(bytes, (at, file) =>
      new Pipeline(this, this.checked(this.c.lite_wasm_app_open(file)), () => {
        this.c.lite_wasm_close(file, 0);
        this.c.lite_wasm_free(at);
      }));
  }
}

const described = ({ name, dtype, dims }) => ({ name, dtype: DTYPES[dtype], shape: dims });

class Model {
  constructor(runtime, bytes, file, program) {
    Object.assign(this, { runtime, bytes, file, program, apps: [] });
    this.known = runtime.json(runtime.c.lite_wasm_tensors(program));
    this.inputs = this.known.inputs.map(described);
    this.outputs = this.known.outputs.map(described);
  }

  // A typed array over a tensor's bytes, until memory grows.
  view(tensor) {
    const at = this.runtime.checked(this.runtime.c.lite_wasm_data(this.program, tensor.tensor));
    const Type = TYPES[tensor.dtype];
    const count = tensor.bytes / Type.BYTES_PER_ELEMENT;
    return new Type(this.runtime.c.memory.buffer, at, count);
  }

  /** Name → typed array in; name → { data, shape, dtype } out. An input that is not given keeps what
   *  it held, zeros at first. */
  run(inputs = {}) {
    for (const [name, data] of Object.entries(inputs)) {
      const tensor = this.known.inputs.find((t) => t.name === name);
      if (!tensor) {
        const names = this.inputs.map((t) => t.name).join(", ");
        throw new Error(`the model has no input '${name}'; it has ${names}`);
      }
      const to = this.view(tensor);
      if (data.length !== to.length || !(data instanceof to.constructor)) {
        const wanted = `${to.constructor.name} of ${to.length} elements`;
        throw new Error(`input '${name}': expected a ${wanted}, found ${data.length}`);
      }
      to.set(data);
    }
    if (this.runtime.c.lite_wasm_run(this.program)) this.runtime.checked(0);
    return this.values();
  }

  read(tensors) {
    const found = tensors.map((t) => [t.name, { data: this.view(t).slice(), ...described(t) }]);
    return Object.fromEntries(found);
  }

  /** Keeps these values in every run; `tapped` reads them after it. */
  tap(names) {
    this.taps = names.map((name) => {
      const tensor = this.known.tensors.find((t) => t.name === name);
      if (!tensor) throw new Error(`the program has no value '${name}'`);
      if (this.runtime.c.lite_wasm_tap(this.program, tensor.tensor, 1)) this.runtime.checked(0);
      return tensor;
    });
  }

  tapped() {
    return this.read(this.taps ?? []);
  }

  /** What the outputs hold after a run, as `run` returns it. */
  values() {
    return this.read(this.known.outputs);
  }

  /** The pipeline that the model is by itself: how an image goes in and what the outputs mean, as the file says; null
   *  where it does not take an image. It ends with the model. */
  pipeline() {
    const section = this.section("VIEW.web");
    const { pipeline } = section ? JSON.parse(new TextDecoder().decode(section)) : {};
    if (!pipeline) return null;
    const text = new TextEncoder().encode(JSON.stringify(pipeline));
    const at = this.runtime.copied(text);
    const app = this.runtime.c.lite_wasm_app_make(this.program, at, text.length);
    this.runtime.c.lite_wasm_free(at);
    this.apps.push(new Pipeline(this.runtime, this.runtime.checked(app)));
    return this.apps.at(-1);
  }

  /** The bytes of a section of the file, null where it has none: "VIEW.web" says what each step does. */
  section(tag) {
    const { c } = this.runtime;
    const name = new TextEncoder().encode(`${tag}\0`);
    const at = this.runtime.checked(c.lite_wasm_allocate(name.length + 4)); // the size, then the tag
    new Uint8Array(c.memory.buffer).set(name, at + 4);
    const found = c.lite_wasm_section(this.file, at + 4, at);
    const size = new DataView(c.memory.buffer).getUint32(at, true);
    c.lite_wasm_free(at);
    return found ? new Uint8Array(c.memory.buffer).slice(found, found + size) : null;
  }

  /** Times of the last run: { run_ms, steps: [{ name, op, kernel, variant, ms }], … }. */
  times() {
    const { run_ns, steps, ...rest } = this.runtime.json(
      this.runtime.c.lite_wasm_times(this.program),
    );
    const timed = steps.map(({ start_ns, end_ns, ...step }) => ({
      ...step, ms: (end_ns - start_ns) / NANOSECONDS,
    }));
    return { ...rest, run_ms: run_ns / NANOSECONDS, steps: timed };
  }

  close() {
    for (const app of this.apps) app.close();
    this.runtime.c.lite_wasm_close(this.file, this.program);
    this.runtime.c.lite_wasm_free(this.bytes);
  }
}

class Pipeline {
  constructor(runtime, app, release = () => {}) {
    Object.assign(this, { runtime, app, release });
  }

  /** The bytes of a JPEG, PNG, BMP or WAV file → the answer, with the stages' times. */
  run(bytes) {
    const { runtime, app } = this;
    const at = runtime.copied(bytes);
    try {
      if (runtime.c.lite_wasm_app_run(app, at, bytes.byteLength)) runtime.checked(0);
    } finally {
      runtime.c.lite_wasm_free(at);
    }
    const answer = runtime.c.lite_wasm_app_answer(app);
    if (!answer) throw new Error("the answer does not fit into memory");
    return JSON.parse(runtime.text(answer));
  }

  /** The last image with the answer on it, as a PNG file; null for a sound. */
  drawn() {
    const { c } = this.runtime;
    const room = this.runtime.copied(new Uint8Array(4));
    const found = c.lite_wasm_app_drawn(this.app, room);
    const size = new DataView(c.memory.buffer).getUint32(room, true);
    c.lite_wasm_free(room);
    return found ? new Uint8Array(c.memory.buffer).slice(found, found + size) : null;
  }

  close() {
    this.runtime.c.lite_wasm_app_close(this.app);
    this.app = 0;
    this.release();
    this.release = () => {};
  }
}
