import assert from "node:assert/strict";
import { test } from "node:test";
import { html, nothing } from "../../../widgets/lite_widgets/_shared/template_text.js";
import * as format from "../../../widgets/lite_widgets/_shared/format.js";
import * as colour from "../../../widgets/lite_widgets/_shared/colour.js";
import { tree as regionTree } from "../../../widgets/lite_widgets/graph_view/layout.js";
import { brackets, bracketsHeight, fit, linear, log, nice, runs, ticks } from "../../../widgets/lite_widgets/_shared/scale.js";
import { afterClick, afterKey } from "../../../widgets/lite_widgets/_shared/selection.js";
import { bins, span } from "../../../widgets/lite_widgets/_shared/overview.js";
import { float32 } from "../../../widgets/lite_widgets/_shared/float32.js";
import { prose } from "../../../widgets/lite_widgets/_shared/parts.js";

test("as text, every value is escaped and a template is not", () => {
  const evil = `<img src=x onerror="alert('1')">`;
  assert.ok(!html`<b>${evil}</b>`.text.includes("<img"));
  assert.equal(html`<p>${html`<i>${"a&b"}</i>`}</p>`.text, "<p><i>a&amp;b</i></p>");
  assert.equal(html`${[1, "<", html`<br>`]}${null}${nothing}${0}`.text, "1&lt;<br>0");
  assert.equal(html`<i title=${`"'`} class="a ${"<"}"></i>`.text, '<i title="&quot;&#39;" class="a &lt;"></i>');
  assert.equal(prose("**a** `b<c` d").join(""), "<b>a</b> <code>b&lt;c</code> d");
});

test("as text, attributes are there or not, and what needs a page is left out", () => {
  const tag = (on, value) => html`<input ?checked=${on} .value=${value} @input=${() => 1} name=${on ? "n" : nothing} />`;
  assert.equal(tag(true, "a").text, '<input checked value="a" name="n" />');
  assert.equal(tag(false, null).text, "<input />");
  assert.equal(html`<p>x=${1}</p>`.text, "<p>x=1</p>"); // no attribute: it is not in a tag
});

test("numbers: three significant digits, a true minus, a dash for what is missing", () => {
  assert.deepEqual([0.0216, 1.234, 12.345, 123.4].map(format.ms), ["0.022", "1.23", "12.3", "123"]);
  assert.equal(format.ms(null), "–");
  assert.equal(format.ms(NaN), "–");
  assert.deepEqual([7.91e-2, 1e-7, 0, 0.25, 12345].map(format.error), ["7.9e−2", "1.0e−7", "0", "0.25", "1.2e4"]);
  assert.deepEqual([3.4028e38, -2e-5, 0, 123.456, NaN].map(format.figure), ["3.403e38", "−2.0e−5", "0", "123.5", "–"]);
  assert.equal(format.signed(-0.5, 1), "−0.5");
  assert.equal(format.bytes(1024), "1\u202fkB");
  assert.equal(format.shape([1, 88, 12, 160]), "1×88×12×160");
  assert.deepEqual(
    [[null, 4], [], null, undefined].map(format.shape),
    ["?×4", "scalar", "*", "–"],
  );
});

test("text on every fill has at least 4.5 to 1", () => {
  for (const name of ["time", "rate", "over", "within", "change"]) for (const dark of [false, true]) {
    for (let i = 0; i <= 20; i++) {
      const fill = colour.scale(name, i / 20, dark);
      assert.ok(colour.contrast(fill, colour.inkOn(fill)) >= 4.5, `${name} ${i} ${dark} ${fill}`);
    }
  }
});

test("scales get further from the background with more, in both themes", () => {
  for (const [dark, ground] of [[false, "#ffffff"], [true, "#1f2021"]]) for (const name of ["time", "rate"]) {
    const far = [0, 0.25, 0.5, 0.75, 1].map((t) => colour.contrast(colour.scale(name, t, dark), ground));
    assert.deepEqual(far, [...far].sort((a, b) => a - b), name);
  }
  assert.equal(colour.scale("time", NaN, false), colour.scale("time", 0, false));
});

test("axes end on round numbers", () => {
  assert.equal(nice(0.76), 0.8);
  assert.equal(nice(0), 1);
  assert.deepEqual(ticks(0.8), [0, 0.2, 0.4, 0.6, 0.8]);
  for (const max of [0.003, 0.8, 6, 47, 1e6]) assert.ok(ticks(max).length >= 3 && ticks(max).length <= 6, String(max));
  const y = log([1e-7, 1], [100, 0]);
  assert.ok(Math.abs(y.invert(y(1e-3)) - 1e-3) < 1e-12);
  assert.equal(linear([0, 10], [0, 100])(5), 50);
  assert.deepEqual(runs([1, 1, 2, 1], (x) => x).map((r) => [r.first, r.last]), [[0, 1], [2, 2], [3, 3]]);
  assert.equal(fit("abcdefgh", 30), "abcd…");
});

test("selection: click replaces, again clears, shift adds; arrows stop at the ends", () => {
  assert.deepEqual(afterClick(["a"], "b", false), ["b"]);
  assert.deepEqual(afterClick(["a"], "a", false), []);
  assert.deepEqual(afterClick(["a"], "b", true), ["a", "b"]);
  assert.deepEqual(afterClick(["a", "b"], "a", true), ["b"]);
  const order = ["a", "b", "c"];
  assert.equal(afterKey(order, "a", "ArrowRight"), "b");
  assert.equal(afterKey(order, "c", "ArrowRight"), "c");
  assert.equal(afterKey(order, null, "ArrowRight"), "a");
  assert.equal(afterKey(order, null, "ArrowLeft"), "c");
  assert.equal(afterKey(order, "b", "x"), null);
  assert.equal(afterKey([], null, "Home"), null);
});

test("the overview bins by maximum over 300 layers", () => {
  const rows = Array.from({ length: 1000 }, (_, i) => ({ name: `l${i}`, v: i === 517 ? 9 : 1 }));
  const all = bins(rows, (r) => r.v);
  assert.equal(all.length, 300);
  assert.equal(all.filter((b) => b.row.name === "l517").length, 1);
  assert.equal(all.reduce((a, b) => a + b.last - b.first + 1, 0), 1000);
  assert.ok(span(10, 0, 9, 108).height >= 100);
});

test("float32 reads views whose offset is not aligned", () => {
  const bytes = new Uint8Array(9);
  bytes.set(new Uint8Array(new Float32Array([1.5, -2]).buffer), 1);
  assert.deepEqual([...float32(new DataView(bytes.buffer, 1, 8))], [1.5, -2]);
  assert.equal(float32(null).length, 0);
});

test("a long name keeps its end", () => {
  const { distinct, short, tail, wholePercent } = format;
  assert.deepEqual([0.00001, 0.00042, 0.0123, 1.234].map(short), ["<0.1\u202fµs", "0.4\u202fµs", "12\u202fµs", "1.23\u202fms"]);
  const net = ["net/a/Relu6/Conv", "net/b/Relu6/Conv", "net/b/Relu6/Add", "Conv"];
  assert.deepEqual(net.map(distinct(net)), ["a/Relu6/Conv", "b/Relu6/Conv", "Add", "Conv"]);
  assert.deepEqual([0, 0.001, 0.17].map(wholePercent), ["0\u202f%", "<1\u202f%", "17\u202f%"]);
  assert.deepEqual([tail("b3/dw"), tail(`${"x".repeat(60)}/dw`, 8)], ["b3/dw", "…xxxx/dw"]);
});

test("a bracket has its whole name, or enough of it to be told", () => {
  const named = (block, step) =>
    String(brackets([{ block }, { block }], { left: 0, step, y: 0 })).match(/>([^<>]+)<\/text>/)?.[1];
  assert.equal(named("part 12", 30), "part 12");
  assert.equal(named("part 12", 14), undefined); // not "pa…"
  assert.equal(named("layers/block_13_expand", 30), "block_13…");
});

test("regions have a row of brackets under their blocks, and the names that the graph has", () => {
  const rows = [
    ...["stem", "stage 1.1", "stage 1.2"].map((block) => ({
      block,
      region: block === "stem" ? "stem" : "stage 1: residual block ×2",
    })),
    { block: "b7", region: "head" },
    { block: "b8", region: "stage 1: residual block ×2" },
    { block: "b9", region: "stage 1: residual block ×2" },
  ];
  const texts = (step) =>
    [...brackets(rows, { left: 0, step, y: 0 }).map(String).join("").matchAll(/>([^<>]+)<\/text>/g)].map(
      (m) => m[1],
    );
  assert.deepEqual(texts(100), [
    "stage 1.1", "stage 1.2", "b8", "b9", // "stem" and b7 are whole regions
    "stem", "stage 1: residual block ×2", "b7 · head", "stage 1: residual block ×2 (2)",
  ]);
  // Where the whole name is too long, its beginning.
  assert.deepEqual(texts(70).slice(4), ["stem", "stage 1", "b7 · head", "stage 1"]);
  assert.ok(texts(56).every((text) => !text.endsWith("…"))); // "stage 1…" tells no block apart
  const tree = regionTree(rows.map((row, i) => ({ ...row, name: `n${i}` })));
  assert.deepEqual(tree.map((b) => b.label), texts(200).slice(-4));
  assert.ok(bracketsHeight(rows) > bracketsHeight(rows.map(({ block }) => ({ block }))));
});
