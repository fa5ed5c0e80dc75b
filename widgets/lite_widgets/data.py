"""The plain data that the widgets take: the shapes of DESIGN section 4, and what they add.

All are ordinary dicts (or objects with ``to_dict``). Keys marked NotRequired make a view richer
and may be absent; everything else is drawn as "–" when it is None. Names of layers are the keys of
selection: they are unique within one model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:  # typing has it from Python 3.11 on
    from typing import NotRequired


class CopyInfo(TypedDict):
    """Why data moved between backends, layouts or precisions before the next layer."""

    source: str  # backend, layout or precision that it comes from
    target: str
    bytes: int
    why: str
    fix: NotRequired[str]  # a line of Python, or a sentence when nothing can be done
    gain_ms: NotRequired[float]  # what `fix` saves


class ProfileLayer(TypedDict):
    """One row of a profile: a layer, or a copy (op "Copy" or a `copy` entry)."""

    index: int
    name: str
    op: str
    sources: list[str]
    backend: str
    kernel: str
    why: str
    input_shapes: list[list[int | None] | None]  # None: depends on data
    output_shapes: list[list[int | None] | None]
    dtype: str
    median_ms: float
    min_ms: float
    share: float
    macs: int
    gflops: float | None
    gbytes_per_s: float | None
    roofline_fraction: NotRequired[float]  # how near its roof it comes, 1 at best
    ci_ms: NotRequired[float]  # half width of the 95 % interval of the median
    bytes: NotRequired[int]  # moved: inputs + outputs + weights; gives the roofline its x
    instructions: NotRequired[int]  # executed, under emulation
    copy: NotRequired[CopyInfo]
    block: NotRequired[str]
    type: NotRequired[str]


class Profile(TypedDict):
    """`lite profile --json`, plus what the sentence under the headline needs."""

    model: str
    backend: str
    device: str
    threads: int
    environment: dict[str, Any]
    total_ms: dict[str, float]  # median, min, p90; without the profiler
    first_run_ms: float
    layers: list[ProfileLayer]
    overhead_ms: float
    peak_memory_bytes: int
    runs: NotRequired[int]
    emulated: NotRequired[bool]  # instructions instead of milliseconds
    rankable_us: NotRequired[float]  # smallest difference that can be ranked
    ran: NotRequired[str]  # how many layers each backend ran, as a sentence
    warnings: NotRequired[list[str]]  # what not to trust, and which kernels failed on the device


class Change(TypedDict):
    """Layers of two profiles that compute the same part of the model. `kind`: "changed", "new",
    "gone", or "outside" for the time between the layers."""

    name: str
    kind: str
    before: list[str]  # names of the layers on either side
    after: list[str]
    before_ns: int
    after_ns: int
    delta_ns: int


class ProfileChange(TypedDict):
    """`lite runs diff --json`: from one total to the other; the changes, largest first, add up to
    the difference exactly."""

    baseline: str
    candidate: str
    before_ns: int
    after_ns: int
    changes: list[Change]
    warnings: list[str]


class ErrorFigures(TypedDict):
    """One comparison of two tensors. Non-finite figures are None."""

    max_abs: float | None
    mean_abs: float | None
    rel_l2: float | None
    cosine: float | None
    sqnr_db: float | None


class ComparisonLayer(ErrorFigures):
    """Accumulated figures of one layer, and the isolated ones beside them."""

    index: int
    name: str
    op: str
    nan_baseline: int
    nan_candidate: int
    range_baseline: list[float]
    range_candidate: list[float]
    isolated: ErrorFigures | None
    within: bool
    state: NotRequired[str]  # "within", "failing", "propagated" or "differing"
    tolerance: NotRequired[float]


class Verdict(TypedDict):
    """What was found, in the words of the screen: a notice about a layer."""

    kind: str  # "done", "warn" or "error"
    what: str  # ** around what is bold
    detail: NotRequired[str]
    layer: NotRequired[str]
    actions: NotRequired[list[list[str]]]  # [[id, word]]


class Comparison(TypedDict):
    """`lite compare --json`."""

    baseline: str
    candidate: str
    tolerance: float
    first_divergence: dict[str, Any] | None
    layers: list[ComparisonLayer]
    agrees: bool
    verdict: NotRequired[str]
    notice: NotRequired[Verdict]
    usual_tolerance: NotRequired[float]  # where one line stands for the layers' tolerances


class GraphNode(TypedDict):
    """One node; `inputs` are names of nodes or of graph inputs, in order."""

    name: str
    op: str
    inputs: list[str]
    output_shapes: NotRequired[list[list[int]]]
    sources: NotRequired[list[str]]
    block: NotRequired[str]
    region: NotRequired[str]  # part of the architecture that holds the block
    label: NotRequired[str]  # shown instead of the last part of the name
    attributes: NotRequired[dict[str, str]]
    weights: NotRequired[list[dict[str, Any]]]  # {"name", "type": "16×3×3×3 f32", "bytes"}


class GraphData(TypedDict):
    """A graph in topological order."""

    name: str
    inputs: list[dict[str, Any]]  # {"name", "shape"}
    outputs: list[dict[str, Any]]  # {"name", "shape", "from": node name}
    nodes: list[GraphNode]
    regions: NotRequired[dict[str, str]]  # region → what it was recognized by


class Roof(TypedDict):
    """Measured limits of one backend of one device."""

    gflops: float
    gbytes_per_s: float
    what: str  # "2 threads, AVX2 + FMA"
    integer_gops: NotRequired[float]  # products of bytes


class Tensor(TypedDict):
    """One tensor of the arena."""

    name: str  # the layer that produces it
    first: int  # step that writes it
    last: int  # last step that reads it
    offset: int
    bytes: int


class TradeOffPoint(TypedDict):
    """One version of the model: its `label` or, quantized, its `kept` layers in float."""

    method: str
    kept: NotRequired[list[str]]
    label: NotRequired[str]  # "80 % zeros in 12 layers"
    accuracy: float  # percent
    latency_ms: float
    latency_ci_ms: NotRequired[float | None]  # half width of the 95 % interval
    bytes: int
    ran: NotRequired[str]  # which layers ran where, if some ran on another backend


class TargetCard(TypedDict):
    """One thing that can run here, for DoctorCards."""

    id: str
    title: str
    backend: str
    state: str  # "ready", "limited", "broken", "running"
    chip: str
    facts: list[list[str]]
    notice: NotRequired[dict[str, Any]]  # as in Notice
    stages: NotRequired[list[dict[str, Any]]]  # Stage: how far it was reached
    actions: NotRequired[list[list[str]]]  # [[id, word]]: buttons at the foot
    tick: NotRequired[bool]  # false: it cannot be chosen


class Stage(TypedDict):
    """One step of a longer job on a device."""

    name: str
    state: str  # "todo", "running", "done", "attention"
    detail: NotRequired[str]
    seconds: NotRequired[float | None]


#: Keys of documents that older versions wrote, and what they are called now.
_NEW_NAMES = {"a": "baseline", "b": "candidate", "magnified": "ill_conditioned",
              "outputs_apart": "differing_outputs", "outputs_alone": "unmatched_outputs",
              "roof": "roofline"}  # fmt: skip
_NEW_ROW_NAMES = {"nan_a": "nan_baseline", "nan_b": "nan_candidate", "range_a": "range_baseline",
                  "range_b": "range_candidate", "kernel_b": "kernel_candidate",
                  "value_a": "value_baseline", "value_b": "value_candidate",
                  "sources_b": "sources_candidate", "quantised": "quantized",
                  "worst_a": "worst_baseline", "worst_b": "worst_candidate",
                  "roof_fraction": "roofline_fraction"}  # fmt: skip


def with_new_names(data: Mapping[str, Any]) -> dict[str, Any]:
    """A profile, comparison or change as this version writes it."""
    out = _renamed(data, _NEW_NAMES)
    if isinstance(rows := out.get("layers"), list):
        out["layers"] = [_row(row) if isinstance(row, Mapping) else row for row in rows]
    return out


def _row(row: Mapping[str, Any]) -> Mapping[str, Any]:
    inside = row.get("isolated")
    if isinstance(inside, Mapping) and not _NEW_ROW_NAMES.keys().isdisjoint(inside):
        row = {**row, "isolated": _renamed(inside, _NEW_ROW_NAMES)}
    return row if _NEW_ROW_NAMES.keys().isdisjoint(row) else _renamed(row, _NEW_ROW_NAMES)


def _renamed(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names.get(key, key): value for key, value in data.items()}
