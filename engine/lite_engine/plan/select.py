"""Which kernel runs a node, and why: a sorted table with reasons, never nested ifs."""

from __future__ import annotations

from collections.abc import Mapping

from lite_messages import tr

from ..errors import MISFIT, UnsupportedOperatorError
from ..ir import DType, Node, TypeInfo, Value
from ..ops import KernelRef, OpDef, get_op, is_custom, of_kind
from .model import Placement

#: Where a node goes when its backend has no kernel for it.
FALLBACK = {
    "opencl": ("opencl", "cpu", "reference"),
    "cpu": ("cpu", "reference"),
    "reference": ("reference",),
}

Tuning = Mapping[str, str]  # node name → kernel name


def kernels_for(
    node: Node,
    types: list[TypeInfo | None],
    backend: str,
    storage: DType = DType.F32,
    compute: DType = DType.F32,
    *,
    best: bool = False,
) -> tuple[list[KernelRef], list[str]]:
    """Kernels of a backend that can run a node, best first (the `best` alone, if that is enough);
    where there is none, why not.

    `storage` is the element type that float32 values have on that backend (f16 or f32),
    `compute` the one that kernels may compute in on float32 values.
    """

    op = get_op(node.op, node.name)

    def find(given: list[TypeInfo | None]) -> tuple[list[KernelRef], list[str], list[KernelRef]]:
        found = _kernels_for(op, node, given, backend, storage, compute, best)
        return *found, op.kernels.copy()  # held, so that no id of the key is used again

    if is_custom(op.name):
        return find(types)[:2]  # conditions of other people may look at anything
    key = backend, id(storage), id(compute), best, *map(id, op.kernels)
    usable, reasons, _ = of_kind(node, types, key, find)
    return usable.copy(), reasons.copy()


def _kernels_for(
    op: OpDef, node: Node, types: list[TypeInfo | None], backend: str, storage: DType,
    compute: DType, best: bool,
) -> tuple[list[KernelRef], list[str]]:  # fmt: skip
    refs = [k for k in op.kernels if k.backend == backend]
    if not refs:
        return [], [tr("{op} has no {backend} kernel", op=op.name, backend=backend)]
    first = next((t for t in types if t is not None), None)
    given = [
        v.dtype for v in (*node.inputs, *node.outputs) if v is not None and v.dtype is not None
    ]
    narrow = next((d for d in given if d.is_narrow), None)
    if narrow is not None:
        return [], [tr("no kernel takes {narrow}; the NumPy reference converts it", narrow=narrow)]
    missing = _runtime_attr(op, types)
    if missing:
        return [], [tr("{op}'s {missing} is computed at run time", op=op.name, missing=missing)]
    dtype = first.dtype if first else DType.F32
    wanted = storage if dtype is DType.F32 else dtype
    usable: list[KernelRef] = []
    others: list[tuple[KernelRef, bool, bool | str]] = []
    for ref in refs:
        if ref.precision is not None and ref.precision is not compute:
            continue
        takes = first is None or wanted in ref.dtypes
        answer = takes and _applies(op, ref, node, types)
        if answer is not True:
            others.append((ref, takes, answer))
            continue
        usable.append(ref)
        if best:
            break
    return usable, [] if usable else [_reason(*other, wanted) for other in others]


def _reason(ref: KernelRef, takes: bool, answer: bool | str, wanted: DType) -> str:
    """Why a kernel does not run a node: it does not take its type, or what its condition said."""
    if takes:
        return f"{ref.name}: {answer or tr('does not apply')}"
    return tr(
        "{kernel} takes {types}, not {given}", kernel=ref.name, types=_names(ref), given=wanted
    )


def _applies(op: OpDef, ref: KernelRef, node: Node, types: list[TypeInfo | None]) -> bool | str:
    """A kernel's condition. It takes for granted what the operator's types ask for, which a damaged
    file need not give: those are asked where it fails. Raises their error."""
    try:
        return True if ref.when is None else ref.when(node, types)
    except MISFIT:
        op.infer_types(node, types)
        raise  # nothing is wrong with the node


def _names(ref: KernelRef) -> str:
    return " ".join(sorted(d.value for d in ref.dtypes))


def _runtime_attr(op: OpDef, types: list[TypeInfo | None]) -> str | None:
    """Name of an input that kernels want as an attribute but that is not constant."""
    for i, info in enumerate(types if op.attr_inputs else ()):
        if info is not None and not info.is_const and op.input_name(i) in op.attr_inputs:
            return op.input_name(i)
    return None


def _is_empty(value: Value | None) -> bool:
    return value is not None and value.const is None and 0 in (value.shape or ())


def select(
    node: Node,
    types: list[TypeInfo | None],
    backend: str,
    *,
    tuned: str | None = None,
    storage: DType = DType.F32,
    compute: DType = DType.F32,
    refused: str = "",
) -> Placement:
    """The first kernel that can run the node, on this backend or the next one; `refused` says why
    this backend does not run it although it has a kernel.

    Raises UnsupportedOperatorError when not even the reference can.
    """
    device = backend == "opencl" and not refused
    if device and any(map(_is_empty, (*node.inputs, *node.outputs))):
        refused = tr("a value without elements has no buffer")
    given_up = [refused] if refused else []
    for candidate in FALLBACK[backend][len(given_up) :]:
        if candidate == "reference":
            break
        own = compute if candidate == backend else DType.F32
        usable, reasons = kernels_for(node, types, candidate, storage, own, best=not tuned)
        if not usable and storage is not DType.F32:
            usable, _ = kernels_for(node, types, candidate, best=not tuned)
        if usable:
            ref = next((k for k in usable if k.name == tuned), usable[0])
            why = tr("chosen for this layer") if ref.name == tuned else ref.why or tr("only kernel")
            if given_up:
                why = f"{'; '.join(given_up)}; {why}"
            return Placement(candidate, ref.name, why)
        given_up.append(reasons[0] if len(reasons) == 1 else "; ".join(reasons[-2:]))
    op = get_op(node.op, node.name)
    if op._reference is None:
        raise UnsupportedOperatorError(
            tr(
                "{node} cannot run on any backend ({given_up})",
                node=node.op,
                given_up="; ".join(given_up),
            ),
            (node.name,),
            where=node.name,
        )
    return Placement("reference", "numpy", "; ".join(given_up) or tr("NumPy reference"))
