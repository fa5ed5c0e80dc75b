"""Instructions and cycles of the AArch64 register tiles, cycles as a share of the multiply limit.

    python benchmarks/kernels/mca.py            prints the table
    python benchmarks/kernels/mca.py --write    writes docs/arm_tiles.md
    python benchmarks/kernels/mca.py --check    exit 1 when the file differs from what is measured

The tile's object file is disassembled and its hot loop (the innermost one with the most multiplies)
is handed to llvm-mca 19. The limit is what Arm's software optimisation guides state for 128-bit
multiply-accumulates (llvm's cortex-a55 model would allow two a cycle, the core has one). Caches are
not modeled; llvm-mca has real models of cortex-a53, a55, a510, neoverse-n1 and n2. Without it
--check compares the instructions only.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NATIVE = ROOT / "engine" / "native"
TABLE = ROOT / "docs" / "arm_tiles.md"
# 128-bit multiply-accumulates per cycle
PER_CYCLE = {"cortex-a53": 1, "cortex-a55": 1, "neoverse-n1": 2, "neoverse-n2": 2}
FLAGS = [
    "-std=gnu++17",
    "-O3",
    "-ffp-contract=fast",
    "-fno-math-errno",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-schedule-insns",
]


@dataclass(frozen=True)
class Tile:
    title: str
    isa: str
    source: str  # below isa/
    symbol: str  # of the demangled name
    multiply: str  # mnemonic that counts
    reorders: bool = False  # chosen for cores that reorder alone


#: Of each instruction set: -march, the cores that have it.
ISAS = {
    "neon": ("armv8-a", tuple(PER_CYCLE)),
    "neonfp16": ("armv8.2-a+fp16", tuple(PER_CYCLE)[1:]),
    "neondot": ("armv8.2-a+fp16+dotprod", tuple(PER_CYCLE)[1:]),
    "neoni8mm": ("armv8.2-a+fp16+dotprod+i8mm", ("neoverse-n2",)),
}
REORDERING = ("neoverse-n1", "neoverse-n2")
HALVES = "neonfp16/half_tile.cc"
SDOT, SMMLA = "neondot/int8_tile.cc", "neoni8mm/int8_tile.cc"
TILES = (
    Tile("fp32 12x8, packed rows", "neon", "packed_tile.cc", "tile<12, 2>", "fmla"),
    Tile("fp32 12x4, packed rows", "neon", "packed_tile.cc", "tile<12, 1>", "fmla"),
    Tile("fp32 12x8, loads of four", "neon", "quad_tile.cc", "tile2(", "fmla", True),
    Tile("fp32 12x4, loads of four", "neon", "quad_tile.cc", "tile1(", "fmla", True),
    Tile("fp32 8x8", "neon", "f32_tile.cc", "tile<8, 2, false>", "fmla"),
    Tile("fp32 7x8", "neon", "f32_tile.cc", "tile<7, 2, false>", "fmla"),
    Tile("fp32 8x4", "neon", "f32_tile.cc", "tile<8, 1, false>", "fmla"),
    Tile("fp16 8x16", "neonfp16", HALVES, "tile<8, 2>", "fmla"),
    Tile("fp16 7x16", "neonfp16", HALVES, "tile<7, 2>", "fmla"),
    Tile("fp16 8x8", "neonfp16", HALVES, "tile<8, 1>", "fmla"),
    Tile("sdot 8x8", "neondot", SDOT, "tile<false, 8, 2>", "sdot"),
    Tile("sdot 7x8", "neondot", SDOT, "tile<false, 7, 2>", "sdot"),
    Tile("sdot 8x8, u8 activations", "neondot", SDOT, "tile<true, 8, 2>", "sdot"),
    Tile("smmla 8x8", "neoni8mm", SMMLA, "tile<false, 8, 2>", "smmla"),
    Tile("usmmla 8x8, u8 activations", "neoni8mm", SMMLA, "tile<true, 8, 2>", "usmmla"),
)


def run(command: list[str], text: str | None = None) -> str:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def disassembly(tile: Tile, folder: Path) -> list[str]:
    """Instructions of the tile's function, `address: mnemonic operands` each."""
    march, _ = ISAS[tile.isa]
    obj = folder / f"{tile.source.replace('/', '_')}.o"
    if not obj.exists():
        run(
            [
                "aarch64-linux-gnu-g++",
                *FLAGS,
                f"-march={march}",
                f"-DLITE_ISA={tile.isa}",
                f"-I{NATIVE / 'include'}",
                f"-I{NATIVE / 'src'}",
                "-c",
                str(NATIVE / "src" / "isa" / tile.source),
                "-o",
                str(obj),
            ]
        )
    text = run(["aarch64-linux-gnu-objdump", "-dC", "--no-show-raw-insn", str(obj)])
    for function in re.split(r"\n(?=[0-9a-f]{16} <)", text):
        if tile.symbol in function.split("\n", 1)[0]:
            return [m.group(0).strip() for m in re.finditer(r"^ +[0-9a-f]+:\t.*$", function, re.M)]
    raise SystemExit(f"error: no function {tile.symbol} in {tile.source}")


def hot_loop(lines: list[str], multiply: str) -> list[str]:
    """The innermost backward branch's body with the most multiplies."""
    addresses = [int(line.split(":")[0], 16) for line in lines]
    best: list[str] = []
    for end, line in enumerate(lines):
        jump = re.search(r"\tb\.\w+\t([0-9a-f]+) ", line)
        if not jump or int(jump.group(1), 16) > addresses[end]:
            continue
        body = lines[addresses.index(int(jump.group(1), 16)) : end]
        if any(re.search(r"\tb(\.\w+)?\t", inner) for inner in body):
            continue
        if count(body, multiply) > count(best, multiply):
            best = body
    return [re.sub(r"^[0-9a-f]+:\t", "", b).split(" <")[0].split("//")[0] for b in best]


def count(lines: list[str], multiply: str) -> int:
    return sum(bool(re.search(rf"(^|\t){multiply}\t", line)) for line in lines)


def cycles(code: list[str], cpu: str, mca: str) -> float:
    """Cycles of one iteration in the steady state."""
    times = []
    for iterations in (100, 300):
        out = run(
            [
                mca,
                "-mtriple=aarch64",
                f"-mcpu={cpu}",
                "-mattr=+fullfp16,+dotprod,+i8mm",
                f"-iterations={iterations}",
            ],
            "\n".join(code) + "\n",
        )
        times.append(int(re.search(r"Total Cycles:\s+(\d+)", out).group(1)))
    return (times[1] - times[0]) / 200


def llvm_mca() -> str | None:
    """The program of the version that the table is made with."""
    for program in filter(None, map(shutil.which, ("llvm-mca-19", "llvm-mca"))):
        if "LLVM version 19." in run([program, "--version"]):
            return program
    return None


def rows(mca: str | None) -> list[list[str]]:
    """Title, multiplies, loads, other instructions, then, with llvm-mca, the share on each core."""
    if not shutil.which("aarch64-linux-gnu-g++"):
        raise SystemExit("error: sudo apt-get install g++-aarch64-linux-gnu")
    out = []
    with tempfile.TemporaryDirectory() as folder:
        for tile in TILES:
            loop = hot_loop(disassembly(tile, Path(folder)), tile.multiply)
            n, loads = count(loop, tile.multiply), count(loop, r"ld\w+")
            row = [tile.title, str(n), str(loads), str(len(loop) - n - loads)]
            for cpu, rate in PER_CYCLE.items() if mca else ():
                has = cpu in (REORDERING if tile.reorders else ISAS[tile.isa][1])
                share = 100 * n / rate / cycles(loop, cpu, str(mca)) if has else 0
                row.append(f"{min(100, share):.0f} %" if has else "–")
            out.append(row)
    return out


def table(body: list[list[str]]) -> str:
    head = ["tile", "multiplies", "loads", "other", *PER_CYCLE]
    lines = [
        "# AArch64 register tiles",
        "",
        "The inner loop's instructions, and the share of the multiply limit it reaches by "
        "llvm-mca 19",
        "(written by `benchmarks/kernels/mca.py`; caches are not modeled).",
        "",
        f"| {' | '.join(head)} |",
        "|---" * len(head) + "|",
    ]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in body)]) + "\n"


def measured_again(body: list[list[str]]) -> list[list[str]]:
    """The written rows, cut to what was measured now."""
    written = [
        [cell.strip() for cell in line.strip("|\n ").split("|")]
        for line in TABLE.read_text().splitlines()
        if line.startswith("| ")
    ][1:]
    return [row[: len(new)] for row, new in zip(written, body)] if len(written) == len(body) else []


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    mca = llvm_mca()
    if not mca and not options.check:
        raise SystemExit("error: no llvm-mca 19; sudo apt-get install llvm-19")
    body = rows(mca)
    if options.write:
        TABLE.write_text(table(body))
    if options.check and measured_again(body) != body:
        print(
            f"error: {TABLE.name} is not what is measured; run with --write and look at the "
            f"difference\n{table(body)}",
            file=sys.stderr,
        )
        return 1
    print(table(body), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
