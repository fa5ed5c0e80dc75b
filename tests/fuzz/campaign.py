"""Every fuzz target in turn, for hours: corpora are kept and grow from round to round.

    python -m tests.fuzz.campaign SECONDS FOLDER [native|guided|NAME…] [--processes N]
    python -m tests.fuzz.campaign table FOLDER

works on each native target (native.py; `scripts/native.sh fuzzer` has built it) and each reader in
Python (guided.py) until it has had SECONDS of a processor's time (of its own, on Linux: a busy
machine takes longer), the one that has had least first, in stretches. N processes share the corpus
of a native target. Each stretch is a line of FOLDER/log.jsonl and corpora are kept in
FOLDER/<NAME>, so that a campaign that was stopped goes on, and the growth of a corpus shows whether
it levels off. What other sources had does not count. `table` adds the stretches up. Ends with 1
after a finding.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from . import data_readers, importers, kept, native, readers

ROOT = Path(__file__).parent.parent.parent
#: Seconds of a process, unless less shows how a corpus grows.
STRETCH = 120
#: Sizes of a corpus that the table shows.
SIZES = 6
#: Behind the name of a target whose sources have changed since.
EARLIER = ", earlier sources"
GUIDED = {**importers.READERS, **readers.READERS, **data_readers.READERS, **kept.READERS}
Line = dict[str, Any]


def digest(name: str) -> str:
    """Of the sources that a target reads with: stretches of other sources are another campaign."""
    if name in native.TARGETS:
        files = [p for p in native.SOURCES.rglob("*.cc") if p.name in native.TARGETS[name]]
        return digest_of(files)
    return digest_of(ROOT / source.partition(":")[0] for source in GUIDED[name].sources)


def digest_of(files: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(p.read_bytes() for p in sorted(files))).hexdigest()[:12]


def run(name: str, seconds: float, folder: Path, seed: int, processes: int) -> Line:
    """One stretch, in a process of its own, so that a crash is a finding and not the end."""
    if name in native.TARGETS:
        made = native.fuzz(name, seconds, folder / name, seed=seed, processes=processes)
        return {"name": name, "digest": digest(name), "seed": seed, **made}
    arguments = [name, str(seconds), str(seed), str(folder / name)]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.guided", *arguments], cwd=ROOT,
        env={**os.environ, "LITE_CACHE_DIR": str(folder / "cache")}, capture_output=True, text=True,
    )  # fmt: skip
    try:
        made = json.loads(done.stdout)
    except ValueError:
        made = {"runs": 0, "bad": {"the process ended": done.stderr[-2000:]}}
    return {"name": name, "digest": digest(name), "seed": seed, **made}


def faults(line: Line) -> list[str]:
    return [*line.get("bad", ()), *filter(None, [line.get("report", "")])]


def known(folder: Path) -> Iterator[Line]:
    log = folder / "log.jsonl"
    if log.is_file():
        yield from map(json.loads, log.read_text().splitlines())


def table(folder: Path) -> Iterator[str]:
    rounds: dict[str, list[Line]] = {}
    for line in known(folder):
        now = line["digest"] == digest(line["name"])
        rounds.setdefault(line["name"] + EARLIER * (not now), []).append(line)
    yield "| target | inputs, seconds | corpus: seeds, after some stretches | edges | findings |"
    yield "|---|---|---|---|---|"
    for name, lines in rounds.items():
        inputs, seconds = (sum(line.get(key, 0) for line in lines) for key in ("runs", "seconds"))
        whole = [line for line in lines if "corpus" in line]
        sizes = [whole[0]["seeds"], *(line["corpus"] for line in whole)] if whole else []
        edges = whole[-1].get("edges", whole[-1].get("jumps")) if whole else 0
        found = len({fault for line in lines for fault in faults(line)})
        few = [*sizes[: -1 : -(-len(sizes) // SIZES)], *sizes[-1:]]
        grown = " → ".join(map(str, few))
        own, comma, more = name.partition(",")
        counts = f"{inputs:,} in {seconds:,.0f} | {grown} | {edges} | {found}"
        yield f"| `{own}`{comma}{more} | {counts} |"
    yield ""
    yield "| parser | lines |"
    yield "|---|---|"
    for name, lines in rounds.items():
        if name.endswith(EARLIER):
            continue
        for source, share in next((x["lines"] for x in lines[::-1] if x.get("lines")), {}).items():
            yield f"| `{source.removeprefix('engine/lite_engine/')}` | {share} % |"


def campaign(names: Iterable[str], seconds: float, folder: Path, processes: int) -> bool:
    """Whether there is a finding."""
    folder.mkdir(parents=True, exist_ok=True)
    left, turns, found = dict.fromkeys(names, seconds), Counter[str](), False
    for line in known(folder):
        turns[line["name"]] += 1
        if line["name"] in left and line["digest"] == digest(line["name"]):
            left[line["name"]] -= line.get("seconds", 0)
    while left := {name: most for name, most in left.items() if most >= 1}:
        name = max(left, key=left.__getitem__)
        turns[name] += 1
        shared = processes if name in native.TARGETS else 1
        stretch = min(STRETCH * shared, max(STRETCH, seconds / SIZES), left[name])
        made = run(name, stretch, folder, turns[name], shared)
        with (folder / "log.jsonl").open("a") as log:
            log.write(json.dumps(made) + "\n")
        print(name, made["runs"], faults(made) or "no finding", flush=True)
        left[name] -= made.get("seconds", seconds)
        if faults(made):
            found, left[name] = True, 0  # mend it first
    return found


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds")
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    folder = given.folder.resolve()
    if given.seconds == "table":
        print("\n".join(table(folder)))
        return 0
    groups = {"native": list(native.TARGETS), "guided": list(GUIDED)}
    chosen = [name for word in given.names or groups for name in groups.get(word, [word])]
    return int(campaign(chosen, float(given.seconds), folder, given.processes))


if __name__ == "__main__":
    raise SystemExit(main())
