"""Detection operators: our operators of the same names, or ONNX's where it has them."""

from __future__ import annotations

from typing import Any

from lite_messages import tr

from ....ir import DType, Value
from ..registry import Call, translates


def _given(op: Call, *names: str) -> dict[str, Any]:
    """The named attributes that the file has; booleans as numbers."""
    found = {n: op.attr(n) for n in names if op.attr(n) is not None}
    return {n: int(v) if isinstance(v, bool) else v for n, v in found.items()}


@translates("yolo_box")
def _(op: Call) -> None:
    attrs = _given(op, "anchors", "class_num", "conf_thresh", "downsample_ratio", "clip_bbox",
                   "scale_x_y", "iou_aware", "iou_aware_factor")  # fmt: skip
    boxes, scores = op.nodes("yolo_box", [op.need("X"), op.need("ImgSize")], 2, **attrs)
    op.set("Boxes", boxes)
    op.set("Scores", scores)


@translates("prior_box")
def _(op: Call) -> None:
    attrs = _given(op, "min_sizes", "max_sizes", "aspect_ratios", "variances", "flip", "clip",
                   "step_w", "step_h", "offset", "min_max_aspect_ratios_order")  # fmt: skip
    boxes, variances = op.nodes("prior_box", [op.need("Input"), op.need("Image")], 2, **attrs)
    op.set("Boxes", boxes)
    op.set("Variances", variances)


@translates("density_prior_box")
def _(op: Call) -> None:
    attrs = _given(op, "fixed_sizes", "fixed_ratios", "densities", "variances", "clip", "step_w",
                   "step_h", "offset", "flatten_to_2d")  # fmt: skip
    inputs = [op.need("Input"), op.need("Image")]
    boxes, variances = op.nodes("density_prior_box", inputs, 2, **attrs)
    op.set("Boxes", boxes)
    op.set("Variances", variances)


@translates("anchor_generator")
def _(op: Call) -> None:
    attrs = _given(op, "anchor_sizes", "aspect_ratios", "stride", "variances", "offset")
    anchors, variances = op.nodes("anchor_generator", [op.need("Input")], 2, **attrs)
    op.set("Anchors", anchors)
    op.set("Variances", variances)


@translates("box_coder")
def _(op: Call) -> None:
    attrs = _given(op, "code_type", "box_normalized", "axis", "variance")
    attrs["code_type"] = attrs.get("code_type", "encode_center_size").lower()
    inputs = [op.need("PriorBox"), op["PriorBoxVar"], op.need("TargetBox")]
    op.set("OutputBox", op.node("box_coder", inputs, **attrs))


@translates("box_clip")
def _(op: Call) -> None:
    op.set("Output", op.node("box_clip", [op.need("Input"), op.need("ImInfo")]))


@translates("iou_similarity")
def _(op: Call) -> None:
    attrs = _given(op, "box_normalized")
    op.set("Out", op.node("iou_similarity", [op.need("X"), op.need("Y")], **attrs))


@translates("polygon_box_transform")
def _(op: Call) -> None:
    op.set("Output", op.node("polygon_box_transform", [op.need("Input")]))


@translates("multiclass_nms", "multiclass_nms2", "multiclass_nms3")
def _(op: Call) -> None:
    if op["RoisNum"] is not None:
        raise op.unsupported(
            tr("it suppresses boxes per region (RoisNum), but only batches of images are supported")
        )
    attrs = _given(op, "background_label", "score_threshold", "nms_top_k", "keep_top_k",
                   "nms_threshold", "nms_eta", "normalized")  # fmt: skip
    out, index, count = op.nodes(
        "multiclass_nms", [op.need("BBoxes"), op.need("Scores")], 3, **attrs
    )
    op.set("Out", out)
    op.set("Index", index)
    op.set("NmsRoisNum", count)


@translates("matrix_nms")
def _(op: Call) -> None:
    attrs = _given(op, "background_label", "score_threshold", "post_threshold", "nms_top_k",
                   "keep_top_k", "use_gaussian", "gaussian_sigma", "normalized")  # fmt: skip
    out, index, count = op.nodes("matrix_nms", [op.need("BBoxes"), op.need("Scores")], 3, **attrs)
    op.set("Out", out)
    op.set("Index", index)
    op.set("RoisNum", count)


@translates("generate_proposals", "generate_proposals_v2")
def _(op: Call) -> None:
    attrs = _given(op, "pre_nms_topN", "post_nms_topN", "nms_thresh", "min_size", "eta",
                   "pixel_offset")  # fmt: skip
    shape = op["ImShape"] if op["ImShape"] is not None else op.need("ImInfo")
    inputs = [op.need("Scores"), op.need("BboxDeltas"), shape, op.need("Anchors"),
              op.need("Variances")]  # fmt: skip
    rois, probabilities, count = op.nodes("generate_proposals", inputs, 3, **attrs)
    op.set("RpnRois", rois)
    op.set("RpnRoiProbs", probabilities)
    op.set("RpnRoisNum", count)


@translates("distribute_fpn_proposals")
def _(op: Call) -> None:
    attrs = _given(op, "min_level", "max_level", "refer_level", "refer_scale", "pixel_offset")
    levels = int(op.attr("max_level", 0)) - int(op.attr("min_level", 1)) + 1
    if not 1 <= levels <= 16:
        raise op.unsupported(tr("expected 1 to 16 levels, found {levels}", levels=levels))
    inputs = [op.need("FpnRois"), op["RoisNum"]]
    outs = op.nodes("distribute_fpn_proposals", inputs, 1 + 2 * levels, **attrs)
    op.set("RestoreIndex", outs[0])
    for i in range(levels):
        op.set("MultiFpnRois", outs[1 + i], i)
        op.set("MultiLevelRoIsNum", outs[1 + levels + i], i)


@translates("collect_fpn_proposals")
def _(op: Call) -> None:
    rois = op.all("MultiLevelRois")
    inputs = [*rois, *op.all("MultiLevelScores"), *op.all("MultiLevelRoIsNum")]
    out, count = op.nodes(
        "collect_fpn_proposals", inputs, 2, levels=len(rois),
        post_nms_topN=int(op.attr("post_nms_topN", 1000)),
    )  # fmt: skip
    op.set("FpnRois", out)
    op.set("RoisNum", count)


def _image_of_region(op: Call, rois: Value) -> Value:
    """Which image of the batch each region belongs to: images whose regions all come before it."""
    count = op["RoisNum"]
    first = op.node("Shape", [rois], start=0, end=1)
    if count is None:
        return op.node("Expand", [op.const(0), first])
    ends = op.node("CumSum", [op.cast(count, DType.I64), op.const(0)])
    steps = op.node("Range", [op.const(0), op.to_shape(first, []), op.const(1)])
    after = op.node("GreaterOrEqual", [op.node("Unsqueeze", [steps, op.const([1])]), ends])
    return op.node("ReduceSum", [op.cast(after, DType.I64), op.const([1])], keepdims=0)


@translates("roi_align")
def _(op: Call) -> None:
    rois = op.need("ROIs")
    aligned = "half_pixel" if op.flag("aligned") else "output_half_pixel"
    op.set("Out", op.node(
        "RoiAlign", [op.need("X"), rois, _image_of_region(op, rois)], mode="avg",
        output_height=int(op.attr("pooled_height", 1)),
        output_width=int(op.attr("pooled_width", 1)),
        sampling_ratio=max(0, int(op.attr("sampling_ratio", -1))),
        spatial_scale=float(op.attr("spatial_scale", 1.0)),
        coordinate_transformation_mode=aligned,
    ))  # fmt: skip
