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

TIMES = 15


def cold_starts(
    files: Files, network: str, engines: list[str], threads: int, precision: str
) -> dict[str, dict[str, Any]]:
    """Per engine the least of each over its processes: process_s, load_s, first_s, peak_mib, and
    again_s of the same file's second load in the process; or "error".

    Engines take turns, and every model file is there before the first, so that the page cache is
    warm for all alike. numpy is part of each process.
    """
    # pip compiles what it installs, and so the peers; a checkout is compiled by whoever imports it
    # first, or, where PYTHONDONTWRITEBYTECODE is set, by every process again.
    compileall.compile_dir(Path(lite_engine.__file__).parent, quiet=1)
    source, feeds = files.network(network)
    rows: dict[str, dict[str, Any]] = {}
    models: dict[str, Path] = {}
    for engine in engines:
        try:
            models[engine] = files.model(engine, source, feeds, precision)
        except RuntimeError as error:
            rows[engine] = {"error": str(error)}
    for _ in range(TIMES):
        for engine, model in models.items():
            if "error" in rows.get(engine, {}):
                continue
            try:
                row = _once(engine, model, feeds, threads, precision)
            except RuntimeError as error:
                row = {"error": str(error)}
            best = rows.get(engine, row)
            rows[engine] = row if "error" in row else {k: min(best[k], v) for k, v in row.items()}
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
    try:
        reply = _ask(process, command)
        seconds = time.perf_counter() - start
        again = _ask(process, command)
    finally:
        process.kill()
        process.wait()
    return {"process_s": seconds, **reply, "again_s": again["load_s"]}


def _ask(process: subprocess.Popen[str], command: dict[str, Any]) -> dict[str, Any]:
    """One command's reply. Raises RuntimeError with what the engine cannot do."""
    assert process.stdin is not None and process.stdout is not None
    try:
        process.stdin.write(json.dumps(command) + "\n")
        process.stdin.flush()
        reply: dict[str, Any] = json.loads(process.stdout.readline())
    except (OSError, ValueError):
        raise RuntimeError("the process died") from None
    if "error" in reply:
        raise RuntimeError(reply["error"])
    return reply
