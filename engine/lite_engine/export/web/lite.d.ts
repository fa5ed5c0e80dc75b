/** `f16` and `bf16` values are their bits. */
export type Data =
  | Float32Array | Float64Array | Int8Array | Uint8Array | Int16Array | Uint16Array | Int32Array
  | Uint32Array | BigInt64Array | BigUint64Array;

export interface TensorInfo {
  name: string;
  dtype: "f32" | "f16" | "bf16" | "f64" | "i8" | "u8" | "i16" | "u16" | "i32" | "u32" | "i64"
    | "u64" | "bool";
  shape: number[];
}

export interface Tensor extends TensorInfo {
  data: Data;
}

export interface Step {
  name: string;
  op: string;
  kernel: string;
  /** The kernel with its instruction set and tile. */
  variant: string;
  ms: number;
}

export interface Times {
  run_ms: number;
  threads: number;
  arena_bytes: number;
  packed_bytes: number;
  weight_bytes: number;
  steps: Step[];
}

export interface Model {
  readonly inputs: TensorInfo[];
  readonly outputs: TensorInfo[];
  /** Throws where an input has another type or length than the model's. */
  run(inputs?: Record<string, Data>): Record<string, Tensor>;
  /** The outputs after a run, as `run` returns them. */
  values(): Record<string, Tensor>;
  /** The pipeline that the model is by itself; null where it takes no image. */
  pipeline(): Pipeline | null;
  tap(names: string[]): void;
  tapped(): Record<string, Tensor>;
  times(): Times;
  /** A copy of a section's bytes; null where the file has none. */
  section(tag: string): Uint8Array | null;
  close(): void;
}

export interface StageTimes {
  name: string;
  pictures: number;
  ms: number;
  prepare_ms?: number;
  model_ms?: number;
  read_ms?: number;
}

/** What a model found in one image: `kind` says which of the other keys are there. */
export interface Found {
  kind: string;
  [key: string]: unknown;
}

export interface Answer {
  pipeline: string;
  image?: { width: number; height: number };
  answers: Record<string, Found>;
  times: { total_ms: number; decode_ms: number; stages: StageTimes[] };
}

export interface Pipeline {
  /** The bytes of a JPEG, PNG, BMP or WAV file. Throws with the reason where they cannot be read. */
  run(bytes: Uint8Array): Answer;
  /** The last image with the answer on it, as a PNG file; null for a sound. */
  drawn(): Uint8Array | null;
  close(): void;
}

export interface Runtime {
  readonly version: string;
  readonly features: string[];
  /** 1 where the page is not isolated from other origins. */
  readonly threads: number;
  /** Throws with the reason where the bytes are not a .lite file with a program for `wasm`. */
  open(bytes: Uint8Array): Model;
  /** Throws with the reason where the bytes are not a pipeline's .lite file. */
  openPipeline(bytes: Uint8Array): Pipeline;
  /** Ends the threads; nothing runs after it. */
  close(): void;
}

export function fetchBytes(url: string | URL): Promise<Uint8Array>;
/** Without a source: what lies beside lite.js, with several threads where the page is isolated from other origins. */
export function loadRuntime(
  source?: string | URL | Uint8Array, options?: { threads?: number },
): Promise<Runtime>;
