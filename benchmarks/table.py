"""The printed table: a row per network and threads, a column per engine, ours / best peer last."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

Rows = Mapping[str, Mapping[str, Any]]


def print_head(engines: list[str], *, cold: bool) -> None:
    unit = "s" if cold else "ms"
    print(f"{unit:30}{'threads':>8}" + "".join(f"{e:>13}" for e in engines) + f"{'ratio':>8}")


def print_row(network: str, threads: int, engines: list[str], rows: Rows, key: str) -> None:
    digits = 3 if key.endswith("_s") else 2
    cells = (_cell(rows[e], key, digits) for e in engines)
    found = ratio(rows, key)
    last = "" if found is None else f"{found:.2f}" + ("" if settled(rows) else "~")
    print(
        f"{network:30}{threads:>8}" + "".join(f"{c:>13}" for c in cells) + f"{last:>8}", flush=True
    )


def _cell(row: Mapping[str, Any], key: str, digits: int) -> str:
    if key not in row:
        return "–"
    return f"{row[key]:.{digits}f}" + ("!" if "error" in row else "")


def ratio(rows: Rows, key: str) -> float | None:
    """Ours / the best peer; None when either is missing."""
    peers = [r[key] for e, r in rows.items() if e != "lite" and key in r and "error" not in r]
    if not peers or key not in rows.get("lite", {}):
        return None
    return float(rows["lite"][key] / min(peers))


def settled(rows: Rows) -> bool:
    """Whether every engine that counts has reached its least time in several bursts."""
    return all(row.get("reached", True) for row in rows.values() if "error" not in row)


def ratios(nets: Mapping[str, Rows], key: str) -> dict[str, float]:
    """Per "network/threads", and "geomean/threads" and "geomean"."""
    single = {name: r for name, rows in nets.items() if (r := ratio(rows, key)) is not None}
    out = dict(single)
    for threads in {name.rpartition("/")[2] for name in single}:
        out[f"geomean/{threads}"] = _mean(
            [r for name, r in single.items() if name.rpartition("/")[2] == threads]
        )
    if single:
        out["geomean"] = _mean(list(single.values()))
    return out


def _mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def print_foot(nets: Mapping[str, Rows], found: Mapping[str, float]) -> None:
    """Geometric means, the best peers, and why cells are empty or not counted (!)."""
    means = [f"{name} {value:.3f}" for name, value in sorted(found.items()) if "geomean" in name]
    print("ours / best peer: " + ", ".join(means))
    if not all(map(settled, nets.values())):
        print("~: an engine came near to its least time in too few bursts; give it more --seconds")
    reasons: dict[tuple[str, str], list[str]] = {}
    for name, rows in nets.items():
        for engine, row in rows.items():
            if "error" in row:
                reasons.setdefault((engine, row["error"]), []).append(name)
    for (engine, error), names in reasons.items():
        print(f"{engine}: {error} ({', '.join(names)})")
