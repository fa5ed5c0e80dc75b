"""What a node takes on this host's CPU, estimated: the larger of its work and its traffic.

Rates are those of one ordinary core of 2020, so that a plan does not depend on the machine's mood:
they decide which layers are worth a copy, not how long a network takes. `lite profile` measures.
"""

from __future__ import annotations

from ..ir import Node
from ..ops import cost_of, get_op
from .select import kernels_for

FLOPS_PER_MS = 2e7
BYTES_PER_MS = 8e6
#: Calling a kernel, and calling NumPy, which also computes an operator several times slower.
STEP_MS, NUMPY_STEP_MS, NUMPY_FACTOR = 0.002, 0.02, 8.0


def host_ms(node: Node) -> float:
    """Estimated ms of a node of a specialised graph; 0 for one that only renames bytes."""
    types = [None if v is None or v.dtype is None else v.type for v in node.inputs]
    op = get_op(node.op, node.name)
    if op.layout == "view":
        return 0.0
    cost = cost_of(node, types, [v.type for v in node.outputs])
    ms = max(cost.flops / FLOPS_PER_MS, (cost.bytes or 0) / BYTES_PER_MS)
    if kernels_for(node, types, "cpu", best=True)[0]:
        return STEP_MS + ms
    return NUMPY_STEP_MS + NUMPY_FACTOR * ms
