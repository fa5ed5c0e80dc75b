"""Learned rounding: the least error of a layer, and of networks on samples held out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from lite_engine.ir import Graph, from_text
from lite_engine.ops import infer_types
from lite_engine.quantize import Options, quantize, reference_run
from lite_engine.quantize import learned as rounds
from lite_engine.quantize.learned import descend

RNG = np.random.default_rng(5)


def f32(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def covariance(columns: int, positions: int = 400) -> np.ndarray:
    x = RNG.standard_normal((positions, columns)) @ RNG.standard_normal((columns, columns))
    x += 0.1 * RNG.standard_normal((positions, columns))
    return np.cov(x.T)


def error(w: np.ndarray, q: np.ndarray, scale: np.ndarray, h: np.ndarray) -> np.ndarray:
    d = w - q * scale[:, None]
    return np.einsum("nk,kj,nj->n", d, h, d)


def test_no_single_move_is_better_and_few_combinations_are():
    """Against every choice of sides of eight weights."""
    h = covariance(8)
    w, scale = RNG.uniform(-20, 20, (30, 8)), RNG.uniform(0.5, 2, 30)
    q = descend(w, scale, h)
    low = np.floor(w / scale[:, None])
    assert set(np.unique(q - low)) <= {0.0, 1.0}
    found = error(w, q, scale, h)
    sides = np.array(list(itertools.product((0, 1), repeat=8)))
    every = np.stack([error(w, low + side, scale, h) for side in sides])
    one_off = [s for s in range(256) if bin(s).count("1") == 1]
    for index in one_off:
        flipped = low + np.abs(q - low - sides[index])
        assert (error(w, flipped, scale, h) >= found * (1 - 1e-9)).all()
    nearest = error(w, np.rint(w / scale[:, None]), scale, h)
    assert found.sum() < 0.5 * nearest.sum()
    assert found.sum() < 2 * every.min(axis=0).sum()


def test_integers_stay_within_their_range():
    w = np.array([[127.4, -127.6, 126.8, 0.2]])
    q = descend(w, np.ones(1), covariance(4))
    assert np.abs(q).max() <= 127


def chain(depth: int = 4, channels: int = 12) -> tuple[Graph, list[dict]]:
    """Convolutions behind ReLUs, with channels of very different magnitude, and a product."""
    lines, arrays, name = ['graph "g" {', f"  input x: f32[1,{channels},8,8]"], [], "x"
    for i in range(depth):
        group = channels if i % 2 else 1
        size = 3 if i % 2 else 1
        w = f32(channels, channels // group, size, size) * np.exp(f32(channels, 1, 1, 1))
        arrays += [w * 0.4, f32(channels, scale=0.3)]
        lines += [f"  const w{i}: f32[{channels},{channels // group},{size},{size}] = @{2 * i}",
                  f"  const b{i}: f32[{channels}] = @{2 * i + 1}"]  # fmt: skip
    for i in range(depth):
        pads = [1] * 4 if i % 2 else [0] * 4
        attrs = f'group={channels if i % 2 else 1}, pads={pads}, activation="Relu"'
        lines.append(f'  "c{i}": y{i} = Conv({name}, w{i}, b{i}) {{{attrs}}}')
        name = f"y{i}"
    lines += [f"  output {name}", "}"]
    graph = from_text("\n".join(lines), arrays)
    infer_types(graph)
    return graph, [{"x": np.maximum(f32(1, channels, 8, 8) + 0.4, 0)} for _ in range(20)]


def test_outputs_on_new_samples_are_closer():
    graph, feeds = chain()
    noise = {}
    for rounding in ("nearest", "sums", "learned"):
        made = quantize(graph, feeds, Options("minmax", rounding=rounding, equalize=False))
        assert made.rounding == made.to_dict()["rounding"] == rounding
        fresh = [{"x": np.maximum(f32(1, 12, 8, 8) + 0.4, 0)} for _ in range(5)]
        output = graph.outputs[0].name
        noise[rounding] = sum(
            float(np.square(reference_run(g, f)[output] - reference_run(graph, f)[output]).sum())
            for f in fresh
            for g in [made.graph]
        )
    assert noise["learned"] < noise["sums"] and noise["learned"] < noise["nearest"]


def test_deep_networks_are_learned_in_few_rounds(monkeypatch):
    """Neighbors share a round, each layer is learned once, and the outputs are closer, too."""
    graph, feeds = chain(6)
    learned = []
    solve = rounds.descend
    monkeypatch.setattr(rounds, "descend", lambda *a: learned.append(a) or solve(*a))
    monkeypatch.setattr(rounds, "SINGLE", 4)
    monkeypatch.setattr(rounds, "ROUNDS", 3)
    found = rounds._rounds(graph.nodes)
    assert [[n.name for n in nodes] for nodes in found] == [
        ["c0", "c1"],
        ["c2", "c3"],
        ["c4", "c5"],
    ]
    assert rounds._rounds(graph.nodes[:4]) == [[n] for n in graph.nodes[:4]]
    db = {}
    for rounding in ("nearest", "learned"):
        made = quantize(graph, feeds, Options("minmax", rounding=rounding, equalize=False),
                        force=True)  # fmt: skip
        db[rounding] = made.verdict.sqnr_db
    assert len(learned) == 3 + 3 * 12  # one for each group of each layer
    assert db["learned"] > db["nearest"]


def test_auto_takes_what_wins_on_held_out_samples():
    graph, feeds = chain(2)
    made = quantize(graph, feeds)
    best = max(made.tried, key=made.tried.__getitem__)
    assert (made.rounding == "learned") == (best == "learned")
    again = quantize(graph, feeds, Options(made.ranges.method, rounding=made.rounding))
    assert again.verdict.sqnr_db == pytest.approx(made.verdict.sqnr_db)
    plain = quantize(graph, feeds, Options(rounding="sums"))
    assert "learned" not in plain.tried and plain.rounding == "sums"
