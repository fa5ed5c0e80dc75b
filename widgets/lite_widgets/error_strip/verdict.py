"""Judge a comparison at a tolerance: the Python twin of ``_shared/judge.js``.

The page needs the verdict while a line is dragged, saved pictures and the Session need it without
a page. A test holds the two together on the same cases.
"""

from __future__ import annotations

from typing import Any

from .._svg import NAMES, error_text


def judge(
    comparison: dict[str, Any], tolerance: float, by_op: dict[str, float] | None = None,
    metric: str = "rel_l2",
) -> dict[str, Any]:  # fmt: skip
    """Return {"layers": [{name, iso, acc, tol, nan, state}], "first": index or -1, "own": […]}.

    A layer is "own" if it is over its tolerance when fed right input, "carried" if only its
    accumulated error is, and "within" otherwise. Not-a-numbers of one side count as over. Where the
    line is at least what is usual, the engine's own finding stands: it knows what rounding explains
    of a layer, and differences too small to mean anything (`within` of a row).
    """
    usual = comparison.get("usual_tolerance", comparison.get("tolerance", tolerance))
    layers = []
    for row in comparison["layers"]:
        limit = (by_op or {}).get(row.get("op"), tolerance)
        isolated = row.get("isolated") or {}
        iso, acc = isolated.get(metric), row.get(metric)
        nan = _not_numbers(row)
        own = _not_numbers(isolated) > 0 or (iso is not None and iso > limit)
        carried = nan > 0 or (acc is not None and acc > limit)
        right = row.get("within") is True and limit >= usual
        state = "within" if right else "own" if own else "carried" if carried else "within"
        layers.append({"name": row["name"], "iso": iso, "acc": acc, "tol": limit, "nan": nan,
                       "state": state})  # fmt: skip
    first = next((i for i, layer in enumerate(layers) if layer["state"] != "within"), -1)
    own = [i for i, layer in enumerate(layers) if layer["state"] == "own"]
    return {"layers": layers, "first": first, "own": own}


def _not_numbers(figures: dict[str, Any]) -> int:
    """Values that are NaN or Inf on one side and something else on the other."""
    return (figures.get("nan_baseline") or 0) + (figures.get("nan_candidate") or 0)


def verdict(comparison: dict[str, Any], tolerance: float, judged: dict[str, Any]) -> dict[str, Any]:
    """Return {"case", "kind", "layer", "text"}: one sentence, ``**`` around what is bold.

    Cases: "failing", "rounding", "unknown" (no isolated pass), "adds-up", "blind" (nothing passes
    the tolerance, but outputs differ), "agrees".
    """
    a, b = (NAMES.get(comparison[key], comparison[key]) for key in ("baseline", "candidate"))
    usual = comparison.get("usual_tolerance", comparison.get("tolerance", tolerance))
    layers = judged["layers"]
    failing = layers[judged["own"][0]] if judged["own"] else None
    first = layers[judged["first"]] if judged["first"] >= 0 else None
    # what is usual for this operator: its own tolerance when the line stands at `usual`
    most = max(failing["tol"] * usual / tolerance, failing["tol"]) if failing else 0.0
    if failing and (failing["iso"] is None or failing["iso"] > most):
        how = (
            "gives values that are not finite"
            if failing["iso"] is None
            else f"has an error of **{error_text(failing['iso'])}**"
        )
        text = (
            f"{b} goes wrong at **{failing['name']}**: on the input of {a}, it {how} "
            f"(tolerance {error_text(failing['tol'])})."
        )
        return {"case": "failing", "kind": "error", "layer": failing["name"], "text": text}
    if first:
        return _without_failing(first, b, usual)
    if comparison.get("outputs_agree") is False:
        note = comparison.get("outputs_note")
        text = (
            f"No layer exceeds a tolerance of {error_text(tolerance)}, but the outputs still "
            f"differ{': ' + note if note else '.'}"
        )
        return {"case": "blind", "kind": "warn", "layer": None, "text": text}
    ran = f"; {comparison['ran']}" if comparison.get("ran") else ""
    text = f"{a} and {b} agree on all {len(layers)} layers{ran}."
    return {"case": "agrees", "kind": "done", "layer": None, "text": text}


def _without_failing(first: dict[str, Any], b: str, usual: float) -> dict[str, Any]:
    own = first["iso"] is not None and first["iso"] > first["tol"]
    worst = first["iso"] if own else first["acc"]
    name = first["name"]
    if worst is not None and worst <= usual:
        case = "rounding"
        text = (
            f"At this tolerance the first difference is **{name}** ({error_text(worst)}), "
            "which is within rounding."
        )
    elif first["iso"] is None:
        case = "unknown"
        how = "values that are not finite" if first["nan"] else error_text(first["acc"])
        limit = error_text(first["tol"])
        text = f"{b} exceeds the tolerance at **{name}** ({how}, tolerance {limit})."
    else:
        case = "adds-up"
        text = (
            f"No layer fails on its own, but errors accumulate: **{name}** is the first over the "
            f"tolerance ({error_text(first['acc'])})."
        )
    return {"case": case, "kind": "warn", "layer": name, "text": text}
