"""What a verb is: arguments, a call that returns an object, and how that object is shown.

The `lite` command and the `%lite` magic run the same verbs: the command prints `show`, the magic
hands the object to the notebook.
"""

from __future__ import annotations

import argparse
import difflib
import math
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from lite_engine.errors import UsageError
from lite_engine.files import write_file
from lite_engine.whole_numbers import checked_whole
from lite_messages import tr

from ..schemas import schema_name

if TYPE_CHECKING:
    from lite_engine.model_file import Model

    from ..evaluate import Drop

Result = TypeVar("Result")

PREPROCESS_HELP = tr(
    "image preprocessing: a scale (imagenet, pm1 for -1…1, unit for 0…1, or "
    "raw), a color order and a resize mode (stretch, crop, crop=224/256 or "
    "letterbox; default: stretch), like pm1,bgr,crop; or "
    "mean=127,std=128,size=240x320; or JSON"
)


ADAPTER_HELP = tr(
    "how outputs are read: text, top, boxes, mask, regions, keypoints, vector or image, with "
    "options like threshold=0.3 or overlap=0.5 (docs/pipelines.md lists them), or "
    "FILE.py:FUNCTION (default: as stored in the model, else by the output shapes)"
)


@dataclass(frozen=True)
class Command(Generic[Result]):
    """One verb. `call(args)` returns a result; `show(result, args)` is its text; `data(result)` the
    document that --json writes (a verb without it has no such option); `code(result, args)` its
    exit code (0 good, 1 the thing asked for failed or fell short, 3 see `compare`)."""

    name: str
    configure: Callable[[argparse.ArgumentParser], None]
    call: Callable[[argparse.Namespace], Result]
    show: Callable[[Result, argparse.Namespace], str]
    code: Callable[[Result, argparse.Namespace], int] = lambda result, args: 0
    data: Callable[[Result], Mapping[str, Any]] | None = None
    #: Whether a `.lite` file that it reads may be its own --output.
    rewrites: bool = False

    def text(self, result: Result, args: argparse.Namespace) -> str:
        """What is printed, nothing with --json -; writes the --json document first."""
        if self.data is not None and args.json:
            write_json({"schema": schema_name(self.name), **self.data(result)}, args.json)
            if args.json == "-":
                return ""
        return self.show(result, args)


class _Help(argparse.HelpFormatter):
    """The words that argparse itself prints, in the person's language."""

    def add_usage(self, usage: Any, actions: Any, groups: Any, prefix: str | None = None) -> None:
        super().add_usage(usage, actions, groups, tr("usage: ") if prefix is None else prefix)

    def start_section(self, heading: str | None) -> None:
        known = {
            "positional arguments": tr("positional arguments"),
            "options": tr("options"),
        }
        super().start_section(known.get(heading or "", heading))


class LiteParser(argparse.ArgumentParser):
    """Raises UsageError instead of printing usage and leaving the process."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=_Help, add_help=False)
        self.add_argument("-h", "--help", action="help", help=tr("show this help message and exit"))

    def error(self, message: str) -> NoReturn:
        raise UsageError(tr("{message} (see `{prog} --help`)", message=message, prog=self.prog))

    def read(self, words: Sequence[str]) -> argparse.Namespace:
        """The options of these words. Raises UsageError."""
        if any("\0" in word for word in words):  # no file has such a name
            self.error(tr("an argument contains a NUL character"))
        rest = self.parse_known_args(list(words))[1]
        file = next((word for word in rest if Path(word).is_file()), "")
        if file and "--input" in self._option_string_actions:
            raise UsageError(
                tr("{file} is given without an option", file=file),
                fix=tr("pass it as `--input {file}`", file=shlex.quote(file)),
            )
        for word in rest:
            option = word.partition("=")[0]
            near = difflib.get_close_matches(option, self._option_string_actions, n=1)
            if near and option.startswith("--"):
                raise UsageError(
                    tr("{prog} has no option {option}", prog=self.prog, option=option),
                    fix=tr("did you mean {near}?", near=near[0]),
                )
        return self.parse_args(list(words))


def at_least(least: int) -> Callable[[str], int]:
    """Reads a whole number of at least that much. Raises argparse's error."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        try:
            return checked_whole(number, least, said=text)
        except UsageError as error:
            raise argparse.ArgumentTypeError(error.what) from None

    return read


def lite_name(text: str) -> str:
    """Reads the name of a .lite file to write. Raises argparse's error for another format's."""
    from lite_engine.importers import SUFFIXES

    if text.lower().endswith(SUFFIXES):
        raise argparse.ArgumentTypeError(
            tr("{text} has another format's extension: this command writes .lite files", text=text)
        )
    return text


def _number(low: float, high: float, what: str) -> Callable[[str], float]:
    """Reads a number within these bounds. Raises argparse's error."""

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(tr("{text!r} is not {what}", text=text, what=what))
        return number

    return read


_MOST = sys.float_info.max
#: A part of a whole.
share = _number(0, 1, tr("a number from 0 to 1"))
percent = _number(0, _MOST, tr("a percentage, like 5"))
_loss = _number(0, _MOST, tr("a loss, like 0.5% or 0.5dB"))


def drop(text: str) -> Drop:
    """0.5%, 0.5dB or 0.5. Raises argparse's error."""
    from ..evaluate import Drop

    given = text.strip()
    unit = next((u for u in ("%", "dB") if given.casefold().endswith(u.casefold())), "")
    return Drop(_loss(given[: len(given) - len(unit)]), unit)


positive = _number(0, _MOST, tr("a number of 0 or more"))
decibels = _number(-_MOST, _MOST, tr("a number of decibels, like 25"))


def parse_shape(text: str) -> tuple[str, tuple[int, ...]]:
    """`name:1x3x224x224` → name, dims. Raises argparse's error."""
    name, _, dims = text.rpartition(":")
    try:
        shape = tuple(int(d) for d in dims.lower().split("x") if d)
    except ValueError:
        shape = ()
    if not name or not shape or any(d < 0 for d in shape):
        raise argparse.ArgumentTypeError(
            tr("{text!r} is not of the form NAME:1x3x224x224", text=text)
        )
    return name, shape


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL and the options that say how to read it."""
    parser.add_argument("model", metavar="MODEL", help=tr("a model file or folder"))
    parser.add_argument(
        "--params", metavar="FILE", help=tr("the weights file, for formats with two files")
    )
    add_shape(parser)


def add_calibration(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--calibration",
        metavar="DIR|FILE",
        help=tr("typical inputs: a folder of images or .npy files, or an array file"),
    )


def add_shape(parser: argparse.ArgumentParser, about: str = "") -> None:
    parser.add_argument(
        "--shape",
        action="append",
        default=[],
        type=parse_shape,
        metavar="NAME:DIMS",
        help=about or tr("fix the shape of an input, like x:1x3x224x224; repeatable"),
    )


def add_ship_kernels(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ship-kernels", action="store_true",
        help=tr("put the C and OpenCL kernels of the model's own operators into the file; a device "
                "loads them only with `lite_run_opencl --trust`"),
    )  # fmt: skip


def add_targets(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--targets",
        default="",
        metavar="arm,x86,opencl",
        help=tr(
            "targets in order of preference (default: those of a .lite file, else x86,arm,opencl)"
        ),
    )


def add_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help=tr("an image, .npy, .npz, .csv or .wav file (default: random data); repeatable"),
    )


def backend_word(text: str) -> str:
    """A backend of the engine or of an installed package. Raises argparse's error."""
    from lite_engine import settings

    if text not in settings.BACKENDS and text not in settings.backends():
        raise argparse.ArgumentTypeError(
            tr("{text!r} is not one of {words}", text=text, words=", ".join(settings.backends()))
        )
    return text


def add_backend(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--backend",
        default="auto",
        type=backend_word,
        metavar="BACKEND",
        help=tr(
            "the backend to run on: auto, x86, arm, wasm, opencl, reference, or one of an "
            "installed package (default: the best one available)"
        ),
    )
    parser.add_argument(
        "--threads", type=at_least(1), metavar="N", help=tr("number of CPU threads")
    )
    parser.add_argument(
        "--precision",
        choices=("fp32", "fp16", "bf16", "int8"),
        help=tr(
            "storage type of float values, or int8 if the file has it (default: as in the file)"
        ),
    )


EFFORTS = ("rapid", "normal", "exhaustive")


def add_effort(parser: argparse.ArgumentParser, about: str) -> None:
    parser.add_argument("--tune", choices=EFFORTS, metavar="EFFORT", help=about)


def add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--device",
        default="local",
        metavar="D",
        help=tr(
            "local, emulated[:CPU], ssh://user@host, adb://SERIAL, or a name from `lite devices`"
        ),
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--json",
        metavar="FILE",
        help=tr("write the result as JSON; - writes it to standard output instead of the text"),
    )


def write_json(data: Mapping[str, Any], target: str) -> None:
    from lite_engine.runtime import strict_json

    write_text(strict_json.dumps(data, indent=2, ensure_ascii=False) + "\n", target)


def write_text(text: str, target: str) -> None:
    """Writes a file; - is standard output."""
    if target == "-":
        sys.stdout.write(text)
    else:
        write_file(target, text)


def load_model(args: argparse.Namespace) -> Model:
    """MODEL of the arguments as a Model. Raises LiteError."""
    from pathlib import Path

    from lite_engine.importers import load
    from lite_engine.model_file import is_lite, open_model, optimize, with_shapes

    path, shapes = Path(args.model), dict(args.shape)
    if is_lite(path):
        if args.params:
            raise UsageError(
                tr("{path} already contains its weights", path=path), fix=tr("leave out --params")
            )
        model = with_shapes(open_model(path), shapes)
        _check_int8(model, args)
        return model
    graph = load(path, params=args.params, shapes=shapes)
    model = optimize(graph)
    model.path = path
    _check_int8(model, args)
    return model


def set_preprocess(model: Model, args: argparse.Namespace) -> None:
    """What --preprocess says, where it is given. Raises UsageError."""
    from lite_engine.preprocess import Preprocess

    if args.preprocess:
        known = model.metadata.get("preprocess")
        model.metadata["preprocess"] = Preprocess.parse(args.preprocess, known).to_dict()


def _check_int8(model: Model, args: argparse.Namespace) -> None:
    """Raises UsageError for --precision int8 when nothing in the model is int8."""
    from lite_engine.model_file.precision import check_int8

    if "int8" in (getattr(args, "precision", None) or "").split(","):
        check_int8(model.graph_in("int8"), {tr("this model"): "int8"})
