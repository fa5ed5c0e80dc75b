"""Operators: one place each. Importing this package fills the registry."""

import importlib
import pkgutil

from ._agreement import differs
from ._core import (
    REQUIRED,
    OpDef,
    all_kernels,
    all_ops,
    define_op,
    find_op,
    get_op,
    op_names,
)
from ._custom import custom_op, is_custom
from ._helpers import residual_of
from ._infer import (
    check_shape,
    check_types,
    fold_constants,
    fold_node,
    has_sizes,
    infer_outputs,
    infer_types,
    is_specialised,
    nested_graphs,
    run_node,
    specialise,
)
from ._inferred import cost_of, infer_node, node_cost, of_kind
from ._records import Cost, KernelRef
from ._samples import Draw, Sample, samples
from ._sparse import share_of_zeros
from ._unknown import DEFINE_IT

for _module in pkgutil.iter_modules(__path__):
    if not _module.name.startswith("_"):
        importlib.import_module(f"{__name__}.{_module.name}")

__all__ = [
    "DEFINE_IT",
    "REQUIRED",
    "Cost",
    "Draw",
    "KernelRef",
    "OpDef",
    "Sample",
    "all_kernels",
    "all_ops",
    "check_shape",
    "check_types",
    "cost_of",
    "custom_op",
    "define_op",
    "differs",
    "find_op",
    "fold_constants",
    "fold_node",
    "get_op",
    "has_sizes",
    "infer_node",
    "infer_outputs",
    "infer_types",
    "is_custom",
    "is_specialised",
    "nested_graphs",
    "node_cost",
    "of_kind",
    "op_names",
    "residual_of",
    "run_node",
    "samples",
    "share_of_zeros",
    "specialise",
]
