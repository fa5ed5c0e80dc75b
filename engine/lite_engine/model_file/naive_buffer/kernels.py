"""Which kernel Paddle-Lite runs an operator with, per target.

A cell is `alias/target/precision/layout` in paddle_place.h's numbers, without the alias when it
is `def`; `-` is none. Collected from what opt 2.13 chooses for one-operator programs.
"""

from __future__ import annotations

from lite_messages import tr

from ...errors import UnsupportedOperatorError

_TABLE = """
abs                1/1/1           4/1/1         5/5/4
arg_max            fp32/1/4/1      fp32/4/4/1    5/5/4
assign             1/4/2           1/4/2         -
batch_norm         2/1/1           4/1/1         -
bilinear_interp_v2 2/1/1           4/1/1         ImageDefault/5/5/4
box_coder          2/1/1           4/1/1         ImageDefault/5/5/4
cast               1/4/1           1/4/1         -
clip               2/1/1           4/1/1         5/5/4
concat             2/1/1           4/4/1         ImageDefault/5/5/4
conv2d             2/1/1           4/1/1         image2d/5/5/4
conv2d_transpose   2/1/1           4/1/1         image2d/5/5/4
cos                1/1/1           1/1/1         image2d/5/5/4
depthwise_conv2d   2/1/1           4/1/1         image2d/5/5/4
elementwise_add    2/1/1           4/1/1         5/5/4
elementwise_div    2/1/1           4/1/1         5/5/4
elementwise_max    2/1/1           4/1/1         5/5/4
elementwise_min    2/1/1           4/1/1         5/5/4
elementwise_mul    2/1/1           4/1/1         5/5/4
elementwise_pow    2/1/1           4/1/1         5/5/4
elementwise_sub    2/1/1           4/1/1         5/5/4
elu                1/1/1           4/1/1         -
equal              1/1/2           1/1/2         -
erf                2/1/1           4/1/1         -
exp                1/1/1           4/1/1         ImageDefault/5/5/4
expand_v2          1/1/2           1/1/2         -
fc                 2/1/1           4/1/1         image2d/5/5/5
feed               1/4/2           1/4/2         -
fetch              1/4/2           1/4/2         -
floor              1/1/1           4/1/1         -
gather             int64int64/1/1/1 int64int64/1/1/1 -
gelu               2/1/1           4/1/1         5/5/4
greater_equal      1/1/2           1/1/2         -
greater_than       1/1/2           1/1/2         -
group_norm         2/1/1           4/1/1         -
hard_sigmoid       1/1/1           4/1/1         ImageDefault/5/5/4
hard_swish         2/1/1           4/1/1         5/5/4
instance_norm      2/1/1           4/1/1         ImageDefault/5/5/4
layer_norm         2/1/1           4/1/1         ImageDefault/5/5/4
leaky_relu         2/1/1           4/1/1         ImageDefault/5/5/4
less_equal         1/1/2           1/1/2         -
less_than          1/1/2           1/1/2         -
log                1/1/1           4/1/1         ImageDefault/5/5/4
log_softmax        1/1/1           1/1/1         -
logical_and        1/4/2           1/4/2         -
logical_not        1/4/2           1/4/2         -
logical_or         1/4/2           1/4/2         -
logical_xor        1/4/2           1/4/2         -
lookup_table_v2    2/1/1           4/4/1         -
lrn                -               4/1/1         ImageDefault/5/5/4
matmul_v2          2/1/1           4/1/1         image2d/5/5/5
mish               2/1/1           4/1/1         -
multiclass_nms3    1/1/1           1/1/1         -
nearest_interp_v2  2/1/1           4/1/1         ImageDefault/5/5/4
pad2d              1/1/1           4/1/1         ImageDefault/5/5/4
pixel_shuffle      1/1/1           4/1/1         image2d/5/5/4
pool2d             2/1/1           4/1/1         image2d/5/5/4
prelu              1/1/1           4/1/1         5/5/4
print              1/4/2           1/4/2         -
prior_box          1/1/1           1/1/1         -
reciprocal         1/1/1           4/1/1         -
reduce_max         2/1/1           4/1/1         -
reduce_mean        2/1/1           4/1/1         -
reduce_min         2/1/1           4/1/1         -
reduce_prod        2/1/1           4/1/1         -
reduce_sum         2/1/1           4/1/1         -
relu               2/1/1           4/1/1         ImageDefault/5/5/4
relu6              2/1/1           4/1/1         ImageDefault/5/5/4
reshape2           1/4/2           1/4/2         image2d/5/5/4
rnn                2/1/1           4/1/1         -
round              fp32/1/4/1      fp32/1/4/1    -
scale              2/1/1           4/1/1         5/5/4
sigmoid            2/1/1           4/1/1         ImageDefault/5/5/4
sign               -               4/1/1         -
sin                1/1/1           1/1/1         image2d/5/5/4
slice              2/1/1           4/1/1         -
softmax            2/1/1           4/1/1         5/5/5
softplus           1/1/1           4/1/1         -
softsign           2/1/1           -             -
sparse_conv2d      -               4/1/1         -
split              1/1/1           1/1/1         5/5/4
sqrt               2/1/1           4/1/1         5/5/4
squeeze2           1/4/2           1/4/2         -
strided_slice      1/1/1           1/1/1         -
swish              1/1/1           4/1/1         ImageDefault/5/5/4
tanh               2/1/1           4/1/1         ImageDefault/5/5/4
top_k_v2           1/1/1           1/1/1         -
transpose2         2/1/1           4/4/1         image2d/5/5/4
unsqueeze2         1/4/2           1/4/2         -
where              1/4/2           1/4/2         -
yolo_box           1/1/1           1/1/1         -
"""

#: Operators with an fp16 kernel on arm (`def/4/5/1`).
ARM_FP16 = frozenset(
    [
        "batch_norm", "bilinear_interp_v2", "conv2d", "conv2d_transpose", "depthwise_conv2d",
        "elementwise_add", "elementwise_div", "elementwise_mul", "elementwise_sub", "fc",
        "hard_sigmoid", "hard_swish", "matmul_v2", "nearest_interp_v2", "pad2d", "pool2d", "prelu",
        "relu", "scale", "sigmoid", "softmax", "sparse_conv2d", "swish", "tanh",
    ]
)  # fmt: skip
_COLUMNS = {"x86": 0, "arm": 1, "opencl": 2}
_KERNELS = {row[0]: row[1:] for row in map(str.split, _TABLE.strip().splitlines())}
_NOWHERE = ["-", "-", "-"]


def kernel_for(op: str, target: str, *, fp16: bool = False) -> str | None:
    """The kernel string of an operator, None when the target has no kernel for it."""
    if fp16 and target == "arm" and op in ARM_FP16:
        return f"{op}/def/4/5/1"
    cell = _KERNELS.get(op, _NOWHERE)[_COLUMNS[target]]
    if cell == "-":
        return None
    return f"{op}/{cell}" if cell.count("/") == 3 else f"{op}/def/{cell}"


def supported(op: str) -> dict[str, bool]:
    """Which targets have a kernel for an operator."""
    return {target: kernel_for(op, target) is not None for target in _COLUMNS}


def need_kernel(op: str, target: str, *, fp16: bool = False) -> str:
    """Raises UnsupportedOperatorError when the target has none."""
    found = kernel_for(op, target, fp16=fp16)
    if found is None:
        raise UnsupportedOperatorError(
            tr("Paddle-Lite has no {target} kernel for {op!r}", target=target, op=op),
            (op,),
            fix=tr("choose another target"),
        )
    return found
