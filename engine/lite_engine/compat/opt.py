"""`opt` with Paddle-Lite's flags, and its Python class Opt. Unlike Paddle-Lite's, success exits 0.

run_opt(["--model_file=m.pdmodel", "--param_file=m.pdiparams", "--optimize_out=m",
         "--valid_targets=arm,opencl"])                                   # m.nb
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from lite_messages import tr

from .._version import __version__
from ..errors import LiteError, UsageError, check_choice
from ..extensions import BACKENDS, found
from ..files import keep_inputs
from ..importers import load
from ..importers.paddle.registry import known_types
from ..ir import Graph
from ..model_file import optimize
from ..model_file.naive_buffer import Int8Layers, SparseLayers, kernels, write_nb
from ..terminal import error_line
from .opt_reports import int8_notes, sparse_notes, write_pictures, write_tailoring_lists
from .opt_tables import _markdown, _table, _types, model_table, supported_table

QUANT_BITS = {"QUANT_INT8": 8, "QUANT_INT16": 16}
_SUFFIX = {"naive_buffer": ".nb", "lite": ".lite"}
_OURS = ("arm", "x86", "opencl")
#: Paddle-Lite's other targets: known, not built here.
_OTHERS = (
    "host", "metal", "npu", "xpu", "apu", "rknpu", "mlu", "bm", "fpga", "intel_fpga", "nnadapter",
    "cambricon_mlu", "huawei_ascend_npu", "imagination_nna", "mediatek_apu", "huawei_kirin_npu",
    "verisilicon_timvx", "android_nnapi", "eeasytech_npu", "qualcomm_qnn", "kunlunxin_xtcl",
    "amlogic_npu", "rockchip_npu",
)  # fmt: skip
#: Those that a backend of another name reaches, by its execution providers.
_REACHED_BY = {"qualcomm_qnn": "onnxruntime", "android_nnapi": "onnxruntime",
               "metal": "onnxruntime"}  # fmt: skip


def _flag(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise argparse.ArgumentTypeError(tr("expected true or false, got {text!r}", text=text))
    return text.lower() in ("true", "1")


def _parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(
        "lite opt", description=tr("Convert a model with Paddle-Lite's flags."), allow_abbrev=False
    )
    p.add_argument("--version", action="version", version=__version__)
    add_flags(p)
    return p


def add_flags(p: argparse.ArgumentParser) -> None:
    """Paddle-Lite's flags, for `run`."""
    p.add_argument("--model_dir", default="", help=tr("folder with __model__ and parameters"))
    p.add_argument("--model_file", default="", help=tr("program (or a model of any known format)"))
    p.add_argument("--param_file", default="", help=tr("combined parameter file"))
    p.add_argument("--model_set_dir", default="", help=tr("folder of model folders to convert"))
    p.add_argument("--model_filename", default="", help=tr("program in each folder of the set"))
    p.add_argument(
        "--param_filename", default="", help=tr("parameter file in each folder of the set")
    )
    p.add_argument("--optimize_out", default="", help=tr("path of the result, without suffix"))
    p.add_argument(
        "--optimize_out_type",
        default="naive_buffer",
        choices=[*_SUFFIX, "protobuf"],
        help=tr("naive_buffer (.nb, the default) or lite (.lite); protobuf is not supported"),
    )
    p.add_argument(
        "--valid_targets", default="arm",
        help=tr("arm, x86 or opencl, or several, like arm,opencl (default: arm)"),
    )  # fmt: skip
    p.add_argument(
        "--quant_type", default="QUANT_INT16", choices=list(QUANT_BITS),
        help=tr("integer type that --quant_model stores (default: QUANT_INT16)"),
    )  # fmt: skip
    for name, text in (
        ("quant_model", tr("store weights as integers")),
        ("enable_fp16", tr("use fp16 on arm")),
        ("print_model_ops", tr("list the model's operators and whether the targets support them")),
        ("print_supported_ops", tr("list the operators that the targets support")),
        ("print_all_ops", tr("list the operators of every target")),
        ("print_all_ops_in_md_format", tr("the same as a Markdown table")),
        ("record_tailoring_info", tr("write lists of the result's operators and kernels")),
        ("sparse_model", tr("store 1x1 convolutions with many zeros for arm's sparse kernels")),
    ):
        p.add_argument(f"--{name}", type=_flag, nargs="?", const=True, default=False, help=text)
    p.add_argument(
        "--insert-print", "--insert_print", metavar="NAME,…", nargs="?", const="",
        help=tr("add print operators to the .nb, after these values or after every layer"),
    )  # fmt: skip
    p.add_argument(
        "--sparse_threshold", type=float, default=SparseLayers.threshold,
        help=tr("share of zeros from which --sparse_model takes a layer (default: 0.6)"),
    )  # fmt: skip
    p.add_argument("--optimized_nb_model_path", default="", help=tr(".nb file to draw"))
    p.add_argument(
        "--visualization_file_output_path", default="", help=tr("folder of its .dot files")
    )


def run_opt(argv: Sequence[str]) -> int:
    """The command. Exit code 0 good, 1 the conversion failed, 2 wrong usage."""
    try:
        options = _parser().parse_args(list(argv))
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        run(options)
    except UsageError as error:
        print(error_line(error), file=sys.stderr)
        return 2
    except LiteError as error:
        print(error_line(error), file=sys.stderr)
        return 1
    return 0


def targets_of(text: str) -> list[str]:
    """`arm,opencl` or `arm opencl` → names. Paddle-Lite's other targets are left out where one of
    ours stands beside them, with the backend package that they need. Raises UsageError."""
    names = list(dict.fromkeys(text.replace(",", " ").split()))
    ours = [n for n in names if n in _OURS]
    others = [n for n in names if n in _OTHERS and n != "host"]
    unknown = any(n not in (*_OURS, *_OTHERS) for n in names)
    if others and not ours and not unknown:
        raise UsageError(
            "; ".join(map(_needs, others)),
            fix=tr("add arm, x86 or opencl for the operators that it does not support"),
        )
    if not ours or unknown:
        raise UsageError(
            tr("--valid_targets {text!r}: choose from {ours}", text=text, ours=", ".join(_OURS))
        )
    for name in others:
        _note(tr("{needs}; {ours} is used instead", needs=_needs(name), ours=ours[0]))
    return ours


def _needs(target: str) -> str:
    """What reaches a target of Paddle-Lite that the engine has no backend of its own for."""
    backend = _REACHED_BY.get(target, target)
    if backend in found(BACKENDS):
        return tr(
            "{target}: the same file also serves the backend {backend}, which is chosen "
            "where the model runs (--backend {backend})",
            target=target,
            backend=backend,
        )
    return tr(
        "{target} needs the backend package lite-backend-{package}, which is not installed",
        target=target,
        package=backend.replace("_", "-"),
    )


def _note(text: str) -> None:
    print(tr("note: {text}", text=text), file=sys.stderr)


def run(options: argparse.Namespace) -> list[Path]:
    """Does what the flags say; the model files written. Raises LiteError."""
    targets = targets_of(options.valid_targets)
    if options.print_all_ops_in_md_format:
        print(supported_table(_OURS, _markdown))
        return []
    if options.print_all_ops or options.print_supported_ops:
        print(supported_table(_OURS if options.print_all_ops else targets))
        return []
    if options.optimized_nb_model_path and options.visualization_file_output_path:
        folder = Path(options.visualization_file_output_path)
        for path in write_pictures(Path(options.optimized_nb_model_path), folder):
            print(
                tr(
                    "{path}: `dot -Tpdf {path} -o {picture}` draws it",
                    path=path,
                    picture=path.with_suffix(".pdf"),
                )
            )
        return []
    if options.print_model_ops:
        print(model_table(_open(options), targets))
        return []
    if options.optimize_out_type == "protobuf":
        raise UsageError(
            tr("--optimize_out_type protobuf is not supported"), fix=tr("use naive_buffer or lite")
        )
    if not options.optimize_out:
        raise UsageError(tr("--optimize_out is missing"), fix=tr("name the result with it"))
    written = [_convert(one, targets) for one in _one_by_one(options)]
    if options.record_tailoring_info:
        _record(written, Path(options.optimize_out))
    return written


def _one_by_one(options: argparse.Namespace) -> list[argparse.Namespace]:
    """The options for each model of --model_set_dir, which come out as OPTIMIZE_OUT/NAME.nb; the
    options themselves without it. Raises UsageError."""
    if not options.model_set_dir:
        return [options]
    root = Path(options.model_set_dir)
    folders = sorted(p for p in root.iterdir() if p.is_dir()) if root.is_dir() else []
    if not folders:
        raise UsageError(tr("--model_set_dir {root}: there is no folder in it", root=root))
    Path(options.optimize_out).mkdir(parents=True, exist_ok=True)
    return [
        argparse.Namespace(**{
            **vars(options),
            "model_dir": str(folder),
            "model_file": str(folder / options.model_filename) if options.model_filename else "",
            "param_file": str(folder / options.param_filename) if options.param_filename else "",
            "optimize_out": str(Path(options.optimize_out) / folder.name),
        })
        for folder in folders
    ]  # fmt: skip


def _convert(options: argparse.Namespace, targets: Sequence[str]) -> Path:
    graph = _open(options)
    suffix = _SUFFIX[options.optimize_out_type]
    out = Path(options.optimize_out)
    out = out if out.suffix == suffix else out.with_name(out.name + suffix)
    keep_inputs(out, [options.model_file] if options.model_file else [], "--optimize_out")
    if suffix == ".nb":
        bits = QUANT_BITS[options.quant_type] if options.quant_model else None
        prints = None
        if options.insert_print is not None:
            prints = [name for name in options.insert_print.split(",") if name]
        sparse = SparseLayers(options.sparse_threshold) if options.sparse_model else None
        int8 = Int8Layers()
        write_nb(
            graph, out, targets=targets, weight_bits=bits, fp16=options.enable_fp16, prints=prints,
            sparse=sparse, int8=int8,
        )  # fmt: skip
        for line in [*sparse_notes(sparse), *int8_notes(int8)]:
            _note(line)
    else:
        if options.insert_print is not None:
            raise UsageError(
                tr("--insert-print needs a .nb file"),
                fix=tr("use `lite run --tap` for .lite files"),
            )
        if options.quant_model:
            raise UsageError(
                tr("--quant_model writes .nb files"), fix=tr("use `lite quantize` for .lite files")
            )
        precision = "fp16" if options.enable_fp16 else "fp32"
        optimize(graph, targets=targets, precision=precision).save(out)
    print(
        tr(
            "{out}: {size} bytes, for {targets}",
            out=out,
            size=out.stat().st_size,
            targets=", ".join(targets),
        )
    )
    return out


def _record(files: Sequence[Path], out: Path) -> None:
    if any(file.suffix != ".nb" for file in files):
        raise UsageError(
            tr("--record_tailoring_info needs a .nb file"),
            fix=tr("use `lite export --trim` for .lite files"),
        )
    for path in write_tailoring_lists(files, out.with_suffix("") if out.suffix == ".nb" else out):
        print(tr("wrote {path}", path=path))


def _open(options: argparse.Namespace) -> Graph:
    """--model_file goes before --model_dir, as in Paddle-Lite."""
    path = options.model_file or options.model_dir
    if not path:
        raise UsageError(
            tr("give --model_dir, or --model_file with --param_file, or --model_set_dir")
        )
    return load(path, params=options.param_file or None)


class Opt:
    """Paddle-Lite's Opt: set, then `run()`."""

    def __init__(self) -> None:
        self._options = _parser().parse_args([])

    def set_model_dir(self, path: str) -> None:
        self._options.model_dir = path

    def set_model_file(self, path: str) -> None:
        self._options.model_file = path

    def set_param_file(self, path: str) -> None:
        self._options.param_file = path

    def set_valid_places(self, targets: str) -> None:
        self._options.valid_targets = ",".join(targets_of(targets))

    def set_model_type(self, kind: str) -> None:
        """naive_buffer or lite. Raises UsageError."""
        check_choice("optimize_out_type", kind, _SUFFIX)
        self._options.optimize_out_type = kind

    def set_optimize_out(self, path: str) -> None:
        self._options.optimize_out = path

    def set_quant_model(self, quantize: bool) -> None:
        self._options.quant_model = bool(quantize)

    def set_quant_type(self, kind: str) -> None:
        """QUANT_INT8 or QUANT_INT16. Raises UsageError."""
        check_choice("quant_type", kind, QUANT_BITS)
        self._options.quant_type = kind

    def enable_fp16(self) -> None:
        self._options.enable_fp16 = True

    def set_modelset_dir(self, path: str) -> None:
        self._options.model_set_dir = path

    def record_model_info(self, record: bool) -> None:
        self._options.record_tailoring_info = bool(record)

    def set_sparse_model(self, sparse: bool) -> None:
        self._options.sparse_model = bool(sparse)

    def set_sparse_threshold(self, threshold: float) -> None:
        self._options.sparse_threshold = float(threshold)

    def set_passes_internal(self, passes: Sequence[str]) -> None:
        """Accepted: the passes are the engine's own."""
        _note(
            tr(
                "{passes}: the passes are the engine's own (`lite convert --journal`)",
                passes=", ".join(passes),
            )
        )

    def run(self) -> None:
        """Writes the result. Raises LiteError."""
        run(self._options)

    def run_optimize(
        self, model_dir: str, model_file: str, param_file: str, model_type: str, targets: str,
        out: str,
    ) -> None:  # fmt: skip
        """All at once, in Paddle-Lite's order of arguments."""
        self.set_model_dir(model_dir)
        self.set_model_file(model_file)
        self.set_param_file(param_file)
        self.set_model_type(model_type)
        self.set_valid_places(targets)
        self.set_optimize_out(out)
        self.run()

    def print_supported_ops(self) -> None:
        print(supported_table(targets_of(self._options.valid_targets)))

    def print_all_ops(self) -> None:
        print(supported_table(_OURS))

    def check_if_model_supported(self, print_ops: bool = False) -> bool:
        """True when every operator has a kernel on one of the targets."""
        graph, targets = _open(self._options), targets_of(self._options.valid_targets)
        if print_ops:
            print(model_table(graph, targets))
        return all(any(kernels.kernel_for(t, name) for name in targets) for t in _types(graph))

    def print_all_ops_in_md_dormat(self) -> None:  # spelt as in Paddle-Lite
        print(supported_table(_OURS, _markdown))

    def display_kernels_info(self) -> None:
        """The kernel strings that `.nb` files get, by operator and target."""
        rows = [["operator", *_OURS]]
        for name in known_types():
            cells = [kernels.kernel_for(name, t) or "-" for t in _OURS]
            rows += [[name, *cells]] if set(cells) != {"-"} else []
        print(_table(rows))

    def visualize_optimized_nb_model(self, nb: str, folder: str) -> list[str]:
        """The `.dot` files that were written. Raises LiteError."""
        return [str(path) for path in write_pictures(Path(nb), Path(folder))]

    def help(self) -> None:
        print(_parser().format_help())

    executablebin_help = help

    def version(self) -> str:
        return __version__


if __name__ == "__main__":
    sys.exit(run_opt(sys.argv[1:]))
