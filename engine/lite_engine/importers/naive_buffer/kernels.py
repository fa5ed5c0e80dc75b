"""Kernel strings `op/alias/target/precision/layout` of `.nb` files, numbers from paddle_place.h."""

from __future__ import annotations

TARGETS = {
    0: "unknown", 1: "host", 2: "x86", 3: "cuda", 4: "arm", 5: "opencl", 6: "any", 7: "fpga",
    8: "npu", 9: "xpu", 10: "bm", 11: "mlu", 12: "rknpu", 13: "apu", 14: "huawei_ascend_npu",
    15: "imagination_nna", 16: "intel_fpga", 17: "metal", 18: "nnadapter",
}  # fmt: skip
PRECISIONS = {
    0: "unknown", 1: "float", 2: "int8", 3: "int32", 4: "any", 5: "fp16", 6: "bool", 7: "int64",
    8: "int16", 9: "uint8", 10: "fp64",
}  # fmt: skip
LAYOUTS = {
    0: "unknown", 1: "NCHW", 2: "any", 3: "NHWC", 4: "image", 5: "image_folder", 6: "image_nw",
    7: "metal_array", 8: "metal",
}  # fmt: skip


def kernel_text(kernel: str) -> str:
    """`conv2d/def/4/1/1` → `conv2d/def arm float NCHW`; other texts stay as they are."""
    parts = kernel.split("/")
    if len(parts) != 5 or not all(p.isdigit() for p in parts[2:]):
        return kernel
    words = [table.get(int(p), p) for table, p in zip((TARGETS, PRECISIONS, LAYOUTS), parts[2:])]
    return f"{parts[0]}/{parts[1]} {' '.join(words)}"
