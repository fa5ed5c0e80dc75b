"""Cold start: a process from its start to its first result, and its peak memory."""

from __future__ import annotations

import compileall
import json
import subprocess
import time
from pathlib import Path
from typing import Any

import lite_engine

from benchmarks.environments import python_of
from benchmarks.models import Files

TIMES = 7


def cold_starts(
    files: Files, network: str, engines: list[str], threads: int, precision: str
) -> dict[str, dict[str, Any]]:
    """Per engine: least process_s, and the load_s, first_s, peak_mib of that process; or "error".

    Engines take turns, so that the page cache is warm for all alike. numpy is part of each process.
    """
    # pip compiles what it installs, and so the peers; a checkout is compiled by whoever imports it
    # first, or, where PYTHONDONTWRITEBYTECODE is set, by every process again.
    compileall.compile_dir(Path(lite_engine.__file__).parent, quiet=1)
    source, feeds = files.network(network)
    rows: dict[str, dict[str, Any]] = {}
    for _ in range(TIMES):
        for engine in engines:
            if "error" in rows.get(engine, {}):
                continue
            try:
                model = files.model(engine, source, feeds, precision)
                row = _once(engine, model, feeds, threads, precision)
            except RuntimeError as error:
                row = {"error": str(error)}
            best = rows.get(engine)
            if best is None or "error" in row or row["process_s"] < best["process_s"]:
                rows[engine] = row
    return rows


def _once(engine: str, model: Path, feeds: Path, threads: int, precision: str) -> dict[str, Any]:
    command = {
        "model": str(model), "feeds": str(feeds), "threads": threads, "precision": precision,
    }  # fmt: skip
    start = time.perf_counter()
    process = subprocess.Popen(
        [python_of(engine), "-m", "benchmarks.worker", engine],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        seconds = time.perf_counter() - start
        reply = json.loads(line)
    except (OSError, ValueError):
        raise RuntimeError("the process died") from None
    finally:
        process.kill()
        process.wait()
    if "error" in reply:
        raise RuntimeError(reply["error"])
    return {"process_s": seconds, **reply}
