// Data colours. Hue carries data and is always doubled by position, shape, hatch or word.

const SCALES = {
  time: {
    light: ["#f7f0e3", "#f5d798", "#eba94a", "#c66f1c", "#7f3a0c"],
    dark: ["#2e2a25", "#5c3d1e", "#a06020", "#e2a040", "#ffe6b3"],
  },
  rate: {
    light: ["#eef3f6", "#b9d3df", "#6fa8c0", "#2f7593", "#0d3f57"],
    dark: ["#22292d", "#2b4a59", "#2f7593", "#73b3cf", "#d3edf8"],
  },
  over: {
    light: ["#f6c7a8", "#e8894a", "#d55e00", "#9a3c00", "#6b2700"],
    dark: ["#6b3312", "#a84a0c", "#d55e00", "#ff9254", "#ffd0b0"],
  },
  within: {
    light: ["#f1f3f4", "#f1f3f4", "#e3e8ea", "#d3dadd"],
    dark: ["#26292b", "#26292b", "#2d3235", "#363d41"],
  },
  change: {
    light: ["#2166ac", "#92c5de", "#f2f2f2", "#fdb863", "#b35806"],
    dark: ["#6fb7f0", "#2f6a9c", "#303336", "#a8651a", "#ffb65c"],
  },
};

export const BACKENDS = {
  x86: { name: "x86", light: "#0072b2", dark: "#56b4e9" },
  opencl: { name: "OpenCL", light: "#e69f00", dark: "#e69f00" },
  arm: { name: "arm", light: "#b6568c", dark: "#d98fb8" },
  reference: { name: "reference", light: "#868e96", dark: "#868e96" },
};

const PRECISIONS = {
  fp32: ["#56b4e9", "#56b4e9"],
  fp16: ["#e69f00", "#e69f00"],
  int8: ["#009e73", "#2fc29a"],
  int16: ["#cc79a7", "#d99bbd"],
  int32: ["#8a7d3b", "#c9b96b"],
};

const TYPES = {
  Conv: ["#56b4e9", "#8fd0f5"],
  "Conv 1×1": ["#0072b2", "#56b4e9"],
  "Conv k×k": ["#56b4e9", "#8fd0f5"],
  "Depthwise conv": ["#e69f00", "#e69f00"],
  "Transposed conv": ["#3a5fa8", "#7f9fe0"],
  MatMul: ["#009e73", "#2fb58e"],
  "SE fc": ["#cc79a7", "#cc79a7"],
  Activation: ["#cc79a7", "#d590b6"],
  Elementwise: ["#b3a76a", "#c9c2a0"],
  Pool: ["#8a9299", "#8a9299"],
  Norm: ["#6f8f5b", "#93b57d"],
  Layout: ["#c3c9ce", "#5b6166"],
  Recurrent: ["#a5673f", "#c98d66"],
  Quantize: ["#7b6fb0", "#a79dd8"],
  Detection: ["#b0504c", "#dd8783"],
  Copy: ["#9aa0a6", "#777777"],
};
const SPARE = ["#7b6fb0", "#6f8f5b", "#a5673f", "#3a8f99", "#b0504c", "#8a7d3b"];

export function mix(a, b, t) {
  const channel = (i) => {
    const from = parseInt(a.slice(i, i + 2), 16);
    const to = parseInt(b.slice(i, i + 2), 16);
    return Math.round(from * (1 - t) + to * t)
      .toString(16)
      .padStart(2, "0");
  };
  return "#" + channel(1) + channel(3) + channel(5);
}

/** Colour of a named scale at t in 0…1 (clamped; not a number counts as 0). */
export function scale(name, t, dark) {
  const stops = SCALES[name][dark ? "dark" : "light"];
  const at = Math.max(0, Math.min(0.9999, t || 0)) * (stops.length - 1);
  const i = Math.floor(at);
  return mix(stops[i], stops[i + 1], at - i);
}

function luminance(hex) {
  const part = (i) => {
    const v = parseInt(hex.slice(i, i + 2), 16) / 255;
    return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5);
}

/** Contrast ratio of two colours, 1…21 (WCAG 2). */
export function contrast(a, b) {
  const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p);
  return (x + 0.05) / (y + 0.05);
}

/** Black or white, whichever contrasts more with this fill: at least 4.58 to 1 on any colour. */
export const inkOn = (hex) =>
  contrast(hex, "#000000") >= contrast(hex, "#ffffff") ? "#000000" : "#ffffff";

/** What a diff says of a layer. */
export const DIFF = { added: "#009e73", deleted: "#d55e00", changed: "#e69f00" };

const spare = (name) => {
  let hash = 0;
  for (const c of String(name)) hash = (hash * 31 + c.codePointAt(0)) >>> 0;
  return SPARE[hash % SPARE.length];
};

/** A backend of another package has a colour by its name. */
export const backend = (name, dark) =>
  BACKENDS[name] ? BACKENDS[name][dark ? "dark" : "light"] : spare(name);
export const backendName = (name) => (BACKENDS[name] ? BACKENDS[name].name : name || "other");

export const precision = (name, dark) => (PRECISIONS[name] || ["#999999", "#999999"])[dark ? 1 : 0];

export function type(name, dark) {
  return TYPES[name] ? TYPES[name][dark ? 1 : 0] : spare(name);
}

/** Categories fill nodes at half strength, so that labels stay readable. */
export const tint = (hex, dark) => mix(hex, dark ? "#1f2021" : "#ffffff", 0.5);
