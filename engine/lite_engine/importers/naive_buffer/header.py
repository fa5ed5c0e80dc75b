"""The header of `.nb` files, by which they are known: u16 meta version · 16 bytes opt version · u64
topology size. It is looked for in files of any format, so that nothing of Paddle is imported here.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from lite_messages import tr

from ...errors import ModelFormatError, VersionError

META_VERSIONS = (0, 1, 2)
HEADER_BYTES = 26


@dataclass(frozen=True)
class Header:
    meta_version: int
    opt_version: str
    topology: memoryview
    params: memoryview


def looks_like_nb(start: bytes, size: int) -> bool:
    """True when the first 26 bytes can be a header of a file of `size` bytes."""
    if len(start) < HEADER_BYTES:
        return False
    meta, text, topology = struct.unpack_from("<H16sQ", start)
    version = text.split(b"\0")[0]
    printable = all(32 <= b < 127 for b in version)
    return meta <= 16 and printable and 8 <= topology <= size - HEADER_BYTES


def read_header(data: memoryview) -> Header:
    """Raises ModelFormatError, VersionError."""
    if len(data) < HEADER_BYTES:
        raise ModelFormatError(tr("naive buffer: the file is shorter than its header"))
    meta, text, size = struct.unpack_from("<H16sQ", data)
    if meta not in META_VERSIONS:
        raise VersionError(
            tr(
                "naive buffer: meta version {meta} is newer than this reads ({meta_versions})",
                meta=meta,
                meta_versions=META_VERSIONS[-1],
            ),
            fix=tr("import the original Paddle model (.pdmodel + .pdiparams) instead"),
        )
    if size > len(data) - HEADER_BYTES:
        raise ModelFormatError(
            tr("naive buffer: a topology of {size} bytes does not fit the file", size=size)
        )
    version = text.split(b"\0")[0].decode("ascii", "replace")
    end = HEADER_BYTES + size
    return Header(meta, version, data[HEADER_BYTES:end], data[end:])
