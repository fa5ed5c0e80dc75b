"""Networks as files: ONNX, its inputs, its QDQ form, and what each peer reads; made once.

python -m benchmarks.models ENGINE IN OUT PRECISION|qdq|quantise FEEDS    # one, in its environment
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.environments import exporter, python_of
from benchmarks.peers import peer

if TYPE_CHECKING:
    import onnx

CONVERT_SECONDS = 2000
#: Before a name of `benchmarks.wide`, some of which the zoo has too.
WIDE = "wide/"


class Files:
    """Model files below one folder, kept between runs.

    The key of a network is the hash of its bytes: a changed network makes new files.
    `batch`: how many of its samples a network takes at once.
    """

    def __init__(self, folder: Path, batch: int = 1) -> None:
        self.folder = folder
        self.batch = batch
        self._ours: set[Path] = set()
        self._refused: dict[Path, str] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def network(self, name: str) -> tuple[Path, Path]:
        """The ONNX file and its inputs (.npz): of the zoo, of `benchmarks.wide`, or any ONNX file,
        whose inputs are those of the .npz file beside it, or seeded. Raises RuntimeError where it
        cannot be read or exported."""
        import onnx

        from benchmarks import wide, zoo

        if name.startswith(WIDE):
            return self._exported(name.removeprefix(WIDE), wide.key())
        beside = Path(name).with_suffix(".npz")
        try:
            model = onnx.load(name) if name.endswith(".onnx") else zoo.build(name)
            given = name.endswith(".onnx") and beside.exists()
            feeds = dict(np.load(beside)) if given else feeds_of(model)
        except KeyError as error:
            raise RuntimeError(error.args[0]) from None
        except Exception as error:  # whatever the parsers of a file raise
            raise RuntimeError(f"{name}: {error}") from error
        if self.batch > 1:
            model = with_batch(model, self.batch)
            rolled = ((k, [np.roll(v, i, -1) for i in range(self.batch)]) for k, v in feeds.items())
            feeds = {key: np.concatenate(samples) for key, samples in rolled}
        return self._kept(f"{Path(name).stem}{self._suffix}", model, feeds)

    @property
    def _suffix(self) -> str:
        return f"-batch{self.batch}" if self.batch > 1 else ""

    def _kept(
        self, name: str, model: onnx.ModelProto, inputs: dict[str, np.ndarray]
    ) -> tuple[Path, Path]:
        import hashlib

        data = model.SerializeToString(deterministic=True)
        digest = hashlib.sha256(data)
        for value in inputs.values():
            digest.update(value.tobytes())
        path = self.folder / f"{name}-{digest.hexdigest()[:12]}.onnx"
        feeds = path.with_suffix(".npz")
        if not feeds.exists():
            path.write_bytes(data)
            np.savez(feeds, **inputs)  # type: ignore[arg-type]
        return path, feeds

    def _exported(self, name: str, key: str) -> tuple[Path, Path]:
        """A network that another library builds; `key` is of what builds it."""
        if not re.fullmatch(r"[\w.-]+", name):
            raise RuntimeError(f"{name!r} is no network's name: letters, digits, _, - and . only")
        path = self.folder / f"wide-{name}{self._suffix}-{key}.onnx"
        feeds = path.with_suffix(".npz")
        if not feeds.exists():
            with tempfile.TemporaryDirectory(dir=self.folder) as folder:
                part = Path(folder) / path.name
                _run(
                    [exporter(), "-m", "benchmarks.wide.export", name, str(part), str(self.batch)],
                    f"the export of {name}",
                )
                part.rename(path)
                part.with_suffix(".npz").rename(feeds)
        return path, feeds

    def model(self, engine: str, onnx_path: Path, feeds: Path, precision: str) -> Path:
        """What an engine reads. Raises RuntimeError with the converter's last line."""
        module = peer(engine)
        if precision not in module.PRECISIONS:
            raise RuntimeError(f"no {precision}")
        source = onnx_path
        if precision == "int8" and hasattr(module, "quantise"):
            source = self.model(engine, onnx_path, feeds, "fp32")
            return self._make(
                engine, source, source.with_suffix(f".int8.{module.FORMAT}"), "quantise", feeds
            )
        if precision == "int8":
            qdq = source.with_name(f"{source.stem}-qdq.onnx")
            source = self._make("onnxruntime", source, qdq, "qdq", feeds)
        if not hasattr(module, "convert"):
            return source
        out = source.with_name(f"{source.stem}-{precision}.{module.FORMAT}")
        if engine == "lite" and out not in self._ours:
            out.unlink(missing_ok=True)  # made by another state of the engine
            self._ours.add(out)
        return self._make(engine, source, out, precision, feeds)

    def _make(self, engine: str, source: Path, out: Path, what: str, feeds: Path) -> Path:
        """`out`, made by a process of its own unless it is there. What a converter refused is not
        tried again: some need minutes for that."""
        if out.exists():
            return out
        if out in self._refused:
            raise RuntimeError(self._refused[out])
        part = out.with_name(f"part-{os.getpid()}-{out.name}")
        python = python_of(engine, converting=what != "quantise")
        command = [python, "-m", "benchmarks.models", engine, str(source), str(part), what]
        try:
            _run([*command, str(feeds)], "conversion")
            if not part.exists():
                raise RuntimeError("no file was written")
        except RuntimeError as error:
            self._refused[out] = str(error)
            raise
        part.rename(out)
        return out


def with_batch(model: onnx.ModelProto, batch: int) -> onnx.ModelProto:
    """The network for `batch` samples at once, by `lite_engine.edit`. Raises RuntimeError where it
    cannot have them."""
    import onnx
    from lite_engine.edit import rebatch
    from lite_engine.exporters.onnx import write_bytes
    from lite_engine.importers.onnx import read_bytes

    made = rebatch(read_bytes(model.SerializeToString()), batch)
    for refusal in made.refused:
        raise RuntimeError(f"batch {batch}: {refusal.layer} ({refusal.op}): {refusal.why}")
    opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    return onnx.load_from_string(write_bytes(made.graph, opset=opset))


def _run(command: list[str], what: str) -> None:
    """Raises RuntimeError with the last line that a failing command said."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=CONVERT_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise RuntimeError(f"{what} took more than {CONVERT_SECONDS} s") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it failed without a message"]
        raise RuntimeError(lines[-1][:300])


def feeds_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """Seeded inputs by name: standard normal floats, integers 0 or 1; open sizes are 1."""
    import onnx

    rng = np.random.default_rng(0)
    out: dict[str, np.ndarray] = {}
    for value in model.graph.input:
        tensor = value.type.tensor_type
        shape = [d.dim_value or 1 for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        floats = dtype.kind == "f"
        drawn = rng.standard_normal(shape) if floats else rng.integers(0, 2, shape)
        out[value.name] = drawn.astype(dtype)
    return out


def quantise(source: Path, out: Path, feeds_file: Path) -> None:
    """Static quantisation by onnxruntime, calibrated on the network's own seeded inputs."""
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    with np.load(feeds_file) as file:
        feeds = {name: file[name] for name in file.files}

    class Reader(CalibrationDataReader):  # type: ignore[misc]
        rest = iter([feeds])

        def get_next(self) -> dict[str, np.ndarray] | None:
            return next(self.rest, None)

    source, out, before = source.resolve(), out.resolve(), Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # where it leaves parts of a model that it fails on
        try:
            folded = Path(folder, "folded.onnx")
            quant_pre_process(source, folded)  # batch normalisation into convolutions
            quantize_static(
                folded, out, Reader(), per_channel=True, activation_type=QuantType.QUInt8,
                weight_type=QuantType.QInt8,
            )  # fmt: skip
        finally:
            os.chdir(before)


def main() -> None:
    engine, what = sys.argv[1], sys.argv[4]
    source, out, feeds = (Path(sys.argv[i]) for i in (2, 3, 5))
    if what == "qdq":
        quantise(source, out, feeds)
    elif what == "quantise":
        peer(engine).quantise(source, out, feeds)
    else:
        peer(engine).convert(source, out, what)


if __name__ == "__main__":
    main()
