"""PIR operators in terms of ProgramDesc's: the one table that bridges the two.

A line is `pir [= legacy] : inputs -> outputs [renamed attributes]`. Inputs and outputs are slots in
PIR's order; `_` is ignored. `attr@Tensor@List` is an argument that is an attribute when its
value is constant, else the tensor slot (the list slot for a list of tensors); `attr@Name+` is
short for `attr@NameTensor@NameTensorList`. An indented line continues the one before.
Source: Paddle ops.yaml and op_compat.yaml.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_TABLE = """
abs : X -> Out
acos : X -> Out
acosh : X -> Out
add = elementwise_add : X Y -> Out
add_n = sum : X -> Out
addmm : Input X Y -> Out
affine_channel : X Scale Bias -> Out
affine_grid : Theta output_shape@OutputShape -> Output
all = reduce_all : X -> Out [axis=dim keepdim=keep_dim]
amax = reduce_amax : X -> Out [axis=dim keepdim=keep_dim]
amin = reduce_amin : X -> Out [axis=dim keepdim=keep_dim]
any = reduce_any : X -> Out [axis=dim keepdim=keep_dim]
arange = range : Start End Step -> Out
argmax = arg_max : X axis@Axis -> Out
argmin = arg_min : X axis@Axis -> Out
argsort : X -> Out Indices
asin : X -> Out
asinh : X -> Out
assign : X -> Out
assign_out_ = assign : X _ -> Out
assign_value : -> Out
atan : X -> Out
atan2 : X1 X2 -> Out
atanh : X -> Out
batch_norm : X Mean Variance Scale Bias -> Y _ _ _ _ _ [data_format=data_layout]
bicubic_interp = bicubic_interp_v2 : X OutSize SizeTensor Scale -> Out
bilinear_interp = bilinear_interp_v2 : X OutSize SizeTensor Scale -> Out
bitwise_and : X Y -> Out
bitwise_not : X -> Out
bitwise_or : X Y -> Out
bitwise_xor : X Y -> Out
bmm : X Y -> Out
box_clip : Input ImInfo -> Output
box_coder : PriorBox PriorBoxVar TargetBox -> OutputBox
cast : X -> Out [dtype=out_dtype]
ceil : X -> Out
celu : X -> Out
channel_shuffle : X -> Out
clip : X min@Min max@Max -> Out
collect_fpn_proposals : MultiLevelRois MultiLevelScores MultiLevelRoIsNum -> FpnRois RoisNum
    [post_nms_topn=post_nms_topN]
concat : X axis@AxisTensor -> Out
conv2d : Input Filter -> Output
conv2d_transpose : Input Filter output_size -> Output
conv3d : Input Filter -> Output
conv3d_transpose : Input Filter -> Output
cos : X -> Out
cosh : X -> Out
crop = crop_tensor : X shape@Shape@ShapeTensor offsets@Offsets@OffsetsTensor -> Out
cumsum : X axis -> Out
deformable_conv : Input Offset Filter Mask -> Output
depthwise_conv2d : Input Filter -> Output
depthwise_conv2d_transpose : Input Filter output_size -> Output
dequantize_linear : X Scale ZeroPoint _ _ -> Y _ _ _
distribute_fpn_proposals : FpnRois RoisNum -> MultiFpnRois MultiLevelRoIsNum RestoreIndex
divide = elementwise_div : X Y -> Out
dot : X Y -> Out
dropout : X _ dropout_prob -> Out _ [mode=dropout_implementation]
einsum : Operands -> Out _ _
elementwise_pow : X Y -> Out
elu : X -> Out
embedding = lookup_table_v2 : Ids W -> Out
equal : X Y -> Out
erf : X -> Out
exp : X -> Out
expand = expand_v2 : X shape@Shape@expand_shapes_tensor -> Out
expand_as = expand_as_v2 : X Y -> Out
expm1 : X -> Out
eye : num_rows num_columns -> Out
fake_channel_wise_quantize_dequantize_abs_max : X -> Out OutScale
fake_quantize_dequantize_abs_max : X -> Out OutScale
fake_quantize_dequantize_moving_average_abs_max : X InScale _ _ -> Out _ _ _
flatten = flatten_contiguous_range : X -> Out
flip : X -> Out
floor : X -> Out
floor_divide = elementwise_floordiv : X Y -> Out
fmax = elementwise_max : X Y -> Out
fmin = elementwise_min : X Y -> Out
frobenius_norm : X axis -> Out [axis=dim keepdim=keep_dim]
full_batch_size_like = fill_constant_batch_size_like : Input -> Out
full_like = fill_any_like : X value -> Out
full_with_tensor = fill_constant : ValueTensor shape@Shape+ -> Out
gather : X Index axis@Axis -> Out
gather_nd : X Index -> Out
gelu : X -> Out
generate_proposals = generate_proposals_v2 : Scores BboxDeltas ImShape Anchors Variances
    -> RpnRois RpnRoiProbs RpnRoisNum
    [pre_nms_top_n=pre_nms_topN post_nms_top_n=post_nms_topN]
greater_equal : X Y -> Out
greater_than : X Y -> Out
grid_sample = grid_sampler : X Grid -> Output
group_norm : X Scale Bias -> Y _ _ [data_format=data_layout]
hardshrink = hard_shrink : X -> Out
hardsigmoid = hard_sigmoid : X -> Out
hardswish = hard_swish : X -> Out
hardtanh = brelu : X -> Out
increment : X -> Out [value=step]
index_sample : X Index -> Out
index_select : X Index -> Out [axis=dim]
instance_norm : X Scale Bias -> Y _ _
isfinite : X -> Out
isinf : X -> Out
isnan : X -> Out
kthvalue : X -> Out Indices
layer_norm : X Scale Bias -> Y _ _
leaky_relu : X -> Out [negative_slope=alpha]
less_equal : X Y -> Out
less_than : X Y -> Out
linear_interp = linear_interp_v2 : X OutSize SizeTensor Scale -> Out
linspace : Start Stop Num -> Out
log : X -> Out
log10 : X -> Out
log1p : X -> Out
log2 : X -> Out
log_softmax : X -> Out
logical_and : X Y -> Out
logical_not : X -> Out
logical_or : X Y -> Out
logical_xor : X Y -> Out
logsigmoid : X -> Out
logsumexp : X -> Out
masked_select : X Mask -> Y
matmul = matmul_v2 : X Y -> Out [transpose_x=trans_x transpose_y=trans_y]
matrix_nms : BBoxes Scores -> Out Index RoisNum
max = reduce_max : X axis@Axis+ -> Out [axis=dim keepdim=keep_dim]
max_pool2d_with_index : X kernel_size -> Out Mask [kernel_size=ksize]
maximum = elementwise_max : X Y -> Out
mean = reduce_mean : X axis@Axis+ -> Out [axis=dim keepdim=keep_dim]
mean_all = mean : X -> Out
memcpy_d2h : X -> Out
memcpy_h2d : X -> Out
meshgrid : X -> Out
min = reduce_min : X axis@Axis+ -> Out [axis=dim keepdim=keep_dim]
minimum = elementwise_min : X Y -> Out
mish : X -> Out
moving_average_abs_max_scale : X _ _ -> Out _ _ _
multiclass_nms3 : BBoxes Scores RoisNum -> Out Index NmsRoisNum
multiply = elementwise_mul : X Y -> Out
mv : X Vec -> Out
nearest_interp = nearest_interp_v2 : X OutSize SizeTensor Scale -> Out
nonzero = where_index : Condition -> Out
norm : X -> Out _
not_equal : X Y -> Out
numel = size : Input -> Out
one_hot = one_hot_v2 : X depth@depth_tensor -> Out
p_norm : X -> Out
pad : X pad_value -> Out
pad3d : X paddings@Paddings -> Out [pad_value=value]
pixel_shuffle : X -> Out
pixel_unshuffle : X -> Out
pool2d : X kernel_size -> Out [kernel_size=ksize]
pool3d : X -> Out [kernel_size=ksize]
pow : X -> Out [y=factor]
prelu : X Alpha -> Out
prior_box : Input Image -> Boxes Variances [step0=step_w step1=step_h]
prod = reduce_prod : X dims -> Out [dims=dim keepdim=keep_dim]
put_along_axis : Input Index Value -> Result
quantize_linear : X Scale ZeroPoint _ _ -> Y _ _ _
reciprocal : X -> Out
relu : X -> Out
relu6 : X -> Out
remainder = elementwise_mod : X Y -> Out
reshape = reshape2 : X shape@Shape@ShapeTensor -> Out
reverse : X axis -> Out
rnn : Input PreState WeightList SequenceLength _ -> Out _ State _
roi_align : X ROIs RoisNum -> Out [boxes=ROIs]
roll : X shifts@ShiftsTensor -> Out
round : X -> Out
rsqrt : X -> Out
scale : X scale@ScaleTensor -> Out
scatter : X Ids Updates -> Out
scatter_nd_add : X Index Updates -> Out
selu : X -> Out
sequence_mask : X maxlen@MaxLenTensor -> Y
set_value : Input starts@Starts+ ends@Ends+ steps@Steps+ -> Out
set_value_with_tensor = set_value : Input ValueTensor starts@Starts+ ends@Ends+ steps@Steps+ -> Out
shape : Input -> Out
shape64 = shape : Input -> Out
share_data : X -> Out
sigmoid : X -> Out
sign : X -> Out
silu : X -> Out
sin : X -> Out
sinh : X -> Out
slice : Input starts@Starts+ ends@Ends+ -> Out
softmax : X -> Out
softplus : X -> Out
softshrink : X -> Out
softsign : X -> Out
split : X sections@@SectionsTensorList axis@AxisTensor -> Out
split_with_num = split : X axis@AxisTensor -> Out
sqrt : X -> Out
square : X -> Out
squeeze = squeeze2 : X axis@Axes+ -> Out [axis=axes]
stack : X -> Y
stanh : X -> Out
strided_slice : Input starts@Starts+ ends@Ends+ strides@Strides+ -> Out
subtract = elementwise_sub : X Y -> Out
sum = reduce_sum : X axis@Axis+ -> Out [axis=dim keepdim=keep_dim dtype=out_dtype]
swish : X -> Out
sync_batch_norm : X Mean Variance Scale Bias -> Y _ _ _ _ _ [data_format=data_layout]
take_along_axis : Input Index -> Result [axis=Axis]
tan : X -> Out
tanh : X -> Out
tanh_shrink : X -> Out
temporal_shift : X -> Out
thresholded_relu : X -> Out
tile : X repeat_times@RepeatTimes@repeat_times_tensor -> Out
topk = top_k_v2 : X k@K -> Out Indices
transpose = transpose2 : X -> Out [perm=axis]
tril = tril_triu : X -> Out
trilinear_interp = trilinear_interp_v2 : X OutSize SizeTensor Scale -> Out
triu = tril_triu : X -> Out
trunc : X -> Out
unbind : X -> Out
unfold : X -> Y
unique : X -> Out Indices Index Counts
unsqueeze = unsqueeze2 : X axis@Axes+ -> Out [axis=axes]
unstack : X -> Y
where : Condition X Y -> Out
yolo_box : X ImgSize -> Boxes Scores
"""

#: Attributes that a PIR name implies and the older operator needs.
IMPLIED: dict[str, dict[str, object]] = {
    "shape64": {"out_dtype": 3},
    "tril": {"lower": True},
    "triu": {"lower": False},
}


@dataclass(frozen=True)
class PirOp:
    """How one PIR operator is written as a ProgramDesc operator."""

    legacy: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: dict[str, str]


def _parse(line: str) -> tuple[str, PirOp]:
    head, _, rest = line.partition(":")
    name, _, legacy = (part.strip() for part in head.partition("="))
    inputs, _, rest = rest.partition("->")
    outputs, _, renames = rest.partition("[")
    attrs = dict(pair.split("=") for pair in renames.rstrip("] ").split())
    inputs = re.sub(r"@(\w+)\+", r"@\1Tensor@\1TensorList", inputs)
    return name, PirOp(legacy or name, tuple(inputs.split()), tuple(outputs.split()), attrs)


_LINES = _TABLE.strip().replace("\n    ", " ").splitlines()
PIR_OPS: dict[str, PirOp] = dict(_parse(line) for line in _LINES)


def find_pir_op(name: str) -> PirOp | None:
    """The entry of a PIR operator; in-place ones (`relu_`) are like the plain ones."""
    return PIR_OPS.get(name) or PIR_OPS.get(name.rstrip("_"))
