// How numbers are written: one unit per column, a narrow no-break space before units, a true minus.

export const THIN = "\u202f";
const MINUS = "\u2212";
export const NONE = "\u2013";

const missing = (v) => v === null || v === undefined || !Number.isFinite(v);
const minus = (text) => text.replace("-", MINUS);

/** Milliseconds with three significant digits, at most three decimals. */
export function ms(v) {
  if (missing(v)) return NONE;
  return minus(
    v.toFixed(Math.abs(v) >= 100 ? 0 : Math.abs(v) >= 10 ? 1 : Math.abs(v) >= 1 ? 2 : 3),
  );
}

/** For columns: always three decimals, so that the points align. */
export const fixed = (v, digits = 3) => (missing(v) ? NONE : minus(v.toFixed(digits)));

export const signed = (v, digits = 3) =>
  missing(v) ? NONE : (v < 0 ? MINUS : "+") + Math.abs(v).toFixed(digits);

/** Errors: 7.9e−2; plain from 0.1 to 1000. */
export function error(v) {
  if (missing(v)) return NONE;
  if (v === 0) return "0";
  if (Math.abs(v) >= 0.1 && Math.abs(v) < 1000) return minus(String(+v.toPrecision(2)));
  return minus(v.toExponential(1))
    .replace("e-", "e" + MINUS)
    .replace("e+", "e");
}

/** A value of a tensor: four significant digits, 3.403e38, −2.0e−5. */
export function figure(v) {
  if (missing(v)) return NONE;
  const text = v && Math.abs(v) < 0.0005 ? v.toExponential(1) : String(+v.toPrecision(4));
  return text.replaceAll("-", MINUS).replace("e+", "e");
}

export const percent = (v, digits = 1) =>
  missing(v) ? NONE : minus(v.toFixed(digits)) + THIN + "%";

export function bytes(v) {
  if (missing(v)) return NONE;
  if (v >= 1e9) return (v / 1e9).toFixed(2) + THIN + "GB";
  if (v >= 1e6) return (v / 1e6).toFixed(2) + THIN + "MB";
  return v >= 1e3 ? Math.round(v / 1e3) + THIN + "kB" : v + THIN + "B";
}

/** 1×3×?; ? depends on data, * of an unknown rank. */
export const shape = (dims) =>
  dims === undefined
    ? NONE
    : dims === null
      ? "*"
      : dims.map((d) => d ?? "?").join("\u00d7") || "scalar";

/** A long name by its end, which tells it from its neighbours. */
export const tail = (name, most = 34) =>
  name.length > most ? `\u2026${name.slice(1 - most)}` : name;

/** a/b/c → c, b/c, a/b/c */
const ends = (name) => {
  const parts = name.replace(/^\//, "").split("/");
  return parts.map((_, i) => parts.slice(-1 - i).join("/"));
};

/** (name) → its last parts that no other layer's name ends with: "Conv2d_2/Relu6/Conv" of
 * "Mobilenet/Conv2d_2/Relu6/Conv" beside "Mobilenet/Conv2d_3/Relu6/Conv". Where it is cut then, its
 * end goes, which tells it least from the others. */
export function distinct(names) {
  const uses = new Map();
  for (const end of [...new Set(names)].flatMap(ends)) uses.set(end, (uses.get(end) || 0) + 1);
  return (name) => {
    const own = ends(name).find((end) => uses.get(end) === 1) ?? name;
    return own.includes("/") ? own : tail(own);
  };
}

/** A share of 0 to 1 in whole percent; what rounds to nothing is not nothing. */
export const wholePercent = (part) =>
  part > 0 && part < 0.005 ? `<1${THIN}%` : percent(100 * part, 0);

/** A text as the beginning of a sentence. */
export const capital = (text) => text[0].toUpperCase() + text.slice(1);

/** A difference of times or half an interval: in µs below a millisecond, with a decimal below 10. */
export function short(v) {
  if (v >= 1) return `${ms(v)}${THIN}ms`;
  return `${v > 0 && v < 5e-5 ? "<0.1" : (v * 1e3).toFixed(v < 0.00995 ? 1 : 0)}${THIN}µs`;
}
