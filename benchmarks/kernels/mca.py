"""Cycles of the AArch64 register tiles by llvm-mca, as a share of the model's multiply limit.

    python benchmarks/kernels/mca.py            prints the table
    python benchmarks/kernels/mca.py --write    writes docs/arm_tiles.md
    python benchmarks/kernels/mca.py --check    exit 1 when the file differs from what is measured

The tile's object file is disassembled and its hot loop (the innermost one with the most multiplies)
is handed to llvm-mca. The limit is what Arm's software optimisation guides state for 128-bit
multiply-accumulates (llvm's cortex-a55 model would allow two a cycle, the core has one). Caches are
not modelled; llvm-mca has real models of cortex-a53, a55, a510 and neoverse-n1.
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
PER_CYCLE = {"cortex-a53": 1, "cortex-a55": 1, "neoverse-n1": 2}  # 128-bit multiply-accumulates
FLAGS = ["-std=gnu++17", "-O3", "-ffp-contract=fast", "-fno-math-errno", "-fno-exceptions",
         "-fno-rtti", "-fno-schedule-insns"]


@dataclass(frozen=True)
class Tile:
    title: str
    source: str
    isa: str
    march: str
    symbol: str  # of the demangled name
    multiply: str  # mnemonic that counts


TILES = (
    Tile("fp32 8x8", "f32_tile.cc", "neon", "armv8-a", "tile<8, 2, false>", "fmla"),
    Tile("fp32 7x8", "f32_tile.cc", "neon", "armv8-a", "tile<7, 2, false>", "fmla"),
    Tile("fp32 8x4", "f32_tile.cc", "neon", "armv8-a", "tile<8, 1, false>", "fmla"),
    Tile("sdot 8x8", "neondot/int8_tile.cc", "neondot", "armv8.2-a+fp16+dotprod",
         "tile<false, 8, 2>", "sdot"),
    Tile("sdot 8x8, u8 activations", "neondot/int8_tile.cc", "neondot", "armv8.2-a+fp16+dotprod",
         "tile<true, 8, 2>", "sdot"),
    Tile("sdot 7x8", "neondot/int8_tile.cc", "neondot", "armv8.2-a+fp16+dotprod",
         "tile<false, 7, 2>", "sdot"),
)


def run(command: list[str], text: str | None = None) -> str:
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def disassembly(tile: Tile, folder: Path) -> list[str]:
    """Instructions of the tile's function, `address: mnemonic operands` each."""
    obj = folder / "tile.o"
    run(["aarch64-linux-gnu-g++", *FLAGS, f"-march={tile.march}", f"-DLITE_ISA={tile.isa}",
         f"-I{NATIVE / 'include'}", f"-I{NATIVE / 'src'}", "-c",
         str(NATIVE / "src" / "isa" / tile.source), "-o", str(obj)])
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
        out = run([mca, "-mtriple=aarch64", f"-mcpu={cpu}", "-mattr=+dotprod",
                   f"-iterations={iterations}"], "\n".join(code) + "\n")
        times.append(int(re.search(r"Total Cycles:\s+(\d+)", out).group(1)))
    return (times[1] - times[0]) / 200


def table() -> str:
    mca = next((p for p in map(shutil.which, ("llvm-mca-19", "llvm-mca")) if p), None)
    if not mca or not shutil.which("aarch64-linux-gnu-g++"):
        raise SystemExit("error: sudo apt-get install llvm-19 g++-aarch64-linux-gnu")
    rows = ["# AArch64 register tiles", "",
            "Share of the multiply limit in the inner loop, by llvm-mca (written by "
            "`benchmarks/kernels/mca.py`; caches are not modelled).", "",
            f"| tile | multiplies per loop | {' | '.join(PER_CYCLE)} |",
            f"|---|---|{'---|' * len(PER_CYCLE)}"]
    with tempfile.TemporaryDirectory() as folder:
        for tile in TILES:
            loop = hot_loop(disassembly(tile, Path(folder)), tile.multiply)
            n = count(loop, tile.multiply)
            shares = [min(100, 100 * n / rate / cycles(loop, cpu, mca))
                      for cpu, rate in PER_CYCLE.items()]
            rows.append(f"| {tile.title} | {n} | {' | '.join(f'{s:.0f} %' for s in shares)} |")
    return "\n".join(rows) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    text = table()
    if options.write:
        TABLE.write_text(text)
    if options.check and TABLE.read_text() != text:
        print(f"error: {TABLE.name} is not what is measured; run with --write and look at the "
              f"difference\n{text}", file=sys.stderr)
        return 1
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
