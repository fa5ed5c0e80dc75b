"""The words that a Session and its parts speak: backends, versions of a model, its files."""

from pathlib import Path

from lite_engine.errors import UsageError
from lite_messages import tr

BACKENDS = ("x86", "arm", "wasm", "opencl", "reference")
FLOAT, INT8, MIXED, PRUNED = "float", "int8", "mixed", "pruned"
#: What stands in place of "float" where the file holds integers already.
GIVEN = "as in the file"
#: A version with the precision of single layers set by hand.
CUSTOM = "custom"


def stem_of(path: Path) -> str:
    """What files made from a model are called: its name, without the suffix of a file."""
    return path.name if path.is_dir() else path.stem


def with_ending(path: str | Path, ending: str) -> Path:
    """The path with this suffix, put behind what is there: model_0.25 → model_0.25.lite. Raises
    UsageError for a path without a name."""
    path = Path(path)
    if not path.name:
        raise UsageError(
            tr("expected the name of a file to write, got {path!r}", path=str(path)),
            fix=tr("give one such as out/model{ending}", ending=ending),
        )
    return path if path.suffix == ending else path.with_name(path.name + ending)
