"""Statistics, methods, samples: the way from data to ranges."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import CalibrationError, UsageError
from lite_engine.ir import DType, Value
from lite_engine.ops import infer_types
from lite_engine.quantize import (
    METHODS,
    Calibration,
    Options,
    Ranges,
    Statistics,
    calibrate,
    prepare,
    quantize,
    read_samples,
    reference_run,
)
from lite_engine.quantize.calibrate import BLOCK, activations, calibrate_block
from lite_engine.quantize.observers import range_of
from lite_engine.quantize.statistics import BINS, MOMENTUM
from lite_workbench.quantizing import FastRun

from tests.small_models import Builder

RNG = np.random.default_rng(0)


def statistics_of(*arrays: np.ndarray) -> Statistics:
    out = Statistics()
    for array in arrays:
        assert out.update(array)
    return out


def test_streaming_equals_all_at_once():
    parts = [RNG.standard_normal((2, 3, 4, 5)).astype(np.float32) * k for k in (1, 30, 0.1)]
    s, whole = statistics_of(*parts), np.concatenate(parts)
    assert (s.low, s.high) == (whole.min(), whole.max())
    assert s.counts.sum() == whole.size
    np.testing.assert_allclose(s.channel_mean, whole.mean(axis=(0, 2, 3)), rtol=1e-5)
    np.testing.assert_array_equal(s.channel_high, whole.max(axis=(0, 2, 3)))


def test_memory_layout_does_not_matter():
    x = RNG.standard_normal((2, 5, 6, 7)).astype(np.float32)
    view = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    a, b = statistics_of(x), statistics_of(view)
    assert (a.low, a.high) == (b.low, b.high)
    np.testing.assert_allclose(a.channel_mean, b.channel_mean, rtol=1e-5)
    np.testing.assert_array_equal(a.channel_low, b.channel_low)
    np.testing.assert_array_equal(a.counts, b.counts)


def test_histogram_survives_widening():
    narrow = RNG.uniform(-1, 1, 4000).astype(np.float32)
    s = statistics_of(narrow, np.array([100.0], np.float32))
    inside = np.abs(-s.edge + (np.arange(BINS) + 0.5) * 2 * s.edge / BINS) < 1.1
    assert s.counts[inside].sum() == 4000
    assert s.edge == 128


def test_memory_does_not_grow():
    small, large = statistics_of(RNG.standard_normal(100)), Statistics()
    for _ in range(50):
        large.update(RNG.standard_normal((1, 4, 64, 64)))
    size = sum(a.nbytes for a in large.arrays().values())
    assert size <= sum(a.nbytes for a in small.arrays().values()) + 3 * 4 * 8


def test_nan_is_noticed_and_not_counted():
    s = statistics_of(np.ones(4, np.float32))
    assert not s.update(np.array([1, np.nan], np.float32))
    assert not s.update(np.array([1, np.inf], np.float32))
    assert s.samples == 1


def test_dead_channels():
    x = RNG.standard_normal((1, 3, 4, 4)).astype(np.float32)
    x[:, 1] = 0
    assert statistics_of(x, x * 2).dead_channels() == [1]


def _error(x: np.ndarray, low: float, high: float) -> float:
    scale = (high - low) / 255
    zero = np.rint(-low / scale)
    q = np.clip(np.rint(x / scale) + zero, 0, 255)
    return float(np.mean(((q - zero) * scale - x) ** 2))


def test_mse_beats_the_others_at_its_own_measure():
    x = np.concatenate([RNG.standard_normal(20000), [40.0, -35.0]]).astype(np.float32)
    s = Statistics()
    s.update(x[:10000])
    s.update(x[10000:])
    errors = {m: _error(x, *range_of(s, m)) for m in METHODS}
    assert errors["mse"] <= 1.02 * min(errors.values())


def test_kl_and_hist_leave_outliers_out():
    parts = [RNG.standard_normal(16000).astype(np.float32) for _ in range(4)]
    s = statistics_of(*parts, np.array([50.0], np.float32))
    for method in ("kl", "hist"):
        assert range_of(s, method)[1] < 25, method
    assert range_of(s, "minmax")[1] == 50


def test_averages_follow_the_samples():
    s = statistics_of(*(np.array([-k, k], np.float32) for k in (1, 1, 1, 9)))
    assert range_of(s, "avg") == (-3, 3)
    low, high = range_of(s, "moving")
    assert 1 < high < 2 and low == -high


@pytest.mark.parametrize("method", METHODS)
def test_ranges_hold_zero_and_are_never_empty(method):
    for x in (np.full(50, 3.0), np.full(50, -3.0), np.zeros(50), np.linspace(5, 6, 500)):
        low, high = range_of(statistics_of(x, x), method)
        assert low <= 0 <= high and high > low


def test_unknown_method_lists_the_known():
    with pytest.raises(UsageError, match="kl, mse"):
        range_of(statistics_of(np.ones(3)), "magic")


# ---- calibration


def test_every_activation_is_measured(network, samples):
    parent = prepare(network)
    calibration = calibrate(parent, samples)
    made = {v.name for n in parent.nodes for v in n.outputs}
    assert set(calibration.statistics) == made | {"x"}
    assert calibration.samples == len(samples)


def test_interrupted_and_resumed_is_the_same(network, samples, tmp_path):
    parent = prepare(network)
    calls = iter(range(100))
    part = calibrate(parent, samples, cancel=lambda: next(calls) >= 5)
    assert part.cancelled and part.samples == 5
    part.save(tmp_path / "part.npz")
    seen = []
    rest = calibrate(
        parent,
        samples,
        resume=Calibration.load(tmp_path / "part.npz"),
        progress=lambda done, total: seen.append((done, total)),
    )
    assert seen[0] == (6, 12) and seen[-1] == (12, 12) and not rest.cancelled
    whole = calibrate(parent, samples)
    for method in METHODS:
        assert rest.ranges(method).values == whole.ranges(method).values


def test_blocks_that_are_merged_are_the_whole(network):
    """Whoever makes the blocks; and they are right, by NumPy over all samples at once."""
    parent = prepare(network)
    x = np.random.default_rng(3).normal(1, 3, (2 * BLOCK + 9, 3, 16, 16)).astype(np.float32)
    x[:4] *= 1e-3  # the histogram widens later
    feeds = [{"x": row[None]} for row in x]
    whole, merged = calibrate(parent, feeds), Calibration()
    for start in range(0, len(feeds), BLOCK):
        part = feeds[start : start + BLOCK]
        merged.merge(calibrate_block(parent, part, start, reference_run, activations(parent)))
    assert merged.samples == whole.samples == len(feeds)
    for name, statistics in whole.statistics.items():
        for key, array in statistics.arrays().items():
            np.testing.assert_array_equal(merged.statistics[name].arrays()[key], array)
    s = whole.statistics["x"]
    assert (s.low, s.high) == (x.min(), x.max()) and s.counts.sum() == x.size
    np.testing.assert_allclose(s.channel_mean, x.mean((0, 2, 3), np.float64), rtol=1e-5)
    lows, highs = x.min((1, 2, 3)).astype(np.float64), x.max((1, 2, 3)).astype(np.float64)
    np.testing.assert_allclose([s.mean_low, s.mean_high], [lows.mean(), highs.mean()], rtol=1e-12)
    for got, seen in zip(s.moving, (lows, highs), strict=True):
        want = seen[0]
        for value in seen[1:]:
            want += MOMENTUM * (value - want)
        assert got == pytest.approx(want, rel=1e-12)


def test_a_calibration_that_stops_within_a_block_goes_on_within_it(network, tmp_path):
    parent = prepare(network)
    rng = np.random.default_rng(4)
    feeds = [{"x": rng.normal(size=(1, 3, 16, 16)).astype(np.float32)} for _ in range(BLOCK + 20)]
    calls = iter(range(1000))
    part = calibrate(parent, feeds, cancel=lambda: next(calls) >= BLOCK + 7)
    part.save(tmp_path / "part.npz")
    rest = calibrate(parent, feeds, resume=Calibration.load(tmp_path / "part.npz"))
    for name, statistics in calibrate(parent, feeds).statistics.items():
        for key, array in statistics.arrays().items():
            np.testing.assert_array_equal(rest.statistics[name].arrays()[key], array)


def test_ranges_round_trip_through_json(calibrated):
    ranges = calibrated[2]
    assert Ranges.from_dict(ranges.to_dict()) == ranges


def test_not_a_calibration_file(tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(b"PK nonsense")
    with pytest.raises(CalibrationError, match="not a saved calibration"):
        Calibration.load(path)


@pytest.mark.parametrize(
    "data, message",
    [
        ([np.zeros((1, 3, 16, 16), np.float32)], "at least 2"),
        ([np.ones((1, 3, 16, 16), np.float32)] * 5, "are the same"),
        ([np.full((1, 3, 16, 16), np.nan, np.float32)] * 2, "NaN or infinity in x"),
        ([], "at least 2"),
        (5, "give a folder of images"),
        ("/nowhere/at/all", "does not exist"),
        ([{"y": np.zeros(3)}], "has no 'x'"),
        (["not/an/image.png", "b.png"], "not/an/image.png"),
        ([object()], "not an array"),
    ],
)
def test_unusable_samples(network, data, message):
    with pytest.raises(CalibrationError, match=message):
        calibrate(prepare(network), data)


def test_constant_input(network):
    parent = prepare(network)
    data = [np.full((1, 3, 16, 16), 2.0, np.float32), np.full((1, 3, 16, 16), 2.0, np.float32)]
    data[1] = data[1].copy()
    with pytest.raises(CalibrationError, match="the same"):
        calibrate(parent, data)


def test_folder_of_images_uses_the_model_preprocessing(network, tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for i in range(3):
        pixels = RNG.integers(0, 256, (20, 24, 3)).astype(np.uint8)
        image.fromarray(pixels).save(tmp_path / f"{i}.png")
    (tmp_path / "labels.txt").write_text("not an image")
    network.metadata["preprocess"] = {"mean": [127.5], "std": [127.5]}
    found = read_samples(tmp_path, network)
    assert len(found) == 3 and found.names == ["0.png", "1.png", "2.png"]
    x = next(iter(found))["x"]
    assert x.shape == (1, 3, 16, 16) and -1 <= x.min() < -0.5 < 0.5 < x.max() <= 1


def test_empty_folder(network, tmp_path):
    with pytest.raises(CalibrationError, match="holds no images"):
        read_samples(tmp_path, network)


def test_npz_and_stacked_arrays(network, samples, tmp_path):
    stacked = np.concatenate(samples)
    np.savez(tmp_path / "data.npz", anything=stacked)
    a = [f["x"] for f in read_samples(tmp_path / "data.npz", network)]
    b = [f["x"] for f in read_samples(stacked, network)]
    for x, y, z in zip(a, b, samples):
        np.testing.assert_array_equal(x, z)
        np.testing.assert_array_equal(y, z)


def test_npy_files(network, samples, tmp_path):
    """Stacked in one file, or one sample in each file of a folder."""
    (tmp_path / "each").mkdir()
    np.save(tmp_path / "all.npy", np.concatenate(samples))
    for i, sample in enumerate(samples):
        np.save(tmp_path / "each" / f"{i:02}.npy", sample[0] if i % 2 else sample)
    for source in ("all.npy", "each"):
        found = read_samples(tmp_path / source, network)
        assert len(found) == len(samples)
        for feed, sample in zip(found, samples):
            np.testing.assert_array_equal(feed["x"], sample)


def test_npy_files_that_do_not_fit(network, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 3, 8, 8), np.float32))
    with pytest.raises(CalibrationError, match=r"x\.npy.*has shape \(4, 3, 8, 8\)"):
        read_samples(tmp_path / "x.npy", network)
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY")
    for source in (tmp_path, tmp_path / "x.npy"):
        with pytest.raises(CalibrationError, match=r"x\.npy"):
            list(read_samples(source, network))


@pytest.mark.parametrize("rows", [(1, 16), (3, 16), (3, 48)])
def test_inputs_whose_first_size_is_no_batch(rows, rng):
    """A map of sixteen rows beside an input with a batch of one: for all samples, or for each."""
    b = Builder((1, 16, 8))
    m = Value("m", DType.F32, (16, 8))
    b.graph.inputs.append(m)
    graph = b.done(b.add("Add", b.x, m))
    x, y = (rng.random((n, *rest), np.float32) for n, rest in zip(rows, ((16, 8), (8,))))
    feeds = list(read_samples({"x": x, "m": y}, graph))
    assert len(feeds) == rows[0]
    for i, feed in enumerate(feeds):
        np.testing.assert_array_equal(feed["x"], x[i : i + 1])
        np.testing.assert_array_equal(feed["m"], y if len(y) == 16 else y[16 * i : 16 * (i + 1)])
    with pytest.raises(CalibrationError, match=r"number of samples \(x 2, m 3\)"):
        read_samples({"x": np.zeros((2, 16, 8), "f4"), "m": np.zeros((48, 8), "f4")}, graph)


def test_missing_input_is_named(network):
    with pytest.raises(Exception, match="no value for input x"):
        reference_run(network, {})


def test_what_a_relu_made_zero_counts_as_zero():
    """Half of its output lies in the bin above 0, whose middle it is not."""
    x = np.concatenate([np.zeros(900), np.full(100, 7.9)]).astype(np.float32)
    s = statistics_of(x)
    width = 2 * s.edge / BINS
    assert s.centres[BINS // 2] == 0 and s.centres[BINS // 2 + 1] == pytest.approx(1.5 * width)
    assert (s.centres * s.counts).sum() / 1000 == pytest.approx(0.79, abs=width / 10)


def test_hist_leaves_half_of_its_share_outside_at_each_end():
    s = statistics_of(np.linspace(-1, 1, 10001, dtype=np.float32))
    low, high = range_of(s, "hist")
    assert high == pytest.approx(0.9997, abs=1e-4) and low == pytest.approx(-high, abs=1e-4)


def test_zeros_move_no_threshold_of_kl():
    """Every threshold represents them: what a ReLU cut off says nothing about the rest."""
    x = np.abs(np.random.default_rng(5).standard_normal(20000)).astype(np.float32) ** 2
    alone, among = (statistics_of(a) for a in (x, np.concatenate([x, np.zeros(15000, np.float32)])))
    assert range_of(alone, "kl")[1] < alone.high
    assert range_of(among, "kl") == pytest.approx(range_of(alone, "kl"), rel=0.1)


@pytest.mark.cpu
def test_a_grid_that_the_sizes_decide_has_a_range():
    """No run computes it: it is a constant of the graph at the sizes of each sample."""
    b = Builder(("N", 3, "H", "W"), "grid")
    y = b.conv(b.x, 3, 8, 3, name="conv")
    width = b.add("Gather", b.add("Shape", y), b.graph.constant(np.array(3)))
    grid = b.add("Range", b.scalar(0), b.add("Cast", width, to=DType.F32), b.scalar(1), name="grid")
    y = b.add("Add", y, b.add("Mul", grid, b.scalar(0.5), name="half"), name="sum")
    graph = b.done(b.conv(y, 8, 8, 1, name="last"))
    infer_types(graph)
    sizes = [(1, 3, 8, 8), (1, 3, 6, 12), (2, 3, 8, 8)]
    feeds = [{"x": RNG.standard_normal(s).astype(np.float32)} for s in sizes]
    found = calibrate(graph, feeds, run=FastRun()).statistics
    wanted = calibrate(graph, feeds).statistics
    assert found.keys() == wanted.keys()
    assert (found["grid"].high, found["half"].high) == (11, 5.5)
    made = quantize(graph, feeds, Options(method="minmax"), run=FastRun(), force=True)
    assert made.verdict.sqnr_db > 20
