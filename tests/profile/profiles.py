"""Profiles without a machine: what rules, differences and exports are tested on."""

from __future__ import annotations

from typing import Any

from lite_engine.profile import LayerTime, Profile


def layer(index: int, ms: float, **more: Any) -> LayerTime:
    """A convolution that takes `ms`; anything may be said otherwise."""
    known: dict[str, Any] = {
        "index": index, "name": f"conv{index}", "op": "Conv", "sources": [f"conv{index}"],
        "backend": "cpu", "kernel": "f32_conv2d_gemm__avx2_6x16", "why": "only kernel",
        "input_shapes": [[1, 16, 8, 8]], "output_shapes": [[1, 16, 8, 8]], "dtype": "f32",
        "median_ms": ms, "min_ms": ms, "p90_ms": ms, "ci_ms": 0.0, "share": 0.0,
        "macs": 1000, "flops": 2000, "bytes": 4000, "weight_bytes": 1000, "gflops": 1.0,
        "gbytes_per_s": 1.0,
    }  # fmt: skip
    return LayerTime(**{**known, **more})


def made_up(times: list[float], *, rest_ms: float = 0.1, **more: Any) -> Profile:
    """Layers of these times; `rest_ms` is outside them."""
    return of_layers([layer(i, ms) for i, ms in enumerate(times)], rest_ms=rest_ms, **more)


def of_layers(layers: list[LayerTime], *, rest_ms: float = 0.1, **more: Any) -> Profile:
    whole = sum(x.median_ms for x in layers)
    for i, row in enumerate(layers):
        row.share = row.median_ms / whole if whole else 0.0
        row.span_ms = [float(i), float(i) + row.median_ms]
    total = {"median": whole + rest_ms, "min": whole, "p90": whole + 2 * rest_ms}
    known: dict[str, Any] = {
        "model": "made-up", "backend": "x86", "device": "local", "threads": 2,
        "environment": {"cpu": "paper"}, "total_ms": total, "first_run_ms": 9.0, "layers": layers,
        "overhead_ms": 0.0, "peak_memory_bytes": 1, "sum_ms": whole,
        "runs": 20,
    }  # fmt: skip
    return Profile(**{**known, **more})
