"""One place per operator: schema, shape inference, NumPy reference, cost, layout, kernels.

`define_op` makes an OpDef and registers it; its decorators attach the functions. All of them get
the inputs positionally (absent optional ones as None) and every attribute as a keyword with its
default filled in, so a reference reads like the formula.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import MISFIT, ShapeError, UnsupportedOperatorError, not_computed
from ..ir import DType, Graph, Node, TypeInfo
from ._narrow import narrowed, widened
from ._records import Cost, KernelRef
from ._unknown import DEFINE_IT

#: How an operator sees memory; ARCHITECTURE section 3 says what each means.
LAYOUTS = ("rowmajor", "channels_last", "elementwise", "axis", "view")

#: Default of an attribute that must be given, and of one that must hold a Graph.
REQUIRED: Any = object()
SUBGRAPH: Any = object()

Infer = Callable[..., TypeInfo | Sequence[TypeInfo]]
Reference = Callable[..., Any]


@dataclass
class OpDef:
    """Everything the house knows about one operator."""

    name: str
    inputs: tuple[str, ...]  # "x" required, "b?" optional, "*xs" variadic (last only)
    outputs: tuple[str, ...]
    attrs: dict[str, Any]
    layout: str
    attr_inputs: tuple[str, ...]
    #: attributes and attr_inputs that name one axis or a list of axes
    axis_attrs: tuple[str, ...]
    #: attributes and attr_inputs with one number per axis of the first input (or a multiple:
    #: pads are begin…, end…). They are per listed axis, and not remapped, where the node also has
    #: `axes`.
    per_axis_attrs: tuple[str, ...]
    #: constant inputs that kernels bring into a form of their own (weights); of spatial ones: all
    packed_inputs: tuple[str, ...]
    source: str
    doc: str
    tolerance: float
    of_shapes: bool = False
    #: the values that an attribute may have, where they are few
    choices: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    #: a nonlinear function of one tensor, as stands behind layers
    activation: bool = False
    #: may be the `activation` of another operator
    fusable: bool = False
    clamps: bool = False  # an activation that the range of an integer output can stand for
    commutative: bool = False  # f(a, b) = f(b, a)
    random: bool = False  # gives other numbers every time: never folded, never shared
    #: inputs whose elements stand in its outputs, or are added to others there; views need not say
    carries: slice | None = None
    dynamic: bool = False  # makes bytes of its float input as it runs
    blocks: bool = False  # computes in floats with packed weights: MatMulNBits' inputs and attrs
    training: bool = False  # part of training: a loss, an optimizer's step
    #: inputs that are weights → the axis of their output channels (of their inputs', where a
    #: product has its weight first)
    weights: Mapping[int, int] = field(default_factory=dict)
    #: bounds of every output element, whatever the input
    output_range: tuple[float, float] = (-math.inf, math.inf)
    #: what passes/quantize_fuse_qdq makes of DQ→op→Q: "view" and "keep" pass bytes on (moved, or
    #: chosen among), "table" looks each up; other words name its function
    integer_form: str = ""
    #: how quantize/select treats it: "weights" begins int8, "operands" too with its first three
    #: inputs (attention), "joins" where an input is int8 already, "follows" its input
    quantized: str = ""
    #: what passes/layout_sink_transposes makes of a Transpose before it: "same" moves it behind,
    #: "axis" turns the attribute too; other words name its function
    transpose_rule: str = ""
    postprocess: str = ""  # at a model's end: makes "scores" of raw results, or a "choice"
    kernels: list[KernelRef] = field(default_factory=list)
    _samples: Callable[..., Iterable[Any]] | None = None
    _infer: Infer | None = None
    _reference: Reference | None = None
    _cost: Callable[..., Cost] | None = None
    _wants_outputs: bool = False

    # ---- decorators
    def infer(self, fn: Infer) -> Infer:
        """Inputs' TypeInfos → output TypeInfo(s). Raises ShapeError."""
        self._infer = fn
        self.__dict__.pop("_infer_counts", None)  # of an earlier one
        return fn

    def reference(self, fn: Reference) -> Reference:
        """Inputs' arrays → output array(s). A keyword `n_outputs` in its signature gets the number
        of outputs the node has."""
        self._reference = fn
        if not isinstance(fn, np.ufunc):  # older ones have no signature
            self._wants_outputs = "n_outputs" in inspect.signature(fn).parameters
        self.doc = self.doc or (fn.__doc__ or "").strip()
        return fn

    def cost(self, fn: Callable[..., Cost]) -> Callable[..., Cost]:
        """Inputs' TypeInfos → Cost."""
        self._cost = fn
        return fn

    def samples(self, fn: Callable[..., Iterable[Any]]) -> Callable[..., Iterable[Any]]:
        """`Draw` → calls for the tests of its kernels (`Sample`), where the schema does not say
        enough to make them."""
        self._samples = fn
        return fn

    def kernel(
        self,
        backend: str,
        name: str,
        *,
        dtype: str = "f32",
        when: Callable[[Node, list[TypeInfo | None]], bool | str] | None = None,
        why: str = "",
        rank: int = 0,
        accepts_pitch: bool = False,
        accepts_halo: bool = False,
        in_place: bool = False,
        by_rows: bool = False,
        precision: str = "",
        mixed: str | None = None,
        code: str = "",
    ) -> None:
        """Registers a kernel. `dtype` lists the element types of the first input it takes, any of
        which outputs and the inputs named in `mixed` may have, too; `code` is the operator's own
        part of a kernel that several share, in that kernel's language.

        A kernel with a `precision` computes in that type on values of `dtype`, and only where a
        plan asks for it.
        """
        dtypes = frozenset(DType(d) for d in dtype.split(","))
        computes = DType(precision) if precision else None
        ref = KernelRef(
            self.name, backend, name, dtypes, when, why, rank, accepts_pitch, accepts_halo,
            in_place, by_rows, computes, None if mixed is None else tuple(mixed.split()), code,
        )  # fmt: skip
        self.kernels.append(ref)
        self.kernels.sort(key=lambda k: k.rank)

    # ---- properties
    @property
    def takes_activation(self) -> bool:
        """Whether it can compute a function of its result."""
        return "activation" in self.attrs

    # ---- schema
    def packs(self, index: int) -> bool:
        """Whether kernels pack this constant input themselves, whatever stores activations."""
        name = self.input_name(index)
        if self.layout == "channels_last":
            return index > 0 and name != "residual"
        return name in self.packed_inputs

    @functools.cached_property
    def _needed(self) -> list[int]:  # indices of the inputs that may not be absent
        return [i for i, name in enumerate(self.inputs) if name[-1:] != "?" and name[:1] != "*"]

    @functools.cached_property
    def _without_default(self) -> list[str]:  # attributes that a node has to give
        return [k for k, v in self.attrs.items() if v is REQUIRED or v is SUBGRAPH]

    @functools.cached_property
    def _infer_counts(self) -> bool:  # whether `infer` wants the number of the node's outputs
        return self._infer is not None and "n_outputs" in inspect.signature(self._infer).parameters

    @functools.cached_property
    def is_variadic(self) -> bool:
        return bool(self.inputs) and self.inputs[-1].startswith("*")

    @functools.cached_property
    def gapless(self) -> bool:
        """Whether it takes any number of inputs of one kind, none of them absent."""
        return self.inputs[:1] != () and self.inputs[0].startswith("*") and not self.has_subgraphs

    @functools.cached_property
    def has_subgraphs(self) -> bool:
        return any(default is SUBGRAPH for default in self.attrs.values())

    def input_name(self, index: int) -> str:
        """`x`, `w`, … of the schema for input `index`."""
        if self.is_variadic and index >= len(self.inputs) - 1:
            return self.inputs[-1].lstrip("*")
        return self.inputs[index].rstrip("?") if index < len(self.inputs) else f"input{index}"

    def filled_attrs(self, node: Node) -> dict[str, Any]:
        """The node's attributes with defaults. Raises UnsupportedOperatorError for unknown or
        missing ones, ShapeError for a subgraph that is none."""
        if not node.attrs.keys() <= self.attrs.keys():
            unknown = next(k for k in node.attrs if k not in self.attrs)
            has = ", ".join(self.attrs) or "none"
            message = tr(
                "{name} has no attribute {unknown!r} (it has: {attrs})",
                name=self.name,
                unknown=unknown,
                attrs=has,
            )
            raise UnsupportedOperatorError(message, (node.name,), where=node.name)
        out = {**self.attrs, **node.attrs}
        for name in self._without_default:
            if out[name] is REQUIRED or out[name] is SUBGRAPH:
                raise UnsupportedOperatorError(
                    tr("{name} needs attribute {missing!r}", name=self.name, missing=name),
                    (node.name,),
                    where=node.name,
                )
            if self.attrs[name] is SUBGRAPH and not isinstance(out[name], Graph):
                raise ShapeError(
                    tr("{name}'s {attribute} is not a graph", name=self.name, attribute=name),
                    where=node.name,
                )
        return out

    def arguments(self, given: Sequence[Any], where: str) -> list[Any]:
        """Positional arguments padded with None. Raises ShapeError on a wrong count."""
        args = list(given)
        if not self.is_variadic:
            if len(args) > len(self.inputs):
                raise ShapeError(
                    tr(
                        "{name} takes {inputs} inputs, got {count}",
                        name=self.name,
                        inputs=len(self.inputs),
                        count=len(args),
                    ),
                    where=where,
                )
            args += [None] * (len(self.inputs) - len(args))
        for i in self._needed:
            if i >= len(args) or args[i] is None:
                raise ShapeError(
                    tr(
                        "{name} needs its input {input_name!r}",
                        name=self.name,
                        input_name=self.input_name(i),
                    ),
                    where=where,
                )
        if self.gapless and any(a is None for a in args):
            raise ShapeError(tr("{name} has a gap among its inputs", name=self.name), where=where)
        return args

    # ---- use
    def infer_types(self, node: Node, types: Sequence[TypeInfo | None]) -> list[TypeInfo]:
        """Output types of a node. Raises ShapeError that names the node."""
        if self._infer is None:
            raise UnsupportedOperatorError(
                tr("{name} has no shape inference", name=self.name), (node.name,), where=node.name
            )
        attrs = self.filled_attrs(node)
        args = self.arguments(types, node.name)
        if self._infer_counts:
            attrs["n_outputs"] = len(node.outputs)
        try:
            out = self._infer(*args, **attrs)
        except ShapeError as error:
            shapes = ", ".join("-" if t is None else str(t) for t in types)
            raise error.within(
                tr("{layer} ({op} of {shapes})", layer=node.name, op=self.name, shapes=shapes)
            ) from None
        except MISFIT as error:
            raise ShapeError(error, where=f"{node.name} ({self.name})") from error
        return [out] if isinstance(out, TypeInfo) else list(out)

    def run(self, node: Node, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """The reference result of a node. Raises UnsupportedOperatorError, ShapeError."""
        if self._reference is None:
            raise UnsupportedOperatorError(
                tr("{name} has no reference", name=self.name), (node.name,), where=node.name
            )
        attrs = self.filled_attrs(node)
        args = self.arguments(widened(node, arrays), node.name)
        if self._wants_outputs:
            attrs["n_outputs"] = len(node.outputs)
        try:
            with np.errstate(all="ignore"):
                out = self._reference(*args, **attrs)
        except (MemoryError, *MISFIT) as error:
            raise not_computed(error, f"{node.name} ({self.name})") from error
        outs = [np.asarray(o) for o in (out if isinstance(out, (tuple, list)) else (out,))]
        return narrowed(node, outs)

    def cost_of(
        self, node: Node, types: Sequence[TypeInfo | None], outs: Sequence[TypeInfo]
    ) -> Cost:
        """Work of a node; one flop per output element when the operator states no cost. Raises
        ShapeError where the types do not fit the operator."""
        moved = sum([t.nbytes for t in (*types, *outs) if t is not None and t.is_static])
        if self._cost is None:
            stated = Cost(flops=sum(t.size for t in outs if t.is_static))
        else:
            args, attrs = self.arguments(types, node.name), self.filled_attrs(node)
            try:
                stated = self._cost(*args, **attrs)
            except MISFIT as error:
                raise ShapeError(error, where=f"{node.name} ({self.name})") from error
        return Cost(
            stated.macs,
            2 * stated.macs + stated.flops,
            moved if stated.bytes is None else stated.bytes,
        )


_REGISTRY: dict[str, OpDef] = {}


def define_op(
    name: str,
    *,
    inputs: str,
    outputs: str = "y",
    attrs: dict[str, Any] | None = None,
    layout: str = "rowmajor",
    attr_inputs: tuple[str, ...] = (),
    axis_attrs: tuple[str, ...] = (),
    per_axis_attrs: tuple[str, ...] = (),
    packed_inputs: tuple[str, ...] = (),
    source: str = "",
    doc: str = "",
    tolerance: float = 1e-4,
    of_shapes: bool = False,
    choices: Mapping[str, tuple[Any, ...]] | None = None,
    **properties: Any,
) -> OpDef:
    """Registers an operator. `inputs` is a list of words: `x`, `b?` optional, `*xs` variadic.

    `axis_attrs` and `per_axis_attrs` are what a change of layout must remap: names of attributes or
    of attr_inputs. `tolerance` is the relative L2 error that a float32 kernel may have against the
    reference. `of_shapes`: its inputs' shapes decide the result, so that it folds with them.
    `choices` lists the values of attributes that have few; `properties` are further fields of
    OpDef.
    """
    if name in _REGISTRY:
        raise ValueError(f"operator {name} is defined twice")
    if layout not in LAYOUTS:
        raise ValueError(f"operator {name}: layout {layout!r} is not one of {LAYOUTS}")
    op = OpDef(
        name,
        tuple(inputs.split()),
        tuple(outputs.split()),
        dict(attrs or {}),
        layout,
        tuple(attr_inputs),
        tuple(axis_attrs),
        tuple(per_axis_attrs),
        tuple(packed_inputs),
        source,
        doc,
        tolerance,
        of_shapes,
        choices or {},
        **properties,
    )
    _REGISTRY[name] = op
    return op


def find_op(name: str) -> OpDef | None:
    return _REGISTRY.get(name)


def get_op(name: str, where: str = "") -> OpDef:
    """Raises UnsupportedOperatorError for an operator that is not defined."""
    op = _REGISTRY.get(name)
    if op is None:
        prefix = f"{where}: " if where else ""
        raise UnsupportedOperatorError(
            tr("{prefix}operator {name} is not known", prefix=prefix, name=name),
            (where,) if where else (),
            fix=DEFINE_IT if "::" in name else tr("see `lite info MODEL` for what can replace it"),
        )
    return op


def all_ops() -> list[OpDef]:
    return [_REGISTRY[name] for name in sorted(_REGISTRY)]


def op_names(which: Callable[[OpDef], Any]) -> tuple[str, ...]:
    """Names of the operators that have a property: `op_names(lambda op: op.fusable)`."""
    return tuple(op.name for op in all_ops() if which(op))


def all_kernels(backend: str | None = None) -> list[KernelRef]:
    """Every kernel of the registry, for tests, tables and benchmarks."""
    return [k for op in all_ops() for k in op.kernels if backend in (None, k.backend)]
