"""The words that a Session and its parts speak: backends, versions of a model, its files."""

from pathlib import Path

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
    """The path with this suffix, put behind what is there: model_0.25 → model_0.25.lite."""
    path = Path(path)
    return path if path.suffix == ending else path.with_name(path.name + ending)
