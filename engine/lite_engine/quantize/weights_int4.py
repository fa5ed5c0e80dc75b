"""Weights in 4 bits: layers with constant weights become MatMulNBits, activations stay floats.

MatMul(x, W), Gemm(x, W, c)     MatMulNBits(x, W, c), before the Add of a residual
Conv 1x1 (x, W, b)              Transpose → MatMulNBits(x, W, b) → Transpose, which are views

Without samples weights are rounded to nearest. With samples "gptq" compensates rounding errors and
"awq" scales inputs whose scales a preceding normalization can take (`groups`); "auto" takes the one
with the best outputs on held-out samples.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import CalibrationError, UsageError, check_choice
from ..ir import Graph, Node, Value
from ..ops import infer_types, residual_of
from ..ops._sparse import is_pointwise
from ._run import Run, reference_run
from .analyze import output_errors
from .groups import (
    Groups,
    Packed,
    compensated_in_groups,
    input_scales,
    nearest_in_groups,
    with_group_size,
)
from .guard import THRESHOLD_DB, Verdict, judge
from .metrics import Error
from .norm_scaling import normalized_products, scale_products
from .prepare import split_residual
from .rounding import input_correlations
from .samples import HoldOut, Samples, read_samples
from .select import WEIGHTED
from .weight_only import MIN_ELEMS

METHODS_INT4 = ("nearest", "gptq", "awq")
_CARRIED = ("activation", "activation_params")


@dataclass
class Int4Weights:
    """`graph` computes with 4-bit weights; `layers` has their error, `float_layers` says why the
    others were left. `verdict` is None without samples."""

    graph: Graph
    groups: Groups
    method: str
    layers: list[dict[str, Any]]  # name, sqnr_db of the weights, group, bytes
    float_layers: dict[str, str]
    verdict: Verdict | None = None
    tried: dict[str, float] = field(default_factory=dict)  # method → output SQNR in dB

    def to_dict(self) -> dict[str, Any]:
        return {
            "group": self.groups.size,
            "symmetric": self.groups.symmetric,
            "method": self.method,
            "tried_db": self.tried,
            "layers": self.layers,
            "float_layers": self.float_layers,
            "guard": self.verdict.to_dict() if self.verdict else None,
        }


def quantize_weights_int4(
    graph: Graph,
    groups: Groups | None = None,
    *,
    source: Any = None,
    method: str = "auto",
    run: Run = reference_run,
    keep: frozenset[str] = frozenset(),
    limit: int | None = None,
    threshold_db: float = THRESHOLD_DB,
    force: bool = False,
) -> Int4Weights:
    """An optimised float graph → a copy whose large weights have 4 bits; nodes in `keep` stay.

    `source` is what `read_samples` takes, or None. Raises UsageError for a method that needs
    samples, CalibrationError when no layer can be packed, or the outputs fall short of
    `threshold_db` and `force` is not set.
    """
    groups = groups or Groups()
    check_choice(tr("method"), method, ("auto", *METHODS_INT4))
    if source is None and method not in ("auto", "nearest"):
        raise UsageError(tr("method {method} needs samples", method=method))
    graph = _without_residuals(graph, keep)
    chosen, left = _choose(graph, keep)
    if not chosen:
        raise CalibrationError(tr("no layer has float weights that can be stored in 4 bits"))
    if source is None:
        packed, layers = _pack(graph, chosen, groups, "nearest", {})
        return Int4Weights(packed, groups, "nearest", layers, left)
    samples = HoldOut(Samples(itertools.islice(read_samples(source, graph), limit), graph))
    nodes = [n for n in graph.nodes if n.name in chosen]
    correlations = input_correlations(graph, nodes, samples, run)
    feeds = samples.held or samples.spare
    wants = [run(graph, feed) for feed in feeds]
    outputs = [v.name for v in graph.outputs]
    best: Int4Weights | None = None
    tried: dict[str, float] = {}
    for name in METHODS_INT4 if method == "auto" else (method,):
        packed, layers = _pack(graph, chosen, groups, name, correlations)
        tried[name] = round(output_errors(packed, feeds, wants, run).sqnr_db(outputs), 3)
        if best is None or tried[name] > tried[best.method]:
            best = Int4Weights(packed, groups, name, layers, left, tried=tried)
    assert best is not None
    kept = frozenset(n.name for n in graph.nodes) - frozenset(chosen)
    best.verdict = judge(
        graph, best.graph, feeds, run=run, threshold_db=threshold_db, keep_float=kept,
        held_out=bool(samples.held), bits=4,
    )  # fmt: skip
    if not force:
        best.verdict.require()
    return best


def _without_residuals(graph: Graph, keep: frozenset[str]) -> Graph:
    """A copy in which products that may be packed add no residual: MatMulNBits takes none."""
    out = graph.copy()
    for node in [n for n in out.nodes if n.op == "Gemm" and n.name not in keep]:
        if residual_of(node) is not None and not _why_not(node):
            added = split_residual(out, node).inputs[0]
            assert added is not None and added.producer is not None
            added.producer.name = node.name
    return out


def _choose(graph: Graph, keep: frozenset[str]) -> tuple[list[str], dict[str, str]]:
    """Names of the layers to pack, and of the other layers with weights → why not."""
    chosen, left = [], {}
    for node in graph.nodes:
        if node.op not in WEIGHTED:
            continue
        reason = tr("kept in float on request") if node.name in keep else _why_not(node)
        if reason:
            left[node.name] = reason
        else:
            chosen.append(node.name)
    return chosen, left


def _why_not(node: Node) -> str:
    weight, bias = node.inputs[1], node.input(2)
    if weight is None or weight.const is None or weight.const.dtype != np.float32:
        return tr("its weight is not a float32 constant")
    array = weight.const
    if array.size < MIN_ELEMS:
        return tr("its weight has fewer than {n} elements", n=MIN_ELEMS)
    if node.op in ("Conv", "ConvTranspose"):
        plain = node.op == "Conv" and is_pointwise(array.shape, node.attrs)
        if not plain or node.input(3) is not None:
            return tr("only 1x1 convolutions of stride 1 without residual have a 4-bit form")
    elif array.ndim != 2:
        return tr("its weight is a stack of matrices")
    if node.op == "Gemm" and (node.attrs.get("transA", 0) or node.attrs.get("alpha", 1.0) != 1):
        return tr("it has alpha, beta or transA")
    rows = matrix_of(node).shape[0]
    if bias is not None and (
        bias.const is None or bias.const.size not in (1, rows) or node.attrs.get("beta", 1.0) != 1
    ):
        return tr("its bias is not one constant per output channel")
    return ""


def matrix_of(node: Node) -> np.ndarray:
    """The constant weight as (outputs, inputs)."""
    weight = node.inputs[1]
    assert weight is not None and weight.const is not None
    array = weight.const
    if node.op == "Conv":
        return array.reshape(array.shape[0], -1)
    return array if node.op == "Gemm" and node.attrs.get("transB", 0) else array.T


def _pack(
    graph: Graph,
    chosen: list[str],
    groups: Groups,
    method: str,
    correlations: dict[str, np.ndarray],
) -> tuple[Graph, list[dict[str, Any]]]:
    out = graph.copy()
    scaled: dict[str, np.ndarray] = {}
    if method == "awq":
        scaled = _scale_inputs(out, frozenset(chosen), groups, correlations)
    layers = []
    for node in [n for n in out.nodes if n.name in chosen]:
        matrix = matrix_of(node)
        own = with_group_size(groups, matrix.shape[1])
        h = correlations.get(node.name)
        if h is not None and node.name in scaled:
            h = h / np.outer(scaled[node.name], scaled[node.name])
        if h is not None and method == "gptq":
            packed = compensated_in_groups(matrix, own, h[0])
        else:
            packed = nearest_in_groups(matrix, own, None if h is None else np.diag(h[0]))
        error = Error()
        error.add(matrix, packed.real())
        arrays = packed.inputs()
        layers.append(
            {
                "name": node.name,
                "sqnr_db": round(error.sqnr_db, 3),
                "group": own.size,
                "bytes": sum(a.nbytes for a in arrays if a is not None),
            }
        )
        _rewrite(out, node, packed, arrays)
    infer_types(out)
    return out, layers


def _rewrite(graph: Graph, node: Node, packed: Packed, arrays: list[np.ndarray | None]) -> None:
    """MatMulNBits in place of the node, whose name and output it keeps."""
    rows, columns = packed.q.shape
    names = ("q4", "scales", "zero_points")
    inputs: list[Value | None] = [
        None if a is None else graph.constant(a, graph.unique(f"{node.name}.{name}"))
        for name, a in zip(names, arrays)
    ]
    bias = node.input(2)
    if bias is not None:
        assert bias.const is not None
        spread = np.broadcast_to(bias.const.ravel(), (rows,)).astype(np.float32)
        inputs += [None, graph.constant(spread, graph.unique(f"{node.name}.bias"))]
    attrs = {"K": columns, "N": rows, "block_size": packed.groups.size}
    attrs.update({k: node.attrs[k] for k in _CARRIED if k in node.attrs})
    if node.op != "Conv":
        graph.replace([node], "MatMulNBits", [node.inputs[0], *inputs], attrs, name=node.name)
        return
    name = node.name
    last = graph.add(
        "Transpose", [node.inputs[0]], {"perm": [0, 2, 3, 1]},
        name=graph.unique(f"{name}.rows"), sources=node.sources, before=node,
    )  # fmt: skip
    product = graph.add(
        "MatMulNBits", [last.output, *inputs], attrs, name=graph.unique(f"{name}.product"),
        sources=node.sources, before=node,
    )  # fmt: skip
    graph.replace([node], "Transpose", [product.output], {"perm": [0, 3, 1, 2]}, name=name)


def _scale_inputs(
    graph: Graph, chosen: frozenset[str], groups: Groups, correlations: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Scales the inputs of chosen layers through the normalizations before them, in place; returns
    the layers' factors."""
    done = {}
    for norm, readers in normalized_products(graph, chosen):
        if any(r.name not in correlations for r in readers):
            continue
        matrices = [matrix_of(r) for r in readers]
        h = correlations[readers[0].name][0]
        if any(m.shape[1] != len(h) for m in matrices):
            continue
        s = input_scales(matrices, with_group_size(groups, len(h)), h)
        if s is None:
            continue
        scale_products(graph, norm, readers, s)
        done.update({reader.name: s for reader in readers})
    return done
