"""What a file needs of the machine and the engine that run it: the NEEDS section.

Text, one need per line, so that the runner reads it without a JSON parser (native lite_file.cc):

    engine 0.1.0
    x86 sse2
    arm neon

A target's words are CPU features that its program cannot do without. Files without the section
need nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lite_messages import tr

from .._version import __version__
from ..errors import ModelFormatError, VersionError

#: The oldest engine that understands what `writer` writes today.
OLDEST_ENGINE = "0.1.0"
#: Every kernel of float32 and integers has a variant for the lowest instruction set; faster ones
#: are picked when it runs. Where a file asks for a precision that needs more, it has a program in
#: float32 beside it (OR_FP32 in precision.py).
BASELINE = {"x86": ("sse2",), "arm": ("neon",), "wasm": ("simd128",)}


class Needs(NamedTuple):
    """`engine` is the oldest version that will do, `features` CPU features by target."""

    engine: str = ""
    features: Mapping[str, tuple[str, ...]] = {}

    def missing(self, target: str, features: Iterable[str]) -> list[str]:
        """CPU features that a program for `target` needs and this list lacks."""
        have = set(features)
        return [f for f in self.features.get(target, ()) if f not in have]

    def check_engine(self, name: str, version: str = __version__) -> None:
        """Raises VersionError when the file needs a newer engine."""
        if self.engine and _numbers(self.engine) > _numbers(version):
            raise VersionError(
                tr(
                    "{name} needs engine {engine} or newer, this is {version}",
                    name=name,
                    engine=self.engine,
                    version=version,
                ),
                fix=tr("convert the model with this version, or install a newer one"),
                command="pip install -U lite-workbench",
            )


def needs_of(targets: Sequence[str]) -> Needs:
    """The needs of a file with programs for these targets."""
    return Needs(OLDEST_ENGINE, {t: BASELINE[t] for t in targets if t in BASELINE})


def to_bytes(needs: Needs) -> bytes:
    lines = [f"engine {needs.engine}"]
    lines += [" ".join([target, *names]) for target, names in needs.features.items()]
    return ("\n".join(lines) + "\n").encode()


def from_bytes(data: bytes) -> Needs:
    """Raises ModelFormatError."""
    try:
        lines = [line.split() for line in data.decode("ascii").splitlines()]
        known = {words[0]: tuple(words[1:]) for words in lines}
        (engine,) = known.pop("engine")
        _numbers(engine)
    except (KeyError, IndexError, ValueError):
        raise ModelFormatError(tr("section NEEDS is damaged")) from None
    return Needs(engine, known)


def _numbers(version: str) -> tuple[int, ...]:
    """ "0.1.0rc1" → (0, 1, 0)."""
    parts = []
    for part in version.split(".")[:3]:
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        parts.append(int(digits))
    return tuple(parts)
