import assert from "node:assert/strict";
import { test } from "node:test";
import { inner, lanes, layout, paths, trail, tree } from "../../../widgets/lite_widgets/graph_view/layout.js";
import { mainChain } from "../../../widgets/lite_widgets/graph_view/main_chain.js";

const node = (name, inputs, shape = [1, 16, 8, 8], block = "b") => ({ name, op: "X", inputs, output_shapes: [shape], block });
const squeeze = [node("dw", ["in"]), node("pool", ["dw"], [1, 16, 1, 1]), node("fc", ["pool"], [1, 16, 1, 1]), node("mul", ["dw", "fc"]), node("out", ["mul", "in"])];
const lay = (nodes, open) => { const blocks = tree(nodes); return layout({ blocks, open: new Set(open ?? paths(blocks)), width: 388, share: () => 1, inputs: [{ name: "in", shape: [1] }], outputs: [] }); };

test("squeeze-and-excite goes to the side, residual units stay on the chain", () => {
  assert.deepEqual([...mainChain(squeeze)].sort(), ["dw", "mul", "out"]);
  const residual = [node("c1", ["x"]), node("c2", ["c1"]), node("add", ["c2", "x"])];
  assert.deepEqual([...mainChain(residual)].sort(), ["add", "c1", "c2"]);
  const inception = [node("a", ["x"]), node("p", ["a"]), node("q1", ["a"]), node("q2", ["q1"]), node("cat", ["p", "q2"])];
  assert.deepEqual([...mainChain(inception)].sort(), ["a", "cat", "q1", "q2"]);
  const branch = [node("c1", ["x"]), node("c2", ["c1"]), node("c3", ["c2"]), node("pool", ["x"])];
  assert.deepEqual([...mainChain(branch)].sort(), ["c1", "c2", "c3"], "what comes last may be a branch");
});

test("nothing overlaps, every node is drawn once, in topological order", () => {
  for (const plan of [lay(squeeze), lay(squeeze, [])]) {
    assert.deepEqual(plan.order, squeeze.map((n) => n.name));
    const boxes = plan.items.filter((i) => i.kind === "node" || i.kind === "cell");
    for (const a of boxes) for (const b of boxes) {
      if (a === b) continue;
      assert.ok(a.x + a.w <= b.x + 1e-6 || b.x + b.w <= a.x + 1e-6 || a.y + a.h <= b.y || b.y + b.h <= a.y, `${a.node.name} ${b.node.name}`);
    }
    for (const item of plan.items) assert.ok(item.x >= 0 && item.x + item.w <= 388 && item.y + item.h <= plan.height);
  }
});

test("skip edges take lanes that do not cross each other", () => {
  assert.deepEqual(lanes([[0, 10], [2, 5], [6, 9], [10, 12]]), [0, 1, 1, 0]);
});

test("opening a block moves nothing above it", () => {
  const nodes = ["a", "b", "c"].flatMap((b) => [node(`${b}/1`, [], undefined, b), node(`${b}/2`, [`${b}/1`], undefined, b)]);
  const [closed, open] = [lay(nodes, []), lay(nodes, ["b"])];
  assert.equal(closed.tops.get("a").y, open.tops.get("a").y);
  assert.equal(closed.tops.get("b").y, open.tops.get("b").y);
  assert.ok(open.tops.get("c").y > closed.tops.get("c").y);
});

test("long blocks nest by name scope, and the trail to a node leads through them", () => {
  const nodes = Array.from({ length: 20 }, (_, i) => node(`s/u${Math.floor(i / 5)}/n${i % 5}`, [], undefined, "s"));
  const blocks = tree(nodes);
  assert.deepEqual(paths(blocks), ["s", "s/u0", "s/u1", "s/u2", "s/u3"]);
  assert.deepEqual(trail(blocks, "s/u2/n1"), ["s", "s/u2"]);
  assert.equal(trail(blocks, "nowhere"), null);
});

test("edges between far blocks are drawn, and 1000 open nodes lay out in under a second", () => {
  const far = [node("a", [], undefined, "A"), node("b", ["a"], undefined, "B"), node("c", ["b", "a"], undefined, "C")];
  assert.equal(lay(far).edges.filter((e) => e.far).length, 1);
  const many = Array.from({ length: 1000 }, (_, i) => node(`s${Math.floor(i / 80)}/n${i}`, i ? [`s${Math.floor((i - 1) / 80)}/n${i - 1}`] : [], undefined, `s${Math.floor(i / 80)}`));
  const began = performance.now();
  assert.equal(lay(many).order.length, 1000);
  assert.ok(performance.now() - began < 1000);
});

test("blocks of one region lie in it; a region of one block gives it its name", () => {
  const region = "stage 1: residual block ×2";
  const nodes = [["c", "stem", "stem"], ["a", "b1", region], ["b", "b1", region], ["d", "b2", region], ["e", "end", "head"]]
    .map(([name, block, of]) => ({ ...node(name, [], [1, 8, 4, 4], block), region: of }));
  const blocks = tree(nodes, { [region]: "adds its input" });
  assert.deepEqual(blocks.map((b) => b.label), ["stem", region, "end · head"]);
  assert.deepEqual([blocks[1].evidence, blocks[1].nodes.length], ["adds its input", 3]);
  assert.deepEqual(trail(blocks, "d"), [`region:${region}`, "b2"]);
  assert.deepEqual(inner(blocks).map((part) => part.way.length), [1, 2, 2, 1]);
  assert.deepEqual(new Set(paths(blocks)).size, paths(blocks).length);
});
