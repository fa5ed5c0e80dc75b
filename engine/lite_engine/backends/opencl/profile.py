"""What the builders of launches know of a device: plain data, so that launches for any device are
made, compiled and written into files without it."""

from __future__ import annotations

from dataclasses import dataclass, replace

BUILD_OPTIONS = ("-cl-mad-enable",)


@dataclass(frozen=True)
class DeviceProfile:
    """A device, or a class of devices. `lanes` floats fill a vector register of a CPU (4, 8 or 16);
    `images` is the largest image2d in (columns, rows), (0, 0) without images; `local_memory` is
    bytes for each work-group."""

    kind: str  # "GPU" | "CPU" | "other"
    device_class: str  # "cpu" | "gpu" | "nvidia" | "mali" | "adreno"
    name: str
    compute_units: int
    local_memory: int
    lanes: int = 4
    #: Half arithmetic, not only storage.
    fp16: bool = False
    #: How dot products of four 8-bit integers are written (kernels/i8.h): "khr", "arm", "arm_add",
    #: "qcom", "ptx", or in plain 32-bit arithmetic.
    dot: str = ""
    #: NVIDIA's matrix units, programmed in PTX.
    matrix_units: bool = False
    images: tuple[int, int] = (0, 0)
    #: Convolutions read images rather than buffers before anything was measured.
    prefers_images: bool = False
    #: Multiplies and adds in one instruction.
    fast_fma: bool = False
    #: Kernels with local memory and barriers, which GPUs want and CPUs do not.
    local_tiles: bool = False

    @property
    def integer_dot(self) -> bool:
        """cl_khr_integer_dot_product."""
        return self.dot == "khr"

    @property
    def half_math(self) -> bool:
        """Whether fp16 values are multiplied as they are."""
        return self.fp16 and self.local_tiles

    @property
    def build_options(self) -> tuple[str, ...]:
        """Compiler options of every program."""
        return (*BUILD_OPTIONS, *(["-DCPU"] if self.kind == "CPU" else []))


def class_of(kind: str, platform: str, name: str, vendor: str) -> str:
    """The `device_class` of a device that says this of itself."""
    text = f"{platform} {name} {vendor}".lower()
    if kind == "CPU":
        return "cpu"
    if "nvidia" in platform.lower():  # other platforms on NVIDIA's GPUs take no PTX
        return "nvidia"
    if "qualcomm" in text or "adreno" in text:
        return "adreno"
    return "mali" if "mali" in text else "gpu"


_CPU = DeviceProfile("CPU", "cpu", "CPU", compute_units=8, local_memory=1 << 19, fast_fma=True)
_GPU = DeviceProfile(
    "GPU", "gpu", "GPU", compute_units=32, local_memory=1 << 15, fp16=True,
    images=(16384, 16384), local_tiles=True,
)  # fmt: skip
_NVIDIA = replace(
    _GPU, device_class="nvidia", name="NVIDIA", compute_units=68, local_memory=48 << 10,
    images=(32768, 32768),
)  # fmt: skip

#: A typical device of each class, by name.
PROFILES: dict[str, DeviceProfile] = {
    "cpu, 4 lanes": replace(_CPU, fast_fma=False),
    "cpu, 8 lanes": replace(_CPU, lanes=8),
    "cpu, 16 lanes": replace(_CPU, lanes=16),
    "gpu": _GPU,
    "gpu without fp16 and images": replace(_GPU, fp16=False, images=(0, 0)),
    "nvidia": _NVIDIA,
    "nvidia with matrix units": replace(_NVIDIA, matrix_units=True, dot="ptx"),
    "mali": replace(
        _GPU, device_class="mali", name="Mali", compute_units=8, dot="khr",
        images=(65536, 65536),
    ),
    "adreno": replace(
        _GPU, device_class="adreno", name="Adreno", compute_units=4, dot="khr",
        prefers_images=True,
    ),
}  # fmt: skip
