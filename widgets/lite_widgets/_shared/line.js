// Which layers a line of tolerance marks. The finding and each layer's state at the usual tolerance
// are the engine's; a line that was moved elsewhere only compares numbers.

const over = (value, nan, tolerance) =>
  nan > 0 || (value !== null && value !== undefined && value > tolerance);

/** Values that are NaN or Inf on one side and something else on the other. */
export const notNumbers = (figures) => (figures?.nan_baseline || 0) + (figures?.nan_candidate || 0);

export const usualOf = (comparison) => comparison.usual_tolerance ?? comparison.tolerance;

/** A line is where the engine drew it: moved by less than what is shown of it. */
export const isUsual = (tolerance, usual) => Math.abs(tolerance / usual - 1) <= 0.01;

/** {op: tolerance}: each operator's own where the line stands at `usual`, moved along with it. */
export function ownTolerances(comparison, tolerance) {
  const usual = usualOf(comparison);
  const own = {};
  for (const row of comparison.layers)
    if (row.tolerance > 0)
      own[row.op] = Math.max(own[row.op] || 0, (row.tolerance * tolerance) / usual);
  return own;
}

/**
 * "within", "failing" (on its own), "propagated" (right on its own) or "differing" (no isolated
 * error is known). A layer that the engine found right stays so under a looser line.
 */
export function mark(row, tolerance, usual, metric = "rel_l2") {
  const right = row.within === true && tolerance >= Math.min(usual, row.tolerance || usual);
  const { isolated } = row;
  if (!right && isolated && over(isolated[metric], notNumbers(isolated), tolerance))
    return "failing";
  if (!over(row[metric], notNumbers(row), tolerance) || (right && row.state !== "propagated"))
    return "within";
  return isolated ? "propagated" : "differing";
}

/**
 * layers: [{name, op, block, region, index, iso, acc, tol, nan, state}]; first: index of the first one that
 * is not within, or −1; failing: indices of those that fail on their own.
 */
export function marks(comparison, tolerance, { byOp = null, metric = "rel_l2" } = {}) {
  const usual = usualOf(comparison);
  const asFound = isUsual(tolerance, usual) && metric === "rel_l2";
  const layers = comparison.layers.map((row) => {
    const tol = byOp?.[row.op] ?? tolerance;
    return {
      name: row.name,
      op: row.op,
      block: row.block,
      region: row.region,
      index: row.index,
      iso: row.isolated?.[metric] ?? null,
      acc: row[metric] ?? null,
      tol,
      nan: notNumbers(row),
      state: (asFound && row.state) || mark(row, tol, usual, metric),
    };
  });
  const first = layers.findIndex((l) => l.state !== "within");
  const failing = layers.flatMap((l, i) => (l.state === "failing" ? [i] : []));
  return { layers, first, failing };
}
