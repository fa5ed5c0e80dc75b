"""The program that a `.lite` file holds for this machine's CPU, run as it lies there: no graph is
read, no operator is imported, nothing is planned. What starts a process fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._version import __version__
from ..backends.cpu.native import NativeFile, NativeProgram
from ..errors import LiteError
from ..mapped import FileState
from ..model_file import Model
from .shares import Share, shares


class StoredProgram:
    """Arrays in, arrays out, in the model's own shapes. Not for two threads at once."""

    def __init__(self, program: NativeProgram, file: FileState) -> None:
        self._program, self._file = program, file
        self._types = {i.name: (i.dims, i.dtype.np) for i in program.inputs}
        self.input_names = list(self._types)
        self.output_names = [o.name for o in program.outputs]

    @classmethod
    def open(cls, model: Model, *, threads: int) -> StoredProgram | None:
        """None when the file has no program that this engine would have made: another version
        wrote it, it pads its rows (passes/fixed_rows), or the runtime does not take it; the graph
        is then planned anew."""
        made_by, padded = (model.metadata.get(key) for key in ("engine", "padded"))
        if model.path is None or made_by != __version__ or padded:
            return None
        try:
            file = NativeFile(model.path)
            return cls(NativeProgram.of_file(file, threads=threads), file.state)
        except LiteError:
            return None  # planning from the graph says what is wrong, if it still is

    def fits(self, feeds: Mapping[str, Any]) -> bool:
        """Whether these are arrays of just the program's types and shapes."""
        return feeds.keys() == self._types.keys() and all(
            isinstance(a, np.ndarray) and (a.shape, a.dtype) == self._types[name]
            for name, a in feeds.items()
        )

    def shares(self) -> dict[str, Share]:
        """Of the last run: all on the CPU."""
        steps = [s for s in self._program.steps() if s.op != "Relayout"]
        return shares(("cpu", s.end_ns - s.start_ns) for s in steps)

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Raises BackendUnavailableError when the run fails, ModelFormatError when the file was
        overwritten."""
        self._file.check()
        outputs = self._program.run([feeds[name] for name in self.input_names])
        return dict(zip(self.output_names, outputs, strict=True))
