"""Coverage-guided fuzzing of the native readers.

    scripts/native.sh fuzzer
    python -m tests.fuzz.native TARGET SECONDS [SEED [CORPUS]]

runs `fuzz_<TARGET>` (engine/native/fuzz; a key of TARGETS) from seeds of our own writers,
and prints one JSON line: runs, the corpus before and after, edges covered, lines of the reader
reached, and the report of a sanitizer where there is one. A corpus folder is kept and grows.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from .native_seeds import MOST_BYTES, seeds

ROOT = Path(__file__).parent.parent.parent
BUILD = ROOT / "build" / "fuzzer"
SOURCES = ROOT / "engine" / "native" / "src"
#: Target → the source whose lines count.
TARGETS = {"program": ("program.cc",), "file": ("lite_file.cc", "lite_derived.cc", "plugins.cc"),
           "npy": ("lite_run_npy.cc",), "sound": ("wav.cc", "features.cc"),
           "outputs": ("outputs.cc",), "stream": ("jpeg_frames.cc",),
           "image": ("jpeg.cc", "jpeg_scan.cc", "jpeg_pixels.cc", "png.cc", "inflate.cc", "bmp.cc"),
           "pipeline": ("config.cc", "json.cc", "run.cc", "reading.cc", "read_boxes.cc",
                        "read_classes.cc", "read_regions.cc", "read_yolo.cc", "read_keypoints.cc",
                        "read_vector.cc", "read_distances.cc", "read_instances.cc", "masks.cc",
                        "nms.cc", "crop.cc", "prepare.cc", "resize.cc", "draw.cc", "answer.cc"),
           "opencl": ("device_plan.cc", "constants.cc", "layout.cc", "defines.cc", "reach.cc",
                      "expression.cc", "statement.cc")}  # fmt: skip


#: A child of a shell begins with a peak of memory of its own; a process that is started directly
#: counts that of the one which started it, and libFuzzer's limit is of the peak.
_OWN_PEAK = ("sh", "-c", '"$0" "$@"; exit $?')


def words(target: str) -> set[str]:
    """What the sources of a target compare with: names of fields, kinds and options."""
    texts = "".join(
        path.read_text() for path in SOURCES.rglob("*.cc") if path.name in TARGETS[target]
    )
    return set(re.findall(r'(?<![#\w] )"([A-Za-z_][\w.]{1,20})"', texts))


def dictionary(target: str, path: Path) -> list[str]:
    """libFuzzer's option; a reader of bytes alone has no words."""
    path.write_text("".join(f'"{word}"\n' for word in sorted(words(target))))
    return [f"-dict={path}"] if path.stat().st_size else []


def fuzz(
    target: str, seconds: float, corpus: Path, runs: int = -1, seed: int = 1
) -> dict[str, Any]:
    """Ends after `seconds`, or after as many `runs`."""
    first = seeds(target, corpus)
    found = corpus.parent / f"{target}-found"
    found.mkdir(exist_ok=True)
    binary = BUILD / f"fuzz_{target}"
    limits = [f"-max_len={MOST_BYTES}", "-timeout=25", "-rss_limit_mb=1024", "-malloc_limit_mb=256"]
    env = os.environ | {
        "ASAN_OPTIONS": "allocator_may_return_null=1", "UBSAN_OPTIONS": "print_stacktrace=1",
        "OCL_ICD_VENDORS": str(found),  # no device: that takes seconds
        "LLVM_PROFILE_FILE": str(found / "run.profraw"),
    }  # fmt: skip
    done = subprocess.run(
        [*_OWN_PEAK, binary, corpus, f"-max_total_time={seconds}", f"-runs={runs}",
         f"-seed={seed}",
         *dictionary(target, found / "words"), "-print_final_stats=1",
         f"-artifact_prefix={found}/", *limits],
        capture_output=True, text=True, errors="replace", env=env, timeout=seconds + 300,
    )  # fmt: skip
    said = done.stderr
    covered = re.findall(r"cov: (\d+)", said)
    executed = re.search(r"stat::number_of_executed_units: (\d+)", said)
    lines = coverage(target, corpus, found, env) if done.returncode == 0 else {}
    first_words = [said.find(words) for words in ("ERROR: ", "runtime error: ")]
    at = min([place for place in first_words if place >= 0], default=0)
    report = said[at : at + 3000] if done.returncode else ""
    return {
        "target": target, "seconds": seconds, "runs": int(executed[1]) if executed else 0,
        "seeds": first, "corpus": len(list(corpus.iterdir())),
        "edges": int(covered[-1]) if covered else 0, "lines": lines, "report": report,
        "found": [str(p) for p in found.iterdir() if p.suffix != ".profraw" and p.name != "words"],
    }  # fmt: skip


def coverage(target: str, corpus: Path, folder: Path, env: dict[str, str]) -> dict[str, float]:
    """Percentage of each reader's lines that the corpus reaches; empty without llvm-cov."""
    profdata, cov = (_tool(name) for name in ("llvm-profdata", "llvm-cov"))
    if profdata is None or cov is None:
        return {}
    binary = BUILD / f"fuzz_{target}"
    subprocess.run(
        [*_OWN_PEAK, binary, corpus, "-runs=0"], capture_output=True, env=env, check=True
    )
    merged_file = folder / "merged"
    command = [profdata, "merge", "-o", merged_file, env["LLVM_PROFILE_FILE"]]
    subprocess.run(command, check=True, capture_output=True)
    command = [cov, "export", "-summary-only", f"-instr-profile={merged_file}", binary]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    merged_file.unlink()
    files = json.loads(done.stdout)["data"][0]["files"]
    return {
        Path(file["filename"]).name: round(file["summary"]["lines"]["percent"], 1)
        for file in files
        if Path(file["filename"]).name in TARGETS[target]
    }


def _tool(name: str) -> str | None:
    """Of the compiler's own version first: they read each other's files only then."""
    cache = (BUILD / "CMakeCache.txt").read_text()
    version = re.search(r"CMAKE_CXX_COMPILER:\w+=.*clang\+\+(-\d+)?$", cache, re.M)
    own = f"{name}{version[1] or ''}" if version else name
    return shutil.which(own) or shutil.which(name)


def main() -> int:
    target, seconds, *more = sys.argv[1:]
    with tempfile.TemporaryDirectory() as temporary:
        corpus = Path(more[1]) if more[1:] else Path(temporary) / target
        made = fuzz(target, float(seconds), corpus, seed=int(more[0]) if more else 1)
    print(json.dumps(made, indent=1))
    return 1 if made["report"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
