"""The list of passes. Reading it is knowing what happens to a graph, in which order."""

from __future__ import annotations

from dataclasses import dataclass

from ..ir import Graph, Journal
from ._core import Pass
from .decompose_batch_norm import decompose_batch_norm
from .decompose_einsum import decompose_einsum
from .decompose_fp16 import decompose_fp16
from .drop_duplicates import drop_duplicates
from .drop_identity import drop_identity
from .fold_constants import fold_constants
from .fold_conv_input import fold_conv_input
from .fold_depth import fold_conv_depth, fold_pool_depth
from .fold_depth_up import fold_deconv_depth, fold_resize_depth
from .fold_global_pool import fold_average_pool, fold_reduce_mean
from .fold_pad import fold_pad
from .fold_resize_axes import fold_resize_axes
from .fold_shapes import fold_shapes
from .fuse_activation import fuse_activation
from .fuse_attention import fuse_attention
from .fuse_conv_affine import fuse_conv_bias, fuse_conv_scale
from .fuse_conv_batch_norm import fuse_conv_batch_norm
from .fuse_conv_residual import fuse_conv_residual
from .fuse_gemm import fuse_gemm_affine, hoist_activation, recompose_gemm
from .fuse_gemm_residual import fuse_gemm_residual
from .fuse_scale import fuse_split_scale, hoist_scale, merge_scales
from .hoist_over_concat import hoist_activation_over_concat, hoist_batch_norm
from .layout_pack_attention import layout_pack_attention
from .layout_sink_transposes import layout_sink_transposes
from .merge_branches import merge_branches
from .merge_joins import merge_joins
from .merge_moves import merge_moves
from .merge_views import fold_transpose_of_ones, merge_reshapes, merge_transposes
from .quantize_fuse_add import quantize_fuse_add
from .quantize_fuse_blocks import fuse_nbits_bias, quantize_fuse_blocks
from .quantize_fuse_qdq import quantize_fuse_qdq
from .quantize_merge_lookup_tables import quantize_merge_lookup_tables
from .quantize_move_views import quantize_move_views
from .recompose_activations import recompose_activations
from .recompose_group_norm import fuse_group_norm_affine, recompose_group_norm
from .recompose_layer_norm import (
    fuse_norm_affine,
    recompose_l2_norm,
    recompose_layer_norm,
    recompose_rms_norm,
)
from .recompose_pasted_masks import recompose_pasted_masks
from .recompose_rotary import merge_angles, recompose_rotary, recompose_rotary_prefix
from .recompose_shuffles import recompose_shuffles
from .recompose_splits import recompose_splits
from .recompose_turned_products import recompose_turned_products
from .running import run_passes

CLEAN: list[Pass] = [
    fold_constants,
    fold_shapes,
    decompose_einsum,
    fold_constants,
    drop_identity,
    drop_duplicates,
    merge_transposes,
]
RECOMPOSE: list[Pass] = [
    *recompose_activations,
    recompose_layer_norm,
    recompose_rms_norm,
    fuse_norm_affine,
    recompose_l2_norm,
    recompose_group_norm,
    fuse_group_norm_affine,
    recompose_shuffles,
    recompose_pasted_masks,
    recompose_rotary,
    recompose_rotary_prefix,
]
# After the norms: they are known by the last axis, which sinking a Transpose would change.
LAYOUT: list[Pass] = [
    layout_sink_transposes,
    merge_angles,
    merge_transposes,
    fold_reduce_mean,
    fold_average_pool,
]
# What is joined has a norm or a scale behind it, and may be a branch itself: in the blocks that are
# known, three deep.
BRANCHES: list[Pass] = [merge_branches, fuse_conv_batch_norm, fuse_conv_scale]
FUSE: list[Pass] = [
    merge_scales,
    hoist_scale,
    fuse_conv_bias,
    fuse_conv_batch_norm,
    fuse_conv_scale,
    fuse_conv_bias,
    hoist_batch_norm,
    *BRANCHES,
    *BRANCHES,
    *BRANCHES,
    fold_pad,
    fold_conv_input,
    decompose_batch_norm,
    quantize_fuse_blocks,
    fuse_nbits_bias,
    recompose_gemm,
    merge_reshapes,
    fuse_gemm_affine,
]
VIEWS: list[Pass] = [fold_transpose_of_ones, merge_transposes, merge_reshapes, drop_identity]
FINISH: list[Pass] = [
    hoist_activation, hoist_activation_over_concat, fuse_activation, *VIEWS, drop_duplicates,
]  # fmt: skip

# Behind the views: operands are known by the Transposes that remain.
ATTENTION: list[Pass] = [
    merge_joins,
    recompose_splits,
    merge_moves,
    *VIEWS,
    recompose_turned_products,
    merge_transposes,
    fuse_attention,
    layout_pack_attention,
    *VIEWS,
    fuse_split_scale,
    fuse_gemm_affine,
]

INTEGERS: list[Pass] = [
    quantize_move_views, quantize_fuse_qdq, quantize_merge_lookup_tables, drop_identity,
    drop_duplicates, fold_pad, quantize_fuse_add,
]  # fmt: skip

# Behind the integers, which add residuals themselves. Reshapes between integers stay as they are:
# merged, they would hold the sizes of a batch of 1, and no other width could follow.
RESIDUALS: list[Pass] = [fuse_gemm_residual, merge_transposes, drop_identity]

# Behind the fusions, which know convolutions and pools of volumes.
VOLUMES: list[Pass] = [fold_conv_depth, fold_pool_depth, fold_deconv_depth, fold_resize_depth]

#: What every target gets.
PIPELINE: list[Pass] = [
    decompose_fp16, *CLEAN, *RECOMPOSE, *LAYOUT, *FUSE, fuse_conv_residual, fold_resize_axes,
    *FINISH, *ATTENTION, *INTEGERS, *VOLUMES, *RESIDUALS,
]  # fmt: skip


@dataclass
class Optimized:
    """What the passes made of a graph, and what they did."""

    graph: Graph
    journal: Journal


def optimized(graph: Graph, passes: list[Pass] | None = None) -> Optimized:
    """`optimize_graph` with its journal. Raises as that does."""
    journal = Journal()
    return Optimized(optimize_graph(graph, journal=journal, passes=passes), journal)


def optimize_graph(
    graph: Graph, *, journal: Journal | None = None, passes: list[Pass] | None = None
) -> Graph:
    """An optimised copy of a graph; `journal` receives every rewrite and refusal.

    Raises ShapeError for a node that its inputs can never fit, and naming the pass when one breaks
    the graph; ModelFormatError when the file that it was read from was overwritten.
    """
    graph.check_files()
    out = graph.copy()
    run_passes(
        out, PIPELINE if passes is None else passes, Journal() if journal is None else journal
    )
    return out
