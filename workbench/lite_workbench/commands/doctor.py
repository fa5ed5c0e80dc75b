"""`lite doctor`: what this machine has, why not, how to fix it; OpenCL's kernels one by one."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from lite_engine.errors import UsageError
from lite_messages import tr, trn

from ._base import Command, add_device, backend_word, write_json
from ._table import table

if TYPE_CHECKING:
    from lite_engine.doctor import Examination, FieldReport


_MARK = {"good": "+", "warning": "!", "bad": "-"}


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        nargs="?",
        metavar="MODEL",
        help=tr("a .lite file to check on this machine or on --device"),
    )
    parser.add_argument(
        "--backend",
        type=backend_word,
        metavar="BACKEND",
        help=tr("exit with 1 unless this backend can be used"),
    )
    parser.add_argument(
        "--check",
        choices=("opencl",),
        help=tr(
            "run every kernel on the OpenCL device and compare it with NumPy (takes "
            "minutes); exit with 1 if a kernel is wrong or fails"
        ),
    )
    parser.add_argument(
        "--field-report",
        metavar="FILE",
        help=tr(
            "run the same check and write the results, without personal data, to a JSON file "
            "that can be attached to an issue"
        ),
    )
    add_device(parser)


def _call(args: argparse.Namespace) -> Examination | FieldReport:
    from lite_engine.devices import find_device
    from lite_engine.doctor import check_file, device_check, examine

    if args.check or args.field_report:
        return _checked(args)
    device = find_device(args.device)
    result = examine()
    if args.model:
        first = check_file(Path(args.model), args.backend or "auto", device)
    else:
        first = [device_check(device)[0]] if device else []
    result.checks[:0] = first
    return result


def _checked(args: argparse.Namespace) -> FieldReport:
    from lite_engine.doctor import examine_opencl

    if args.model or args.device != "local":
        raise UsageError(
            tr("--check and --field-report only examine the OpenCL device of this machine"),
            fix=tr("leave out MODEL and --device"),
        )
    report = examine_opencl(_progress)
    if args.field_report:
        write_json(report.to_dict(), args.field_report)
    return report


def _progress(kernel: str, done: int, total: int) -> None:
    """One line that writes over itself, where a person watches."""
    if sys.stderr.isatty():
        sys.stderr.write(
            "\r\x1b[K"
            + tr(
                "checking {kernel} ({done} of {total})",
                kernel=kernel,
                done=done + 1,
                total=total,
            )
        )
        sys.stderr.write("\r\x1b[K" if done + 1 == total else "")
        sys.stderr.flush()


def _show(result: Examination | FieldReport, args: argparse.Namespace) -> str:
    from lite_engine.doctor import FieldReport

    if isinstance(result, FieldReport):
        return _show_report(result, args)
    lines = []
    for check in result.checks:
        lines.append(f"{_MARK[check.state]} {check.name}: {check.summary}")
        for attempt in check.tried:
            words = (f"{v:.0f} ms" if isinstance(v, float) else f"{v}" for v in attempt.values()
                     if v not in (None, "", [], {}))  # fmt: skip
            text = ", ".join(words)
            lines.append(tr("    tried {text}", text=text))
        if check.fix:
            lines.append(tr("    fix: {fix}", fix=check.fix))
        if check.name == "Settings":
            lines += [f"    {k}={v}" for k, v in check.facts.items() if v != "None"]
    usable = [name for name, good in result.backends.items() if good]
    lines.append(tr("available backends: {usable}", usable=", ".join(usable)))
    return "\n".join(lines)


def _show_report(report: FieldReport, args: argparse.Namespace) -> str:
    if report.device is None:
        lines = [f"{attempt.what}: {attempt.result}" for attempt in report.attempts]
    else:
        own = report.device
        rows = [
            [k.kernel, k.dtype, k.way or "–", k.cases, k.verdict, _micros(k.seconds), k.detail]
            for k in report.kernels
        ]
        headers = [
            tr("kernel"),
            tr("type"),
            tr("variant"),
            tr("cases"),
            tr("verdict"),
            "µs",
            tr("reason"),
        ]
        counts = Counter(k.verdict for k in report.kernels)
        lines = [
            tr(
                "{device} ({platform}), driver {driver}",
                device=own.name,
                platform=own.platform,
                driver=own.driver,
            ),
            "",
            table(headers, rows, right=(3, 5)),
            "",
            tr(
                "{variants}, {cases}: ",
                variants=trn("{n} kernel variant", "{n} kernel variants", len(rows)),
                cases=trn("{n} case", "{n} cases", sum(k.cases for k in report.kernels)),
            )
            + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()),
        ]
    if args.field_report:
        lines.append(tr("wrote {path}", path=args.field_report))
    return "\n".join(lines)


def _micros(seconds: float) -> str:
    return f"{seconds * 1e6:.1f}" if seconds else "–"


def _code(result: Examination | FieldReport, args: argparse.Namespace) -> int:
    from lite_engine.doctor import FieldReport

    if isinstance(result, FieldReport):
        return 0 if result.sound else 1
    if (args.model or args.device != "local") and result.checks[0].state == "bad":
        return 1
    return 0 if args.backend is None or result.backends.get(args.backend, False) else 1


COMMAND = Command("doctor", _configure, _call, _show, _code, lambda result: result.to_dict())
