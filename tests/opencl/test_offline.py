"""Every program that the builders can make compiles, for devices that are not here."""

from __future__ import annotations

import re
import shutil
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from lite_engine.backends.opencl import matrix_units
from lite_engine.backends.opencl.programs import KERNELS, program_text
from lite_engine.backends.opencl.steps import kernels
from lite_engine.passes.fuse_activation import FUSABLE

from tests.opencl import hot, offline
from tests.opencl.texts import Text, all_texts
from tests.tools import ROOT

pytestmark = pytest.mark.offline

FILES = sorted(p.stem for p in KERNELS.glob("*.cl"))
#: Volta, Turing; Ampere (data centre, desktop), Ada, Hopper. Matrix units and copies into local
#: memory are used from Ampere on.
OLD_CHIPS = ("sm_70", "sm_75")
CHIPS = ("sm_80", "sm_86", "sm_89", "sm_90")
MATRIX_FILES = ("attention_mma", "conv_mma", "i8_mma")


@lru_cache(1)
def texts() -> list[Text]:
    return all_texts()


def of(file: str, *parts: str) -> list[Text]:
    return [t for t in texts() if t.file == file and all(p in t.options for p in parts)]


def errors(found: list[Text], kernels: Path = KERNELS, standard: str = "CL1.2") -> list[str]:
    """What the front ends of their devices say of these texts, each program once."""
    jobs: dict[tuple[str, str, bool], Text] = {}
    for text in found:
        for target in offline.front_ends(text):
            jobs[program_text(text.file, text.options, kernels), target, text.cpu] = text
    results = offline.check(jobs, standard)
    print(f"{len(jobs)} programs compiled as {standard}")
    return [
        f"{text.file}.cl for {target}: {result.error}\n{text.options}"
        for ((_, target, _), text), result in zip(jobs.items(), results, strict=True)
        if result.error
    ]


def test_every_text_compiles(capsys) -> None:
    found = texts()
    assert {t.file for t in found} == set(FILES), "each kernel file is reached"
    # More texts than operators times what can be fused into the ones that fuse.
    assert len(found) > len({kernel for _, kernel in kernels()}) * len(FUSABLE)
    failed = errors(found)
    with capsys.disabled():
        print(f" [{len(found)} OpenCL program texts]", end="")
    assert not failed, f"{len(failed)} of them: {failed[0]}"
    # Of the same compilations: what a launch hands over is used, unless an option of its text says
    # that it is not.
    wrong = wrongly_unread(found)
    assert not wrong, f"{len(wrong)} of them: {wrong[0]}"


@pytest.mark.hours
@pytest.mark.parametrize("standard", ["CL2.0", "CL3.0"])
def test_every_text_compiles_in_newer_standards(standard: str) -> None:
    assert not errors([t for t in texts() if t.device_class != "nvidia"], standard=standard)


@pytest.mark.hours
@pytest.mark.parametrize("file", FILES)
def test_every_branch_is_reached(file: str) -> None:
    """Code that no options reach is never compiled. MMA_IN_C is for the tests of the tiles;
    what a CPU's instructions decide (WIDE) depends on the machine that compiles."""
    plain = {
        (t.cpu, *(line for line in t.options.splitlines() if "ACT" not in line)): t
        for t in of(file)
    }
    active: set[int] = set()
    active.update(*offline.many(((t,) for t in plain.values()), offline.active_lines))
    missed = [
        (condition, first)
        for condition, first, last in offline.branches(file)
        if not active & set(range(first, last + 1))
        and not re.search(r"ifdef (MMA_IN_C|WIDE)\b|defined\(__", condition)
    ]
    assert not missed


def test_functions_are_static() -> None:
    """An `inline` function alone has no definition of its own, as in C99: where a compiler decides
    against inlining it, the program does not link."""
    functions = [
        f"{path.name}: {line}"
        for path in sorted(KERNELS.iterdir())
        for line in path.read_text().splitlines()
        if re.search(r"\binline\b", line.split("//")[0])
    ]
    assert len(functions) > 10
    assert [f for f in functions if not f.split(": ")[1].startswith("static inline ")] == []


def assembled(found: list[Text], chip: str, kernels: Path = KERNELS) -> list[str]:
    programs = {program_text(t.file, t.options, kernels): t for t in found}
    results = offline.many(((p,) for p in programs), lambda p: offline.assemble(p, chip))
    return [
        f"{text.file}.cl: {result.error}\n{text.options}"
        for text, result in zip(programs.values(), results, strict=True)
        if result.error
    ]


@pytest.mark.sweep
@pytest.mark.parametrize("chip", [CHIPS[0], pytest.param(CHIPS[-1], marks=pytest.mark.hours)])
def test_matrix_units_assemble(chip: str) -> None:
    """One program of each shape, precision and use of the tiles; activations change no PTX."""
    found = of("conv_mma")
    shapes = {t.options: t for t in found if "ACT(x)" not in t.options}
    assert shapes and not assembled(list(shapes.values()), chip)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_the_trial_of_matrix_units_assembles(kind: type) -> None:
    """Where it does not, they are not used, and nothing else fails."""
    assert not offline.assemble(matrix_units.source(kind), CHIPS[0]).error
    native = ROOT / "engine/native/src/opencl/matrix_units.cc"
    assert matrix_units._TILE.replace("\n", "\\n") in native.read_text()


@pytest.mark.hours
@pytest.mark.parametrize("chip", OLD_CHIPS + CHIPS)
def test_everything_assembles(chip: str) -> None:
    found = [t for t in texts() if t.device_class == "nvidia" and not reads_images(t)]
    if chip in OLD_CHIPS:
        found = [t for t in found if t.file not in MATRIX_FILES]
    assert not assembled(found, chip)


def reads_images(text: Text) -> bool:
    """libclc has no images for NVIDIA: front ends check these."""
    return "image2d_t" in program_text(text.file, text.options)


#: Networks that have all kinds of hot kernels together.
SOME_HOT = ("shufflenet_v2", "yolov3_tiny", "text_encoder")


@pytest.mark.slow
@pytest.mark.parametrize(
    "chip, networks",
    [
        pytest.param(CHIPS[-1], SOME_HOT, id="some"),
        *(pytest.param(c, (), id=c, marks=pytest.mark.hours) for c in (CHIPS[0], CHIPS[-1])),
    ],
)
def test_hot_kernels_keep_their_values_in_registers(chip: str, networks: tuple[str, ...]) -> None:
    """What a kernel spills costs trips to memory in its inner loop. `hours` takes all networks."""
    found = hot.measured_usages(chip, networks)
    assert {file for file, _, _ in found} >= {"conv_mma", "conv_tile", "depthwise", "winograd"}
    assert not {key: usage for key, usage in found.items() if usage.spills}


def test_spills_are_read() -> None:
    """A kernel with more sums than a work-item has registers."""
    sums = "".join(f"float s{i} = x[{i}];\n" for i in range(400))
    steps = "".join(f"s{i} = fma(s{i}, s{(i + 7) % 400}, x[k]);\n" for i in range(400))
    total = " + ".join(f"s{i}" for i in range(400))
    text = (
        "kernel void greedy(global const float *restrict x, global float *restrict y) {\n"
        f"{sums}for (int k = 0; k < 100; ++k) {{\n{steps}}}\ny[0] = {total};\n}}\n"
    )
    (usage,) = hot.usages(offline.assemble(text).report)
    assert usage.kernel == "greedy" and usage.spills and usage.registers == 255


#: A kernel has the same parameters for all options. kernel(parameters) → options, one of which a
#: text needs to read them, and options any of which keeps it from reading them.
OPTIONAL: dict[str, tuple[str, str]] = {
    "put(line_a line_b low high gated)": ("", "ACT"),
    "put_all(line_a line_b low high gated)": ("", "ACT"),
    "from_points(line_a line_b low high gated)": ("", "ACT"),
    "conv_grouped(residual)": ("RESIDUAL", ""),
    "depthwise(residual)": ("RESIDUAL", ""),
    "conv_image(residual)": ("RESIDUAL", ""),
    "conv_sum(residual)": ("RESIDUAL", ""),
    "conv_mma(H W OH OW KH KW SH SW PT PL DH DW)": ("", "POINTWISE"),
    "conv_mma(residual)": ("RESIDUAL", "SPLIT"),
    "conv_mma(bias)": ("", "SPLIT BATCHED MATMUL"),
    "conv_mma(YP)": ("", "SPLIT BATCHED"),
    "conv_mma(partial)": ("SPLIT BATCHED", ""),
    "conv_tile(residual)": ("RESIDUAL", "SPLIT"),
    "conv_tile(bias)": ("", "SPLIT BATCHED MATMUL"),
    "conv_tile(YP)": ("", "SPLIT BATCHED SCATTER"),
    "conv_tile(partial)": ("SPLIT BATCHED", ""),
    "conv_tile(part)": ("", "BATCHED GROUPED"),
    "transpose(planes)": ("", "BLOCK TILE"),
    "combined(a_zero b_zero)": ("", "SHIFTED"),
    "combined(a_whole b_whole)": ("SHIFTED SQUARES PRELU", ""),
    "combined(a_exponent b_exponent)": ("SQUARES PRELU", ""),
    "combined(y_whole y_exponent)": ("SHIFTED SQUARES", ""),
    "combined(a_scale b_scale y_scale inverse nothing)": ("OP", ""),
    "pool(PB PR)": ("COUNT_PAD", ""),
    "pool(ratios)": ("AVERAGE", "AWAY"),
    "pool(x_zero y_zero)": ("AVERAGE", ""),
    "pool_group(ratios)": ("AVERAGE", "AWAY"),
    "pool_group(x_zero y_zero)": ("AVERAGE", ""),
    "matmul_nbits(zeros)": ("ZEROS", ""),
    **{
        f"{kernel}(offset)": ("", "RMS")
        for kernel in ("normalise", "normalise_row", "normalise_parts", "sum_normalise_row")
    },
    "sum_normalise_row(residual)": ("RESIDUAL", ""),
    **{
        f"{kernel}(mask mask_batch mask_head mask_row)": ("MASK", "")
        for kernel in ("attention", "attention_tile", "attention_mma")
    },
    "attention_mma(cap)": ("CAP", ""),
    "tile(w_zero)": ("W_ZERO", ""),
    "conv(w_zero)": ("W_ZERO", ""),
    "tile(partial)": ("SPLIT", ""),
    "mma(H W OH OW KH KW SH SW PT PL DH DW)": ("", "POINTWISE"),
    "mma(w_zero totals)": ("W_ZERO", ""),
    "mma(partial)": ("SPLIT", ""),
    **{
        f"{kernel}(bias scale residual y YP y_flip y_zero adding r_flip r_zero r_ratio s_zero "
        "s_ratio nothing)": ("", "SPLIT")
        for kernel in ("tile", "mma")
    },
    "recurrent(h0)": ("INITIAL_H", ""),
    "recurrent(c0)": ("INITIAL_C", ""),
    "recurrent(y_h state_batch state_direction)": ("LAST_H", ""),
    "recurrent(y_c)": ("LAST_C", ""),
}


def wrongly_unread(found: list[Text], kernels: Path = KERNELS) -> list[str]:
    """Parameters that a text does not read although nothing of OPTIONAL says so."""
    jobs = {(program_text(t.file, t.options, kernels), offline.front_ends(t)[0], t.cpu): t
            for t in found}  # fmt: skip
    results = offline.check(jobs)
    return [
        f"{text.file}.cl: {unread}\n{text.options}"
        for text, result in zip(jobs.values(), results, strict=True)
        for unread in result.report.splitlines()
        if not _may_be_unread(unread, set(re.findall(r"#define (\w+)", text.options)))
    ]


def _may_be_unread(unread: str, options: set[str]) -> bool:
    kernel, name = unread.rstrip(")").split("(")
    for entry, (needs, unless) in OPTIONAL.items():
        of, names = entry.rstrip(")").split("(")
        if kernel == of and name in names.split():
            lacks = bool(needs) and not options & set(needs.split())
            return lacks or bool(options & set(unless.split()))
    return False


# ---- the checks can fail


@pytest.fixture
def spoiled(tmp_path: Path):
    """A copy of the kernels in which one file has another text."""

    def spoil(file: str, before: str, after: str) -> Path:
        folder = tmp_path / "kernels"
        shutil.copytree(KERNELS, folder)
        text = (folder / file).read_text()
        assert before in text
        (folder / file).write_text(text.replace(before, after))
        return folder

    return spoil


@pytest.mark.parametrize("name", ["HardSwish", "HardSigmoid"])
def test_a_macro_that_another_file_uses_is_seen(name: str, spoiled) -> None:
    """The name that conv_mma.cl gives to a number, for a function of common.h."""
    folder = spoiled("common.h", "CLAMP01", "UNIT")
    found = [t for t in of("conv_mma") if "CLAMP01(" in t.options][:4]
    renamed = [
        Text(t.device_class, t.cpu, t.file, t.options.replace("CLAMP01", "UNIT")) for t in found
    ]
    failed = errors(renamed, folder)
    assert found and len(failed) == len(renamed) and "UNIT" in failed[0]


def test_an_unread_parameter_is_seen(spoiled) -> None:
    """A residual that is forgotten in a text that should add it."""
    (text, *_) = of("conv_grouped", "#define RESIDUAL")
    assert not wrongly_unread([text])
    folder = spoiled("conv_grouped.cl", "#ifdef RESIDUAL", "#ifdef NOWHERE")
    (wrong,) = wrongly_unread([text], folder)
    assert wrong.startswith("conv_grouped.cl: conv_grouped(residual)")


@pytest.mark.parametrize("file", FILES)
def test_a_syntax_error_is_seen(file: str, spoiled) -> None:
    folder = spoiled(f"{file}.cl", "kernel ", "kernel @ ")
    found = of(file)[:3]
    assert len(errors(found, folder)) >= len(found)


@pytest.mark.parametrize(
    "right, wrong",
    [
        ("ldmatrix.sync", "ldmatrx.sync"),
        ("cp.async.commit_group", "cp.async.comit_group"),
        ("m16n8k16", "m16n8k17"),
        ("cvt.rn.f16x2.f32", "cvt.rn.f16x3.f32"),
    ],
)
def test_a_misspelt_instruction_is_seen(right: str, wrong: str, spoiled) -> None:
    folder = spoiled("conv_mma.cl", right, wrong)
    (text, *_) = of("conv_mma", "#define HALF")
    assert assembled([text], "sm_80", folder)
