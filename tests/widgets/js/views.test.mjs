import assert from "node:assert/strict";
import { test } from "node:test";
const at = (name) => import(`../../../widgets/lite_widgets/${name}.js`);
const paint = { dark: false, id: "t", copy: "url(#c)", carried: "url(#e)" };
const row = (name, ms, more = {}) => ({ name, op: "Conv", type: "Conv", block: name[0], median_ms: ms, backend: "x86", kernel: "k", dtype: "fp32", gflops: 1, ...more });
const profile = { backend: "x86", layers: [row("a/1", 1), row("a/2", 3, { type: "MatMul" }), row("b/1", 0.5), row("copy", 0.5, { type: "Copy", op: "Copy" })], total_ms: { median: 5.1, min: 5, p90: 5.2 } };

test("latency chart: order, slowest first, what is left out is said", async () => {
  const { arrange, latencySvg, pareto } = await at("latency_chart/latency_chart");
  const { encode } = await at("_shared/encode");
  assert.deepEqual(arrange(profile, "time").rows.map((r) => r.name), ["a/2", "a/1", "b/1", "copy"]);
  const few = arrange(profile, "order", 2);
  assert.deepEqual([few.rows.map((r) => r.name), few.more, few.moreValue], [["a/1", "a/2"], 2, 1]);
  assert.equal(pareto(arrange(profile, "time").rows, (r) => r.median_ms), 2);
  const e = encode(profile, { by: "time", paint });
  const { text } = latencySvg(profile.layers, { width: 600, e, sort: "order", paint });
  assert.equal(text.match(/data-k=/g).length, 4);
  assert.ok(text.includes('fill="url(#c)"'), "copies are hatched");
});

test("encoding falls back to time where the data lack the wanted colour", async () => {
  const { colourOptions, encode, totals } = await at("_shared/encode");
  assert.equal(encode(profile, { by: "change", paint }).by, "time");
  assert.deepEqual(colourOptions({ ...profile, emulated: true }, null).map((o) => o[0]), ["time", "type", "backend", "precision"]);
  const faded = encode(profile, { by: "type", hidden: ["MatMul"], paint });
  assert.notEqual(faded.fill(profile.layers[1]), encode(profile, { by: "type", paint }).fill(profile.layers[1]));
  assert.deepEqual(totals(profile).map((t) => [t.type, t.layers, t.value]), [["MatMul", 1, 3], ["Conv", 2, 1.5], ["Copy", 1, 0.5]]);
});

const compared = (errors) => ({ baseline: "x86", candidate: "opencl", tolerance: 1e-2, layers: errors.map(([iso, acc, nan = 0], i) => ({
  name: `l${i}`, op: i % 2 ? "Mul" : "Conv", block: "m", rel_l2: acc, nan_baseline: 0, nan_candidate: nan, isolated: iso === null ? null : { rel_l2: iso } })) });

test("what a line marks; a tolerance per operator; NaN counts as over", async () => {
  const { marks } = await at("_shared/line");
  const data = compared([[1e-4, 1e-4], [8e-2, 8e-2], [1e-4, 5e-2], [1e-4, null, 3]]);
  assert.deepEqual(marks(data, 1e-2).layers.map((l) => l.state), ["within", "failing", "propagated", "propagated"]);
  const loose = marks(data, 1e-2, { byOp: { Mul: 0.5 } });
  assert.deepEqual([loose.layers[1].state, loose.first, loose.failing], ["within", 2, []]);
  const whole = compared([[null, 1e-4], [null, 8e-2]]);
  assert.deepEqual(marks(whole, 1e-2).layers.map((l) => l.state), ["within", "differing"]);
});

test("at the usual line the engine's states stand; a looser line never blames what it found right", async () => {
  const { marks } = await at("_shared/line");
  const data = { ...compared([[2e-2, 2e-2], [5e-3, 5e-3]]), usual_tolerance: 1e-2 };
  Object.assign(data.layers[0], { state: "within", within: true, tolerance: 3e-2 });
  Object.assign(data.layers[1], { state: "failing", within: false, tolerance: 1e-3 });
  const states = (line) => marks(data, line).layers.map((l) => l.state);
  assert.deepEqual(states(1e-2), ["within", "failing"]);
  assert.deepEqual(states(1.5e-2), ["within", "within"]);
  assert.deepEqual(states(1e-3), ["failing", "failing"]);
});

test("the verdict is shown as it was given", async () => {
  const { verdict } = await at("error_strip/error_strip");
  const { overLine } = await at("error_strip/strip");
  const { marks } = await at("_shared/line");
  const data = { ...compared([[1e-4, 1e-4], [8e-2, 8e-2]]), verdict: "l1 fails", agrees: false, first_divergence: { name: "l1" } };
  assert.deepEqual(verdict(data), { kind: "error", what: "l1 fails", layer: "l1" });
  const notice = { kind: "warn", what: "No layer fails." };
  assert.equal(verdict({ ...data, notice }), notice);
  assert.deepEqual([1e-5, 1e-2, 1].map((line) => overLine(marks(data, line))),
    ["2 of 2 layers above it, first l0", "1 of 2 layers above it, first l1", "no layer above it"]);
  const carried = compared([[1e-6, 1e-6], [1e-6, 8e-2]]);
  assert.equal(overLine(marks(carried, 1e-2)), "1 of 2 layers above it, none on its own");
});

test("error strip: the axis does not depend on the tolerance; steps follow the operators", async () => {
  const { logRange, steps, stripSvg } = await at("error_strip/strip");
  const { marks } = await at("_shared/line");
  const data = compared([[1e-4, 1e-4], [8e-2, 8e-2], [1e-4, 5e-2]]);
  assert.deepEqual(logRange(marks(data, 1e-5).layers), logRange(marks(data, 0.5).layers));
  const path = steps([{ tol: 1 }, { tol: 2 }, { tol: 1 }], (i) => i * 10, (v) => v * 100);
  assert.equal(path, "M0.0 100.0H10.0V200.0H20.0V100.0H30.0");
  const { text } = stripSvg(marks(data, 1e-2), { width: 600, height: 210, tolerance: 1e-2, metric: "rel_l2", paint });
  assert.ok(text.includes('role="slider"') && text.includes('aria-valuetext="1.0e−2"'));
  assert.ok(!/NaN|undefined/.test(text));
});

test("error strip: the words beside the line keep clear of stems", async () => {
  const { wordsPlace } = await at("error_strip/strip");
  const room = { width: 100, limit: 80, left: 60, right: 500, top: 26, bottom: 200 };
  const stem = (x, from) => ({ x, from, to: 200 });
  const seat = (...marks) => {
    const { x, y } = wordsPlace(marks, room);
    return [x, y];
  };
  assert.deepEqual(seat(stem(300, 30), stem(90, 150)), [60, 74]);
  assert.deepEqual(seat(stem(90, 30)), [500, 74]);
  assert.deepEqual(seat(stem(90, 30), { x: 450, from: 70, to: 76 }), [500, 94]);
  assert.deepEqual(wordsPlace([], { ...room, limit: 30 }).y, 44);
});

test("difference map: profiles, concentration, lens, pixels", async () => {
  const d = await at("error_strip/difference_map");
  const w = 160, h = 12, values = new Float32Array(w * h);
  for (let y = 0; y < h; y++) values[y * w + 159] = 2;
  const p = d.profiles(values, [h, w]);
  assert.equal(p.max, 2);
  assert.deepEqual(d.concentration(p.columns), { index: 159, share: 1, edge: "the last" });
  assert.deepEqual(d.lensWindow([h, w], 159, 6), { x: 144, y: 0, w: 16, h: 12 });
  const pixels = d.mapPixels(values, 2, false);
  assert.equal(pixels[3], 0);
  assert.equal(pixels[159 * 4 + 3], 255);
  values[0] = Infinity;
  assert.equal(d.profiles(values, [h, w]).broken, 1);
});

test("table: filter, sort both ways, missing values last, only the window is made", async () => {
  const { slice, view } = await at("layer_table/layer_table");
  const rows = [{ name: "a", op: "Conv", g: 2 }, { name: "b", op: "Mul", g: null }, { name: "c", op: "Conv", g: 5 }];
  const names = (options) => view(rows, { keys: { g: (r) => r.g, name: (r) => r.name }, ...options }).map((x) => x.row.name);
  assert.deepEqual(names({ sort: "-g" }), ["c", "a", "b"]);
  assert.deepEqual(names({ sort: "g" }), ["a", "c", "b"]);
  assert.deepEqual(names({ filter: "conv" }), ["a", "c"]);
  const [first, last] = slice(10000, 5000, 400);
  assert.ok(last - first < 60 && first * 26 <= 5000 && last * 26 >= 5400);
});

test("roofline: share of the own roof", async () => {
  const { points } = await at("roofline/roofline");
  const roof = { gflops: 100, gbytes_per_s: 10 };
  const layers = [row("m", 1, { macs: 500, bytes: 1000, gflops: 5 }), row("c", 2, { macs: 50000, bytes: 1000, gflops: 50 }), row("n", 3, { macs: 0, gflops: null })];
  assert.deepEqual(points({ layers }, roof).map((p) => [p.row.name, p.x, p.part]), [["c", 100, 0.5], ["m", 1, 0.5]]);
  const whole = row("q", 1, { macs: 50000, bytes: 100, gflops: 150, dtype: "u8" });
  assert.equal(points({ layers: [whole] }, { ...roof, integer_gops: 300 })[0].part, 0.5);
  assert.equal(points({ layers: [whole] }, roof)[0].part, 0);
  assert.equal(points({ layers: [{ ...whole, roofline_fraction: 0.25 }] }, roof)[0].part, 0.25);
});

test("roofline: a layer's label keeps clear of the words on the line", async () => {
  const { points, rooflineSvg } = await at("roofline/roofline");
  const { encode } = await at("_shared/encode");
  const roof = { gflops: 100, gbytes_per_s: 10, what: "2 threads" };
  for (const rate of [60, 70, 80, 90, 95, 100, 104]) {
    const layers = [row("label", 1, { macs: 50000, bytes: 1000, gflops: rate })];
    const e = encode({ ...profile, layers }, { by: "time", paint });
    const { text } = rooflineSvg(points({ layers }, roof), { width: 700, height: 380, roof, e, hidden: [] });
    const y = (word) => +[...text.matchAll(/<text[^>]*? y="([\d.]+)"[^>]*>([^<]*)/g)].find((m) => m[2].includes(word))[1];
    assert.ok(Math.abs(y("label") - y("GFLOP/s measured")) >= 14, `${rate}`);
  }
});

test("roofline: words keep clear of dots, of each other and of the axes; far ones have a line", async () => {
  const { points, rooflineSvg } = await at("roofline/roofline");
  const { encode } = await at("_shared/encode");
  const cloud = Array.from({ length: 60 }, (_, i) => [1 + (i % 7), 20 + ((i * 37) % 400) ** 2, 1 + ((i * 53) % 240)]);
  const low = { gflops: 60, gbytes_per_s: 3.8, what: "2 threads" }, high = { gflops: 262, gbytes_per_s: 23.7, what: "2 threads, x86 fp32, 2026-11-26" };
  for (const [roof, given] of [[low, [[8.2, 8000, 7], [2.2, 12000, 12], [1, 18000, 18]]], [high, cloud], [high, [...cloud, [9, 90000, 400], [8, 90000, 330], [7, 90000, 262]]]])
    for (const width of [360, 620, 860]) {
      const layers = given.map(([t, macs, gflops], i) => row(`part/label ${i}`, t, { macs: macs / 2, bytes: 1000, gflops }));
      const e = encode({ ...profile, layers }, { by: "time", paint });
      const { text } = rooflineSvg(points({ layers }, roof), { width, height: 380, roof, e, hidden: [] });
      const words = [...text.matchAll(/class="t1 halo"[^>]*? x="([\d.]+)"[^>]*? y="([\d.]+)"[^>]*? text-anchor="(\w+)"\s*>([^<]*)</g)].map(([, x, y, anchor, said]) => {
        const w = 6 * said.trim().length;
        return { said, x0: x - { start: 0, middle: w / 2, end: w }[anchor], w, y: +y };
      });
      const dots = [...text.matchAll(/nd mark"\s+cx="([\d.]+)"\s+cy="([\d.]+)"\s+r="([\d.]+)"/g)].map((m) => m.slice(1).map(Number));
      assert.equal(dots.length, layers.length);
      const peak = words.find((one) => one.said.includes("GFLOP/s measured"));
      assert.ok(peak.x0 >= 48, `${width}: the words about the peak begin inside the axes`);
      for (const own of words.filter((one) => one.said.includes("label"))) {
        for (const [x, y, r] of dots) assert.ok(x + r <= own.x0 || x - r >= own.x0 + own.w || y + r <= own.y - 10 || y - r >= own.y + 2, `${width} ${own.said} on a dot`);
        for (const other of words) assert.ok(own === other || Math.abs(own.y - other.y) >= 12 || other.x0 + other.w <= own.x0 || own.x0 + own.w <= other.x0, `${own.said} | ${other.said}`);
        assert.ok(own.x0 >= 48 && own.x0 + own.w <= width, own.said);
      }
      if (roof === low && width > 400) assert.equal(words.filter((one) => one.said.includes("label")).length, 3);
    }
});

test("tensor: bytes of a view, thumbnails that fit, scales and pixels", async () => {
  const { grid, limits, tilePixels, viewOf } = await at("tensor_view/tensor_view");
  const view = (low, high) => ({ lows: [low, 0], highs: [high, 1], tile: [1, 2], low, high, scale: [low, high / 2], not_finite: 1 });
  const tiles = new DataView(new Uint8Array([9, 9, 9, 9, 0, 254, 255, 127]).buffer);
  const second = viewOf({ views: [view(0, 1), view(-2, 2)] }, tiles, 1);
  assert.deepEqual([...second.values], [0, 254, 255, 127]);
  assert.deepEqual(limits(second, 0, "shared"), { low: -2, high: 2, name: "change", cut: [false, false] });
  assert.deepEqual(limits(view(0, 8), 0, "shared"), { low: 0, high: 4, name: "rate", cut: [false, true] });
  assert.deepEqual(limits(second, 1, "own"), { low: 0, high: 1, name: "rate", cut: false });
  assert.deepEqual([...tilePixels(second, 0, "shared", false)], [0x21, 0x66, 0xac, 255, 0xb3, 0x58, 0x06, 255]);
  assert.deepEqual([...tilePixels(second, 1, "own", false)].slice(0, 4), [0, 0, 0, 255]); // not finite
  for (const [count, dims, width] of [[1, [1, 1000], 300], [256, [48, 48], 700], [88, [12, 160], 340], [3, [7, 7], 1200]]) {
    const g = grid(count, dims, width);
    assert.ok(g.columns * g.rows >= count && g.columns * g.cw <= width && g.ch >= 12, `${count}`);
  }
});

test("memory: the peak is the highest end, and whose it is", async () => {
  const { memorySvg, peakOf } = await at("memory_map/memory_map");
  const tensors = [{ name: "a", first: 0, last: 1, offset: 0, bytes: 10 }, { name: "b", first: 1, last: 2, offset: 10, bytes: 30 }];
  const p = peakOf(tensors, 3);
  assert.deepEqual([p.peak, p.top.name, p.step, p.alive], [40, "b", 1, 40]);
  const { text } = memorySvg({ tensors, steps: ["x", "y", "z"] }, { width: 400, height: 200, dark: false });
  assert.ok(!text.includes("NaN"));
  assert.deepEqual([...text.matchAll(/text-anchor="middle"\s+style="fill:[^>]*>(\w+)/g)].map((m) => m[1]), ["a", "b"]);
});

test("timeline: windows stay in the run, times are round, what lies in one pixel is drawn once", async () => {
  const { marks, timelineSvg, visible, within } = await at("timeline/timeline");
  assert.deepEqual([within(10, -3, 2), within(10, 8, 12), within(10, 5, 5), within(10, 0, Infinity)], [[0, 5], [6, 10], [5, 5.001], [0, 10]]);
  assert.deepEqual([marks([0, 6]), marks([0.2, 0.5])], [[0, 1, 2, 3, 4, 5, 6], [0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5]]);
  const events = Array.from({ length: 1000 }, (_, i) => ({ name: `l${i}`, kind: "run", start_ms: i, end_ms: i + 1 }));
  const X = (v) => v / 10;
  assert.equal(visible(events, X, [0, 1000]).length, 200);
  assert.deepEqual(visible(events, (v) => v, [10, 11]).map((e) => e.name), ["l9", "l10", "l11"]);
  const rows = new Map(events.map((e) => [e.name, { name: e.name }]));
  const drawn = timelineSvg([{ name: "cpu", busy: 1, events }], { width: 700, view: [0, 1000], e: { fill: () => "#123456" }, rows, paint: { id: "x" } });
  assert.ok(!drawn.text.includes("NaN") && drawn.text.includes("cpu"));
});

test("waterfall: bars join the two totals exactly", async () => {
  const { bars, ends } = await at("waterfall/waterfall");
  const changes = [["a", -2000], ["b", 1000], ["c", -500], ["d", 250]].map(([name, delta_ns]) => ({ name, before: [name], after: [name], delta_ns, kind: "changed" }));
  const change = { baseline: "x86", candidate: "opencl", before_ns: 10000, after_ns: 8750, changes, warnings: [] };
  const all = bars(change, 2);
  assert.deepEqual(all.map((b) => b.name), ["a", "b", "2 more"]);
  assert.deepEqual([all[0].from, all[2].to], [0.01, 0.00875]);
  all.slice(1).forEach((b, i) => assert.equal(b.from, all[i].to));
  assert.deepEqual(ends(0.01, 0.00875, all), [0, 0.015]);
});

test("waterfall: the axis reaches every bar, also below zero", async () => {
  const { bars, ends } = await at("waterfall/waterfall");
  const changes = [["outside", -56e6], ["a", 38e6], ["b", 47e6]].map(([name, delta_ns]) => ({ name, before: [name], after: [name], delta_ns, kind: "changed" }));
  const all = bars({ before_ns: 9e6, after_ns: 38e6, changes }, 12);
  assert.deepEqual(ends(9, 38, all), [-50, 40]);
});

test("trade-off: the marks of an axis differ, however small its numbers are", async () => {
  const { rounds } = await at("trade_off/trade_off");
  assert.deepEqual(rounds([0.061, 0.071], 0.0025), [0.0625, 0.065, 0.0675, 0.07]);
  assert.deepEqual(rounds([0.05, 0.35], 0.1), [0.1, 0.2, 0.3]);
});

test("trade-off: the fastest version within the budget", async () => {
  const { choose, frame } = await at("trade_off/trade_off");
  const points = [[98, 3], [97, 2], [98.3, 4]].map(([accuracy, latency_ms]) => ({ method: "kl", accuracy, latency_ms, kept: [], bytes: 1 }));
  const fp = { accuracy: 98.4, latency_ms: 6, bytes: 4 };
  assert.deepEqual([0.5, 2, 0.1, 0].map((b) => choose(points, "kl", fp, b)), [0, 1, 2, -1]);
  assert.equal(choose(points, "mse", fp, 9), -1);
  const noisy = [[98, 3, 9], [98, 3.15, 7], [97.9, 2.99, 5], [99, 3.5, 9]].map(([accuracy, latency_ms, bytes]) => ({ method: "kl", accuracy, latency_ms, bytes, latency_ci_ms: 0.1, kept: [] }));
  assert.equal(choose(noisy, "kl", fp, 0.5), 1); // as TradeOff.choose does
  assert.ok(frame(points, fp).y[0] < 97);
  const same = { ...fp, accuracy: 100 }; // no axis goes beyond 100 %
  assert.deepEqual([frame([same], same).y[1], frame([same], same).y[0] < 99.8], [100, true]);
});

test("types, ranges, sensitivity, transitions, upload, netron names", async () => {
  const { clipped } = await at("range_plot/range_plot");
  assert.equal(clipped({ low: 0, high: 4, counts: [1, 1, 1, 1], clip_low: null, clip_high: 3 }), 0.25);
  const { worst } = await at("sensitivity_list/sensitivity_list");
  assert.deepEqual([worst([{ cost: 1 }, { cost: 3 }, { cost: 2 }], 2).shown.map((l) => l.cost), worst([{ cost: 1 }, { cost: 3 }, { cost: 2 }], 2).rest], [[3, 2], 1]);
  const { matrix } = await at("transition_matrix/transition_matrix");
  const m = matrix([{ source: "x86", target: "opencl", ms: 2 }]);
  assert.deepEqual([m.names, m.at("x86", "opencl").ms, m.at("opencl", "x86")], [["opencl", "x86"], 2, null]);
  const { PIECE, offsets } = await at("drop_zone/drop_zone");
  assert.deepEqual([offsets(0), offsets(PIECE), offsets(PIECE + 1)], [[0], [0], [0, PIECE]]);
  const { baseUrl, layersOf, nodesOf } = await at("netron_view/netron_view");
  const sources = { "b/dw": ["Conv_1", "Relu_2"] };
  assert.deepEqual([nodesOf(["b/dw", "x"], sources), layersOf(["Relu_2", "Conv_1", "y"], sources)], [["Conv_1", "Relu_2", "x"], ["b/dw", "y"]]);
  const doc = (text) => ({ getElementById: () => (text ? { textContent: text } : null), body: { dataset: {} } });
  assert.deepEqual([baseUrl(doc('{"baseUrl":"/user/NAME/"}')), baseUrl(doc("")), baseUrl(doc('{"baseUrl":"/hub"}'))], ["/user/NAME/", "/", "/hub/"]);
});

test("timing: what the layers do not explain is the rest, never hidden", async () => {
  const { account, sentence } = await at("timing_line/timing_line");
  assert.ok(Math.abs(account(profile).rest - 0.1) < 1e-9);
  assert.ok(sentence(profile).includes("100\u202fµs are outside them"));
  const long = { ...profile, total_ms: { ...profile.total_ms, median: account(profile).layers + 7.339 } };
  assert.ok(sentence(long).includes("7.34\u202fms are outside them"));
  const own = { ...profile, sum_ms: 0.9 * profile.total_ms.median };
  assert.ok(sentence(own).includes("(90.0\u202f%)"), "the sum is the engine's, of each run");
  const busy = sentence({ ...long, busy: "the machine is busy" });
  assert.ok(busy.includes("other 7.34\u202fms include the work of other programs") && !busy.includes("outside"));
  assert.ok(sentence({ ...profile, emulated: true }).includes("times are not"));
  const ran = "3 of 4 layers ran on OpenCL (31 % of the time), 1 on the CPU";
  assert.ok(sentence({ ...profile, ran }).endsWith(` ${ran}.`));
});

test("times on a busy machine: rounded to what can be told apart", async () => {
  const { rounded } = await at("timing_line/timing_line");
  assert.deepEqual([0.01, 0.1, 1, 10].map((step) => rounded(5.51, step)), ["5.51", "5.5", "6", "10"]);
  const { digits } = await at("layer_table/layer_table");
  assert.deepEqual([0, 0.4, 4, 40, 4000].map((rankable_us) => digits({ rankable_us })), [3, 3, 3, 2, 0]);
});

test("results: bars of scores beyond 1 differ by their lengths", async () => {
  const { fullScore } = await at("result_card/result_card");
  assert.deepEqual([fullScore([]), fullScore([{ score: 0.7 }, {}]), fullScore([{ score: 0.4 }, { score: 8 }])], [1, 1, 8]);
});

test("sweep chart: the front in order of latency, axes that hold every cell and the goal", async () => {
  const { front, frame } = await at("sweep_chart/sweep_chart");
  const cells = [{ latency_ms: 8, throughput: 900, front: true }, { latency_ms: 2, throughput: 410, front: true }, { latency_ms: 9, throughput: 100 }];
  assert.deepEqual(front(cells).map((c) => c.latency_ms), [2, 8]);
  assert.deepEqual([frame(cells, 0), frame(cells, 30), frame(cells, 0, 1500)], [{ x: 10, y: 1000 }, { x: 30, y: 1000 }, { x: 10, y: 1500 }]);
});

test("graph: a diff colours what was added and changed, and in the baseline what was deleted", async () => {
  const { graphStyle } = await at("graph_view/graph_style");
  const { DIFF, tint } = await at("_shared/colour");
  const change = (kind, before, after, differences = []) => ({ kind, op: "Conv", before, after, differences });
  const widened = { kind: "type", name: "y", before: "f32[1,8]", after: "f32[1,16]" };
  const changes = { changes: [change("added", "", "new"), change("deleted", "old", ""), change("changed", "a", "b", [widened])] };
  const style = (side) => graphStyle({ profile: null, comparison: null, changes, side, paint });
  const [after, before] = [style("after"), style("before")];
  const node = (name) => ({ name, op: "Conv" });
  assert.deepEqual([after.solid(node("new")), after.solid(node("b")), before.solid(node("old"))], [DIFF.added, DIFF.changed, DIFF.deleted]);
  assert.equal(after.fill(node("new")), tint(DIFF.added, false));
  assert.equal(after.solid(node("a")), after.solid(node("same")), "a name of the baseline says nothing of the candidate");
  assert.equal(before.solid(node("a")), DIFF.changed);
  assert.equal(after.tip("b"), "b\nchanged\ntype y: f32[1,8] → f32[1,16]");
  assert.equal(after.text(node("new")), "added");
  assert.equal(after.note({ nodes: ["new", "b", "same"].map(node) }), "2 changes");
});

test("graph: a node that its label names has its shape, any other its operator", async () => {
  const { graphStyle } = await at("graph_view/graph_style");
  const { text } = graphStyle({ profile: null, comparison: null, changes: null, paint });
  const told = (label, op) => text({ name: "/b1/dw/Conv", label, op, output_shapes: [[1, 24, 8, 8]] });
  assert.equal(told("Conv_3", "Conv"), "24×8×8");
  assert.equal(told("dw/Conv", "Conv"), "24×8×8", "not Conv twice");
  assert.equal(told("project", "Conv"), "Conv");
  assert.equal(told("Conv/project", "Relu"), "Relu");
});

test("a backend of another package has its name, and one colour that is no other backend's", async () => {
  const { backend, backendName, BACKENDS } = await at("_shared/colour");
  assert.equal(backendName("openvino"), "openvino");
  assert.equal(backend("openvino", true), backend("openvino", true));
  const own = Object.values(BACKENDS).flatMap((b) => [b.light, b.dark]);
  for (const name of ["openvino", "litert", "acme"]) assert.ok(!own.includes(backend(name, false)));
});
