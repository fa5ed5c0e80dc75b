"""Coverage-guided fuzzing of the native readers.

    scripts/native.sh fuzzer
    python -m tests.fuzz.native TARGET SECONDS [SEED [CORPUS]]

runs `fuzz_<TARGET>` (engine/native/fuzz; a key of TARGETS) from seeds of our own writers,
and prints one JSON line: runs, the corpus before and after, edges covered, lines of the reader
reached, and the report of a sanitizer where there is one. A corpus folder is kept and grows;
several processes share one, and each reads what the others find. On Linux SECONDS are those of the
processor, of all processes together, so that a busy machine does not shorten a campaign.
"""

from __future__ import annotations

import functools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lite_engine.system import LINUX

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


#: Of wall time, for one input: a busy machine gives a process a small part of it.
MOST_SECONDS = 100
#: Of the processor's time, for one that has passed the other.
MOST_WORK_SECONDS = 25.0
#: What lies beside its findings.
OWN_FILES = ("words", "run.profraw")
#: A child of a shell begins with a peak of memory of its own; a process that is started directly
#: counts that of the one which started it, and libFuzzer's limit is of the peak.
_OWN_PEAK = ("sh", "-c", '"$0" "$@"; exit $?')


#: Once for a target and a folder: to plan every kernel's cases takes longer than a short round.
written_seeds = functools.cache(seeds)


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
    target: str, seconds: float, corpus: Path, runs: int = -1, seed: int = 1, processes: int = 1
) -> dict[str, Any]:
    """Ends after `seconds`, or after as many `runs` of each process."""
    first = written_seeds(target, corpus)
    found = corpus.parent / f"{target}-found"
    found.mkdir(exist_ok=True)
    binary = BUILD / f"fuzz_{target}"
    limits = [f"-max_len={MOST_BYTES}", f"-timeout={MOST_SECONDS}", "-rss_limit_mb=1024",
              "-malloc_limit_mb=256"]  # fmt: skip
    env = os.environ | {
        "ASAN_OPTIONS": "allocator_may_return_null=1:quarantine_size_mb=16",
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "OCL_ICD_VENDORS": str(found),  # no device: that takes seconds
        "LLVM_PROFILE_FILE": str(found / "run.profraw"),
    }  # fmt: skip
    command = [
        *_OWN_PEAK, binary, corpus, f"-runs={runs}", "-print_final_stats=1",
        *dictionary(target, found / "words"), f"-artifact_prefix={found}/", *limits,
    ]  # fmt: skip
    if not LINUX:
        command.append(f"-max_total_time={seconds / processes}")
    before = _children_worked()
    with tempfile.TemporaryDirectory() as told:
        started = [
            _Process([*command, f"-seed={seed * processes + i}"], env, Path(told) / str(i))
            for i in range(processes)
        ]
        for process in started:
            process.wait(seconds / processes)
        used = _children_worked() - before
    failed = [process for process in started if process.returncode]
    lines = {} if failed else coverage(target, corpus, found, env)
    report = "".join(process.report() for process in failed)
    if "libFuzzer: timeout" in report and not too_much_work(binary, found.glob("timeout-*"), env):
        report = ""
    return {
        "target": target, "seconds": round(used, 1), "runs": sum(p.runs() for p in started),
        "seeds": first, "corpus": len(list(corpus.iterdir())),
        "edges": max(p.edges() for p in started), "lines": lines, "report": report,
        "found": [str(p) for p in found.iterdir() if p.name not in OWN_FILES],
    }  # fmt: skip


class _Process:
    """One process of a target. It writes to a file: a pipe that is not read would block it."""

    def __init__(self, command: Sequence[Any], env: Mapping[str, str], told: Path) -> None:
        with told.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=output, env=env)
        self._told, self.said = told, ""

    @property
    def returncode(self) -> int:
        return int(self._process.returncode)

    def wait(self, seconds: float) -> None:
        _wait(self._process, seconds)
        self.said = self._told.read_text(errors="replace")

    def runs(self) -> int:
        executed = re.search(r"stat::number_of_executed_units: (\d+)", self.said)
        return int(executed[1]) if executed else 0

    def edges(self) -> int:
        return int((re.findall(r"cov: (\d+)", self.said) or [0])[-1])

    def report(self) -> str:
        """What a sanitizer has said, from its first line on."""
        first_words = [self.said.find(words) for words in ("ERROR: ", "runtime error: ")]
        at = min([place for place in first_words if place >= 0], default=0)
        return self.said[at : at + 3000]


def too_much_work(
    binary: Path, inputs: Iterable[Path], env: Mapping[str, str], most: float = MOST_WORK_SECONDS
) -> bool:
    """Whether one of the inputs takes so many seconds of the processor; the others, which only had
    to wait for it, are removed."""
    slow = False
    for path in inputs:
        before = _children_worked()
        subprocess.run([*_OWN_PEAK, binary, path], capture_output=True, env=env, check=False)
        if _children_worked() - before >= most:
            slow = True
        else:
            path.unlink()
    return slow


def _wait(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Until it has ended. On Linux the target is asked to end when it has worked for `seconds`."""
    while True:
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
            return
        if LINUX and (target := _child(process.pid)):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                if _worked(target) >= seconds:
                    os.kill(target, signal.SIGUSR1)  # libFuzzer prints its figures and ends


def _child(shell: int) -> int | None:
    told = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
    return int(told[0]) if told else None


def _worked(process: int) -> float:
    """Seconds of the processor that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _children_worked() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def coverage(target: str, corpus: Path, folder: Path, env: dict[str, str]) -> dict[str, float]:
    """Percentage of each reader's lines that the corpus reaches; empty without llvm-cov."""
    profdata, cov = (_tool(name) for name in ("llvm-profdata", "llvm-cov"))
    if profdata is None or cov is None:
        return {}
    binary = BUILD / f"fuzz_{target}"
    # libFuzzer writes what it finds slow, too, and into the working directory if not told where.
    read = [*_OWN_PEAK, binary, corpus, "-runs=0", f"-artifact_prefix={folder}/"]
    subprocess.run(read, capture_output=True, env=env, check=True)
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
