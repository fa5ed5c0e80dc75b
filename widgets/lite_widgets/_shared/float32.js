// Arrays come as bytes, float32 in C order.

/** DataView (or ArrayBuffer) → Float32Array; copies, because the offset need not be aligned. */
export function float32(view) {
  if (!view || !view.byteLength) return new Float32Array(0);
  const buffer = view.buffer || view,
    start = view.byteOffset || 0;
  return new Float32Array(buffer.slice(start, start + (view.byteLength & ~3)));
}
