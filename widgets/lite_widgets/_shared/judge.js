// Every layer's error against its tolerance, the first failing layer, and the verdict.
// The Python twin, for static images, is error_strip/verdict.py; a test holds them together.
import { error } from "./format.js";
import { backendName } from "./colour.js";

const over = (value, nan, tolerance) =>
  nan > 0 || (value !== null && value !== undefined && value > tolerance);

/** Values that are NaN or Inf on one side and something else on the other. */
export const notNumbers = (figures) => (figures?.nan_baseline || 0) + (figures?.nan_candidate || 0);

/** Tolerance of one layer: an operator may have its own. */
const toleranceOf = (row, tolerance, byOp) =>
  byOp && byOp[row.op] !== undefined ? byOp[row.op] : tolerance;

/** {op: tolerance}: each operator's own where the line stands at `usual`, moved along with it. */
export function ownTolerances(comparison, tolerance) {
  const usual = comparison.usual_tolerance ?? comparison.tolerance;
  const own = {};
  for (const row of comparison.layers)
    if (row.tolerance > 0)
      own[row.op] = Math.max(own[row.op] || 0, (row.tolerance * tolerance) / usual);
  return own;
}

/**
 * Where the line is at least what is usual, the engine's own finding stands: it knows what rounding
 * explains of a layer, and differences too small to mean anything (`within` of a row).
 * layers: [{name, op, block, iso, acc, tol, nan, state}], state "within", "own" or "carried";
 * first: index of the first one over its tolerance, or −1; own: indices over by themselves.
 */
export function judge(comparison, tolerance, { byOp = null, metric = "rel_l2" } = {}) {
  const usual = comparison.usual_tolerance ?? comparison.tolerance;
  const layers = comparison.layers.map((row) => {
    const tol = toleranceOf(row, tolerance, byOp);
    const iso = row.isolated ? (row.isolated[metric] ?? null) : null;
    const acc = row[metric] ?? null;
    const nan = notNumbers(row);
    const own = over(iso, notNumbers(row.isolated), tol);
    const right = row.within === true && tol >= usual;
    const state = right ? "within" : own ? "own" : over(acc, nan, tol) ? "carried" : "within";
    return {
      name: row.name,
      op: row.op,
      block: row.block,
      index: row.index,
      iso,
      acc,
      tol,
      nan,
      state,
    };
  });
  const first = layers.findIndex((l) => l.state !== "within");
  return { layers, first, own: layers.flatMap((l, i) => (l.state === "own" ? [i] : [])) };
}

/** {case, kind, text, detail, layer}: one sentence, and the evidence under it. */
export function verdict(comparison, tolerance, judged) {
  const a = backendName(comparison.baseline),
    b = backendName(comparison.candidate);
  const usual = comparison.usual_tolerance ?? comparison.tolerance;
  const n = judged.layers.length;
  const failing = judged.layers[judged.own[0] ?? -1];
  const first = judged.layers[judged.first];
  const usualSays = `${error(usual)} is the usual error for this pair.`;
  // what is usual for this operator: its own tolerance when the line stands at `usual`
  const most = failing && Math.max((failing.tol * usual) / tolerance, failing.tol);
  if (failing && (failing.iso === null || failing.iso > most)) {
    const down = n - judged.layers.indexOf(failing) - 1;
    const others = judged.own.length - 1;
    const row = comparison.layers[judged.own[0]];
    const rest = others
      ? `${others} of the ${down} layers after it also ${others > 1 ? "fail" : "fails"}.`
      : down
        ? `The ${down} layers after it are correct on correct input; ` +
          "they only propagate the error."
        : "It is the last layer.";
    return {
      case: "failing",
      kind: "error",
      layer: failing.name,
      text: `${b} goes wrong at **${failing.name}**: on the input of ${a}, it ${
        failing.iso === null
          ? "gives values that are not finite"
          : `has an error of **${error(failing.iso)}**`
      } (tolerance ${error(failing.tol)}).`,
      detail: row.hint ? `${rest} ${row.hint}` : rest,
    };
  }
  if (first) {
    const worst = first.iso !== null && first.iso > first.tol ? first.iso : first.acc;
    if (worst !== null && worst <= usual) {
      return {
        case: "rounding",
        kind: "warn",
        layer: first.name,
        text:
          `At this tolerance the first difference is **${first.name}** (${error(worst)}), ` +
          "which is within rounding.",
        detail: `No layer up to here fails. ${usualSays}`,
      };
    }
    if (first.iso === null) {
      return {
        case: "unknown",
        kind: "warn",
        layer: first.name,
        text:
          `${b} exceeds the tolerance at **${first.name}** (` +
          `${first.nan ? "values that are not finite" : error(first.acc)}, ` +
          `tolerance ${error(first.tol)}).`,
        detail:
          "Only accumulated errors are known. " +
          "The isolated pass separates this layer's own error from the error of its input.",
      };
    }
    return {
      case: "adds-up",
      kind: "warn",
      layer: first.name,
      text:
        `No layer fails on its own, but errors accumulate: **${first.name}** is the first ` +
        `over the tolerance (${error(first.acc)}).`,
      detail: `Its own error is ${error(first.iso)}. ${usualSays}`,
    };
  }
  const largest = judged.layers.reduce(
    (m, l) =>
      Math.max(l.iso ?? 0, l.iso === null ? (l.acc ?? 0) : 0) > (m ? (m.iso ?? m.acc ?? 0) : -1)
        ? l
        : m,
    null,
  );
  if (comparison.outputs_agree === false) {
    return {
      case: "blind",
      kind: "warn",
      layer: largest && largest.name,
      text:
        `No layer exceeds a tolerance of ${error(tolerance)}, but the outputs still differ` +
        (comparison.outputs_note ? `: ${comparison.outputs_note}` : "."),
      detail: largest ? `${largestSays(largest)}. ${usualSays}` : usualSays,
    };
  }
  return {
    case: "agrees",
    kind: "done",
    layer: null,
    text: `${a} and ${b} agree on all ${n} layers${comparison.ran ? `; ${comparison.ran}` : ""}.`,
    detail: largest ? `${largestSays(largest, ` (tolerance ${error(tolerance)})`)}.` : "",
  };
}

/** The layer with the largest error: its own where that is known, else in whole runs. */
function largestSays(layer, against = "") {
  const off = layer.iso ?? layer.acc;
  if (layer.iso !== null)
    return off
      ? `${layer.name} has the largest error of its own, ${error(off)}${against}`
      : "On the same input, every layer gives the same values";
  return off
    ? `The whole runs differ most at ${layer.name}: ${error(off)}${against}`
    : "The whole runs give the same values";
}
