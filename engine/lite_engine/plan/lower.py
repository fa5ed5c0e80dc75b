"""Graph → steps: layouts, kernels, and every copy, cast and layout change made visible."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from lite_messages import tr

from ..ir import DType, Graph, Node, TypeInfo, Value, captured
from ..ir.bfloat16 import bf16_to_f32
from ..ops import Cost, OpDef, cost_of, get_op
from . import layout as lay
from .accelerate import Sharing
from .model import Layout, Placement, Plan, PlanTensor, Step, channels_last, logical_dims, row_major
from .prelude import host_prelude
from .select import select
from .tensors import DEVICE, HOST, Key, TensorPool


class Lowering:
    """One walk over a specialised graph. `plan` is the result; `run()` fills it."""

    def __init__(
        self,
        graph: Graph,
        backend: str,
        *,
        number: DType = DType.F32,
        tuning: Mapping[str, str] | None = None,
        overrides: Mapping[str, str] | None = None,
        numbers: Mapping[str, DType] | None = None,
        asked: Collection[str] = (),
        faults: Mapping[str, str] | None = None,
        refused: Mapping[str, str] | None = None,
        sharing: Sharing | None = None,
    ) -> None:
        self.graph = graph
        self.faults = dict(faults or {})
        self.backend = backend
        self.number = number
        self.tuning = tuning or {}
        self.overrides = overrides or {}
        self.numbers = numbers or {}
        self.asked = {*self.overrides, *asked}
        self.refused = refused or {}
        self.sharing = sharing or Sharing()
        self.plan = Plan(backend)
        self.pool = TensorPool(self.plan)
        self.hosted: dict[str, str] = {}
        self._lifted: list[Value] = []  # keeps helper values alive: tensors are found by id()

    def run(self) -> Plan:
        for value in self.graph.inputs:
            index = self.pool.new(value.name, value, row_major(len(value.shape or ())), "input")
            self.pool.register(value, HOST, index)
            self.plan.inputs.append(index)
        if self.backend == "opencl":
            self.hosted = host_prelude(self.graph, self._runs_here)
        for node in self.graph.nodes:
            if node.name in self.sharing.taken:
                self._node_step(node, self._accelerated(node))
            elif not (self.backend != "reference" and self._view(node)):
                self._step(node)
            if node.name in self.faults:
                self._plant(node, self.faults[node.name])
        for value in self.graph.outputs:
            self._output(value)
        return self.plan

    # ---- nodes without a step

    def _view(self, node: Node) -> bool:
        """Reshape, Transpose and the like become aliases. False when the node needs a step."""
        if get_op(node.op, node.name).layout != "view" or len(node.outputs) != 1:
            return False
        value, out = node.inputs[0], node.output
        if value is None or value.dtype is None or not value.type.is_static:
            return False
        if out.dtype != value.dtype or not out.type.is_static or self._dynamic(value):
            return False
        space, source_layout, dtype = self._home(value)
        shape, out_shape = logical_dims(value), logical_dims(out)
        if node.op == "Transpose":
            perm = node.attrs.get("perm") or list(range(len(shape)))[::-1]
            source = self.pool.want(value, space, source_layout, dtype)
            target = lay.transposed(source_layout, perm)
        elif node.op == "Unsqueeze" and (axes := lay.inserted_axes(out_shape, node)) is not None:
            source = self.pool.want(value, space, source_layout, dtype)
            target = lay.unsqueezed(source_layout, axes)
        elif node.op == "Identity" or out_shape == shape:
            source = self.pool.want(value, space, source_layout, dtype)
            target = source_layout
        else:
            wanted, target = lay.reshaped(shape, out_shape, source_layout)
            if not lay.same_bytes(shape, source_layout, wanted) and self._read_on_device(out):
                space = DEVICE  # which turns it sooner
            source = self.pool.want(value, space, wanted, dtype)
        dims = lay.physical_dims(out_shape, target)
        self.pool.register(out, space, self.pool.alias(out.name, source, dims, target))
        return True

    def _home(self, value: Value) -> Key:
        """Where a value lies first; a constant lies on the host."""
        if value.const is not None:
            return HOST, row_major(value.const.ndim), value.type.dtype
        return next(iter(self.pool.tensors[id(value)]))

    def _read_on_device(self, value: Value) -> bool:
        """Whether the first step that reads it, or a view of it, is one of the device's."""
        while value.readers and self.backend == "opencl":
            node = value.readers[0]
            if get_op(node.op, node.name).layout != "view" or len(node.outputs) != 1:
                return self._runs_here(node)
            value = node.output
        return False

    def _runs_here(self, node: Node) -> bool:
        """Whether it is placed on the plan's own backend."""
        types = [None if v is None or v.dtype is None else v.type for v in node.inputs]
        return self._place(node, types).backend == self.backend

    def _dynamic(self, value: Value) -> bool:
        return value.const is None and id(value) not in self.pool.tensors

    # ---- nodes with a step

    def _step(self, node: Node) -> None:
        types = [None if v is None or v.dtype is None else v.type for v in node.inputs]
        placement = self._place(node, types)
        if placement.backend == "reference":
            self._node_step(node, placement)
            return
        op = get_op(node.op, node.name)
        space = DEVICE if placement.backend == "opencl" else HOST
        chosen = next(
            k for k in op.kernels if (k.backend, k.name) == (placement.backend, placement.kernel)
        )
        storage = self._storage(node)
        storage = storage if storage in chosen.dtypes else DType.F32
        layout = lay.of_step(op, node, self.pool.natural)
        attrs, attr_inputs = self._attributes(op, node)
        inputs = [
            -1
            if v is None or i in attr_inputs
            else self._input(op, node, i, v, space, layout, storage)
            for i, v in enumerate(node.inputs)
        ]
        while inputs and inputs[-1] == -1:
            inputs.pop()
        outputs = []
        for value in node.outputs:
            out_layout = lay.of_output(op, value, layout, attrs)
            dtype = storage if value.dtype is DType.F32 else value.type.dtype
            outputs.append(
                self.pool.register(
                    value, space, self.pool.new(value.name, value, out_layout, "arena", dtype)
                )
            )
        if op.layout in ("axis", "channels_last"):
            attrs = lay.remap_attrs(op, attrs, layout)
        cost = cost_of(node, types, [v.type for v in node.outputs])
        step = _step(node, placement, inputs, outputs, attrs, cost)
        step.in_place = chosen.in_place
        self.pool.emit(step)

    def _place(self, node: Node, types: list[TypeInfo | None]) -> Placement:
        if self.backend == "reference":
            return Placement("reference", "numpy", tr("NumPy reference"))
        for value in (*node.inputs, *node.outputs):
            if value is None or value.const is not None:
                continue
            if value.dtype is None or not value.type.is_static:
                return Placement(
                    "reference", "numpy", tr("the shape of {name} depends on data", name=value.name)
                )
        if any(True for _ in node.subgraphs()):
            return Placement(
                "reference", "numpy", tr("{node} runs its subgraph step by step", node=node.op)
            )
        hosted = self.hosted.get(node.name)
        where = self.overrides.get(node.name, "cpu" if hosted else self.backend)
        placement = select(
            node,
            types,
            where,
            tuned=self.tuning.get(node.name),
            storage=self._storage(node),
            compute=self._number(node) if where == self.backend else DType.F32,
            refused=self.refused.get(node.name, "") if where == self.backend else "",
        )
        for first in (hosted, self.sharing.left.get(node.name)):
            placement.why = f"{first}; {placement.why}" if first else placement.why
        if node.name in self.asked:
            placement.why = tr("overridden; {why}", why=placement.why)
        return placement

    def _accelerated(self, node: Node) -> Placement:
        name = self.sharing.taken[node.name]
        return Placement(name, name, tr("part of a sub-graph for {name}", name=name))

    def _number(self, node: Node) -> DType:
        """What a layer's float values are computed in."""
        return self.numbers.get(node.name, self.number)

    def _storage(self, node: Node) -> DType:
        """What they are stored in: with fp16 all of them; with bf16 storage.py chooses later."""
        return DType.F16 if self._number(node) is DType.F16 else DType.F32

    def _input(
        self,
        op: OpDef,
        node: Node,
        i: int,
        value: Value,
        space: str,
        layout: Layout,
        storage: DType,
    ) -> int:
        dtype = storage if value.dtype is DType.F32 else value.type.dtype
        if value.const is not None and op.packs(i):
            dtype = value.type.dtype
        rank = len(value.shape or ())
        wanted = row_major(rank)
        if op.layout == "elementwise" and layout != row_major(len(layout)):
            return self._broadcast(value, space, layout, dtype)
        if op.layout in ("axis", "elementwise") and rank == len(layout):
            wanted = layout
        elif op.layout == "channels_last" and (i == 0 or op.input_name(i) == "residual"):
            wanted = channels_last(rank)
        return self.pool.want(value, space, wanted, dtype)

    def _broadcast(self, value: Value, space: str, layout: Layout, dtype: DType) -> int:
        """An operand brought to the rank and order of the others: leading axes of 1, then
        permuted."""
        rank = len(value.shape or ())
        if rank == len(layout) or value.type.size == 1:
            return self.pool.want(
                value, space, layout if rank == len(layout) else row_major(rank), dtype
            )
        shape = (1,) * (len(layout) - rank) + logical_dims(value)
        lifted = Value(f"{value.name}:lifted", value.dtype, shape)
        if value.const is not None:
            lifted.const = value.const.reshape(shape)
        else:
            source = self.pool.want(value, space, row_major(rank), dtype)
            target = row_major(len(shape))
            self.pool.register(lifted, space, self.pool.alias(lifted.name, source, shape, target))
        self._lifted.append(lifted)
        return self.pool.want(lifted, space, layout, dtype)

    def _attributes(self, op: OpDef, node: Node) -> tuple[dict[str, Any], set[int]]:
        """Attributes with constant inputs among them, and which inputs those were."""
        attrs = {k: v for k, v in op.filled_attrs(node).items() if not isinstance(v, Graph)}
        taken = set()
        for i, value in enumerate(node.inputs):
            if value is not None and value.const is not None and op.input_name(i) in op.attr_inputs:
                bf16 = value.dtype is DType.BF16
                array = bf16_to_f32(value.const) if bf16 else value.const
                flat = array.ravel().tolist()
                attrs[op.input_name(i)] = flat if array.ndim else flat[0]
                taken.add(i)
        return attrs, taken

    def _node_step(self, node: Node, placement: Placement) -> None:
        """A whole node on the host's memory, row-major, in the graph's own types: for NumPy, or as
        part of an accelerator's sub-graph."""
        inputs = []
        for value in node.inputs:
            inputs.append(-1 if value is None else self._reference_input(value))
        inputs += [self._reference_input(value) for value in captured(node)]
        outputs = [self._reference_output(value) for value in node.outputs]
        types = [None if v is None or v.dtype is None else v.type for v in node.inputs]
        static = all(v.dtype is not None and v.type.is_static for v in node.outputs)
        known = static and all(t is None or t.is_static for t in types)
        cost = Cost()
        if known and not any(True for _ in node.subgraphs()):
            cost = cost_of(node, types, [v.type for v in node.outputs])
        self.pool.emit(_step(node, placement, inputs, outputs, {}, cost))

    def _reference_input(self, value: Value) -> int:
        if value.const is None and (value.dtype is None or not value.type.is_static):
            return next(iter(self.pool.tensors[id(value)].values()))
        return self.pool.want(value, HOST, row_major(len(value.shape or ())), value.type.dtype)

    def _reference_output(self, value: Value) -> int:
        known = value.dtype is not None and value.type.is_static
        dims = logical_dims(value) if known else ()
        tensor = PlanTensor(
            0,
            value.name,
            value.dtype or DType.F32,
            dims,
            row_major(len(dims)),
            "arena",
            shape_known=known,
            open_shape=value.shape,
        )
        return self.pool.register(value, HOST, self.pool.add(tensor))

    def _plant(self, node: Node, kind: str) -> None:
        """A host step that spoils the layer's output; every reader gets the spoilt one."""
        value = node.output
        layout = row_major(len(value.shape or ()))
        dtype = value.type.dtype
        source = self.pool.want(value, HOST, layout, dtype)
        index = self.pool.new(f"{value.name}:fault", value, layout, "arena", dtype)
        bias = node.input(2)
        attrs = {"kind": kind, "bias": None if bias is None else bias.const}
        self.pool.emit(
            Step(
                0,
                f"fault {node.name}",
                "Fault",
                "planted_fault",
                tr("planted: {kind}", kind=kind),
                "reference",
                [source],
                [index],
                attrs,
            )
        )
        self.pool.tensors[id(value)] = {}
        del self.plan.tensor_of[value.name]
        self.pool.register(value, HOST, index)

    # ---- results

    def _output(self, value: Value) -> None:
        if value.const is None and (value.dtype is None or not value.type.is_static):
            self.plan.outputs.append(next(iter(self.pool.tensors[id(value)].values())))
            return
        layout = row_major(len(value.shape or ()))
        index = self.pool.want(value, HOST, layout, value.type.dtype)
        tensor = self.plan.tensors[index]
        root = self.plan.root(index)
        if root.role != "arena" or root.index not in self.pool.made or tensor.role == "output":
            out = self.pool.new(f"{value.name}:output", value, layout, "output")
            self.pool.emit(
                Step(
                    0,
                    f"Copy {value.name}",
                    "Relayout",
                    "copy_relayout",
                    tr("into the output's own memory"),
                    self.pool._host_backend(),
                    [index],
                    [out],
                    {"perm": list(layout)},
                )
            )
            index = out
        tensor = self.plan.tensors[index]
        tensor.role = "output"
        if tensor.name != value.name:  # callers know it by the value's name
            made = self.plan.tensors[self.plan.tensor_of[value.name]]
            if made.role == "arena":
                made.name = f"{value.name}:inner"
            tensor.name = value.name
        self.plan.outputs.append(index)


def _step(
    node: Node,
    placement: Placement,
    inputs: list[int],
    outputs: list[int],
    attrs: dict[str, Any],
    cost: Cost,
) -> Step:
    """The step of a node where it was placed; the pool numbers it."""
    return Step(
        0,
        node.name,
        node.op,
        placement.kernel,
        placement.why,
        placement.backend,
        inputs,
        outputs,
        attrs,
        node.sources,
        node,
        cost.macs,
        cost.flops,
        cost.bytes or 0,
    )
