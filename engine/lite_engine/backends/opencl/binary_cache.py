"""Compiled kernels on disk: one file per program, checked in full before a driver sees it.

A driver that is given a damaged binary may end the process, so nothing reaches it that is not,
byte for byte, what it once gave. An entry is a header (magic, format version, sizes, digest), the
key it was stored under, and the binary. The key is everything the binary depends on: platform,
device, versions of device and driver, build options, digest of the source. The digest covers key
and binary, and the key is compared in full, so that a file in another's place is recognised too.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import stat
import struct
from collections.abc import Sequence
from pathlib import Path

from lite_messages import tr

from ...errors import LiteError, reason_of
from ...files import write_file

_log = logging.getLogger(__name__)
MAGIC = b"LITEKRNL"
VERSION = 1
#: No entry of ours is as large.
MOST_BYTES = 1 << 28
#: Magic, version, bytes of the key, bytes of the binary, BLAKE2b-256 of key and binary.
_HEADER = struct.Struct("<8sIIQ32s")


def packed(key: bytes, binary: bytes) -> bytes:
    """An entry's bytes."""
    return _HEADER.pack(MAGIC, VERSION, len(key), len(binary), _digest(key, binary)) + key + binary


def unpacked(entry: bytes, key: bytes) -> bytes:
    """The binary of an entry. Raises ValueError with the reason when it is not intact, or not
    the entry of this key."""
    if len(entry) < _HEADER.size:
        raise ValueError("truncated")
    magic, version, key_bytes, binary_bytes, digest = _HEADER.unpack_from(entry)
    if magic != MAGIC:
        raise ValueError(tr("not a compiled kernel"))
    if version != VERSION:
        raise ValueError(tr("format {version} instead of {known}", version=version, known=VERSION))
    expected = _HEADER.size + key_bytes + binary_bytes
    if len(entry) != expected:
        raise ValueError(
            tr("{bytes} bytes instead of {expected}", bytes=len(entry), expected=expected)
        )
    start = _HEADER.size + key_bytes
    stored, binary = entry[_HEADER.size : start], entry[start:]
    if _digest(stored, binary) != digest:
        raise ValueError(tr("the checksum does not match"))
    if stored != key:
        raise ValueError(tr("stored for another program, device or driver"))
    return binary


def _digest(key: bytes, binary: bytes) -> bytes:
    return hashlib.blake2b(key + binary, digest_size=32).digest()


class BinaryCache:
    """The entries of one device and driver (`device` names them) in a folder."""

    _warned = False  # of all instances: once in a process

    def __init__(self, folder: Path, device: Sequence[str]) -> None:
        self.folder = folder
        self.device = tuple(device)

    def key(self, options: Sequence[str], source: str) -> bytes:
        """The full key of a program."""
        digest = hashlib.blake2b(source.encode(), digest_size=32).hexdigest()
        return "\0".join([*self.device, " ".join(options), digest]).encode()

    def path(self, key: bytes) -> Path:
        name = hashlib.blake2b(key, digest_size=16).hexdigest()
        return self.folder / f"{name}.bin"

    def load(self, key: bytes) -> bytes | None:
        """The binary, None when there is none. A damaged entry is deleted, with one line of
        warning in a process."""
        path = self.path(key)
        try:
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):
                raise ValueError(tr("not a regular file"))
            if status.st_size > MOST_BYTES:
                raise ValueError(f"{status.st_size} bytes")
            return unpacked(path.read_bytes(), key)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self._refuse(path, reason_of(error))
            return None

    def _refuse(self, path: Path, reason: str) -> None:
        # A disk that loses bytes loses many: one line of warning stands for all of them.
        level = logging.DEBUG if BinaryCache._warned else logging.WARNING
        BinaryCache._warned = True
        _log.log(
            level, "%s: damaged compiled kernels are built again (%s: %s)",
            self.folder, path.name, reason,
        )  # fmt: skip
        self.drop(path)

    def drop(self, path: Path) -> None:
        """Forgets an entry; one that cannot be deleted is refused again the next time."""
        with contextlib.suppress(OSError):
            path.unlink()

    def store(self, key: bytes, binary: bytes) -> None:
        """Keeps a binary; a full or read-only disk only costs the next start time."""
        with contextlib.suppress(OSError, LiteError):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_file(self.path(key), packed(key, binary))
