"""`lite export`: a folder with everything that goes to the device."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from ._base import Command, add_json, add_model, load_model, wants_json_only, write_json
from ._table import bytes_text, table


def _configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("-o", "--output", required=True, metavar="DIR", help="folder to fill")
    parser.add_argument("--target", default="arm", choices=("arm", "x86"), help="CPU there (arm)")
    parser.add_argument(
        "--trim",
        action="store_true",
        help="runner and library with this model's kernels only (needs sources and a compiler)",
    )
    add_json(parser)


def _call(args: argparse.Namespace) -> Any:
    from lite_engine.export import export_model

    model = load_model(args)
    return export_model(model, Path(args.output), args.target, trimmed=args.trim)


def _show(result: Any, args: argparse.Namespace) -> str:
    from lite_engine.export import what_is

    if args.json:
        write_json(result.to_dict(), args.json)
        if wants_json_only(args):
            return ""
    rows = [[file, bytes_text(size), what_is(file)] for file, size in result.sizes.items()]
    total = sum(result.sizes.values())
    lines = [table(["file", "size", "what"], rows, right=(1,)), ""]
    lines.append(f"wrote {result.folder} for {result.target}: {bytes_text(total)}")
    if result.kernels:
        lines.append(f"kernels kept: {', '.join(result.kernels)}")
    return "\n".join(lines)


COMMAND = Command("export", "what goes to the device, in one folder", _configure, _call, _show)
