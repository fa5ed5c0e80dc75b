"""Zeros in weights: patterns, the weights that make up for them, and whole networks."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import CalibrationError, UsageError
from lite_engine.ir import Graph, from_text
from lite_engine.ops import infer_types
from lite_engine.prune import Pattern, PruneOptions, Pruner
from lite_engine.prune.layers import dealt
from lite_engine.prune.patterns import keep
from lite_engine.prune.refit import prune_rows, refit
from lite_engine.quantize import Options, quantize, reference_run

RNG = np.random.default_rng(11)


def f32(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def covariance(columns: int) -> np.ndarray:
    x = RNG.standard_normal((400, columns)) @ RNG.standard_normal((columns, columns))
    return np.cov(x.T) + 0.05 * np.eye(columns)


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_the_smallest_become_zero(share):
    score = RNG.random((13, 17))
    kept = keep(score, share, Pattern())
    assert (~kept).sum() == round(share * score.size)
    assert not kept.any() or score[kept].min() >= score[~kept].max(initial=0)


def test_neighbouring_outputs_share_their_zeros():
    kept = keep(RNG.random((12, 40)), 0.75, Pattern.parse("1x4"))
    for first in range(0, 12, 4):
        block = kept[first : first + 4]
        assert (block == block[0]).all()
    assert (~kept).mean() == 0.75


def test_neighbouring_inputs_share_their_zeros():
    score = RNG.random((6, 42))  # the last block of a row has two inputs
    kept = keep(score, 0.5, Pattern.parse("4x1"))
    blocks = [kept[:, first : first + 4] for first in range(0, 42, 4)]
    assert all((b == b[:, :1]).all() for b in blocks)
    assert (~np.stack([b[:, 0] for b in blocks], 1)).sum() == 33


def test_two_of_each_four_inputs_are_kept():
    score = RNG.random((6, 16))
    kept = keep(score, 0.5, Pattern.parse("2:4"))
    groups, scores = kept.reshape(6, 4, 4), score.reshape(6, 4, 4)
    assert (groups.sum(axis=2) == 2).all()
    assert (scores[groups].reshape(-1, 2).min(1) >= scores[~groups].reshape(-1, 2).max(1)).all()


@pytest.mark.parametrize("text", ["unstructured", "1x4", "4x1", "2:4"])
def test_patterns_are_written_as_they_are_read(text):
    assert str(Pattern.parse(text)) == text


@pytest.mark.parametrize("text", ["", "1x1", "1x99", "4x2", "4:2", "0:4", "2:2", "blocks"])
def test_other_patterns_are_an_error(text):
    with pytest.raises(UsageError, match="pattern"):
        Pattern.parse(text)


def test_the_rest_is_the_least_squares_solution():
    """Against LAPACK's solution of each row alone."""
    h, w = covariance(12), RNG.standard_normal((9, 12))
    kept = RNG.random(w.shape) < 0.5
    kept[0] = False
    got = refit(w, kept, h)
    for row, own, found in zip(w, kept, got, strict=True):
        at = np.flatnonzero(own)
        want = np.zeros(12)
        want[at] = np.linalg.solve(h[np.ix_(at, at)], (row @ h)[at])
        np.testing.assert_allclose(found, want, atol=2e-2 * np.abs(w).max())


def test_errors_are_smaller_than_with_magnitudes_alone():
    h, w = covariance(40), RNG.standard_normal((30, 40))

    def error(d: np.ndarray) -> float:
        return float(np.einsum("nk,kj,nj->", d, h, d))

    made = prune_rows(w, h, 0.5, Pattern())
    assert (made == 0).mean() == pytest.approx(0.5, abs=0.01)
    assert error(w - made) < 0.5 * error(np.where(keep(np.abs(w), 0.5, Pattern()), 0, w))


def test_zeros_are_dealt_out_where_they_cost_least():
    cheap, dear = {0.7: 40.0, 0.9: 30.0}, {0.7: 10.0, 0.9: 5.0}
    assert dealt({"a": cheap, "b": dear}, {"a": 100, "b": 100}, 0.4) == {"a": 0.9, "b": 0.0}
    assert dealt({"a": cheap, "b": dear}, {"a": 100, "b": 100}, 0.99) == {"a": 0.9, "b": 0.9}


def network(channels: int = 48) -> tuple[Graph, list[dict[str, np.ndarray]]]:
    """Pointwise layers on inputs that depend on each other, so that zeros can be made up for."""
    lines = ['graph "g" {', f"  input x: f32[1,{channels},8,8]"]
    arrays, name = [], "x"
    for i in range(3):
        arrays += [f32(channels, channels, 1, 1, scale=channels**-0.5), f32(channels, scale=0.2)]
        lines += [f"  const w{i}: f32[{channels},{channels},1,1] = @{2 * i}",
                  f"  const b{i}: f32[{channels}] = @{2 * i + 1}"]  # fmt: skip
    for i in range(3):
        lines.append(f'  "c{i}": y{i} = Conv({name}, w{i}, b{i}) {{activation="Relu"}}')
        name = f"y{i}"
    graph = from_text("\n".join([*lines, f"  output {name}", "}"]), arrays)
    infer_types(graph)
    basis = f32(6, channels)
    feeds = [{"x": np.einsum("khw,kc->chw", f32(6, 8, 8), basis)[None]} for _ in range(15)]
    return graph, feeds


def test_a_bias_of_several_layers_becomes_one_for_each():
    """Exporters make one constant of equal biases."""
    graph, feeds = network()
    shared = graph.node("c0").inputs[2]
    for name in ("c1", "c2"):
        graph.node(name).set_input(2, shared)
    made = Pruner(graph, feeds, PruneOptions(sparsity=0.7)).make()
    assert {row["name"] for row in made.layers} | set(made.dense_layers) == {"c0", "c1", "c2"}
    assert "bias" not in "".join(made.dense_layers.values())
    biases = {id(made.graph.node(row["name"]).inputs[2]) for row in made.layers}
    assert len(biases) == len(made.layers) and id(shared) not in biases


def test_a_network_keeps_its_outputs_and_says_what_it_did():
    graph, feeds = network()
    pruner = Pruner(graph, feeds, PruneOptions(sparsity=0.7), keep=["c1"])
    made = pruner.make()
    assert {row["name"] for row in made.layers} <= {"c0", "c2"}
    assert "request" in made.dense_layers["c1"]
    for row in made.layers:
        w = made.graph.node(row["name"]).inputs[1].const
        assert (w == 0).mean() == pytest.approx(row["zeros"], abs=0.01)
    total = sum(row["zeros"] for row in made.layers) / 2
    assert total >= 0.69
    want = np.concatenate([reference_run(graph, f)["y2"] for f in pruner.feeds])
    got = np.concatenate([reference_run(made.graph, f)["y2"] for f in pruner.feeds])
    measured = 10 * np.log10((want**2).sum() / ((want - got) ** 2).sum())
    assert made.sqnr_db == pytest.approx(measured, abs=0.01)
    plain = graph.copy()
    for row in made.layers:
        node = plain.node(row["name"])
        w = node.inputs[1].const
        kept = keep(np.abs(w[:, :, 0, 0]), row["zeros"], Pattern())
        node.set_input(1, plain.constant(w * kept[:, :, None, None], f"{row['name']}.plain"))
    rough = np.concatenate([reference_run(plain, f)["y2"] for f in pruner.feeds])
    assert ((want - got) ** 2).sum() < 0.5 * ((want - rough) ** 2).sum()


def test_zeros_stay_zeros_in_int8():
    graph, feeds = network()
    made = Pruner(graph, feeds, PruneOptions(sparsity=0.7)).make()
    for rounding in ("sums", "adaptive", "learned"):
        options = Options(method="minmax", rounding=rounding, equalize=False)
        integers = quantize(made.graph, feeds, options, force=True).finished().graph
        for row in made.layers:
            weight = integers.node(row["name"]).inputs[1].producer.inputs[0].const
            assert (weight[made.graph.node(row["name"]).inputs[1].const == 0] == 0).all()


def test_outputs_that_are_too_far_off_are_refused():
    graph, feeds = network()
    made = Pruner(graph, feeds, PruneOptions(sparsity=0.95, threshold_db=60.0)).make()
    with pytest.raises(CalibrationError, match="below the threshold of 60 dB"):
        made.require()


@pytest.mark.parametrize(
    ("options", "words"),
    [({}, "nothing to prune"), ({"sparsity": 1.0}, "less than 1, got 1"),
     ({"sparsity": 0.8, "pattern": "2:4"}, "has 50 % zeros")],
)  # fmt: skip
def test_options_that_make_no_sense_are_an_error(options, words):
    with pytest.raises(UsageError, match=words):
        PruneOptions(**options)
