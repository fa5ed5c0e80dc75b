// Which of a block's layers go down the middle; the others are drawn beside them.

const SMALL = 16; // times fewer elements than the largest output

const elements = (node) => {
  const shape = (node.output_shapes || [])[0];
  return shape ? shape.reduce((a, d) => a * Math.max(1, d), 1) : null;
};

/**
 * The nodes on the main chain: the heaviest path to a node that no other of them reads, where a
 * node weighs 1 and one with a far smaller output than its neighbours (the squeeze of
 * squeeze-and-excite) weighs less than nothing, so that it goes to the side.
 */
export function mainChain(nodes) {
  const at = new Map(nodes.map((n, i) => [n.name, i]));
  const sizes = nodes.map(elements);
  const largest = Math.max(0, ...sizes.filter((s) => s !== null));
  const best = [],
    from = [];
  nodes.forEach((node, i) => {
    const small = sizes[i] !== null && sizes[i] * SMALL <= largest;
    best[i] = small ? -0.5 : 1;
    from[i] = -1;
    let reach = -Infinity;
    for (const input of node.inputs || []) {
      const j = at.get(input);
      if (j !== undefined && j < i && best[j] > reach) {
        reach = best[j];
        from[i] = j;
      }
    }
    if (from[i] >= 0) best[i] += reach;
  });
  const read = new Set(nodes.flatMap((n) => n.inputs || []));
  let end = nodes.length - 1;
  for (let i = end - 1; i >= 0; i--)
    if (!read.has(nodes[i].name) && best[i] > best[end]) end = i;
  const main = new Set();
  for (let i = end; i >= 0; i = from[i]) main.add(nodes[i].name);
  return main;
}
