"""What `lite quantize` has written, and how it is shown."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_messages import tr, trn

from ..inputs import GUESSED_OPTION, is_guessed
from ..words import number
from ._quantize_options import of_images
from ._table import table

if TYPE_CHECKING:
    from lite_engine.model_file import Model


@dataclass
class QuantizeResult:
    """A written file and what is known about it."""

    path: Path
    model: Model
    facts: dict[str, Any]
    float_bytes: int

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": str(self.path),
            "bytes": self.path.stat().st_size,
            "float_weight_bytes": self.float_bytes,
            "parts": self.parts,
            **self.facts,
        }

    @property
    def parts(self) -> dict[str, int]:
        """Bytes of the file by part."""
        from lite_engine.model_file import file_parts

        return file_parts(self.path)


def show_quantized(result: QuantizeResult, args: argparse.Namespace) -> str:
    size = result.path.stat().st_size
    wrote = tr(
        "wrote {path} ({size}; float weights: {weights})",
        path=result.path,
        size=number(size, "B"),
        weights=number(result.float_bytes, "B"),
    )
    wrote += f"\n{_parts(result)}"
    guard = result.facts.get("guard")
    if result.facts.get("weights_only") == 4:
        return "\n".join([*_int4(result.facts), wrote])
    if not guard:
        return wrote
    ranked = {layer["name"]: layer for layer in guard["layers"]}
    rows = [
        [name, ranked[name]["op"], _db(ranked[name]["sqnr_db"]), _db(ranked[name]["drop_db"])]
        for name in guard["worst"]
    ]
    integers = len(result.facts["integer_nodes"])
    lines = (
        [tr("note: {note}", note=GUESSED_OPTION), ""]
        if is_guessed(result.model) and of_images(args)
        else []
    )
    lines += [
        table(
            [tr("layers with the largest loss"), "op", tr("SQNR dB"), tr("loss dB")],
            rows,
            right=(2, 3),
        ),
        "",
        _judged(guard, result.facts["same_answers"])
        + tr(
            " (threshold {guard:g} dB); {integers} of {layers} layers run in integers",
            guard=guard["threshold_db"],
            integers=integers,
            layers=integers + len(result.facts["float_nodes"]),
        ),
        wrote,
    ]
    if not guard["held_out"]:
        lines[-1:-1] = [
            tr(
                "note: too few samples to hold any out: accuracy was measured on the calibration "
                "samples (5 samples are enough)"
            )
        ]
    if result.facts["budget"]:
        lines[-1:-1] = [tr("labeled data: {facts}", facts=result.facts["budget"]["sentence"])]
    if result.facts["missed"]:
        lines[-1:-1] = [tr("note: {facts}", facts=result.facts["missed"])]
    if dead := result.facts["dead_channels"]:
        lines[-1:-1] = [_dead(dead)]
    lines += [tr("wrote {path}", path=path) for path in (args.analyze, args.trade_off) if path]
    return "\n".join(lines)


def _parts(result: QuantizeResult) -> str:
    """What the file consists of: in that of a small model, programs may outweigh the weights."""
    parts, named = result.parts, ", ".join(t for t in result.model.targets if t != "opencl")
    words = {
        "weights": tr("weights"),
        "cpu_programs": tr("programs for {targets}", targets=named),
        "opencl_programs": tr("programs for {targets}", targets="opencl"),
        "rest": tr("the rest"),
    }
    said = ", ".join(f"{words[name]} {number(size, 'B')}" for name, size in parts.items() if size)
    programs = parts["cpu_programs"] + parts["opencl_programs"]
    if programs > parts["weights"] and len(result.model.targets) > 1:
        return tr("parts of the file: {parts}; --targets chooses which programs it has", parts=said)
    return tr("parts of the file: {parts}", parts=said)


def _judged(guard: dict[str, Any], same: float | None) -> str:
    """How near the outputs are, and how often the answer is the same."""
    agreement = [
        o["top1_agreement"] for o in guard["outputs"].values() if o["top1_agreement"] is not None
    ]
    db, samples = guard["sqnr_db"], trn("{n} sample", "{n} samples", guard["samples"])
    if agreement:
        return tr("outputs have an SQNR of {db:.1f} dB against the float model and its top-1 class "
                  "on {share:.3g} % of {samples}", db=db, share=100 * min(agreement),
                  samples=samples)  # fmt: skip
    if same is not None:
        return tr("outputs have an SQNR of {db:.1f} dB against the float model and the same result "
                  "on {share:.3g} % of {samples}", db=db, share=100 * same,
                  samples=samples)  # fmt: skip
    return tr("outputs have an SQNR of {db:.1f} dB against the float model on {samples}", db=db,
              samples=samples)  # fmt: skip


def _int4(facts: dict[str, Any]) -> list[str]:
    """What became of the layers, and how far the outputs are from the float model's."""
    kept, guard, method = facts["float_layers"], facts["guard"], facts["method"]
    lines = [
        tr(
            "{layers} with 4-bit weights in groups of {group}, rounding method {method}",
            layers=trn("{n} layer", "{n} layers", len(facts["layers"])),
            group=facts["group"],
            method=method,
        )
    ]
    if kept:
        rows = [[name, why] for name, why in kept.items()]
        lines += ["", table([tr("layers with float weights"), tr("reason")], rows), ""]
    if guard:
        tried = ", ".join(f"{name} {db:.1f} dB" for name, db in facts["tried_db"].items())
        lines.append(
            tr("outputs have an SQNR of {guard:.1f} dB against the float model ({tried}) on {n}",
               guard=guard["sqnr_db"], tried=tried,
               n=trn("{n} sample", "{n} samples", guard["samples"]))
        )  # fmt: skip
    else:
        lines.append(tr("outputs were not compared with the float model: add --calibration"))
    return lines


def _dead(channels: dict[str, list[int]]) -> str:
    count, names = sum(map(len, channels.values())), list(channels)
    more = " …" if len(names) > 3 else ""
    return trn(
        "{n} channel is constant in every sample, in {names}{more}",
        "{n} channels are constant in every sample, in {names}{more}",
        count,
        names=", ".join(names[:3]),
        more=more,
    )


def _db(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def exit_code(result: QuantizeResult, args: argparse.Namespace) -> int:
    """1 for a target or budget that was missed, though --force wrote the file."""
    budget = result.facts.get("budget")
    return int(bool(result.facts.get("missed")) or bool(budget and not budget["reached"]))
