"""Gives every operator its kernel, and puts the copies between kernels that differ.

A variable is in one state at a time: `host` (float32, NCHW), `fp16` (arm half precision), `image`
or `folder` (OpenCL images). Weights stay on the host: OpenCL kernels upload them themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_messages import tr

from ...errors import UsageError
from ...importers.paddle.program import Op, Program, Var
from ...ir import DType
from .kernels import kernel_for, need_kernel

KERNEL_ATTR = "__@kernel_type_attr@__"
TARGETS = ("arm", "x86", "opencl")
#: (from, to) → operator and alias/target/precision/layout of each step
_UP, _DOWN = ("io_copy", "host_to_device/5/4/2"), ("io_copy", "device_to_host/5/4/2")
_STEPS = {
    ("host", "fp16"): [("calib", "fp32_to_fp16/4/5/1")],
    ("fp16", "host"): [("calib", "fp16_to_fp32/4/5/1")],
    ("host", "image"): [_UP, ("layout", "NCHW_to_ImageDefault/5/4/4")],
    ("host", "folder"): [_UP, ("layout", "NCHW_to_ImageFolder/5/4/5")],
    ("image", "folder"): [("layout", "ImageDefault_to_ImageFolder/5/4/5")],
    ("folder", "image"): [("layout", "ImageFolder_to_ImageDefault/5/4/4")],
    ("image", "host"): [("layout", "ImageDefault_to_NCHW/5/4/1"), _DOWN],
    ("folder", "host"): [("layout", "ImageFolder_to_NCHW/5/4/1"), _DOWN],
}
_IMAGE_RANK = 4


@dataclass(frozen=True)
class Choice:
    """A kernel and the state its inputs and outputs have."""

    kernel: str
    state: str


def place(program: Program, targets: Sequence[str], *, fp16: bool = False) -> None:
    """Rewrites the main block. Raises UnsupportedOperatorError, UsageError."""
    unknown = [t for t in targets if t not in TARGETS]
    if unknown or not targets:
        raise UsageError(
            tr(
                "targets {targets}: choose from {known}",
                targets=",".join(targets) or "(none)",
                known=", ".join(TARGETS),
            )
        )
    _Placer(program, targets, fp16).run()


class _Placer:
    def __init__(self, program: Program, targets: Sequence[str], fp16: bool) -> None:
        self.block = program.blocks[0]
        self.images = "opencl" in targets
        # what OpenCL cannot run runs on the CPU that the list names; arm unless it says x86
        self.base = next((t for t in targets if t != "opencl"), "arm")
        self.fp16 = fp16 and self.base == "arm" and not self.images
        self.states: dict[str, str] = {}
        self.copies: dict[tuple[str, str], str] = {}
        self.ops: list[Op] = []

    def run(self) -> None:
        for op in self.block.ops:
            choice = self.choose(op)
            op.attrs[KERNEL_ATTR] = choice.kernel
            for slot, names in op.inputs.items():
                op.inputs[slot] = [self.converted(n, choice) for n in names]
            self.ops.append(op)
            for name in (n for names in op.outputs.values() for n in names):
                self.states[name] = self.state_of(name, choice)
            if choice.state == "fp16" and op.type != "sparse_conv2d":  # its kernel converts them
                weights = [n for ns in op.inputs.values() for n in ns if self.var(n).persistable]
                op.attrs.update({f"{n}_fp16": "fp16" for n in weights})
        self.block.ops = self.ops

    def var(self, name: str) -> Var:
        return self.block.vars[name]

    def choose(self, op: Op) -> Choice:
        kernel = kernel_for(op.type, "opencl") if self.images else None
        if kernel is not None and self._fits_images(op):
            return Choice(kernel, "folder" if kernel.endswith("/5") else "image")
        kernel = need_kernel(op.type, self.base, fp16=self.fp16)
        return Choice(kernel, "fp16" if kernel.split("/")[3] == "5" else "host")

    def _fits_images(self, op: Op) -> bool:
        """Images hold float32 activations of at most four dimensions."""
        names = [n for slots in (op.inputs, op.outputs) for ns in slots.values() for n in ns]
        tensors = [self.var(n) for n in names if not self.var(n).persistable]
        return all(t.dtype is DType.F32 and len(t.shape or ()) <= _IMAGE_RANK for t in tensors)

    def state_of(self, name: str, choice: Choice) -> str:
        """Image folders are for matrices: tensors of more dimensions lie in the plain image."""
        if choice.state == "folder" and len(self.var(name).shape or ()) > 2:
            return "image"
        return choice.state

    def converted(self, name: str, choice: Choice) -> str:
        """The variable itself, or its copy in the state that the kernel wants."""
        if self.var(name).persistable or name not in self.states:
            return name
        have, want = self.states[name], self.state_of(name, choice)
        if have == want or self.var(name).dtype is not DType.F32:
            return name
        if (name, want) not in self.copies:
            self.copies[name, want] = self.convert(name, have, want)
        return self.copies[name, want]

    def convert(self, name: str, have: str, want: str) -> str:
        source = self.var(name)
        for kind, kernel in _STEPS[have, want]:
            copy = f"{name}/{kind}_{kernel.split('/')[0]}"
            self.block.vars[copy] = Var(copy, dtype=source.dtype, shape=source.shape)
            attrs: dict[str, object] = {KERNEL_ATTR: f"{kind}/{kernel}"}
            if kind != "calib":
                attrs["process_type"] = 2
            self.ops.append(Op(kind, {"Input": [name]}, {"Out": [copy]}, attrs))
            name = copy
        return name
