// Images → model inputs, with the bits of lite_engine's own preprocessing (which uses Pillow).
//
// `how` is what a model's metadata says, fitted to its input: { mean, std, colour, layout,
// size: [height, width], fit, crop, pad }. An image is { width, height, data } with RGBA bytes.

const BITS = 22; // of a weight's fraction, as in Pillow's resampling of bytes
const GREY = [19595, 38470, 7471]; // ITU-R 601-2 luma, in 1/65536

const roundHalfEven = (x) => {
  const low = Math.floor(x), part = x - low;
  return part > 0.5 || (part === 0.5 && low % 2 !== 0) ? low + 1 : low;
};

/** Where an image of (width, height) lies in the input: { size, scaled, offset }, each [x, y]. */
export function placed(width, height, how) {
  const [h, w] = how.size;
  if ((how.fit ?? "stretch") === "stretch") return { size: [w, h], scaled: [w, h], offset: [0, 0] };
  if (how.fit === "letterbox") {
    const ratio = Math.min(h / height, w / width);
    const scaled = [width, height].map((n) => Math.max(roundHalfEven(n * ratio), 1));
    const offset = [w, h].map((n, i) => roundHalfEven((n - scaled[i]) / 2 - 0.1));
    return { size: [w, h], scaled, offset };
  }
  const rows = Math.floor(h / how.crop + 1e-6), columns = Math.floor(w / how.crop + 1e-6);
  const wide = rows * width >= columns * height;
  const scaled = wide
    ? [Math.floor((rows * width) / height), rows]
    : [columns, Math.floor((columns * height) / width)];
  const offset = [w, h].map((n, i) => -roundHalfEven((scaled[i] - n) / 2));
  return { size: [w, h], scaled, offset };
}

// Weights of the triangle filter for each of `to` pixels out of `from`: [first, weights].
function filter(from, to) {
  const scale = from / to, spread = Math.max(scale, 1);
  return Array.from({ length: to }, (_, i) => {
    const centre = (i + 0.5) * scale;
    const first = Math.max(Math.trunc(centre - spread + 0.5), 0);
    const end = Math.min(Math.trunc(centre + spread + 0.5), from);
    const raw = [];
    for (let x = first; x < end; ++x)
      raw.push(Math.max(1 - Math.abs((x - centre + 0.5) * (1 / spread)), 0));
    const sum = raw.reduce((a, b) => a + b, 0);
    return [first, raw.map((v) => Math.trunc((v / sum) * (1 << BITS) + 0.5))];
  });
}

// Resizes along one axis: `count` lines whose pixels are `step` apart and that begin `line` apart.
function resizeAxis(data, channels, from, to, count, wide) {
  const out = new Uint8Array(count * to * channels);
  const weights = filter(from, to);
  const step = wide ? channels : count * channels, line = wide ? from * channels : channels;
  const outStep = wide ? channels : count * channels, outLine = wide ? to * channels : channels;
  for (let l = 0; l < count; ++l)
    for (let i = 0; i < to; ++i) {
      const [first, ws] = weights[i];
      for (let c = 0; c < channels; ++c) {
        let sum = 1 << (BITS - 1), at = l * line + first * step + c;
        for (const w of ws) {
          sum += data[at] * w;
          at += step;
        }
        out[l * outLine + i * outStep + c] = Math.min(Math.max(sum >> BITS, 0), 255);
      }
    }
  return out;
}

/** (height, width, channels) bytes resized bilinearly, with antialiasing. */
export function resized(data, channels, [width, height], [w, h]) {
  let out = data;
  if (w !== width) out = resizeAxis(out, channels, width, w, height, true);
  if (h !== height) out = resizeAxis(out, channels, height, h, w, false);
  return out;
}

function channelsOf(image, colour) {
  const { width, height, data } = image;
  const channels = colour === "grey" ? 1 : 3;
  const out = new Uint8Array(width * height * channels);
  for (let i = 0; i < width * height; ++i) {
    const rgb = [data[4 * i], data[4 * i + 1], data[4 * i + 2]];
    if (channels === 3) out.set(rgb, 3 * i);
    else out[i] = (rgb[0] * GREY[0] + rgb[1] * GREY[1] + rgb[2] * GREY[2] + 0x8000) >> 16;
  }
  return out;
}

/** Float32Array of the input's elements, in its layout. */
export function imageInput(image, how) {
  const channels = how.colour === "grey" ? 1 : 3;
  const { size: [w, h], scaled, offset } = placed(image.width, image.height, how);
  const pixels = resized(
    channelsOf(image, how.colour), channels, [image.width, image.height], scaled,
  );
  const mean = how.mean ?? [0], std = how.std ?? [255];
  const out = new Float32Array(w * h * channels);
  const nchw = how.layout === "nchw";
  for (let y = 0; y < h; ++y)
    for (let x = 0; x < w; ++x) {
      const sx = x - offset[0], sy = y - offset[1];
      const inside = sx >= 0 && sy >= 0 && sx < scaled[0] && sy < scaled[1];
      for (let c = 0; c < channels; ++c) {
        const from = how.colour === "bgr" ? 2 - c : c;
        const value = inside ? pixels[(sy * scaled[0] + sx) * channels + from] : how.pad;
        const m = Math.fround(mean[c % mean.length]), s = Math.fround(std[c % std.length]);
        const at = nchw ? (c * h + y) * w + x : (y * w + x) * channels + c;
        out[at] = Math.fround(value - m) / s;
      }
    }
  return out;
}
