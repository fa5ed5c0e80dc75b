"""What a device's driver says of it, beyond what the builders of launches need."""

from __future__ import annotations

from typing import Any

from .device import Device

#: Numbers of clGetDeviceInfo, under pyopencl's names.
_LIMITS = (
    "address_bits", "double_fp_config", "global_mem_cache_size", "global_mem_cacheline_size",
    "global_mem_size", "half_fp_config", "host_unified_memory", "image2d_max_height",
    "image2d_max_width", "image_max_buffer_size", "local_mem_size", "local_mem_type",
    "max_clock_frequency", "max_compute_units", "max_constant_args", "max_constant_buffer_size",
    "max_mem_alloc_size", "max_parameter_size", "max_work_group_size", "max_work_item_dimensions",
    "mem_base_addr_align", "native_vector_width_char", "native_vector_width_float",
    "native_vector_width_half", "preferred_vector_width_float", "preferred_vector_width_half",
    "profiling_timer_resolution", "single_fp_config",
)  # fmt: skip


def limits(device: Device) -> dict[str, int]:
    """By name; what a driver refuses to say is left out."""
    found = {name: _asked(device, name) for name in _LIMITS}
    sizes = _asked(device, "max_work_item_sizes") or []
    found |= {f"max_work_item_size_{i}": size for i, size in enumerate(sizes)}
    return {name: int(value) for name, value in found.items() if value is not None}


def extensions(device: Device) -> list[str]:
    return sorted(set(str(_asked(device, "extensions") or "").split()))


def language(device: Device) -> str:
    """The newest OpenCL C that its compiler knows."""
    return str(_asked(device, "opencl_c_version") or "").strip()


def _asked(device: Device, name: str) -> Any:
    try:
        return getattr(device.device, name)
    except (AttributeError, device.cl.Error):
        return None
